"""What the rows of a batch cost, where batches are cut by cost (`data_config.sample_cost_field`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stream.row_errors import Faults, describe


def check_costs(rows: pa.RecordBatch, column: str, faults: Faults) -> None:
    """Note rows whose cost is null, no finite number, or less than 0."""
    if rows.schema.get_field_index(column) < 0:
        return  # the projection has noted it
    array = rows.column(column)
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        faults.add_all("wrong_type", f"sample cost {column!r} must hold numbers, got {array.type}")
        return
    values = _numbers(array)
    with np.errstate(invalid="ignore"):
        bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        faults.add(bad, "bad_cost", lambda row: f"{describe(column, array, row)}, a cost is a number from 0")


def cumulated(rows: pa.RecordBatch, column: str) -> npt.NDArray[np.float64]:
    """[n + 1] the costs of rows that passed, from 0."""
    return np.concatenate(([0.0], np.cumsum(_numbers(rows.column(column))))) if rows.num_rows else np.zeros(1)


def _numbers(array: pa.Array) -> npt.NDArray[np.float64]:
    return np.asarray(pc.fill_null(pc.cast(array, pa.float64(), safe=False), float("nan")), np.float64)
