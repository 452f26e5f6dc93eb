"""Reading key-value columns: text "k:v", lists of such pairs, or Arrow maps; and finding keys among them."""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
import numpy.typing as npt

from features import kernels
from features.columns import Columns, Integers, Maps, Text
from features.elements import Elements, Reader, Splitting, Tokens, as_tokens, to_floats, tokens_of
from features.floats import format_floats
from features.judge import Judge
from features.number_stage import Float32s, Float64s, Int32s, Int64s, narrow
from stream.words import address_of, same
from stream.words import find as find_byte

Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Values = Int64s | Float32s | Float64s | Tokens
Spans = tuple[Int64s, Int64s]

MOST_WORK = 1 << 24
"""Comparisons that one row may take: rows that need more are refused, since a request must not stop a replica."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Row i holds the pairs offsets[i]:offsets[i+1]; `bare` marks keys without a value, None: there are none."""

    keys: Int64s | Tokens
    values: Values
    offsets: Int64s
    bare: Bools | None = None

    @property
    def lengths(self) -> Int32s:
        """Pairs a row."""
        return np.diff(self.offsets).astype(np.int32)


@dataclass(frozen=True, kw_only=True, slots=True)
class PairSplitting:
    """Pairs end at either separator; a pair is cut at the first `cut`. Keys without a value are kept or ignored."""

    first: int
    second: int
    cut: int
    keep_bare: bool


def readonly(data: Bytes) -> Bytes:
    """The same bytes, as Arrow's are: numba compiles a kernel once, not for each mix of what may be written to."""
    view = data.view()
    view.flags.writeable = False
    return view


def offsets_of(lengths: Int32s | None, count: int) -> Int64s:
    """Where the elements of every row begin, and where the last row's end."""
    if lengths is None:
        return np.arange(count + 1, dtype=np.int64)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


@nb.njit(nogil=True, cache=True)
def _cuts(data: Bytes, starts: Int64s, ends: Int64s, cut: int) -> Int64s:
    """Where the first `cut` of every token is; its end where it has none."""
    out = np.empty(len(starts), np.int64)
    base = address_of(data)
    limit = base + len(data)
    for i in range(len(starts)):
        out[i] = find_byte(base + starts[i], base + ends[i], limit, cut) - base
    return out


def read_pairs(columns: Columns, name: str, how: PairSplitting, judge: Judge) -> Pairs:
    """The pairs of a column; raise ColumnTypeError where its type has none."""
    view = columns[name]
    if isinstance(view, Maps):
        return _from_map(view, judge)
    splitting = Splitting(first=how.first, second=how.second, keep_empty=False, weighted=False)
    elements = Reader(columns, name, splitting, judge.faults).read()
    return _cut(elements, how, columns.count)


def _from_map(view: Maps, judge: Judge) -> Pairs:
    if view.items.valid is not None:
        judge.elements(~view.items.valid, np.diff(view.offsets).astype(np.int32), "null_element")
    keys = view.keys.values if isinstance(view.keys, Integers) else tokens_of(view.keys)
    values = tokens_of(view.items) if isinstance(view.items, Text) else view.items.values
    return Pairs(keys, values, view.offsets)


def _cut(elements: Elements, how: PairSplitting, count: int) -> Pairs:
    tokens = as_tokens(elements.values)
    cuts = _cuts(tokens.data, tokens.starts, tokens.ends, how.cut)
    bare = cuts == tokens.ends
    keys = Tokens(tokens.data, tokens.starts, cuts)
    values = Tokens(tokens.data, np.where(bare, cuts, cuts + 1), tokens.ends)
    offsets = offsets_of(elements.lengths, count)
    if how.keep_bare or not bare.any():
        return Pairs(keys, values, offsets, bare)
    lengths = kernels.count_kept(np.diff(offsets).astype(np.int32), ~bare)
    return Pairs(keys.keep(~bare), values.keep(~bare), offsets_of(lengths, count))


