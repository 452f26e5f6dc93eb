"""Event times and event ids of projected rows, as NumPy columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stream.duplicates import UNKNOWN_TIME
from stream.feed_options import FeedOptions
from stream.hashing import hash_integers, hash_slices
from stream.row_errors import Faults, describe

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

_LATEST_MS = 2**53
"""Beyond it a time is a mistake of units, and would overflow when scaled."""


def event_times(rows: pa.RecordBatch, broker_time_ms: Int64s, options: FeedOptions, faults: Faults) -> Int64s:
    """Milliseconds since the epoch; rows without a time that need one are bad."""
    name = options.event_time_column
    if name is None:
        if options.needs_time:
            faults.add(
                broker_time_ms < 0, "no_event_time", lambda row: "neither an event time column nor a message time"
            )
        return np.maximum(broker_time_ms, UNKNOWN_TIME)
    array = rows.column(name)
    kind = array.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_timestamp(kind)):
        if len(array) > array.null_count:
            faults.add_all("wrong_type", f"event time column {name!r} is {kind}: expected a number or a timestamp")
        else:
            faults.add_all("null_event_time", f"column {name!r} is null")
        return np.full(len(array), UNKNOWN_TIME, np.int64)
    if array.null_count:
        faults.add(_null(array), "null_event_time", lambda row: f"column {name!r} is null")
    times = _milliseconds(array, options)
    wrong = (times < 0) | (times > _LATEST_MS)
    faults.add(wrong, "bad_event_time", lambda row: describe(name, array, row))
    if options.max_future_ms:
        faults.add(
            (broker_time_ms >= 0) & (times - options.max_future_ms > broker_time_ms) & ~wrong,
            "time_in_future",
            lambda row: (
                f"column {name!r} is {times[row] - broker_time_ms[row]} ms ahead of the message's time, more than "
                f"max_future_ms {options.max_future_ms}"
            ),
        )
    return np.where(wrong, UNKNOWN_TIME, times) if wrong.any() else times


def _milliseconds(array: pa.Array, options: FeedOptions) -> Int64s:
    if pa.types.is_timestamp(array.type):
        return np.asarray(array.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()).fill_null(0).to_numpy(), np.int64)
    multiply, divide = options.event_time_unit.value
    values = array.fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(array.type):
        scaled = np.floor(values.astype(np.float64) * multiply / divide)
        scaled = np.nan_to_num(scaled, nan=-1.0, posinf=-1.0, neginf=-1.0)
        return np.asarray(np.clip(scaled, -1, 2 * _LATEST_MS), np.int64)
    if array.type == pa.uint64():
        values = np.minimum(values, np.uint64(2**63 - 1))
    limited = np.clip(values.astype(np.int64, copy=False), -1, _LATEST_MS * divide + divide)
    return np.asarray(limited if multiply == divide else limited * multiply // divide, np.int64)


def event_ids(rows: pa.RecordBatch, options: FeedOptions, faults: Faults) -> UInt64s | None:
    """64-bit hashes of the event ids; None where no duplicates are looked for. A row without an id is bad."""
    name = options.event_id_column
    if name is None:
        return None
    array = rows.column(name)
    if array.null_count:
        faults.add(_null(array), "null_event_id", lambda row: f"column {name!r} is null")
    if pa.types.is_integer(array.type):
        values = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        return np.asarray(hash_integers(values), np.uint64)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return _hash_text(array)
    if len(array) > array.null_count:
        faults.add_all("wrong_type", f"event id column {name!r} is {array.type}: expected strings or integers")
    return np.zeros(len(array), np.uint64)


def _hash_text(array: pa.Array) -> UInt64s:
    if len(array) == 0:
        return np.empty(0, np.uint64)
    wide = array.cast(pa.large_string())
    _, offsets, data = wide.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(wide) + 1, wide.offset * 8)
    chars = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return np.asarray(hash_slices(chars, bounds[:-1], bounds[1:]), np.uint64)


def _null(array: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.is_null(array).to_numpy(zero_copy_only=False), np.bool_)
