"""`open_store`: the store that a model directory's URL names."""

from datetime import timedelta

from obstore.store import S3Store

from checkpointer.errors import StoreError
from checkpointer.faults import NO_FAULTS, FaultPoints
from checkpointer.local_store import LocalStore
from checkpointer.memory_store import MemoryStore
from checkpointer.object_store import ObjectStore
from checkpointer.store import Store
from protos.errors import ConfigError
from protos.s3_account import S3Account

_TIMEOUT_S = 30
_RETRIES = 5


class StoreOptions(S3Account):
    """How the S3 endpoint of a model directory is reached."""

    __slots__ = ()


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
    try:
        settings = options.settings()
    except ConfigError as error:
        raise StoreError(str(error)) from None
    objects = S3Store(
        bucket,
        prefix=prefix,
        config=settings,
        client_options={"allow_http": options.allow_http, "timeout": timedelta(seconds=_TIMEOUT_S)},
        retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_TIMEOUT_S)},
    )
    return ObjectStore(objects, url, faults)
