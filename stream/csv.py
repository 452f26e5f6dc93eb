"""Rows from CSV files: partition = file, offset = block, row = line inside it that is not empty.

Block k holds the lines that start in bytes k * B to (k + 1) * B of the file, so that any block is read without those
before it. Values hold no newlines, as in the peer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from stream.cursor import Cursor
from stream.deadletter import DeadLetter
from stream.decode import DECODE_ERRORS, Decoded, assemble, no_rows, split_bad
from stream.errors import SourceError
from stream.files import FileSource, InputFile, Reading, list_files
from stream.hive import path_columns
from stream.inflate import CODECS, Inflated, codec_of
from stream.missing import require_columns
from stream.source import Chunk

_BLOCK_BYTES = 4 << 20
_DELIMITERS = ",;\t|\x1d"
_CODE = "CSV"


@dataclass(frozen=True, kw_only=True, slots=True)
class CsvOptions:
    """How the lines are read. `names` are for files without a header; `types` win over what the first block shows."""

    delimiter: str = ","
    with_header: bool = False
    names: tuple[str, ...] = ()
    types: pa.Schema | None = None
    columns: frozenset[str] | None = None
    block_bytes: int = _BLOCK_BYTES
    reading: Reading = Reading()

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or not self.delimiter.isascii():
            raise SourceError(f"data_config.delimiter must be one ASCII character, got {self.delimiter!r}")
        if not self.with_header and not self.names:
            raise SourceError("CSV without a header needs data_config.input_fields, or set with_header: true")
        for field in self.types or ():
            if pa.types.is_nested(field.type):
                raise SourceError(f"CSV cannot hold column {field.name} of type {field.type}: declare it STRING")


def open_csv(path: str, options: CsvOptions) -> FileSource:
    """A source over the CSV files of a path; types that are not declared are those of the first file's first block."""
    files = list_files(path, (".csv", *(f".csv{suffix}" for suffix in CODECS)), options.reading.s3)
    settled = _settle_types(files[0], options)
    # A block's number means a place only together with the size of blocks.
    return FileSource(path, files, lambda file: CsvReader(file, settled), f"-{options.block_bytes:x}", options.reading)


