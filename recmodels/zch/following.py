"""Put the rows of one later commit into a loaded map, row by row where they say; see placing.py for a whole map."""

import numpy as np
from numba import njit

from recmodels.zch.arena import (
    BUCKET_ROWS,
    BUCKETS,
    COUNTER_BASE,
    COUNTER_SETS,
    EMPTY,
    FIRST_BUCKET,
    MAX_PROBE,
    ROWS,
    WAYS,
    Int64s,
)
from recmodels.zch.kernels import counter_set, find


@njit(cache=True, nogil=True)
def _held_at(entries, p, row_id):  # type: ignore[no-untyped-def]
    """The row of an id within the shard, or -1."""
    base = (row_id % p[BUCKETS] - p[FIRST_BUCKET]) * p[BUCKET_ROWS]
    at = find(entries, base, p[BUCKET_ROWS] - 1, p[MAX_PROBE], row_id)
    return base + at if at >= 0 else np.int64(-1)


@njit(cache=True, nogil=True)
def _follow_rows(ids, rows, seen, deleted, p, entries):  # type: ignore[no-untyped-def]
    bucket_rows = p[BUCKET_ROWS]
    left = np.empty(ids.size + deleted.size, np.int64)
    for i in range(ids.size):
        bucket = ids[i] % p[BUCKETS] - p[FIRST_BUCKET]
        row = rows[i]
        if row < 0 or row >= p[ROWS] or row // bucket_rows != bucket or row % bucket_rows == bucket_rows - 1:
            return -1
        left[i] = _held_at(entries, p, ids[i])
    for i in range(deleted.size):
        left[ids.size + i] = _held_at(entries, p, deleted[i])
    fresh = 0
    for i in range(ids.size):
        fresh += entries[rows[i], 0] == EMPTY
        entries[rows[i], 0] = ids[i]
        entries[rows[i], 1] = seen[i]
    # Chains have no holes (kernels.py): a row that an id has left must hold another one now.
    for i in range(ids.size):
        if _held_at(entries, p, ids[i]) != rows[i]:
            return -1
        if left[i] >= 0 and left[i] != rows[i] and entries[left[i], 0] == ids[i]:
            return -1
    for i in range(deleted.size):
        row = left[ids.size + i]
        if row >= 0 and entries[row, 0] == deleted[i]:
            return -1
    return fresh


def follow_rows(ids: Int64s, rows: Int64s, seen: Int64s, deleted: Int64s, p: Int64s, entries: Int64s) -> int:
    """Bring a shard's `entries` forward by what one commit put and deleted; returns how many more rows are taken.

    -1: the rows and those that are there do not make a map, and `entries` holds neither state.
    """
    return int(_follow_rows(ids, rows, seen, deleted, p, entries))


@njit(cache=True, nogil=True)
def _follow_counters(ids, slots, counts, deleted, p, counters):  # type: ignore[no-untyped-def]
    first = p[FIRST_BUCKET] * p[COUNTER_SETS] * WAYS
    for i in range(ids.size + deleted.size):
        row_id = ids[i] if i < ids.size else deleted[i - ids.size]
        start = counter_set(p, row_id % p[BUCKETS] - p[FIRST_BUCKET], row_id) - p[COUNTER_BASE]
        for way in range(start, start + WAYS):
            if counters[way, 0] == row_id:
                counters[way, 0] = EMPTY
                counters[way, 1] = EMPTY
        if i < ids.size and (slots[i] - first < start or slots[i] - first >= start + WAYS):
            return False
    for i in range(ids.size):
        way = slots[i] - first
        if counters[way, 0] != EMPTY:
            return False
        counters[way, 0] = ids[i]
        counters[way, 1] = counts[i]
    return True


def follow_counters(ids: Int64s, slots: Int64s, counts: Int64s, deleted: Int64s, p: Int64s, counters: Int64s) -> bool:
    """Bring a shard's admission counters forward; False: two ids want one place, and `counters` holds neither state."""
    return bool(_follow_counters(ids, slots, counts, deleted, p, counters))
