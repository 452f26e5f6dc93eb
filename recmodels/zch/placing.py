"""Rebuild a map from rows of the commit log: by slot where the slots make a map, else bucket by bucket in order."""

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
from recmodels.zch.kernels import counter_set, find, place


@njit(cache=True, nogil=True)
def _by_slot(ids, rows, seen, p, entries, broken):  # type: ignore[no-untyped-def]
    """Put every row where it says; flag the buckets in which a row has no such place or would not be found there."""
    bucket_rows = p[BUCKET_ROWS]
    for i in range(ids.size):
        bucket = ids[i] % p[BUCKETS] - p[FIRST_BUCKET]
        row = rows[i]
        inside = 0 <= row < p[ROWS] and row // bucket_rows == bucket and row % bucket_rows != bucket_rows - 1
        if inside and entries[row, 0] == EMPTY:
            entries[row, 0] = ids[i]
            entries[row, 1] = seen[i]
        else:
            broken[bucket] = True
    for i in range(ids.size):
        bucket = ids[i] % p[BUCKETS] - p[FIRST_BUCKET]
        if not broken[bucket]:
            at = find(entries, bucket * bucket_rows, bucket_rows - 1, p[MAX_PROBE], ids[i])
            if at != rows[i] - bucket * bucket_rows:
                broken[bucket] = True


@njit(cache=True, nogil=True)
def _in_order(ids, seen, p, entries, broken, pinned, at, holder):  # type: ignore[no-untyped-def]
    """Empty the broken buckets and insert their rows again, in the order given."""
    bucket_rows = p[BUCKET_ROWS]
    for bucket in range(broken.size):
        if broken[bucket]:
            entries[bucket * bucket_rows : (bucket + 1) * bucket_rows, :] = EMPTY
    for i in range(ids.size):
        bucket = ids[i] % p[BUCKETS] - p[FIRST_BUCKET]
        if not broken[bucket]:
            continue
        base = bucket * bucket_rows
        row = base + place(entries, base, bucket_rows - 1, p[MAX_PROBE], ids[i], np.int64(-(2**62)), pinned, base)
        if entries[row, 0] != EMPTY:
            at[holder[row]] = -1
        entries[row, 0] = ids[i]
        entries[row, 1] = seen[i]
        holder[row] = i
        at[i] = row


def place_rows(ids: Int64s, rows: Int64s, seen: Int64s, p: Int64s, entries: Int64s) -> tuple[Int64s, np.ndarray]:
    """Fill an empty shard's `entries`; ids come ordered by (last seen, id).

    Returns each id's row, -1 where it no longer fits, and whether it is elsewhere than its slot said.
    """
    broken = np.zeros(int(p[ROWS] // p[BUCKET_ROWS]), np.bool_)
    _by_slot(ids, rows, seen, p, entries, broken)
    at = rows.copy()
    if broken.any():
        pinned = np.zeros(int(p[ROWS]) // 64 + 1, np.uint64)
        _in_order(ids, seen, p, entries, broken, pinned, at, np.zeros(int(p[ROWS]), np.int64))
    moved = broken[ids % p[BUCKETS] - p[FIRST_BUCKET]]
    return at, moved


@njit(cache=True, nogil=True)
def _counters_by_slot(ids, slots, counts, p, counters, touched, dropped):  # type: ignore[no-untyped-def]
    n = 0
    first = p[FIRST_BUCKET] * p[COUNTER_SETS] * WAYS
    for i in range(ids.size):
        bucket = ids[i] % p[BUCKETS] - p[FIRST_BUCKET]
        start = counter_set(p, bucket, ids[i]) - p[COUNTER_BASE]
        way = slots[i] - first
        if way < start or way >= start + WAYS or counters[way, 0] != EMPTY:
            way = -1
            for free in range(start, start + WAYS):
                if counters[free, 0] == EMPTY:
                    way = free
                    break
            if way < 0:
                dropped[n] = ids[i]
                n += 1
                continue
            touched[way] = True
        counters[way, 0] = ids[i]
        counters[way, 1] = counts[i]
    return n


def place_counters(
    ids: Int64s, slots: Int64s, counts: Int64s, p: Int64s, counters: Int64s, touched: np.ndarray
) -> Int64s:
    """Fill a shard's empty counters, highest count first; returns the ids that no longer fit."""
    dropped = np.empty(len(ids), np.int64)
    n = _counters_by_slot(ids, slots, counts, p, counters, touched, dropped)
    return dropped[:n]
