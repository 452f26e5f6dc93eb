"""Columns that are not of the rows: gathered, made by other features, or constant (FG_DAG and sequences)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from features import view_kernels
from features.columns import Column, Columns, Floats, Integers, Lists, Maps, Nested, Text, Valid
from features.generator import Dense, Made, Sparse, Steps, Strings

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


class Views(Columns):
    """Views by name, in place of the rows' columns of that name where there are `rows`."""

    def __init__(self, views: Mapping[str, Column | Nested], count: int, rows: Columns | None = None) -> None:
        self._given = dict(views)
        self._arrays: dict[str, pa.Array] = {}
        self._rows = rows
        self.count = count
        self.mask = None if rows is None else rows.mask

    def has(self, name: str) -> bool:
        """Whether there is such a view or column."""
        return name in self._given or (self._rows is not None and self._rows.has(name))

    def whole(self, name: str) -> tuple[Columns, Int64s | None]:
        """The columns that this one is of (features/columns.py)."""
        return (self, None) if name in self._given else self._below(name).whole(name)

    def struct_address(self) -> int:
        """Views are not one ArrowArray."""
        raise TypeError("views have no address")

    def array(self, name: str) -> pa.Array:
        """The view as Arrow would hold it; slow, for errors and for people."""
        if name not in self._given:
            return self._below(name).array(name)
        if name not in self._arrays:
            self._arrays[name] = as_array(self._given[name])
        return self._arrays[name]

    def sequence(self, name: str) -> Column | Nested:
        """The view of a sequence."""
        return self._given[name] if name in self._given else self._below(name).sequence(name)

    def __getitem__(self, name: str) -> Column:
        if name not in self._given:
            return self._below(name)[name]
        view = self._given[name]
        # The steps of a sequence are a list of values to whoever looks at rows.
        return flat_list(view) if isinstance(view, Nested) else view

    def _below(self, name: str) -> Columns:
        if self._rows is None:
            raise KeyError(name)
        return self._rows


def flat_list(view: Nested) -> Lists:
    """All values of all steps of a row, in one list."""
    return Lists(view.child.offsets[view.offsets], view.valid, view.child.child)


def offsets_of(lengths: npt.NDArray[np.integer]) -> Int64s:
    """Offsets from lengths."""
    out = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def view_of(made: Made) -> Column | Nested:
    """What a feature hands to those that name it as an input; rows without values are missing."""
    match made:
        case Dense():
            if made.values.ndim == 1:
                return Floats(made.values, None)
            rows, dim = made.values.shape
            return Lists(np.arange(rows + 1, dtype=np.int64) * dim, None, Floats(made.values.reshape(-1), None))
        case Sparse():
            return _listed(Integers(made.values, None), made.lengths)
        case Strings():
            tokens = made.values
            return _listed(Text(tokens.starts, tokens.ends, tokens.data, None), made.lengths)
        case Steps():
            return _steps_view(made)


def _listed(child: Integers | Text, lengths: Int32s | None) -> Column:
    return child if lengths is None else Lists(offsets_of(lengths), None, child)


def _steps_view(made: Steps) -> Lists | Nested:
    offsets = offsets_of(made.lengths)
    inner = view_of(made.made)
    if isinstance(inner, Lists):
        if bool((np.diff(inner.offsets) == 1).all()):
            return Lists(offsets, None, inner.child)
        return Nested(offsets, None, inner)
    if isinstance(inner, Maps | Nested):
        raise TypeError("a step makes no map")
    return Lists(offsets, None, inner)


def take(view: Column, indices: Int64s) -> Column:
    """Rows of a view by index; -1 gives a missing row."""
    match view:
        case Integers():
            wide = None if view.wide is None or not len(view.wide) else view.wide[indices]
            return Integers(_picked(view.values, indices), _picked_valid(view.valid, indices), wide)
        case Floats():
            return Floats(_picked(view.values, indices), _picked_valid(view.valid, indices))
        case Text():
            starts, ends = _picked(view.starts, indices), _picked(view.ends, indices)
            ends[indices < 0] = starts[indices < 0]
            return Text(starts, ends, view.data, _picked_valid(view.valid, indices))
        case Lists():
            offsets, inner = _ranges(view.offsets, indices)
            child = take(view.child, inner)
            if isinstance(child, Lists | Maps):
                raise TypeError("a list holds scalars")
            return Lists(offsets, _picked_valid(view.valid, indices), child)
        case Maps():
            offsets, inner = _ranges(view.offsets, indices)
            keys, items = take(view.keys, inner), take(view.items, inner)
            if not isinstance(keys, Integers | Text) or isinstance(items, Lists | Maps):
                raise TypeError("a map holds scalars")
            return Maps(offsets, _picked_valid(view.valid, indices), keys, items)


