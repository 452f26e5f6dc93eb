"""Node and edge files of samplers: a typed header line, then one node or edge a line (data_and_samplers.md 4.1)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from features.errors import SamplerError
from stream.hashing import hash_slices

logger = logging.getLogger(__name__)

Int64s = npt.NDArray[np.int64]

MAX_BAD_SHARE = 0.05
"""Of the lines of a file; above it the file is refused, as it is something else than was meant."""

_INTEGER = r"^-?[0-9]{1,19}$"
_NUMBER = r"^[+]?[0-9]*\.?[0-9]*([eE][-+]?[0-9]+)?$"
_TYPES = {"int": "int", "int32": "int", "int64": "int", "long": "int", "float": "float", "double": "float"}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class NodeTable:
    """Distinct nodes, ascending by id; `attributes[k]` is the text of the k-th attribute."""

    ids: Int64s
    weights: npt.NDArray[np.float64]
    attributes: tuple[pa.Array, ...]
    text_ids: bool
    skipped: int = 0

    def find(self, ids: Int64s) -> Int64s:
        """The number of each node; len(self.ids) where there is none."""
        return find(self.ids, ids)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class EdgeTable:
    """Edges by source: those of `sources[k]` are targets[starts[k]:starts[k + 1]], the heaviest first."""

    sources: Int64s
    starts: Int64s
    targets: Int64s
    text_sources: bool
    skipped: int = 0

    def spans(self, ids: Int64s) -> tuple[Int64s, Int64s]:
        """Start and end of each source's targets; an unknown source has none."""
        at = find(self.sources, ids)
        return self.starts[at], self.starts[np.minimum(at + 1, len(self.starts) - 1)]


def find(ascending: Int64s, values: Int64s) -> Int64s:
    """Where each value is among distinct sorted ones; their number where it is not."""
    if not len(ascending):
        return np.zeros(len(values), np.int64)
    at = np.searchsorted(ascending, values)
    inside = np.minimum(at, len(ascending) - 1)
    return np.where(ascending[inside] == values, inside, len(ascending)).astype(np.int64)


def parse_nodes(
    data: bytes, path: str, *, field_delimiter: str, attr_delimiter: str, attributes: Sequence[str] | None
) -> NodeTable:
    """Read a node file; `attributes` None: the nodes have none (users). Raise SamplerError."""
    columns = 2 if attributes is None else 3
    kinds, fields, lines = _fields(data, path, field_delimiter, columns, 1)
    text_ids = kinds[0] == "string"
    good = _is_id(fields[0], text_ids) & _is_weight(fields[1])
    parts = None
    if attributes is not None:
        parts = pc.split_pattern(fields[2], attr_delimiter)
        good &= np.asarray(pc.list_value_length(parts)) == len(attributes)
    skipped = _refuse_bad(good, lines, path)
    keep = pa.array(good)
    ids, first = np.unique(to_ids(fields[0].filter(keep), text=text_ids), return_index=True)
    order = pa.array(first)
    texts: list[pa.Array] = []
    if parts is not None and attributes is not None:
        flat = parts.filter(keep).take(order).flatten()
        texts = [
            flat.take(pa.array(np.arange(k, len(ids) * len(attributes), len(attributes))))
            for k in range(len(attributes))
        ]
    weights = np.asarray(pc.cast(fields[1].filter(keep).take(order), pa.float64()))
    return NodeTable(ids=ids, weights=weights, attributes=tuple(texts), text_ids=text_ids, skipped=skipped)


