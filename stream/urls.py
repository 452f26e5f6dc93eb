"""Where paths and URLs lead: fsspec's file systems, and for s3:// the client that the commit log has too.

The account and the endpoint of s3:// are in the usual variables (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, ...) or the
machine's role; the client reads them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import fsspec
from fsspec.core import url_to_fs
from obstore.exceptions import BaseError

READ_ERRORS: Final = (OSError, BaseError)
"""What a file system may raise while a file is read or written."""

OPEN_ERRORS: Final = (*READ_ERRORS, ValueError, ImportError)
"""What it may raise before: a URL can be malformed, or of a file system that is not installed."""

_S3 = "s3://"
_RETRIES, _TIMEOUT_S = 3, 20


def locate(url: str) -> tuple[fsspec.AbstractFileSystem, str]:
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
    store = FsspecStore("s3", retry_config={"max_retries": _RETRIES, "retry_timeout": timeout})
    return store, url.removeprefix(_S3)


def reason(error: Exception) -> str:
    """What is wrong, in a line: the object store's client shows its innards below the first."""
    return str(error).partition("\n")[0] or type(error).__name__
