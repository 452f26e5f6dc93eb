"""`open_store`: the store that a model directory's URL names."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from obstore.store import S3Store

from checkpointer.errors import StoreError
from checkpointer.faults import NO_FAULTS, FaultPoints
from checkpointer.local_store import LocalStore
from checkpointer.memory_store import MemoryStore
from checkpointer.object_store import ObjectStore
from checkpointer.store import Store
from protos.checkpoint_pb2 import S3Options

if TYPE_CHECKING:
    from obstore.store import S3Config

_TIMEOUT_S = 30
_RETRIES = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreOptions:
    """How to reach an S3 endpoint; without `credentials_file` the client looks at the environment and the machine."""

    endpoint: str | None = None
    region: str = "us-east-1"
    credentials_file: str | None = None
    allow_http: bool = False

    @classmethod
    def from_proto(cls, options: S3Options) -> "StoreOptions":
        """Turn the configuration's message."""
        return cls(
            endpoint=options.endpoint or None,
            region=options.region,
            credentials_file=options.credentials_file or None,
            allow_http=options.allow_http,
        )


_DEFAULTS = StoreOptions()


def open_store(url: str, options: StoreOptions = _DEFAULTS, faults: FaultPoints = NO_FAULTS) -> Store:
    """A local directory, `s3://bucket/prefix` or `memory://`.

    >>> open_store("memory://").url
    'memory://'
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return LocalStore(url, faults)
    if scheme == "file":
        return LocalStore(rest, faults)
    if scheme == "memory":
        return MemoryStore(faults)
    if scheme == "s3":
        return _open_s3(url, rest, options, faults)
    raise StoreError(f"a model directory is a path or s3://bucket/prefix, got {url!r}")


def _open_s3(url: str, rest: str, options: StoreOptions, faults: FaultPoints) -> ObjectStore:
    bucket, _, prefix = rest.strip("/").partition("/")
    if "@" in rest or "?" in rest:
        raise StoreError("secrets and options do not belong into an s3:// URL; use checkpoint_config { s3 { ... } }")
    if not bucket or not prefix:
        raise StoreError(f"a model directory in S3 is s3://bucket/prefix, got {url!r}")
    objects = S3Store(
        bucket,
        prefix=prefix,
        config=_settings(options),
        client_options={"allow_http": options.allow_http, "timeout": timedelta(seconds=_TIMEOUT_S)},
        retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_TIMEOUT_S)},
    )
    return ObjectStore(objects, url, faults)


def _settings(options: StoreOptions) -> "S3Config":
    """What is not set is the environment's, else AWS's endpoint and the machine's account."""
    settings: S3Config = {"region": options.region}
    if options.endpoint:
        settings["endpoint"] = options.endpoint
    if options.credentials_file:
        settings["access_key_id"], settings["secret_access_key"] = _credentials(options.credentials_file)
    return settings


def _credentials(path: str) -> tuple[str, str]:
    try:
        lines = Path(path).read_text(encoding="utf-8").split()
    except OSError as error:
        raise StoreError(f"the S3 credentials file {path} cannot be read: {error.strerror}") from None
    if len(lines) != 2:
        raise StoreError(f"the S3 credentials file {path} must hold two lines: access key id, secret access key")
    return lines[0], lines[1]
