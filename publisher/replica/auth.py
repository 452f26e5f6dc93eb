"""The bearer token: read from a file, compared in constant time, read again when the file changes."""

import hmac
import logging
from pathlib import Path

from publisher.replica.errors import StartError

logger = logging.getLogger(__name__)


class Token:
    """The token in a file; a file that becomes unreadable or empty leaves the last token in force."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._stamp = self._stat()
            self._token = self._read()
        except OSError as error:
            raise StartError(f"token file {path} cannot be read: {error.strerror}") from error
        if not self._token:
            raise StartError(f"token file {path} is empty: write the bearer token into it")

    def allows(self, authorization: str | None) -> bool:
        """Say whether an Authorization header carries the token."""
        self._refresh()
        scheme, _, given = (authorization or "").partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), self._token)
        return same and scheme.lower() == "bearer"

    def _stat(self) -> tuple[int, int, int]:
        found = self._path.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _read(self) -> bytes:
        return self._path.read_bytes().strip()

    def _refresh(self) -> None:
        try:
            stamp = self._stat()
            if stamp == self._stamp:
                return
            token = self._read()
        except OSError as error:
            logger.warning("token file unreadable path=%s error=%s: the last token stays", self._path, error)
            return
        if not token:
            # A file caught between truncation and writing; asked again at the next request.
            logger.warning("token file empty path=%s: the last token stays", self._path)
            return
        self._stamp, self._token = stamp, token
        logger.info("token file read again path=%s", self._path)
