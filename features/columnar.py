"""What features make, as Arrow columns: for files and for people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from features.assemble import several_ids
from features.errors import ColumnTypeError
from features.feature_set import FeatureSet
from features.generator import Dense, Made, Sparse, Steps, Strings
from features.views import as_array, offsets_of, view_of
from stream.row_errors import RowErrors

WEIGHTS = ".weights"
"""Ends the name of the column of a feature's weights."""


def generated(features: FeatureSet, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, RowErrors]:
    """One column for each feature, and one for its weights; rows that cannot be used are null and told."""
    errors = features.validate(rows, serving=True)
    good = ~errors.bad
    made = features.made(rows if good.all() else rows.filter(pa.array(good)))
    columns: dict[str, pa.Array] = {}
    for feature in features.features:
        name, values = feature.name, made[feature.name]
        columns[name] = as_column(values, several=several_ids(feature))
        if isinstance(values, Sparse) and values.weights is not None:
            columns[name + WEIGHTS] = _lists(pa.array(values.weights), values.lengths)
    place = pa.array(np.cumsum(good) - 1, mask=~good)
    spread = {name: column if good.all() else column.take(place) for name, column in columns.items()}
    return pa.RecordBatch.from_arrays(list(spread.values()), names=list(spread)), errors


def as_column(made: Made, *, several: bool = True) -> pa.Array:
    """Ids are lists of int64, numbers float32 or lists of them; a sequence is a list of what its steps are.

    Steps of one id (not `several`) are that id.
    """
    match made:
        case Sparse():
            return _lists(pa.array(made.values), made.lengths)
        case Dense():
            return _numbers(made.values)
        case Strings():
            return as_array(view_of(made))
        case Steps():
            return _steps(made, several)


def _numbers(values: npt.NDArray[np.float32]) -> pa.Array:
    if values.ndim == 1:
        return pa.array(values)
    rows, dim = values.shape
    return _cut(pa.array(values.reshape(-1)), np.arange(rows + 1, dtype=np.int64) * dim)


def _lists(values: pa.Array, lengths: npt.NDArray[np.int32] | None) -> pa.Array:
    count = len(values)
    return _cut(values, np.arange(count + 1) if lengths is None else offsets_of(lengths))


def _steps(made: Steps, several: bool) -> pa.Array:
    inner = made.made
    if isinstance(inner, Sparse) and not several:
        return _cut(pa.array(inner.values), offsets_of(made.lengths))
    return _cut(as_column(inner), offsets_of(made.lengths))


def _cut(values: pa.Array, offsets: npt.NDArray[np.int64]) -> pa.Array:
    if len(offsets) and offsets[-1] > 2**31 - 1:
        raise ColumnTypeError(f"{offsets[-1]} values are too many for one batch; read fewer rows at a time")
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def differences(ours: pa.Array, theirs: pa.Array) -> Sequence[tuple[int, object, object]]:
    """The rows in which a column differs from one that is expected; a scalar equals a list of one, NaN itself."""
    if ours.type == theirs.type and ours.equals(theirs):
        return ()
    found = []
    for row, (one, other) in enumerate(zip(ours.to_pylist(), theirs.to_pylist(), strict=True)):
        if not _same(_shaped(one), _shaped(other)):
            found.append((row, one, other))
    return found


def _shaped(value: object) -> object:
    if isinstance(value, list):
        inner = [_shaped(item) for item in value]
        return inner[0] if len(inner) == 1 else inner
    return float(np.float32(value)) if isinstance(value, float) else value


def _same(one: object, other: object) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float) and one != one:
        return other != other
    return bool(one == other) or (one in (None, []) and other in (None, []))
