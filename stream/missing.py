"""Columns that are to be read and that a file or table lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from stream.errors import MissingColumnsError


def require_columns(where: str, columns: Collection[str] | None, there: Sequence[str], said: Collection[str]) -> None:
    """Raise MissingColumnsError for those that are neither `there` nor said by the path."""
    if missing := sorted(set(columns or ()) - set(there) - set(said)):
        raise MissingColumnsError(where, missing, there)


@contextmanager
def naming_readers(readers: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """Say of missing columns who reads them: `readers` by column.

    >>> with naming_readers({"usr": ["feature user"]}):
    ...     require_columns("a.parquet", ["usr"], ["user"], ())
    Traceback (most recent call last):
    stream.errors.MissingColumnsError: a.parquet lacks the column usr (feature user); it has user
    """
    try:
        yield
    except MissingColumnsError as error:
        raise MissingColumnsError(error.where, error.missing, error.there, readers) from None
