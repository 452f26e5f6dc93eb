"""Parquet files of required columns around the columns' own memory: one row group, plain or DELTA_BINARY_PACKED pages.

Arrow writes the same bytes, but copies every row three times, with a writer to set up for each of the many small files
of a commit. What may be here is said in FORMAT.md, section 4; the parts of a file are those of parquet-format's Thrift
definitions, in the compact protocol.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

Buffer = bytes | memoryview
Array = npt.NDArray[np.generic]

_MAGIC = b"PAR1"
# Readers choose workarounds by this name: the files are those of this writer, byte for byte.
_CREATED_BY = b"parquet-cpp-arrow version 26.0.1"
_PAGE_ROWS = 20_000
_INT32, _INT64, _FLOAT, _DOUBLE, _FIXED = 1, 2, 4, 5, 7
_PLAIN, _RLE, _DELTA = 0, 3, 5
_BLOCK, _MINIBLOCKS = 256, 4
_MINIBLOCK = _BLOCK // _MINIBLOCKS


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
    "int8": _Kind(_INT32, "<i4", annotation=_integer(15, 8, signed=True)),
    "int16": _Kind(_INT32, "<i4", annotation=_integer(16, 16, signed=True)),
    "int32": _Kind(_INT32, "<i4"),
    "int64": _Kind(_INT64, "<i8", _DELTA),
    "uint8": _Kind(_INT32, "<i4", annotation=_integer(11, 8, signed=False)),
    "uint16": _Kind(_INT32, "<i4", annotation=_integer(12, 16, signed=False)),
    "uint32": _Kind(_INT32, "<u4", annotation=_integer(13, 32, signed=False)),
    "uint64": _Kind(_INT64, "<u8", _DELTA, annotation=_integer(14, 64, signed=False)),
    "float16": _Kind(_FIXED, "<f2", width=2, annotation=b"\x6c\xfc\x00\x00"),
    "float32": _Kind(_FLOAT, "<f4"),
    "float64": _Kind(_DOUBLE, "<f8"),
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
    buffers: list[Buffer] = [_MAGIC]
    chunks: list[_Chunk] = []
    end, rows = len(_MAGIC), 0
    for name, column in columns.items():
        rows = len(column)
        chunk = _Chunk(name=name.encode(), kind=_kind(column), offset=end if rows else 0)
        for start in range(0, rows, _PAGE_ROWS):
            page = _page(column[start : start + _PAGE_ROWS], chunk.kind)
            buffers += page
            chunk.pages += 1
            chunk.bytes += sum(map(len, page))
        end += chunk.bytes
        chunks.append(chunk)
    footer = _footer(chunks, rows, metadata)
    buffers.append(b"".join((footer, len(footer).to_bytes(4, "little"), _MAGIC)))
    return buffers


def _kind(column: Array) -> _Kind:
    if column.ndim == 1:
        return _KINDS[column.dtype.name]
    width = column.dtype.itemsize * column.shape[1]
    return _Kind(physical=_FIXED, stored=column.dtype.str, width=width)


def _page(values: Array, kind: _Kind) -> tuple[bytes, memoryview]:
    """The header of a data page, and its values."""
    stored = np.ascontiguousarray(values, kind.stored)
    if kind.encoding == _DELTA:
        packed = np.empty(_packed_bound(len(stored)), np.uint8)
        flat = packed[: _pack(stored.view(np.int64), packed)]
    else:
        flat = stored.reshape(-1).view(np.uint8)
    size, count = _zigzag(len(flat)), _zigzag(len(stored))
    encodings = bytes((0x15, 2 * kind.encoding, 0x15, 2 * _RLE, 0x15, 2 * _RLE))
    # PageHeader: type 0, both sizes, the number of values, encodings, empty statistics.
    header = (b"\x15\x00\x15", size, b"\x15", size, b"\x2c\x15", count, encodings, b"\x1c\x00\x00\x00")
    return b"".join(header), flat.data


def _footer(chunks: Sequence[_Chunk], rows: int, metadata: Mapping[str, str]) -> bytes:
    """FileMetaData: version 2, schema, number of rows, the row group, key-value metadata, writer, column orders."""
    total, count = _zigzag(sum(chunk.bytes for chunk in chunks)), _zigzag(rows)
    parts = [b"\x15\x04\x19", _list(len(chunks) + 1, 0xC)]
    parts += [b"\x35\x00\x18\x06schema\x15", _zigzag(len(chunks)), b"\x00", *map(_element, chunks)]
    parts += [b"\x16", count, b"\x19\x1c\x19", _list(len(chunks), 0xC)]
    for chunk in chunks:
        parts += _column_chunk(chunk, count)
    parts += [b"\x16", total, b"\x16", count, b"\x26", _zigzag(chunks[0].offset), b"\x16", total, b"\x00"]
    pairs = [
        b"\x18" + _text(key.encode()) + b"\x18" + _text(value.encode()) + b"\x00" for key, value in metadata.items()
    ]
    if pairs:
        parts += [b"\x19", _list(len(pairs), 0xC), *pairs]
    parts += [b"\x18" if pairs else b"\x28", _text(_CREATED_BY)]
    parts += [b"\x19", _list(len(chunks), 0xC), b"\x1c\x00\x00" * len(chunks), b"\x00"]
    return b"".join(parts)


def _element(chunk: _Chunk) -> bytes:
    """SchemaElement of a required column."""
    kind = chunk.kind
    width = b"\x15" + _zigzag(kind.width) + b"\x15\x00" if kind.width else b"\x25\x00"
    return bytes((0x15, 2 * kind.physical)) + width + b"\x18" + _text(chunk.name) + kind.annotation + b"\x00"


def _column_chunk(chunk: _Chunk, count: bytes) -> tuple[bytes, ...]:
    """ColumnChunk, with how many pages there are of which encoding; `count` is the number of rows, encoded."""
    physical, encoding, size = 2 * chunk.kind.physical, 2 * chunk.kind.encoding, _zigzag(chunk.bytes)
    if chunk.pages:
        encodings = bytes((0x19, 0x25, 2 * _RLE, encoding))
        pages = bytes((0x1C, 0x15, 0, 0x15, encoding, 0x15)) + _zigzag(chunk.pages) + b"\x00"
    else:
        encodings, pages = bytes((0x19, 0x15, 2 * _RLE)), b"\x0c"
    head = b"\x26\x00\x1c" + bytes((0x15, physical)) + encodings + b"\x19\x18" + _text(chunk.name)
    return (
        head,
        b"\x15\x00\x16",
        count,
        b"\x16",
        size,
        b"\x16",
        size,
        b"\x26",
        _zigzag(chunk.offset),
        b"\x49",
        pages,
        b"\x00\x00",
    )


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    return bytes((value & 0x7F | 0x80,)) + _varint(value >> 7)


def _zigzag(value: int) -> bytes:
    """A number that is not negative, as Thrift's compact protocol has signed ones."""
    return _varint(2 * value)


