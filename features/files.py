"""The files that a configuration's features read: vocabularies, tokenizers, stop characters."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from protos.s3_account import ENVIRONMENT, S3Account
from stream.urls import OPEN_ERRORS, locate, reason


class Files(Protocol):
    """Where features read the files that their configuration names."""

    def read(self, path: str) -> bytes:
        """The content of the file that a configuration names so; raise OSError."""
        ...


class LocalFiles:
    """The files of this machine, and those behind fsspec URLs, with an account for s3://."""

    def __init__(self, s3: S3Account = ENVIRONMENT) -> None:
        self._s3 = s3

    def read(self, path: str) -> bytes:
        """Read from disk, or from where a URL leads."""
        if "://" not in path:
            return Path(path).read_bytes()
        try:
            fs, inner = locate(path, self._s3)
            content: bytes = fs.cat_file(inner)
        except OPEN_ERRORS as error:
            raise OSError(reason(error)) from None
        return content


class NotedFiles:
    """Files of another place, and in `noted` what of them was read: all that must travel with the configuration."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.noted: dict[str, bytes] = {}

    def read(self, path: str) -> bytes:
        """Read each file once, so that what was noted is what features were built from."""
        if path not in self.noted:
            self.noted[path] = self._files.read(path)
        return self.noted[path]


class BroughtFiles:
    """Files that came along with a configuration; whatever lies on this machine under the same names is not theirs.

    >>> BroughtFiles({"words.txt": b"a"}).read("words.txt")
    b'a'
    """

    def __init__(self, content: Mapping[str, bytes]) -> None:
        self._content = content

    def read(self, path: str) -> bytes:
        """Look the file up."""
        if path not in self._content:
            raise FileNotFoundError("it did not come along with the configuration")
        return self._content[path]


def text_of(content: bytes) -> str:
    r"""UTF-8 text with one kind of line end, as `Path.read_text` gives it; raise UnicodeDecodeError.

    >>> text_of(b"a\r\nb\n")
    'a\nb\n'
    """
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8").read()
