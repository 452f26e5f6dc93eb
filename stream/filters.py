"""Declared filters: which rows are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stream.errors import FeedError
from stream.feed_options import Filter
from stream.row_errors import BoolArray

_OPERATORS: dict[str, Callable[[pa.Array, pa.Scalar], pa.Array]] = {
    "EQ": pc.equal,
    "NE": pc.not_equal,
    "LT": pc.less,
    "LE": pc.less_equal,
    "GT": pc.greater,
    "GE": pc.greater_equal,
}


def rejected(rows: pa.RecordBatch, filters: Sequence[Filter]) -> BoolArray | None:
    """The rows that fail a filter; None where there are no filters. Raise FeedError where one has no meaning."""
    if not filters:
        return None
    kept = np.ones(rows.num_rows, np.bool_)
    for item in filters:
        kept &= _holds(rows.column(item.column), item)
    return ~kept


def _holds(column: pa.Array, item: Filter) -> BoolArray:
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.bool_)
    try:
        value = pa.scalar(item.value).cast(column.type)
        held = _OPERATORS[item.operator](column, value)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FeedError(
            f"filter {item.column} {item.operator} {item.value!r}: the value does not compare with "
            f"a column of {column.type}"
        ) from error
    return np.asarray(held.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)
