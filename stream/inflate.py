"""Compressed files as if they were not: seekable, at the price of reading anew what lies before."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa

from stream.errors import SourceError
from stream.urls import READ_ERRORS

CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
"""By the end of a file's name."""


def codec_of(path: str) -> str | None:
    """The codec that the name of a file says; None: none."""
    return next((codec for suffix, codec in CODECS.items() if path.lower().endswith(suffix)), None)


_STEP = 1 << 20
_KEPT = 4 << 20
"""Bytes that stay for going back a little: to the end of the line that was read too far."""


class Inflated:
    """A compressed file, read forwards; a longer way back starts over. Raise SourceError where it is damaged."""

    def __init__(self, file: BinaryIO, codec: str, path: str) -> None:
        self._file = file
        self._codec = codec
        self._path = path
        self._restart()

    def _restart(self) -> None:
        self._file.seek(0)
        self._stream = pa.CompressedInputStream(pa.PythonFile(self._file, "r"), self._codec)
        self._held = b""  # contents [_first, _first + len)
        self._first = 0
        self._at = 0
        self._ended = False

    def _more(self) -> None:
        try:
            data = bytes(self._stream.read(_STEP))
        except (pa.ArrowException, *READ_ERRORS) as error:
            raise SourceError(f"{self._path} is no readable {self._codec} file: {error}") from None
        self._ended = not data
        drop = max(0, min(self._at - self._first, len(self._held)) - _KEPT)
        self._held = self._held[drop:] + data
        self._first += drop

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end."""
        while self._first + len(self._held) < self._at + size and not self._ended:
            self._more()
        begin = self._at - self._first
        data = self._held[begin : begin + size]
        self._at += len(data)
        return data

    def seek(self, place: int) -> None:
        """Go to a byte of the contents."""
        if place < self._first:
            self._restart()
        while self._at < place:
            if not self.read(min(_STEP, place - self._at)):
                return
        self._at = place

    def readline(self, limit: int = 1 << 20) -> bytes:
        """Up to the end of the line, or `limit` bytes of it."""
        start = self._at
        data = self.read(limit)
        end = data.find(b"\n") + 1
        if end:
            self.seek(start + end)
        return data[:end] if end else data

    def size(self) -> int:
        """How many bytes the contents have: read to the end once."""
        while self.read(_STEP):
            pass
        return self._at

    def close(self) -> None:
        """Close the file below."""
        self._file.close()
