"""Nodes and edges of samplers, one a line (data_and_samplers.md 4.1)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from features.errors import SamplerError
from features.sampling.lines import Lines, strided
from stream.hashing import hash_slices

logger = logging.getLogger(__name__)

Int64s = npt.NDArray[np.int64]

MAX_BAD_SHARE = 0.05
"""Of the lines of a file; above it the file is refused, as it is something else than was meant."""

_INTEGER = r"^-?[0-9]{1,19}$"
_NUMBER = r"^[+]?[0-9]*\.?[0-9]*([eE][-+]?[0-9]+)?$"


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


def parse_nodes(lines: Lines, *, attr_delimiter: str, attributes: Sequence[str]) -> NodeTable:
    """Id, weight, attributes; raise SamplerError."""
    text_ids = lines.kinds[0] == "string"
    ids, weights, texts = lines.fields
    parts = pc.split_pattern(texts, attr_delimiter)
    good = _is_id(ids, text_ids) & _is_weight(weights)
    good &= np.asarray(pc.list_value_length(parts)) == len(attributes)
    skipped = _refuse_bad(good, lines)
    keep = pa.array(good)
    found, first = np.unique(to_ids(ids.filter(keep), text=text_ids), return_index=True)
    order = pa.array(first)
    return NodeTable(
        ids=found,
        weights=np.asarray(pc.cast(weights.filter(keep).take(order), pa.float64())),
        attributes=tuple(strided(parts.filter(keep).take(order).flatten(), len(attributes))),
        text_ids=text_ids,
        skipped=skipped,
    )


def parse_edges(lines: Lines) -> EdgeTable:
    """Source, destination, weight; raise SamplerError."""
    texts = [kind == "string" for kind in lines.kinds[:2]]
    ends, weights = lines.fields[:2], lines.fields[2]
    good = _is_id(ends[0], texts[0]) & _is_id(ends[1], texts[1]) & _is_weight(weights)
    skipped = _refuse_bad(good, lines)
    keep = pa.array(good)
    from_ids, to = (to_ids(ends[k].filter(keep), text=texts[k]) for k in range(2))
    order = np.lexsort((-np.asarray(pc.cast(weights.filter(keep), pa.float64())), from_ids))
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


def _refuse_bad(good: npt.NDArray[np.bool_], lines: Lines) -> int:
    bad = int((~good).sum())
    if not good.any():
        raise SamplerError(f"{lines.path} holds no usable line")
    shown = lines.shown[int(np.flatnonzero(~good)[0])].as_py()[:80] if bad else ""
    if bad > MAX_BAD_SHARE * len(good):
        raise SamplerError(f"{lines.path}: {bad} of {len(good)} lines are malformed; the first is {shown!r}")
    if bad:
        logger.warning("sampler file=%s skipped_lines=%d first=%r", lines.path, bad, shown)
    return bad
