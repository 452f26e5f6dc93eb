"""Sampled values behind the batch's own: as more rows of a column, or as more items of its last row."""

from __future__ import annotations

import logging

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stream.projection import widen

logger = logging.getLogger(__name__)

Int32s = npt.NDArray[np.int32]


def appended(column: pa.Array, sampled: pa.Array) -> pa.Array:
    """The column with more rows."""
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    if column.type != sampled.type:
        kind = widen(column.type, sampled.type) or column.type
        column, sampled = column.cast(kind), sampled.cast(kind)
    return pa.concat_arrays([column, sampled])


def flattened(column: pa.Array, delimiter: str) -> tuple[pa.Array, Int32s]:
    """The items of all rows, and how many each row has.

    >>> [part.tolist() for part in map(np.asarray, flattened(pa.array(["1;2", "3"]), ";"))]
    [['1', '2', '3'], [2, 1]]
    """
    lists = _as_lists(column, delimiter)
    return lists.flatten(), np.asarray(pc.fill_null(pc.list_value_length(lists), 0), np.int32)


def merged_candidates(column: pa.Array, sampled: pa.Array, delimiter: str) -> tuple[pa.Array, Int32s]:
    """The column with the sampled items at the end of its last row, and how many items each row had before.

    `sampled` holds one item a row, perhaps each in a list. Without rows the items are dropped, with a warning.
    """
    if _is_list(sampled.type) and not _is_list(getattr(column.type, "value_type", pa.null())):
        sampled = sampled.flatten()
    _, lengths = flattened(column, delimiter)
    if not len(sampled):
        return column, lengths
    if not len(column):
        logger.warning("sampler dropped=%d reason=a batch without rows has no candidates", len(sampled))
        return column, lengths
    last = column.slice(len(column) - 1)
    if not _is_list(column.type):
        added = delimiter.join(pc.cast(sampled, pa.string()).to_pylist())
        own = last[0].as_py()
        tail = pa.array([f"{own}{delimiter}{added}" if own else added], column.type)
    else:
        items = pa.concat_arrays([last.flatten(), sampled.cast(column.type.value_type)])
        make = pa.LargeListArray if pa.types.is_large_list(column.type) else pa.ListArray
        tail = make.from_arrays([0, len(items)], items).cast(column.type)
    return pa.concat_arrays([column.slice(0, len(column) - 1), tail]), lengths


def _as_lists(column: pa.Array, delimiter: str) -> pa.Array:
    return column if _is_list(column.type) else pc.split_pattern(column, delimiter)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