def _text(text: bytes) -> bytes:
    return _varint(len(text)) + text


def _list(size: int, of: int) -> bytes:
    return bytes((size << 4 | of,)) if size < 15 else bytes((0xF0 | of,)) + _varint(size)


def _packed_bound(values: int) -> int:
    """At most so many bytes: 30 before all blocks, and for each 10, its widths and 64 bits a value."""
    blocks = -(-max(values - 1, 0) // _BLOCK)
    return 30 + blocks * (10 + _MINIBLOCKS + 8 * _BLOCK)


@njit(cache=True, nogil=True)
def _put_varint(out, at, value):  # type: ignore[no-untyped-def]
    while value >= np.uint64(0x80):
        out[at] = np.uint8(value & np.uint64(0x7F)) | np.uint8(0x80)
        value >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(value)
    return at + 1


@njit(cache=True, nogil=True)
def _signed(value):  # type: ignore[no-untyped-def]
    return np.uint64((value << np.int64(1)) ^ (value >> np.int64(63)))


@njit(cache=True, nogil=True)
def _pack(values, out):  # type: ignore[no-untyped-def]
    """DELTA_BINARY_PACKED, with differences that wrap; returns how many bytes it took."""
    at = _put_varint(out, 0, np.uint64(_BLOCK))
    at = _put_varint(out, at, np.uint64(_MINIBLOCKS))
    at = _put_varint(out, at, np.uint64(values.size))
    at = _put_varint(out, at, _signed(values[0]))
    start = 1
    while start < values.size:
        count = min(_BLOCK, values.size - start)
        least = values[start] - values[start - 1]
        for i in range(start + 1, start + count):
            least = min(least, values[i] - values[i - 1])
        at = _put_varint(out, at, _signed(least))
        widths = at
        out[widths : widths + _MINIBLOCKS] = 0
        at += _MINIBLOCKS
        for m in range((count + _MINIBLOCK - 1) // _MINIBLOCK):
            first = start + m * _MINIBLOCK
            last = min(first + _MINIBLOCK, start + count)
            every = np.uint64(0)
            for i in range(first, last):
                every |= np.uint64(values[i] - values[i - 1] - least)
            width = 0
            while every:
                every >>= np.uint64(1)
                width += 1
            out[widths + m] = width
            word = np.uint64(0)
            filled = 0
            end = at + width * _MINIBLOCK // 8
            for i in range(first, last):
                value = np.uint64(values[i] - values[i - 1] - least)
                word |= value << np.uint64(filled)
                filled += width
                if filled >= 64:
                    for b in range(8):
                        out[at + b] = np.uint8(word >> np.uint64(8 * b))
                    at += 8
                    filled -= 64
                    word = value >> np.uint64(width - filled) if filled else np.uint64(0)
            while at < end:
                out[at] = np.uint8(word)
                word >>= np.uint64(8)
                at += 1
        start += count
    return at
