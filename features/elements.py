"""The first stage of every sparse feature: a column becomes elements (numbers or byte tokens), lengths and weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from features import kernels
from features.columns import Column, Columns, Floats, Integers, Lists, Maps, Text, Valid
from features.counts import TRUNCATED
from features.errors import ColumnTypeError
from features.floats import format_floats
from stream.row_errors import Faults, describe

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Float32s = npt.NDArray[np.float32]
Float64s = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

NO_MASK = np.empty(0, np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Byte strings: data[starts[i]:ends[i]]."""

    data: npt.NDArray[np.uint8]
    starts: Int64s
    ends: Int64s

    def __len__(self) -> int:
        return len(self.starts)

    def keep(self, mask: Bools) -> Tokens:
        """Only the tokens of a mask."""
        return Tokens(self.data, self.starts[mask], self.ends[mask])


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """What the rows hold, flat; `lengths` None means one element in every row."""

    values: Int64s | Tokens
    lengths: Int32s | None
    weights: Float32s | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Splitting:
    """How text becomes tokens: one of two separators; `keep_empty` hands empty tokens on, to be refused."""

    first: int
    second: int
    keep_empty: bool
    weighted: bool
    limit: int = 0


def one_byte(separator: str) -> int:
    """A separator's byte; raise ValueError where it is not one ASCII character."""
    raw = separator.encode()
    if len(raw) != 1 or raw[0] > 127:
        raise ValueError(f"separator {separator!r} must be one ASCII character")
    return raw[0]


def text_tokens(text: list[str]) -> Tokens:
    """Tokens of given strings."""
    raw = [item.encode() for item in text]
    ends = np.cumsum([len(item) for item in raw], dtype=np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1])) if raw else ends
    return Tokens(np.frombuffer(b"".join(raw), np.uint8), starts, ends)


def tokens_of(view: Text) -> Tokens:
    """The strings as they are."""
    return Tokens(view.data, view.starts, view.ends)


def split_text(view: Text, first: int, second: int, keep_empty: bool) -> tuple[Tokens, Int32s | None]:
    """The pieces of every string, between either separator; null and "" have none.

    Lengths are None where every string is one piece.
    """
    if len(view.starts) and kernels.has_either(view.data, view.starts.min(), view.ends.max(), first, second):
        valid = NO_MASK if view.valid is None else view.valid
        starts, ends, lengths = kernels.split(view.starts, view.ends, view.data, valid, first, second, keep_empty)
        return Tokens(view.data, starts, ends), lengths
    present = view.ends > view.starts
    if view.valid is not None:
        present &= view.valid
    if present.all():
        return tokens_of(view), None
    return tokens_of(view).keep(present), present.astype(np.int32)


def as_tokens(values: Int64s | Tokens) -> Tokens:
    """Numbers in decimal."""
    return values if isinstance(values, Tokens) else Tokens(*kernels.format_integers(np.ascontiguousarray(values)))


def to_floats(tokens: Tokens) -> tuple[Float64s, npt.NDArray[np.uint8]]:
    """Correctly rounded doubles, and which tokens are none."""
    values, status = kernels.parse_floats(tokens.data, tokens.starts, tokens.ends)
    slow = np.flatnonzero(status == kernels.SLOW)
    if len(slow):
        values[slow] = _slow_floats(tokens.data, tokens.starts[slow], tokens.ends[slow])
        status[slow] = kernels.OK
    return values, status


def _slow_floats(data: npt.NDArray[np.uint8], starts: Int64s, ends: Int64s) -> Float64s:
    """Arrow's parser, which rounds any number of digits correctly, but takes no plus sign."""
    starts = starts + (data[starts] == 43)
    lengths = ends - starts
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    picks = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
    chars = np.ascontiguousarray(data[picks])
    text = pa.LargeStringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(chars))
    return np.asarray(text.cast(pa.float64()).to_numpy(), np.float64)


