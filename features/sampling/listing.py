"""What the path of a sampler names: a file, the files of a folder, or a table of MaxCompute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from features.errors import SamplerError
from features.sampling.lines import Lines, lines_of_rows, lines_of_text
from protos.s3_account import ENVIRONMENT, S3Account
from stream.errors import SourceError
from stream.files import InputFile, describe_file
from stream.odps_table import SCHEME, OdpsOptions
from stream.urls import OPEN_ERRORS, READ_ERRORS, locate, reason

OpenOdps = Callable[[], OdpsOptions]
"""Reads the account; called only where a path names a table."""


class Listed(Protocol):
    """A path as it was when it was listed."""

    @property
    def version(self) -> str:
        """Another one where the content may have changed."""
        ...

    def lines(self, *, columns: int, weight: int) -> Lines:
        """All lines; raise SamplerError."""
        ...


def list_path(path: str, *, delimiter: str, odps: OpenOdps, s3: S3Account = ENVIRONMENT) -> Listed:
    """One file; of a path that ends in a slash all files, sorted; a table. Raise SamplerError."""
    try:
        if path.startswith(SCHEME):
            return _list_table(path, odps())
        return _list_files(path, delimiter, s3)
    except (*OPEN_ERRORS, SourceError) as error:
        raise SamplerError(f"sampler file {path!r} cannot be read: {reason(error)}") from None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Files:
    files: tuple[InputFile, ...]
    delimiter: str

    @property
    def version(self) -> str:
        return " ".join(file.digest for file in self.files)

    def lines(self, *, columns: int, weight: int) -> Lines:
        """Of all files behind the header of the first."""
        parts = []
        for number, file in enumerate(self.files):
            try:
                with file.fs.open(file.path, "rb") as handle:
                    data: bytes = handle.read()
            except READ_ERRORS as error:
                raise SamplerError(f"sampler file {file.path!r} cannot be read: {error}") from None
            body = data if number == 0 else data.partition(b"\n")[2]
            parts.append(body if body.endswith(b"\n") else body + b"\n")
        path = self.files[0].path
        return lines_of_text(b"".join(parts), path, delimiter=self.delimiter, columns=columns, weight=weight)


def _list_files(path: str, delimiter: str, s3: S3Account) -> _Files:
    fs, inner = locate(path, s3)
    if not path.endswith("/"):
        return _Files(files=(describe_file(fs, inner),), delimiter=delimiter)
    found = sorted(name for name in fs.ls(inner, detail=False) if fs.isfile(name))
    files = tuple(describe_file(fs, name) for name in found if not name.rsplit("/", 1)[-1].startswith((".", "_")))
    if not files:
        raise SamplerError(f"sampler folder {path!r} holds no file")
    return _Files(files=files, delimiter=delimiter)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Table:
    path: str
    options: OdpsOptions
    version: str

    def lines(self, *, columns: int, weight: int) -> Lines:
        from stream.odps import read_table

        try:
            return lines_of_rows(read_table(self.path, self.options), self.path, columns=columns, weight=weight)
        except SourceError as error:
            raise SamplerError(f"sampler table {self.path!r} cannot be read: {error}") from None


def _list_table(path: str, options: OdpsOptions) -> _Table:
    # Most samplers read files, and pyodps is an extra.
    from stream.odps import data_version

    return _Table(path=path, options=options, version=data_version(path, options))