def parse_edges(data: bytes, path: str, *, field_delimiter: str) -> EdgeTable:
    """Read an edge file: source, destination, weight. Raise SamplerError."""
    kinds, fields, lines = _fields(data, path, field_delimiter, 3, 2)
    texts = [kind == "string" for kind in kinds[:2]]
    good = _is_id(fields[0], texts[0]) & _is_id(fields[1], texts[1]) & _is_weight(fields[2])
    skipped = _refuse_bad(good, lines, path)
    keep = pa.array(good)
    from_ids, to = (to_ids(fields[k].filter(keep), text=texts[k]) for k in range(2))
    weights = np.asarray(pc.cast(fields[2].filter(keep), pa.float64()))
    order = np.lexsort((-weights, from_ids))
    sources, starts = np.unique(from_ids[order], return_index=True)
    return EdgeTable(
        sources=sources,
        starts=np.append(starts, len(order)).astype(np.int64),
        targets=to[order],
        text_sources=texts[0],
        skipped=skipped,
    )


def to_ids(column: pa.Array, *, text: bool) -> Int64s:
    """Ids of a table or batch column: integers as they are, text by its hash; a null is 0 or the empty text's.

    Raise SamplerError where a column of integers is asked of something else.
    """
    if not text:
        try:
            return np.asarray(pc.fill_null(pc.cast(column, pa.int64()), 0), np.int64)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SamplerError(
                f"ids must be integers: {error}; for text ids declare id:string in the header of the sampler's files"
            ) from None
    strings = pc.fill_null(pc.cast(column, pa.large_string()), "")
    _, offsets, data = strings.buffers()
    ends = np.frombuffer(offsets, np.int64, len(strings) + 1, strings.offset * 8) if len(strings) else np.zeros(1, int)
    chars = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    hashed: Int64s = hash_slices(chars, ends[:-1], ends[1:]).view(np.int64)
    return hashed


def _fields(
    data: bytes, path: str, delimiter: str, columns: int, weight: int
) -> tuple[list[str], list[pa.Array], pa.Array]:
    """Header types, the columns of lines with enough fields (others are empty text), and the lines."""
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
    lengths = np.asarray(pc.list_value_length(parts))
    blank = pa.scalar([""] * columns, parts.type)
    parts = pc.if_else(pa.array(lengths == columns), parts, blank)
    if isinstance(parts, pa.ChunkedArray):
        parts = parts.combine_chunks()
    flat = parts.flatten()
    return kinds, [flat.take(pa.array(np.arange(k, len(lines) * columns, columns))) for k in range(columns)], lines


def _header(line: str, path: str, delimiter: str, columns: int, weight: int) -> list[str]:
    fields = line.split(delimiter)
    kinds = [field.rpartition(":")[2].strip().lower() for field in fields]
    known = [_TYPES.get(kind, "string" if kind == "string" else "") for kind in kinds]
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


def _is_id(column: pa.Array, text: bool) -> npt.NDArray[np.bool_]:
    if text:
        return np.asarray(pc.not_equal(column, ""), np.bool_)
    fits = np.asarray(pc.match_substring_regex(column, _INTEGER), np.bool_)
    long = np.flatnonzero(fits & (np.asarray(pc.utf8_length(column)) > 18))
    for row in long.tolist():
        fits[row] = -(2**63) <= int(column[row].as_py()) < 2**63
    return fits


def _is_weight(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Finite numbers of at least 0."""
    shaped = np.asarray(pc.match_substring_regex(column, _NUMBER), np.bool_)
    shaped &= np.asarray(pc.match_substring_regex(column, "[0-9]"), np.bool_)
    return shaped & (np.asarray(pc.utf8_length(column)) < 40)


def _refuse_bad(good: npt.NDArray[np.bool_], lines: pa.Array, path: str) -> int:
    bad = int((~good).sum())
    if not good.any():
        raise SamplerError(f"{path} holds no usable line after its header")
    if bad > MAX_BAD_SHARE * len(good):
        shown = lines[int(np.flatnonzero(~good)[0])].as_py()
        raise SamplerError(f"{path}: {bad} of {len(good)} lines are malformed; the first is {shown[:80]!r}")
    if bad:
        shown = lines[int(np.flatnonzero(~good)[0])].as_py()
        logger.warning("sampler file=%s skipped_lines=%d first=%r", path, bad, shown[:80])
    return bad
