"""What can be wrong with a configuration.

::

    ConfigError          reason says which: see Reason
"""

import enum


class Reason(enum.StrEnum):
    """Why a configuration is not accepted."""

    FILE = "file"
    SYNTAX = "syntax"
    UNKNOWN_FIELD = "unknown_field"
    BAD_VALUE = "bad_value"
    SECRET = "secret"
    PLUGIN = "plugin"
    REFUSED = "refused"
    INCONSISTENT = "inconsistent"


class ConfigError(Exception):
    """A configuration that headrace does not accept; the message names file, line, thing, value and remedy.

    >>> str(ConfigError("batch_size is 0; give at least 1", reason=Reason.BAD_VALUE, source="a.config", line=3))
    'a.config:3: batch_size is 0; give at least 1'
    """

    def __init__(self, detail: str, *, reason: Reason, source: str = "", line: int | None = None) -> None:
        place = f"{source}:{line}" if source and line is not None else source
        super().__init__(f"{place}: {detail}" if place else detail)
        self.detail = detail
        self.reason = reason
        self.source = source
        self.line = line
