"""Chunks of any schema become rows of one: declared types, or else types that only ever widen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stream.row_errors import BoolArray, Faults, RowErrors, describe


def widen(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both; None where there is none.

    >>> widen(pa.int32(), pa.int64()), widen(pa.float32(), pa.int32()), widen(pa.string(), pa.int64())
    (DataType(int64), DataType(double), None)
    """
    if old == new or pa.types.is_null(new):
        return old
    if pa.types.is_null(old):
        return new
    if pa.types.is_integer(old) and pa.types.is_integer(new):
        return pa.int64()
    if _is_number(old) and _is_number(new):
        return pa.float64()
    if _is_text(old) and _is_text(new):
        return pa.large_string()
    if _is_list(old) and _is_list(new):
        inner = widen(old.value_type, new.value_type)
        return None if inner is None else pa.large_list(inner) if pa.types.is_large_list(old) else pa.list_(inner)
    return None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def castable(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether values that fit may be cast: numbers to wider numbers, never text to numbers or floats to integers."""
    if old == new or pa.types.is_null(old):
        return True
    if pa.types.is_integer(old):
        return _is_number(new)
    if pa.types.is_floating(old):
        return bool(pa.types.is_floating(new))
    if _is_text(old):
        return _is_text(new)
    if _is_list(old) and _is_list(new):
        return castable(old.value_type, new.value_type)
    return bool(pa.types.is_temporal(old) and pa.types.is_temporal(new))


def _integer_inside(kind: pa.DataType) -> bool:
    return _integer_inside(kind.value_type) if _is_list(kind) else bool(pa.types.is_integer(kind))


def cast(array: pa.Array, target: pa.DataType) -> tuple[pa.Array, BoolArray | None]:
    """The array as another type, and a mask of the values that do not fit, which become null."""
    if array.type == target:
        return array, None
    # To floats every number fits, if rounded; Arrow would refuse integers beyond the mantissa.
    safe = _integer_inside(target)
    try:
        return array.cast(target, safe=safe), None
    except pa.ArrowInvalid:
        return _cast_parts(array, target)


def _cast_parts(array: pa.Array, target: pa.DataType) -> tuple[pa.Array, BoolArray]:
    """Halve until the values that do not fit are alone."""
    if len(array) == 1:
        return pa.nulls(1, target), np.ones(1, np.bool_)
    half = len(array) // 2
    parts = [cast(array.slice(0, half), target), cast(array.slice(half), target)]
    masks = [np.zeros(len(part), np.bool_) if bad is None else bad for part, bad in parts]
    return pa.concat_arrays([part for part, _ in parts]), np.concatenate(masks)


class Projection:
    """Keeps `columns`, in this order; types are declared or follow from what came before, and never narrow.

    Without `columns` those of the first chunk are kept.
    """

    def __init__(self, columns: Sequence[str] | None, declared: pa.Schema | None) -> None:
        self._columns = None if columns is None else tuple(columns)
        self._declared = {} if declared is None else {field.name: field.type for field in declared}
        self._types: dict[str, pa.DataType] = {}
        self._fitting: pa.Schema | None = None

    def __call__(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, RowErrors]:
        """The projected rows and those that could not be; a bad row's values mean nothing."""
        if self._fitting is not None and rows.schema.equals(self._fitting):
            return rows, RowErrors.none(rows.num_rows)
        if self._columns is None:
            self._columns = tuple(rows.schema.names)
        faults = Faults(rows.num_rows)
        arrays = [self._column(rows, name, faults) for name in self._columns]
        errors = faults.errors()
        made = pa.RecordBatch.from_arrays(arrays, names=list(self._columns))
        if not errors and made.schema.equals(rows.schema):
            self._fitting = rows.schema
        return made, errors

    def _column(self, rows: pa.RecordBatch, name: str, faults: Faults) -> pa.Array:
        if rows.schema.get_field_index(name) < 0:
            faults.add_all("missing_column", f"column {name!r} is missing, or there twice")
            return pa.nulls(rows.num_rows, self._types.get(name, self._declared.get(name, pa.null())))
        array = rows.column(name)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        target = self._target(name, array.type)
        if target is None or not castable(array.type, target):
            wanted = self._declared.get(name, self._types.get(name))
            faults.add_all("wrong_type", f"column {name!r} is {array.type}, which does not go into {wanted}")
            return pa.nulls(rows.num_rows, wanted)
        made, misfits = cast(array, target)
        if misfits is not None:
            faults.add(misfits, "wrong_type", lambda row: f"{describe(name, array, row)}, which does not fit {target}")
        return made

    def _target(self, name: str, incoming: pa.DataType) -> pa.DataType | None:
        if name in self._declared:
            return self._declared[name]
        target = widen(self._types.get(name, incoming), incoming)
        if target is not None:
            if target != self._types.get(name):
                self._fitting = None
            self._types[name] = target
        return target


def concatenate(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of several that were projected alike: what was narrower before a type widened is cast."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0].schema
    if not all(part.schema.equals(first) for part in parts[1:]):
        parts = _aligned(parts)
    return pa.concat_batches(parts)


def _aligned(parts: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    names = parts[0].schema.names
    types = {}
    for name in names:
        kind = parts[0].schema.field(name).type
        for part in parts[1:]:
            # Projected types of one column always widen to one another.
            kind = widen(kind, part.schema.field(name).type) or kind
        types[name] = kind
    return [
        pa.RecordBatch.from_arrays([cast(part.column(name), types[name])[0] for name in names], names=names)
        for part in parts
    ]
