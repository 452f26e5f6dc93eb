"""Rows from Parquet files: partition = file, offset = row group, row inside it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from protos.s3_account import ENVIRONMENT
from stream.cursor import Cursor
from stream.decode import no_rows
from stream.decode_arrow import plain
from stream.errors import SourceError
from stream.files import FileSource, InputFile, Reading, list_files
from stream.hive import PathColumns, path_columns
from stream.missing import require_columns
from stream.source import Chunk
from stream.urls import READ_ERRORS, reason

_ROWS_PER_CHUNK = 65_536


def open_parquet(
    path: str,
    *,
    columns: Collection[str] | None = None,
    rows_per_chunk: int = _ROWS_PER_CHUNK,
    declared: pa.Schema | None = None,
    reading: Reading | None = None,
) -> FileSource:
    """A source over the Parquet files of a path; raise SourceError where one lacks a column.

    `declared` gives types to columns that the path says (`dt=...`).
    """
    files = list_files(path, ".parquet", ENVIRONMENT if reading is None else reading.s3)

    def make(file: InputFile) -> ParquetReader:
        return ParquetReader(file, columns, rows_per_chunk, path_columns(file.path, declared))

    return FileSource(path, files, make, reading=reading)


class ParquetReader:
    """Reads one Parquet file, in batches inside its row groups; the open file is kept between reads."""

    def __init__(
        self, file: InputFile, columns: Collection[str] | None, rows_per_chunk: int, said: PathColumns
    ) -> None:
        self._file = file
        self._rows_per_chunk = rows_per_chunk
        self._handle: BinaryIO | None = None
        self._parquet: pq.ParquetFile | None = None
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._next: tuple[int, int] | None = None  # the place where `_batches` stands
        self._skipped = 0  # rows of the row group before it
        metadata = self._open().metadata
        self._rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        names = self._open().schema_arrow.names
        self._said = said.beside(names, columns)
        self._columns = _present(file.path, names, columns, self._said)
        self.close()

    @property
    def units(self) -> int:
        """Row groups."""
        return len(self._rows)

    def rows_of(self, unit: int) -> int:
        """Rows of a row group."""
        return int(self._rows[unit])

    def _open(self) -> pq.ParquetFile:
        if self._parquet is None:
            self._handle = self._file.open()
            try:
                self._parquet = pq.ParquetFile(self._handle)
            except (pa.ArrowException, *READ_ERRORS) as error:
                self.close()
                raise SourceError(f"{self._file.path} is no readable Parquet file: {reason(error)}") from None
        return self._parquet

    def read(self, start: Cursor) -> Chunk:
        """Some rows of the row group that the cursor points into."""
        group, row = start.place
        if self._next != start.place:
            self._seek(group)
        try:
            rows = next(self._batches, None)
            while rows is not None and self._skipped < row:
                left = row - self._skipped
                self._skipped += min(left, rows.num_rows)
                rows = rows.slice(left) if left < rows.num_rows else next(self._batches, None)
        except (pa.ArrowException, *READ_ERRORS) as error:
            raise SourceError(f"{self._file.path} row group {group} cannot be read: {reason(error)}") from None
        count = 0 if rows is None else rows.num_rows
        if not count and row < self._rows[group]:
            raise SourceError(f"{self._file.path} row group {group} ends before row {row} of {self._rows[group]}")
        ended = row + count >= self._rows[group]
        end = start.at(group + 1) if ended else start.at(group, row + count)
        self._next, self._skipped = (None, 0) if ended else (end.place, end.row)
        rows = no_rows() if rows is None else self._said.add(plain(rows))
        return Chunk(
            key=start.key,
            rows=rows,
            offsets=np.full(count, group, np.int64),
            row_in_message=np.arange(row, row + count, dtype=np.int32),
            broker_time_ms=np.full(count, -1, np.int64),
            start=start,
            end=end,
        )

    def _seek(self, group: int) -> None:
        self._skipped = 0
        self._batches = self._open().iter_batches(
            batch_size=self._rows_per_chunk, row_groups=[group], columns=self._columns, use_threads=False
        )

    def close(self) -> None:
        """Close the file."""
        self._batches, self._next = iter(()), None
        if self._parquet is not None:
            self._parquet.close()
        if self._handle is not None:
            self._handle.close()
        self._parquet = self._handle = None


def _present(path: str, names: list[str], columns: Collection[str] | None, said: PathColumns) -> list[str] | None:
    if columns is None:
        return None
    require_columns(path, columns, names, said.values)
    return [name for name in names if name in set(columns)]
