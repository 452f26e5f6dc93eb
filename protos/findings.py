"""One thing that a check of a configuration found."""

from dataclasses import dataclass

from protos.errors import Reason


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What was found at `path`; `text` holds reason and remedy.

    >>> str(Finding(path="data_config.batch_size", value="0", text="trains nothing; give at least 1"))
    'data_config.batch_size: 0 trains nothing; give at least 1'
    """

    path: str
    text: str
    value: str = ""
    reason: Reason = Reason.INCONSISTENT
    disposition: str = "refused"

    def __str__(self) -> str:
        return f"{self.path}: {self.value} {self.text}" if self.value else f"{self.path}: {self.text}"
