"""Files of serving rows (FORMAT.md, section 2) as Parquet, around the memory of the rows.

The columns `table`, `id` and `row` are optional ones in one row group, on pages of 20,000 rows: the bytes that Arrow
writes, without its copies. The forms of the headers are those of parquet-format's Thrift definitions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from checkpointer.packing import pack_deltas, pack_runs
from checkpointer.parquet import CREATED_BY, MAGIC, PAGE_ROWS, Buffer, page_header
from checkpointer.thrift import list_head, text, varint, zigzag

_BYTES, _INT64, _FIXED = 6, 2, 7
_PLAIN, _DELTA, _RLE_DICTIONARY = 0, 5, 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """Rows of one table: `ids` int64[n] ascending; `kept` bool[n], False: deleted; `rows` uint8[kept, w], C order."""

    table: str
    ids: np.ndarray
    kept: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pages:
    """The data pages of one column."""

    count: int
    encoding: int
    buffers: tuple[Buffer, ...]

    @property
    def size(self) -> int:
        return sum(map(len, self.buffers))


def encode(segments: Sequence[Segment], width: int) -> list[Buffer]:
    """The bytes of a file of at least one row, in pieces; rows are views, which must not change until they are used."""
    ids = np.concatenate([segment.ids for segment in segments])
    kept = np.concatenate([segment.kept for segment in segments])
    sizes = [len(segment.ids) for segment in segments]
    codes = np.repeat(np.arange(len(segments), dtype=np.int32), sizes)
    bits = max(1, (len(segments) - 1).bit_length())
    rows, values = [segment.rows for segment in segments], np.concatenate([[0], np.cumsum(kept)])
    count = len(ids)

    def coded(start: int, end: int) -> list[Buffer]:
        return [_levels(kept[start:end] | True), bytes((bits,)) + pack_runs(codes[start:end], bits)]

    def numbers(start: int, end: int) -> list[Buffer]:
        return [_levels(kept[start:end] | True), pack_deltas(ids[start:end])]

    def plain(start: int, end: int) -> list[Buffer]:
        return [_levels(kept[start:end]), *_cut(rows, int(values[start]), int(values[end]))]

    dictionary = _dictionary([segment.table.encode() for segment in segments])
    columns = (
        _pages(count, _RLE_DICTIONARY, coded),
        _pages(count, _DELTA, numbers),
        _pages(count, _PLAIN, plain),
    )
    text_bytes = sum(len(segment.table.encode()) * len(segment.ids) for segment in segments)
    footer = _footer(len(dictionary), columns, count, int(values[-1]), width, text_bytes)
    pages = [buffer for column in columns for buffer in column.buffers]
    return [MAGIC + dictionary, *pages, footer + len(footer).to_bytes(4, "little") + MAGIC]


def _pages(count: int, encoding: int, content: Callable[[int, int], list[Buffer]]) -> _Pages:
    buffers: list[Buffer] = []
    for start in range(0, count, PAGE_ROWS):
        end = min(start + PAGE_ROWS, count)
        parts = content(start, end)
        buffers += [page_header(sum(map(len, parts)), end - start, encoding), *parts]
    return _Pages(count=-(-count // PAGE_ROWS), encoding=encoding, buffers=tuple(buffers))


def _levels(there: np.ndarray) -> bytes:
    """Definition levels: which values there are."""
    packed = varint(2 * len(there)) + b"\x01" if there.all() else pack_runs(there.view(np.uint8), 1)
    return len(packed).to_bytes(4, "little") + packed


def _cut(parts: Sequence[np.ndarray], start: int, end: int) -> Iterator[memoryview]:
    """Rows [start, end) of all parts together."""
    for part in parts:
        here = part[max(start, 0) : max(end, 0)]
        if len(here):
            yield np.ascontiguousarray(here).reshape(-1).data
        start, end = start - len(part), end - len(part)


def _dictionary(names: Sequence[bytes]) -> bytes:
    """The dictionary page of `table`: PLAIN, not sorted."""
    content = b"".join(len(name).to_bytes(4, "little") + name for name in names)
    size = zigzag(len(content))
    header = (b"\x15\x04\x15", size, b"\x15", size, b"\x4c\x15", zigzag(len(names)), b"\x15\x00\x12\x00\x00")
    return b"".join((*header, content))


def _footer(dictionary: int, columns: Sequence[_Pages], count: int, kept: int, width: int, text_bytes: int) -> bytes:
    """FileMetaData: schema, the row group, writer, column orders."""
    tables, ids, rows = columns
    table_size = dictionary + tables.size
    first = len(MAGIC)
    id_at, row_at = first + table_size, first + table_size + ids.size
    total, counted = zigzag(table_size + ids.size + rows.size), zigzag(count)
    none_missing = b"\x19" + list_head(2, 6) + zigzag(0) + counted + b"\x00"
    missing = b"\x19" + list_head(2, 6) + zigzag(count - kept) + zigzag(kept) + b"\x00"
    table_stats = b"\x16" + zigzag(text_bytes) + b"\x19\x06" + none_missing
    table_pages = b"\x26" + zigzag(first) + b"\x29\x2c\x15\x04\x15\x00\x15\x02\x00" + _page_stats(tables)
    chunks = (
        (_BYTES, b"table", b"\x19\x35\x00\x06\x10", table_size, first + dictionary, table_pages, table_stats),
        (
            _INT64,
            b"id",
            b"\x19\x25\x06\x0a",
            ids.size,
            id_at,
            b"\x49\x1c" + _page_stats(ids),
            b"\x29\x06" + none_missing,
        ),
        (
            _FIXED,
            b"row",
            b"\x19\x25\x06\x00",
            rows.size,
            row_at,
            b"\x49\x1c" + _page_stats(rows),
            b"\x29\x06" + missing,
        ),
    )
    parts = [b"\x15\x04\x19\x4c\x35\x00\x18\x06schema\x15\x06\x00"]
    parts += [b"\x15\x0c\x25\x02\x18\x05table\x25\x00\x4c\x1c\x00\x00\x00", b"\x15\x04\x25\x02\x18\x02id\x00"]
    parts += [b"\x15\x0e\x15", zigzag(width), b"\x15\x02\x18\x03row\x00\x16", counted, b"\x19\x1c\x19\x3c"]
    for physical, name, encodings, size, at, pages, stats in chunks:
        parts += [b"\x26\x00\x1c", bytes((0x15, 2 * physical)), encodings, b"\x19\x18", text(name), b"\x15\x00\x16"]
        parts += [counted, b"\x16", zigzag(size), b"\x16", zigzag(size), b"\x26", zigzag(at), pages]
        parts += [b"\x3c", stats, b"\x00\x00"]
    parts += [b"\x16", total, b"\x16", counted, b"\x26", zigzag(first), b"\x16", total, b"\x00"]
    parts += [b"\x28", text(CREATED_BY), b"\x19\x3c", b"\x1c\x00\x00" * 3, b"\x00"]
    return b"".join(parts)


def _page_stats(pages: _Pages) -> bytes:
    return b"\x15\x00\x15" + zigzag(pages.encoding) + b"\x15" + zigzag(pages.count) + b"\x00"