class Reader:
    """Reads one column of one batch into elements, and notes the rows whose elements cannot be used."""

    def __init__(self, columns: Columns, name: str, splitting: Splitting, faults: Faults | None) -> None:
        self._columns = columns
        self._name = name
        self._split = splitting
        self._faults = faults

    def blame(self, rows: Bools, reason: str) -> None:
        """Mark rows as bad, where anyone wants to know."""
        if self._faults is not None and rows.any():
            array = self._columns.array(self._name)
            self._faults.add(rows, reason, lambda row: describe(self._name, array, row))

    def blame_elements(self, flags: Bools, lengths: Int32s | None, reason: str) -> None:
        """Mark the rows that own a flagged element."""
        if self._faults is not None and flags.any():
            self.blame(flags if lengths is None else kernels.rows_of(flags, lengths), reason)

    def read(self) -> Elements:
        """The column's elements; raise ColumnTypeError where its type has none."""
        view = self._columns[self._name]
        elements = self._truncate(self._view(view))
        if self._split.weighted and elements.weights is None:
            return replace(elements, weights=np.ones(len(elements.values), np.float32))
        return elements

    def _view(self, view: Column) -> Elements:
        match view:
            case Integers():
                return self._integers(view)
            case Text():
                return self._text(view)
            case Lists():
                return self._lists(view)
            case Maps():
                return self._maps(view)
            case Floats():
                return self._floats(view)

    def _integers(self, view: Integers) -> Elements:
        if view.wide is not None:
            self.blame(view.wide, "id_out_of_range")
        if view.valid is None:
            return Elements(view.values, None)
        return Elements(view.values[view.valid], view.valid.astype(np.int32))

    def _floats(self, view: Floats) -> Elements:
        lengths = None if view.valid is None else view.valid.astype(np.int32)
        values = view.values if view.valid is None else view.values[view.valid]
        return self._written(values, lengths)

    def _written(self, values: Float32s | Float64s, lengths: Int32s | None) -> Elements:
        """Floats as text, which is what ids are made of; given ids (FG_NONE) are never floats."""
        if self._split.keep_empty:
            raise ColumnTypeError(f"column {self._name!r} holds floats, which are no ids: cast them to integers")
        self.blame_elements(~np.isfinite(values), lengths, "not_finite")
        return Elements(Tokens(*format_floats(values)), lengths)

    def _text(self, view: Text) -> Elements:
        how = self._split
        key = (self._name, how.first, how.second, how.keep_empty)
        split = self._columns.once(key, lambda: split_text(view, how.first, how.second, how.keep_empty))
        return self._weigh(*split)

    def _weigh(self, tokens: Tokens, lengths: Int32s | None) -> Elements:
        if not self._split.weighted:
            return Elements(tokens, lengths)
        colons = kernels.split_pairs(tokens.data, tokens.starts, tokens.ends)
        plain = colons == tokens.ends
        weights, status = to_floats(Tokens(tokens.data, np.where(plain, tokens.ends, colons + 1), tokens.ends))
        self.blame_elements((status != kernels.OK) & ~plain, lengths, "not_a_number")
        weights[plain] = 1.0
        return Elements(Tokens(tokens.data, tokens.starts, colons), lengths, self._weights(weights, lengths))

    def _weights(self, weights: Float64s | Float32s, lengths: Int32s | None) -> Float32s:
        with np.errstate(over="ignore"):
            narrow = weights.astype(np.float32)
        self.blame_elements(~np.isfinite(narrow), lengths, "not_finite")
        return narrow

    def _lists(self, view: Lists) -> Elements:
        lengths = np.diff(view.offsets).astype(np.int32)
        child = view.child
        self._refuse_nulls(child.valid, lengths)
        if isinstance(child, Floats):
            return self._written(child.values, lengths)
        if isinstance(child, Integers):
            if child.wide is not None:
                self.blame_elements(child.wide, lengths, "id_out_of_range")
            return Elements(child.values, lengths)
        tokens = tokens_of(child)
        if not self._split.keep_empty:
            tokens, lengths = _drop_empty(tokens, lengths)
        return self._weigh(tokens, lengths)

    def _maps(self, view: Maps) -> Elements:
        if not self._split.weighted:
            raise ColumnTypeError(f"column {self._name!r} is a map: its values are weights, which need weighted: true")
        lengths = np.diff(view.offsets).astype(np.int32)
        keys, items = view.keys, view.items
        self._refuse_nulls(items.valid, lengths)
        if isinstance(items, Text):
            weights, status = to_floats(tokens_of(items))
            self.blame_elements(status != kernels.OK, lengths, "not_a_number")
        else:
            weights = items.values.astype(np.float64)
        ids = keys.values if isinstance(keys, Integers) else tokens_of(keys)
        return Elements(ids, lengths, self._weights(weights, lengths))

    def _refuse_nulls(self, valid: Valid, lengths: Int32s) -> None:
        if valid is not None:
            self.blame_elements(~valid, lengths, "null_element")

    def _truncate(self, elements: Elements) -> Elements:
        limit = self._split.limit
        if not limit or elements.lengths is None or not (elements.lengths > limit).any():
            return elements
        self._columns.note(TRUNCATED, int((elements.lengths > limit).sum()))
        keep = kernels.keep_first(elements.lengths, limit)
        values = elements.values
        return Elements(
            values.keep(keep) if isinstance(values, Tokens) else values[keep],
            np.minimum(elements.lengths, np.int32(limit)),
            None if elements.weights is None else elements.weights[keep],
        )


def _drop_empty(tokens: Tokens, lengths: Int32s) -> tuple[Tokens, Int32s]:
    keep = tokens.ends > tokens.starts
    return (tokens, lengths) if keep.all() else (tokens.keep(keep), kernels.count_kept(lengths, keep))
