"""Arrow columns as NumPy buffers: offsets, nulls, dictionaries and large types are dealt with here and nowhere else."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from features.counts import Tally
from features.errors import ColumnTypeError

T = TypeVar("T")
Valid = npt.NDArray[np.bool_] | None
"""True where the value is not null; None: no nulls."""


@dataclass(frozen=True, slots=True, eq=False)
class Integers:
    """int64 values; `wide` marks those that did not fit (uint64 beyond 2^63-1), which wrap to negative."""

    values: npt.NDArray[np.int64]
    valid: Valid
    wide: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Floats:
    """float32 or float64 values, as the column has them."""

    values: npt.NDArray[np.float32] | npt.NDArray[np.float64]
    valid: Valid


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """Strings: data[starts[i]:ends[i]], not always end to end."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]
    valid: Valid


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Row i holds child[offsets[i]:offsets[i+1]]; null rows have length 0."""

    offsets: npt.NDArray[np.int64]
    valid: Valid
    child: Integers | Floats | Text


@dataclass(frozen=True, slots=True, eq=False)
class Maps:
    """Row i holds the pairs offsets[i]:offsets[i+1]; null rows have length 0."""

    offsets: npt.NDArray[np.int64]
    valid: Valid
    keys: Integers | Text
    items: Integers | Floats | Text


Column = Integers | Floats | Text | Lists | Maps


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """Row i holds the lists offsets[i]:offsets[i+1] of the child; only sequences give it a meaning."""

    offsets: npt.NDArray[np.int64]
    valid: Valid
    child: Lists


def _valid(array: pa.Array) -> Valid:
    if array.null_count == 0:
        return None
    return np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False), np.bool_)


def _buffer(array: pa.Array, dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    """The values of a primitive array, without a copy."""
    count = len(array)
    data = array.buffers()[1]
    if data is None or count == 0:
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype, count, array.offset * dtype.itemsize)


def _integers(array: pa.Array) -> Integers:
    dtype = _INTEGERS[array.type.id]
    values = _buffer(array, dtype)
    if dtype == np.uint64:
        signed = values.view(np.int64)
        wide = signed < 0
        return Integers(signed, _valid(array), wide if wide.any() else None)
    return Integers(values.astype(np.int64, copy=False), _valid(array))


def _floats(array: pa.Array) -> Floats:
    dtype = _FLOATS[array.type.id]
    values = _buffer(array, dtype)
    if dtype == np.float16:
        return Floats(values.astype(np.float32), _valid(array))
    return Floats(values, _valid(array))  # type: ignore[arg-type]


def _booleans(array: pa.Array) -> Integers:
    bits = array.fill_null(False).to_numpy(zero_copy_only=False)
    return Integers(np.asarray(bits, np.int64), _valid(array))


def _text(array: pa.Array) -> Text:
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    if offsets is None or len(array) == 0:
        nothing = np.zeros(len(array), np.int64)
        return Text(nothing, nothing, np.empty(0, np.uint8), _valid(array))
    dtype = np.int64 if large else np.int32
    view = np.frombuffer(offsets, dtype, len(array) + 1, array.offset * np.dtype(dtype).itemsize)
    wide = view.astype(np.int64, copy=False)
    chars = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Text(wide[:-1], wide[1:], chars, _valid(array))


def _list_offsets(array: pa.Array) -> npt.NDArray[np.int64]:
    if pa.types.is_fixed_size_list(array.type):
        width: int = array.type.list_size
        return np.arange(array.offset, array.offset + len(array) + 1, dtype=np.int64) * width
    large = pa.types.is_large_list(array.type)
    dtype = np.int64 if large else np.int32
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(len(array) + 1, np.int64)
    view = np.frombuffer(buffer, dtype, len(array) + 1, array.offset * np.dtype(dtype).itemsize)
    return np.asarray(view, np.int64)


def _flat(offsets: npt.NDArray[np.int64], valid: Valid, child: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Offsets from 0 and the child they point into, without what null rows may hide."""
    first, last = int(offsets[0]), int(offsets[-1])
    if valid is None:
        return offsets - first if first else offsets, child.slice(first, last - first)
    lengths = np.where(valid, np.diff(offsets), 0)
    packed = np.zeros(len(offsets), np.int64)
    np.cumsum(lengths, out=packed[1:])
    if int(packed[-1]) == last - first:
        return packed, child.slice(first, last - first)
    keep = np.repeat(offsets[:-1], lengths) + (np.arange(packed[-1]) - np.repeat(packed[:-1], lengths))
    return packed, child.take(pa.array(keep))


def _lists(array: pa.Array) -> Lists:
    valid = _valid(array)
    offsets, child = _flat(_list_offsets(array), valid, array.values)
    values = column(child)
    if isinstance(values, Lists | Maps):
        raise ColumnTypeError(f"nested {array.type} has no meaning outside a sequence")
    return Lists(offsets, valid, values)


