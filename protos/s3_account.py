"""How s3:// is reached, wherever a configuration names it: the model directory, data, files of features and samplers.

One rule: what an S3Options message sets; what it leaves unset the environment says (AWS_ACCESS_KEY_ID,
AWS_ENDPOINT_URL, ...), else the machine's role. Secrets are in a file of two lines, never in a configuration or a URL.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from protos.checkpoint_pb2 import S3Options
from protos.errors import ConfigError, Reason
from protos.pipeline_pb2 import EasyRecConfig

if TYPE_CHECKING:
    from obstore.store import S3Config


@dataclass(frozen=True, kw_only=True, slots=True)
class S3Account:
    """An endpoint and whose account it is; what is None the environment says."""

    endpoint: str | None = None
    region: str | None = None
    credentials_file: str | None = None
    allow_http: bool = False

    @classmethod
    def from_proto(cls, options: S3Options) -> Self:
        """Turn the configuration's message."""
        return cls(
            endpoint=options.endpoint or None,
            region=options.region if options.HasField("region") else None,
            credentials_file=options.credentials_file or None,
            allow_http=options.allow_http,
        )

    def settings(self) -> "S3Config":
        """What the client is told; ConfigError where the credentials file cannot be read, which says none of it."""
        settings: S3Config = {}
        if self.endpoint is not None:
            settings["endpoint"] = self.endpoint
        if self.region is not None:
            settings["region"] = self.region
        if self.credentials_file is not None:
            settings["access_key_id"], settings["secret_access_key"] = _credentials(self.credentials_file)
        return settings


ENVIRONMENT = S3Account()
"""All that is said of an account is in the environment."""


def data_account(config: EasyRecConfig) -> S3Account:
    """That of all paths but the model directory's: `data_config.s3`, else the same as the model directory's."""
    data = config.data_config
    return S3Account.from_proto(data.s3 if data.HasField("s3") else config.checkpoint_config.s3)


def _credentials(path: str) -> tuple[str, str]:
    try:
        lines = Path(path).read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(f"the S3 credentials file {path} cannot be read: {why}", reason=Reason.FILE) from None
    if len(lines) != 2:
        raise ConfigError(
            f"the S3 credentials file {path} must hold two lines: access key id, secret access key",
            reason=Reason.FILE,
        )
    return lines[0], lines[1]
