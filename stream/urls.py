"""Where paths and URLs lead: fsspec's file systems, and for s3:// the client that the commit log has too.

Whose account that is, protos/s3_account.py says.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import fsspec
from fsspec.core import url_to_fs
from obstore.exceptions import BaseError

from protos.errors import ConfigError
from protos.s3_account import ENVIRONMENT, S3Account

READ_ERRORS: Final = (OSError, BaseError)
"""What a file system may raise while a file is read or written."""

OPEN_ERRORS: Final = (*READ_ERRORS, ValueError, ImportError, ConfigError)
"""What it may raise before: a URL can be malformed, of a file system that is not installed, of an account not told."""

_S3 = "s3://"
_RETRIES, _TIMEOUT_S = 3, 20


def locate(url: str, s3: S3Account = ENVIRONMENT) -> tuple[fsspec.AbstractFileSystem, str]:
    """The file system of a path or URL, and the path in it; raise one of OPEN_ERRORS.

    >>> locate("memory://clicks/1.parquet")[1]
    '/clicks/1.parquet'
    """
    if not url.startswith(_S3):
        fs, path = url_to_fs(url)
        return fs, path
    # s3fs holds botocore to its own version, and would be a second client with a second configuration.
    from obstore.fsspec import FsspecStore

    timeout = timedelta(seconds=_TIMEOUT_S)
    store = FsspecStore(
        "s3",
        config=s3.settings(),
        client_options={"allow_http": True} if s3.allow_http else None,
        retry_config={"max_retries": _RETRIES, "retry_timeout": timeout},
    )
    return store, url.removeprefix(_S3)


def reason(error: Exception) -> str:
    """What is wrong, in a line: the object store's client shows its innards below the first."""
    return str(error).partition("\n")[0] or type(error).__name__
