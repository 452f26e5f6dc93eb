"""Lines of a sampler's table as text columns: files begin with a typed header (data_and_samplers.md 4.1).

Tables of MaxCompute have the same columns in the same order; their types stand for the header.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from features.errors import SamplerError

_TYPES = {
    "int": "int", "int32": "int", "int64": "int", "long": "int", "float": "float", "double": "float",
    "string": "string",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Lines:
    """The columns as text, empty in lines that have too few; `kinds` are int, float or string, `shown` whole lines."""

    path: str
    kinds: tuple[str, ...]
    fields: tuple[pa.Array, ...]
    shown: pa.Array


def lines_of_text(data: bytes, path: str, *, delimiter: str, columns: int, weight: int) -> Lines:
    """Of a file; column `weight` must hold numbers. Raise SamplerError."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SamplerError(f"{path} is not UTF-8: {error}") from None
    header, _, body = text.partition("\n")
    lines = pc.split_pattern(pa.array([body], pa.large_string()), "\n").flatten()
    lines = pc.utf8_rtrim(lines, "\r")
    lines = lines.filter(pc.not_equal(lines, ""))
    kinds = _header(header.rstrip("\r"), path, delimiter, columns, weight)
    parts = pc.split_pattern(lines, delimiter, max_splits=columns - 1)
    fits = pc.equal(pc.list_value_length(parts), columns)
    blank = pa.scalar([""] * columns, parts.type)
    parts = pc.if_else(fits, parts, blank)
    if isinstance(parts, pa.ChunkedArray):
        parts = parts.combine_chunks()
    return Lines(path=path, kinds=kinds, fields=tuple(strided(parts.flatten(), columns)), shown=lines)


def _header(line: str, path: str, delimiter: str, columns: int, weight: int) -> tuple[str, ...]:
    fields = line.split(delimiter)
    known = tuple(_TYPES.get(field.rpartition(":")[2].strip().lower(), "") for field in fields)
    if len(fields) != columns or "" in known or not all(":" in field for field in fields):
        raise SamplerError(
            f"{path}: the first line must name {columns} columns as name:type, separated by {delimiter!r}, "
            f"got {line[:80]!r}"
        )
    if known[weight] != "float":
        raise SamplerError(
            f"{path}: column {weight + 1} must be the weight, of type float; the header is {line[:80]!r}"
        )
    return known


def lines_of_rows(batches: Iterable[pa.RecordBatch], path: str, *, columns: int, weight: int) -> Lines:
    """Of a table's rows, of which the first columns count; raise SamplerError."""
    parts = list(batches)
    if not parts:
        raise SamplerError(f"{path} holds no row")
    rows = pa.Table.from_batches(parts)
    found = ", ".join(f"{field.name} {field.type}" for field in rows.schema)
    if rows.num_columns < columns:
        raise SamplerError(f"{path}: {columns} columns are needed, and there are {found}")
    kinds = tuple(_kind(rows.schema.field(k).type) for k in range(columns))
    if kinds[weight] != "float" or "" in kinds:
        raise SamplerError(
            f"{path}: column {weight + 1} must be the weight, of type double or float, and the others integers or "
            f"strings; there are {found}"
        )
    fields = tuple(_text(rows.column(k)) for k in range(columns))
    return Lines(path=path, kinds=kinds, fields=fields, shown=_joined(fields))


def _joined(fields: tuple[pa.Array, ...]) -> pa.Array:
    return pc.binary_join_element_wise(*fields, pa.scalar("\t", pa.large_string()))


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "int"
    if pa.types.is_floating(kind):
        return "float"
    return "string" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else ""


def _text(column: pa.ChunkedArray) -> pa.Array:
    """An id or a number that is null is no line's: empty, as in a file."""
    return pc.fill_null(pc.cast(column.combine_chunks(), pa.large_string()), "")


def strided(flat: pa.Array, step: int) -> list[pa.Array]:
    """Every `step`-th value, from the first, the second, ... on."""
    return [flat.take(pa.array(np.arange(k, len(flat), step))) for k in range(step)]