def nested(array: pa.Array) -> Column | Nested:
    """View an array that may hold lists of lists: the column of a sequence."""
    if array.type.id not in _LISTS or array.type.value_type.id not in _LISTS:
        return column(array)
    valid = _valid(array)
    offsets, child = _flat(_list_offsets(array), valid, array.values)
    return Nested(offsets, valid, _lists(child))


def _maps(array: pa.Array) -> Maps:
    valid = _valid(array)
    offsets, entries = _flat(
        _list_offsets(array), valid, pa.StructArray.from_arrays([array.keys, array.items], ["k", "v"])
    )
    keys, items = (column(part) for part in entries.flatten())
    if isinstance(keys, Lists | Maps | Floats) or isinstance(items, Lists | Maps):
        raise ColumnTypeError(f"{array.type} has no meaning here: keys must be integers or strings, values scalars")
    return Maps(offsets, valid, keys, items)


def _dictionary(array: pa.Array) -> Column:
    return column(array.dictionary_decode())


def _null(array: pa.Array) -> Text:
    # A column that is null throughout says nothing about its type: text fits every feature.
    return _text(array.cast(pa.string()))


_INTEGERS = {kind.id: np.dtype(kind.to_pandas_dtype()) for kind in (
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
)}  # fmt: skip
_FLOATS = {kind.id: np.dtype(kind.to_pandas_dtype()) for kind in (pa.float16(), pa.float32(), pa.float64())}
# A look-up by id: asking pa.types one by one would cost more than the rest of a small batch's column.
_VIEWS: dict[int, Callable[[pa.Array], Column]] = {
    **dict.fromkeys(_INTEGERS, _integers),
    **dict.fromkeys(_FLOATS, _floats),
    pa.string().id: _text,
    pa.large_string().id: _text,
    pa.bool_().id: _booleans,
    pa.map_(pa.int8(), pa.int8()).id: _maps,
    pa.list_(pa.int8()).id: _lists,
    pa.large_list(pa.int8()).id: _lists,
    pa.list_(pa.int8(), 1).id: _lists,
    pa.dictionary(pa.int8(), pa.int8()).id: _dictionary,
    pa.null().id: _null,
}


_LISTS = frozenset({pa.list_(pa.int8()).id, pa.large_list(pa.int8()).id, pa.list_(pa.int8(), 1).id})


def column(array: pa.Array) -> Column:
    """View an array; raise ColumnTypeError where its type is none of a feature's."""
    view = _VIEWS.get(array.type.id)
    if view is None:
        raise ColumnTypeError(f"{array.type} is not a type of features")
    return view(array)


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_size_t
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Columns:
    """The columns of one record batch, each viewed once. `mask` says in which rows masked features see nothing."""

    tally: Tally | None = None
    """Counts for the feature that is being made."""
    _kept: dict[object, object] | None = None

    def __init__(
        self, rows: pa.RecordBatch, mask: npt.NDArray[np.bool_] | None = None, *, remember: bool = False
    ) -> None:
        """With `remember` what is made of them `once` is kept, for columns that are few and looked at twice."""
        self.rows = rows
        if remember:
            self._kept = {}
        self.mask = mask
        self.count = int(rows.num_rows)
        self._views: dict[str, Column] = {}
        self._names: frozenset[str] | None = None
        self._exported: tuple[object, object] | None = None

    def once(self, key: object, make: Callable[[], T]) -> T:
        """What `make` gives; made again each time unless the columns remember. A key has one type of value."""
        if self._kept is None:
            return make()
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = make()
        return found  # type: ignore[return-value]

    def whole(self, name: str) -> tuple[Columns, npt.NDArray[np.int64] | None]:
        """The columns that this one is of, and where several rows share one of theirs, whose each row is."""
        return self, None

    def note(self, outcome: str, count: int) -> None:
        """Count rows, or values, of the feature that is being made, where anyone counts."""
        if self.tally is not None and count:
            self.tally.add(outcome, count)

    def has(self, name: str) -> bool:
        """Whether the batch has the column, exactly once."""
        if self._names is None:
            names = self.rows.schema.names
            once = set(names)
            if len(once) != len(names):
                once -= {twice for twice in names if names.count(twice) > 1}
            self._names = frozenset(once)
        return name in self._names

    def only(self, good: npt.NDArray[np.bool_]) -> Columns:
        """Some of the rows, seen without a mask."""
        return Columns(self.rows.filter(good))

    def struct_address(self) -> int:
        """Where the batch's ArrowArray of the C data interface is, for as long as this lives."""
        if self._exported is None:
            self._exported = self.rows.__arrow_c_array__()
        address: int = _capsule_pointer(self._exported[1], b"arrow_array")
        return address

    def array(self, name: str) -> pa.Array:
        """The column as it is."""
        return self.rows.column(name)

    def sequence(self, name: str) -> Column | Nested:
        """The column of a sequence."""
        return nested(self.rows.column(name))

    def __getitem__(self, name: str) -> Column:
        view = self._views.get(name)
        if view is None:
            view = self._views[name] = column(self.rows.column(name))
        return view