class CsvReader:
    """Reads one CSV file, a block at a time."""

    def __init__(self, file: InputFile, options: CsvOptions) -> None:
        self._file = file
        self._options = options
        self._handle: BinaryIO | Inflated | None = None
        self._codec = codec_of(file.path)
        self._size = file.size
        if self._codec is not None:
            self._size = Inflated(file.open(), self._codec, file.path).size()
        self._names = self._header() if options.with_header else list(options.names)
        self._said = path_columns(file.path, options.types).beside(self._names, options.columns)
        _check_columns(file.path, self._names, options.columns, self._said.values, options.delimiter)

    @property
    def units(self) -> int:
        """Blocks."""
        return -(-self._size // self._options.block_bytes)

    def rows_of(self, unit: int) -> None:
        """Nobody knows before the block is read."""

    @property
    def names(self) -> list[str]:
        """The columns, in file order."""
        return self._names

    def read(self, start: Cursor) -> Chunk:
        """The rest of the block that the cursor points into."""
        decoded, lines = self._decode(self.block(start.offset))
        (segment,) = decoded.segments
        skip = int(np.searchsorted(segment.message, start.row))
        dead = tuple(
            DeadLetter(
                cursor=start.at(start.offset, failure.index),
                reason=failure.reason,
                detail=failure.detail,
                raw=lines[failure.index],
                format=_CODE,
            )
            for failure in decoded.failures
            if failure.index >= start.row
        )
        numbers: npt.NDArray[np.int32] = segment.message[skip:]
        return Chunk(
            key=start.key,
            rows=self._said.add(segment.rows.slice(skip)),
            offsets=np.full(len(numbers), start.offset, np.int64),
            row_in_message=numbers,
            broker_time_ms=np.full(len(numbers), -1, np.int64),
            start=start,
            end=start.at(start.offset + 1),
            dead=dead,
        )

    def block(self, number: int) -> bytes:
        """The lines that start in a block, without the header."""
        with self._file.reading():
            return self._block(number)

    def _block(self, number: int) -> bytes:
        handle = self._open()
        size = self._options.block_bytes
        first = max(number * size - 1, 0)
        handle.seek(first)
        # The byte before the block tells whether a line starts with the block.
        data = handle.read(size + (1 if number else 0))
        if number or self._options.with_header:
            skip = data.find(b"\n") + 1
            # A line that started earlier fills the block, or the header is all there is.
            data = data[skip:] if skip else b""
        elif number == 0:
            data = data.removeprefix(b"\xef\xbb\xbf")
        if not data or data.endswith(b"\n"):
            return data
        return data + _rest_of_line(handle)

    def shown_types(self, names: list[str]) -> pa.Schema:
        """The types that the first block shows for some columns; lines of another width do not count."""
        names = [name for name in names if self._options.columns is None or name in self._options.columns]
        data = self.block(0)
        if not names or not data.strip():
            return pa.schema([])
        shown: pa.Schema = pa.csv.read_csv(
            pa.BufferReader(data),
            read_options=pa.csv.ReadOptions(column_names=self._names, use_threads=False, block_size=len(data) + 1),
            parse_options=pa.csv.ParseOptions(
                delimiter=self._options.delimiter, invalid_row_handler=lambda row: "skip"
            ),
            convert_options=pa.csv.ConvertOptions(include_columns=names),
        ).schema
        for field in shown:
            if pa.types.is_null(field.type):
                raise SourceError(
                    f"{self._file.path}: column {field.name} is empty in the first block: declare its type"
                )
        # Bytes that are no UTF-8 are found line by line.
        return pa.schema([field.with_type(pa.string()) if field.type == pa.binary() else field for field in shown])

    def _header(self) -> list[str]:
        with self._file.reading():
            handle = self._open()
            handle.seek(0)
            line = handle.readline().removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n")
        try:
            names: list[str] = self._parse(line + b"\n", None).schema.names
        except DECODE_ERRORS as error:
            raise SourceError(f"{self._file.path} has no readable header: {error}") from None
        finally:
            self.close()
        return names

    def _decode(self, data: bytes) -> tuple[Decoded, Sequence[bytes]]:
        """All lines together; one by one, by halves, only where some are bad."""
        try:
            rows = self._parse(data, self._names)
            numbers: Sequence[int] = range(rows.num_rows)
            return assemble([(numbers, rows)] if rows.num_rows else [], [], rows.num_rows), ()
        except DECODE_ERRORS:
            lines = [line for line in data.split(b"\n") if line.strip(b"\r")]
            pieces, failures = split_bad(lines, self._decode_lines)
            return assemble(pieces, failures, len(lines)), lines

    def _decode_lines(self, lines: list[bytes]) -> pa.RecordBatch:
        rows = self._parse(b"\n".join(lines), self._names)
        if rows.num_rows != len(lines):
            raise pa.ArrowInvalid(f"{len(lines)} lines hold {rows.num_rows} rows")
        return rows

    def _parse(self, data: bytes, names: list[str] | None) -> pa.RecordBatch:
        options = self._options
        if names is not None and not data.strip(b"\r\n"):
            return no_rows()
        table = pa.csv.read_csv(
            pa.BufferReader(data),
            read_options=pa.csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
            parse_options=pa.csv.ParseOptions(delimiter=options.delimiter, newlines_in_values=False),
            convert_options=self._convert(names),
        )
        return (
            table.combine_chunks().to_batches()[0]
            if table.num_rows
            else pa.RecordBatch.from_arrays([pa.array([], field.type) for field in table.schema], schema=table.schema)
        )

    def _convert(self, names: list[str] | None) -> pa.csv.ConvertOptions:
        if names is None:
            return pa.csv.ConvertOptions()
        wanted = [name for name in names if self._options.columns is None or name in self._options.columns]
        types = {field.name: field.type for field in self._options.types or () if field.name in wanted}
        return pa.csv.ConvertOptions(column_types=types, include_columns=wanted)

    def _open(self) -> BinaryIO | Inflated:
        if self._handle is None:
            file = self._file.open()
            self._handle = file if self._codec is None else Inflated(file, self._codec, self._file.path)
        return self._handle

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None


def _rest_of_line(handle: BinaryIO | Inflated) -> bytes:
    pieces = []
    while piece := handle.readline(1 << 16):
        pieces.append(piece)
        if piece.endswith(b"\n"):
            break
    return b"".join(pieces)


def _settle_types(file: InputFile, options: CsvOptions) -> CsvOptions:
    """Declare what the first block shows of the columns that have no declared type."""
    reader = CsvReader(file, options)
    declared = {field.name for field in options.types or ()}
    shown = reader.shown_types([name for name in reader.names if name not in declared])
    reader.close()
    return replace(options, types=pa.schema([*(options.types or ()), *shown]))


def _check_columns(
    path: str, names: list[str], columns: Collection[str] | None, said: Collection[str], delimiter: str
) -> None:
    if names[0].startswith("PAR1"):
        raise SourceError(f"{path} is a Parquet file, no CSV; set data_config.dataset_type: ParquetDataset")
    others = [other for other in _DELIMITERS if other != delimiter and other in names[0]]
    if len(names) == 1 and others and names[0] not in (columns or names):
        raise SourceError(
            f"{path} has one column, {names[0]!r}: data_config.delimiter is {delimiter!r}; is it {others[0]!r}?"
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SourceError(f"{path} has the columns {', '.join(twice)} twice")
    require_columns(path, columns, names, said)