@nb.njit(nogil=True, cache=True)
def _find_tokens(
    data: Bytes, starts: Int64s, ends: Int64s, begins: Int64s, ends_at: Int64s,
    wanted: Bytes, wanted_starts: Int64s, wanted_ends: Int64s, wanted_offsets: Int64s,
) -> Int64s:  # fmt: skip
    out = np.full(len(wanted_starts), -1, np.int64)
    a, b = address_of(data), address_of(wanted)
    for row in range(len(begins)):
        if (ends_at[row] - begins[row]) * (wanted_offsets[row + 1] - wanted_offsets[row]) > MOST_WORK:
            continue
        for k in range(wanted_offsets[row], wanted_offsets[row + 1]):
            for i in range(ends_at[row] - 1, begins[row] - 1, -1):
                if same(a + starts[i], a + ends[i], b + wanted_starts[k], b + wanted_ends[k]):
                    out[k] = i
                    break
    return out


@nb.njit(nogil=True, cache=True)
def _find_integers(keys: Int64s, begins: Int64s, ends_at: Int64s, wanted: Int64s, wanted_offsets: Int64s) -> Int64s:
    out = np.full(len(wanted), -1, np.int64)
    for row in range(len(begins)):
        if (ends_at[row] - begins[row]) * (wanted_offsets[row + 1] - wanted_offsets[row]) > MOST_WORK:
            continue
        for k in range(wanted_offsets[row], wanted_offsets[row + 1]):
            for i in range(ends_at[row] - 1, begins[row] - 1, -1):
                if keys[i] == wanted[k]:
                    out[k] = i
                    break
    return out


def refuse_work(judge: Judge, work: Int64s | Float64s) -> None:
    """Mark the rows that take too many comparisons, of `work` by row; RepeatError where all of a request's do."""
    judge.rows(work > MOST_WORK, "too_many_values")
    judge.spend(np.minimum(work, MOST_WORK))


def spans_of(offsets: Int64s, owners: Int64s | None) -> Spans:
    """Where the elements of every row begin and end; `owners`: whose elements each row has, None: its own."""
    begins, ends = offsets[:-1], offsets[1:]
    return (begins, ends) if owners is None else (begins[owners], ends[owners])


def find(pairs: Pairs, wanted: Int64s | Tokens, wanted_offsets: Int64s, spans: Spans | None = None) -> Int64s:
    """The pair of every wanted key in its row, the last of equal ones; -1 where there is none, or too much work.

    `spans` says which pairs each row looks among, where those are not its own.
    """
    begins, ends = spans_of(pairs.offsets, None) if spans is None else spans
    if not isinstance(pairs.keys, Tokens) and not isinstance(wanted, Tokens):
        return _find_integers(
            np.ascontiguousarray(pairs.keys), begins, ends, np.ascontiguousarray(wanted), wanted_offsets
        )
    keys, looked = as_tokens(pairs.keys), as_tokens(wanted)
    return _find_tokens(
        readonly(keys.data), keys.starts, keys.ends, begins, ends,
        readonly(looked.data), looked.starts, looked.ends, wanted_offsets,
    )  # fmt: skip


def take(values: Values, places: Int64s) -> Values:
    """The values at places."""
    if isinstance(values, Tokens):
        return Tokens(values.data, values.starts[places], values.ends[places])
    return values[places]


def values_as_floats(values: Values) -> tuple[Float32s, npt.NDArray[np.uint8] | None]:
    """float32 numbers, and which tokens are none."""
    if isinstance(values, Tokens):
        wide, status = to_floats(values)
        return narrow(wide), status
    return narrow(values), None


def values_as_tokens(values: Values) -> Tokens:
    """Text: numbers in decimal."""
    if isinstance(values, Tokens):
        return values
    if values.dtype == np.int64:
        return as_tokens(np.asarray(values, np.int64))
    return Tokens(*format_floats(np.asarray(values, np.float64)))


@nb.njit(nogil=True, cache=True)
def count_hits(hit: Bools, offsets: Int64s) -> Int32s:
    """How many elements of every row are flagged."""
    out = np.zeros(len(offsets) - 1, np.int32)
    for row in range(len(out)):
        for i in range(offsets[row], offsets[row + 1]):
            out[row] += hit[i]
    return out