def repeated(view: Column | Nested, rows: Int64s) -> Column | Nested:
    """Rows of a view by index, of a sequence too; there is no missing one."""
    valid = None if view.valid is None else view.valid[rows]
    match view:
        case Integers():
            return Integers(view.values[rows], valid, None if view.wide is None else view.wide[rows])
        case Floats():
            return Floats(view.values[rows], valid)
        case Text():
            return Text(view.starts[rows], view.ends[rows], view.data, valid)
        case Nested():
            offsets, inner = _ranges(view.offsets, rows)
            child = take(view.child, inner)
            if not isinstance(child, Lists):
                raise TypeError("the steps of a sequence are lists")
            return Nested(offsets, valid, child)
    return take(view, rows)


def size_of(view: Column | Nested) -> int:
    """The bytes of its values."""
    match view:
        case Integers() | Floats():
            return view.values.nbytes
        case Text():
            return view.starts.nbytes + int((view.ends - view.starts).sum())
        case Maps():
            return size_of(view.keys) + size_of(view.items)
    return view.offsets.nbytes + size_of(view.child)


def _picked(values: npt.NDArray[np.generic], indices: Int64s) -> npt.NDArray:  # type: ignore[type-arg]
    if len(values) == 0:
        return np.zeros(len(indices), values.dtype)
    return values[indices]


def _picked_valid(valid: Valid, indices: Int64s) -> Valid:
    missing = indices < 0
    if valid is None:
        return ~missing if missing.any() else None
    return ~missing if len(valid) == 0 else valid[indices] & ~missing


def _ranges(offsets: Int64s, indices: Int64s) -> tuple[Int64s, Int64s]:
    """New offsets, and where each of their elements was."""
    found = indices >= 0
    at = np.where(found, indices, 0)
    lengths = np.where(found, offsets[np.minimum(at + 1, len(offsets) - 1)] - offsets[at], 0)
    fresh = offsets_of(lengths)
    return fresh, np.repeat(offsets[at], lengths) + (np.arange(fresh[-1]) - np.repeat(fresh[:-1], lengths))


def constant(text: str, count: int) -> Text:
    """The same text in every row."""
    raw = np.frombuffer(text.encode(), np.uint8)
    return Text(np.zeros(count, np.int64), np.full(count, len(raw), np.int64), raw, None)


def packed(view: Text) -> tuple[Int64s, npt.NDArray[np.uint8]]:
    """The strings end to end: offsets and bytes."""
    offsets, data = view_kernels.pack(view.data, view.starts, view.ends)
    return offsets, data


def as_array(view: Column | Nested) -> pa.Array:
    """The Arrow array of a view."""
    match view:
        case Integers() | Floats():
            return pa.array(view.values, mask=None if view.valid is None else ~view.valid)
        case Text():
            offsets, data = packed(view)
            text = pa.LargeStringArray.from_buffers(len(view.starts), pa.py_buffer(offsets), pa.py_buffer(data))
            return text if view.valid is None else _masked(text, view.valid)
        case Lists() | Nested():
            lists = pa.LargeListArray.from_arrays(pa.array(view.offsets), as_array(view.child))
            return lists if view.valid is None else _masked(lists, view.valid)
        case Maps():
            pairs = pa.MapArray.from_arrays(
                pa.array(view.offsets.astype(np.int32)), as_array(view.keys), as_array(view.items)
            )
            return pairs if view.valid is None else _masked(pairs, view.valid)


def _masked(array: pa.Array, valid: npt.NDArray[np.bool_]) -> pa.Array:
    return array.take(pa.array(np.arange(len(array)), mask=~valid))
