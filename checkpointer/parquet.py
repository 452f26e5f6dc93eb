"""Parquet files of required columns around the columns' own memory: one row group, plain or DELTA_BINARY_PACKED pages.

Arrow writes the same bytes, but copies every row three times, with a writer to set up for each of the many small files
of a commit. What may be here is said in FORMAT.md, section 4; the parts of a file are those of parquet-format's Thrift
definitions, in the compact protocol.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from checkpointer.packing import pack_deltas
from checkpointer.thrift import list_head, text, zigzag

Buffer = bytes | memoryview
Array = npt.NDArray[np.generic]

MAGIC = b"PAR1"
# Readers choose workarounds by this name: the files are those of this writer, byte for byte.
CREATED_BY = b"parquet-cpp-arrow version 26.0.1"
PAGE_ROWS = 20_000
_INT32, _INT64, _FLOAT, _DOUBLE, _FIXED = 1, 2, 4, 5, 7
_PLAIN, _RLE, _DELTA = 0, 3, 5


@dataclass(frozen=True, slots=True)
class _Kind:
    """How values of one NumPy type are stored; `annotation` is the logical type of a schema element, ready-made."""

    physical: int
    stored: str
    encoding: int = _PLAIN
    width: int = 0
    annotation: bytes = b""


def _integer(converted: int, bits: int, *, signed: bool) -> bytes:
    """The converted and the logical type of integers that their physical type does not describe."""
    return bytes((0x25, 2 * converted, 0x4C, 0xAC, 0x13, bits, 0x11 if signed else 0x12, 0, 0))


_KINDS = {
    "|i1": _Kind(_INT32, "<i4", annotation=_integer(15, 8, signed=True)),
    "<i2": _Kind(_INT32, "<i4", annotation=_integer(16, 16, signed=True)),
    "<i4": _Kind(_INT32, "<i4"),
    "<i8": _Kind(_INT64, "<i8", _DELTA),
    "|u1": _Kind(_INT32, "<i4", annotation=_integer(11, 8, signed=False)),
    "<u2": _Kind(_INT32, "<i4", annotation=_integer(12, 16, signed=False)),
    "<u4": _Kind(_INT32, "<u4", annotation=_integer(13, 32, signed=False)),
    "<u8": _Kind(_INT64, "<u8", _DELTA, annotation=_integer(14, 64, signed=False)),
    "<f2": _Kind(_FIXED, "<f2", width=2, annotation=b"\x6c\xfc\x00\x00"),
    "<f4": _Kind(_FLOAT, "<f4"),
    "<f8": _Kind(_DOUBLE, "<f8"),
}


@dataclass(kw_only=True, slots=True)
class _Chunk:
    """One column in the file: where its pages begin, and their number and bytes."""

    name: bytes
    kind: _Kind
    offset: int
    pages: int = 0
    bytes: int = 0


def encode(columns: Mapping[str, Array], metadata: Mapping[str, str]) -> list[Buffer]:
    """The bytes of a file in pieces: [n] as values of their type, [n, D] as byte strings of fixed width.

    Pieces are views of the columns where they can be, which must not change until the pieces are used.
    """
    buffers: list[Buffer] = [MAGIC]
    chunks: list[_Chunk] = []
    end, rows = len(MAGIC), 0
    for name, column in columns.items():
        rows = len(column)
        chunk = _Chunk(name=name.encode(), kind=_kind(column), offset=end if rows else 0)
        for start in range(0, rows, PAGE_ROWS):
            page = _page(column[start : start + PAGE_ROWS], chunk.kind)
            buffers += page
            chunk.pages += 1
            chunk.bytes += sum(map(len, page))
        end += chunk.bytes
        chunks.append(chunk)
    footer = _footer(chunks, rows, metadata)
    buffers.append(b"".join((footer, len(footer).to_bytes(4, "little"), MAGIC)))
    return buffers


def _kind(column: Array) -> _Kind:
    if column.ndim == 1:
        return _KINDS[column.dtype.str]
    width = column.dtype.itemsize * column.shape[1]
    return _Kind(physical=_FIXED, stored=column.dtype.str, width=width)


def _page(values: Array, kind: _Kind) -> tuple[bytes, memoryview]:
    """The header of a data page, and its values."""
    stored = np.ascontiguousarray(values, kind.stored)
    plain = kind.encoding == _PLAIN
    flat = stored.reshape(-1).view(np.uint8).data if plain else pack_deltas(stored.view(np.int64))
    return page_header(len(flat), len(stored), kind.encoding), flat


def page_header(size: int, count: int, encoding: int) -> bytes:
    """PageHeader of a data page: type 0, both sizes in bytes, the number of values, encodings, empty statistics."""
    of_bytes, encodings = zigzag(size), bytes((0x15, 2 * encoding, 0x15, 2 * _RLE, 0x15, 2 * _RLE))
    header = (b"\x15\x00\x15", of_bytes, b"\x15", of_bytes, b"\x2c\x15", zigzag(count), encodings, b"\x1c\x00\x00\x00")
    return b"".join(header)


def _footer(chunks: Sequence[_Chunk], rows: int, metadata: Mapping[str, str]) -> bytes:
    """FileMetaData: version 2, schema, number of rows, the row group, key-value metadata, writer, column orders."""
    total, count = zigzag(sum(chunk.bytes for chunk in chunks)), zigzag(rows)
    parts = [b"\x15\x04\x19", list_head(len(chunks) + 1, 0xC)]
    parts += [b"\x35\x00\x18\x06schema\x15", zigzag(len(chunks)), b"\x00", *map(_element, chunks)]
    parts += [b"\x16", count, b"\x19\x1c\x19", list_head(len(chunks), 0xC)]
    for chunk in chunks:
        parts += _column_chunk(chunk, count)
    parts += [b"\x16", total, b"\x16", count, b"\x26", zigzag(chunks[0].offset), b"\x16", total, b"\x00"]
    pairs = [b"\x18" + text(key.encode()) + b"\x18" + text(value.encode()) + b"\x00" for key, value in metadata.items()]
    if pairs:
        parts += [b"\x19", list_head(len(pairs), 0xC), *pairs]
    parts += [b"\x18" if pairs else b"\x28", text(CREATED_BY)]
    parts += [b"\x19", list_head(len(chunks), 0xC), b"\x1c\x00\x00" * len(chunks), b"\x00"]
    return b"".join(parts)


def _element(chunk: _Chunk) -> bytes:
    """SchemaElement of a required column."""
    kind = chunk.kind
    width = b"\x15" + zigzag(kind.width) + b"\x15\x00" if kind.width else b"\x25\x00"
    return bytes((0x15, 2 * kind.physical)) + width + b"\x18" + text(chunk.name) + kind.annotation + b"\x00"


def _column_chunk(chunk: _Chunk, count: bytes) -> tuple[bytes, ...]:
    """ColumnChunk, with how many pages there are of which encoding; `count` is the number of rows, encoded."""
    physical, encoding, size = 2 * chunk.kind.physical, 2 * chunk.kind.encoding, zigzag(chunk.bytes)
    if chunk.pages:
        encodings = bytes((0x19, 0x25, 2 * _RLE, encoding))
        pages = bytes((0x1C, 0x15, 0, 0x15, encoding, 0x15)) + zigzag(chunk.pages) + b"\x00"
    else:
        encodings, pages = bytes((0x19, 0x15, 2 * _RLE)), b"\x0c"
    head = b"\x26\x00\x1c" + bytes((0x15, physical)) + encodings + b"\x19\x18" + text(chunk.name)
    return (
        head,
        b"\x15\x00\x16",
        count,
        b"\x16",
        size,
        b"\x16",
        size,
        b"\x26",
        zigzag(chunk.offset),
        b"\x49",
        pages,
        b"\x00\x00",
    )
