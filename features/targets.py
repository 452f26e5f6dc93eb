"""Labels and sample weights: what a batch is trained towards."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torchrec.sparse.jagged_tensor import JaggedTensor

from features import kernels
from features.columns import Columns, Floats, Integers, Lists
from features.errors import ColumnTypeError
from stream.row_errors import Faults, describe

Bools = npt.NDArray[np.bool_]
Check = Callable[[Columns, str, Faults], None]


def check_label(columns: Columns, name: str, faults: Faults) -> None:
    """Note rows whose label is null, not finite or not within int64."""
    view = columns[name]
    if not isinstance(view, Integers | Floats | Lists) or (isinstance(view, Lists) and not _is_number(view.child)):
        raise ColumnTypeError(f"label {name!r} must hold integers, floats or lists of them")
    if view.valid is not None:
        _blame(columns, name, ~view.valid, "null_label", faults)
    if isinstance(view, Lists):
        lengths = np.diff(view.offsets).astype(np.int32)
        bad = _bad_numbers(view.child)
        nulls = None if view.child.valid is None else ~view.child.valid
        if nulls is not None:
            _blame(columns, name, kernels.rows_of(nulls, lengths), "null_label", faults)
        if bad is not None:
            _blame(columns, name, kernels.rows_of(bad, lengths), "label_not_finite", faults)
        return
    bad = _bad_numbers(view)
    if bad is not None:
        _blame(columns, name, bad if view.valid is None else bad & view.valid, "label_not_finite", faults)


def check_weight(columns: Columns, name: str, faults: Faults) -> None:
    """Note rows whose sample weight is null or not finite."""
    view = columns[name]
    if not isinstance(view, Floats):
        raise ColumnTypeError(f"sample weight {name!r} must hold floats")
    if view.valid is not None:
        _blame(columns, name, ~view.valid, "null_weight", faults)
    bad = _bad_numbers(view)
    if bad is not None:
        _blame(columns, name, bad if view.valid is None else bad & view.valid, "weight_not_finite", faults)


def label(columns: Columns, name: str) -> torch.Tensor | JaggedTensor:
    """int64 or float32 [rows]; jagged where the column holds lists."""
    view = columns[name]
    if isinstance(view, Lists):
        lengths = torch.from_numpy(np.diff(view.offsets).astype(np.int32))
        return JaggedTensor(values=_tensor(view.child), lengths=lengths)
    return _tensor(view)


def weight(columns: Columns, name: str) -> torch.Tensor:
    """float32 [rows]."""
    return _tensor(columns[name])


def _tensor(view: object) -> torch.Tensor:
    if isinstance(view, Integers):
        return torch.from_numpy(view.values.copy())
    if isinstance(view, Floats):
        return torch.from_numpy(view.values.astype(np.float32))
    raise ColumnTypeError("labels and weights must be numbers")


def _is_number(view: object) -> bool:
    return isinstance(view, Integers | Floats)


def _bad_numbers(view: object) -> Bools | None:
    """Which values are no finite float32 and no int64; None: all are."""
    if isinstance(view, Integers):
        return view.wide
    if isinstance(view, Floats):
        with np.errstate(over="ignore"):
            narrow = np.ascontiguousarray(view.values.astype(np.float32, copy=False))
        return None if kernels.all_finite32(narrow.view(np.uint32)) else ~np.isfinite(narrow)
    return None


def _blame(columns: Columns, name: str, rows: Bools, reason: str, faults: Faults) -> None:
    array = columns.array(name)
    faults.add(rows, reason, lambda row: describe(name, array, row))
