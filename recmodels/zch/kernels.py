"""The map's inner loops: one call per batch over all tables of a lookup.

Ids are looked for, and placed, exactly where fbgemm's read-only `zero_collision_hash` finds them (zch/hashing.py).
Rows that the current step has used are pinned: they are never evicted, so that no two ids of a step share a row.
Chains have no holes: an evicted row is taken over by the evicting id at once, and nothing else empties a row.
"""

import numpy as np
from numba import njit

from recmodels.zch.arena import (
    ADMIT,
    BIT_BASE,
    BUCKET_ROWS,
    BUCKETS,
    COLLISIONS,
    COUNTER_BASE,
    COUNTER_SETS,
    DIRECT,
    EMPTY,
    ENTRY_BASE,
    EVICTIONS,
    FIRST_BUCKET,
    FIRST_ROW,
    HITS,
    INSERTS,
    KIND,
    MAX_PROBE,
    MISS_BASE,
    OWN_BUCKETS,
    ROWS,
    SIZE,
    SORTED,
    TRACKED,
    TTL_MS,
    UNADMITTED,
    WAYS,
)
from recmodels.zch.bitmaps import get_bit, set_bit
from recmodels.zch.hashing import probe_start

_CACHE_BITS = 11
_CACHE = 1 << _CACHE_BITS


@njit(cache=True, nogil=True)
def find(entries, base, usable, max_probe, row_id):  # type: ignore[no-untyped-def]
    """Position of an id within its bucket, or -1."""
    at = probe_start(row_id, usable)
    for _ in range(max_probe):
        held = entries[base + at, 0]
        if held == row_id:
            return at
        if held == EMPTY:
            return -1
        at += 1
        if at == usable:
            at = 0
    return -1


@njit(cache=True, nogil=True)
def place(entries, base, usable, max_probe, row_id, expired_before, pinned, bit):  # type: ignore[no-untyped-def]
    """Where an absent id goes: an expired or empty row of its window, else the least recent; -1 when all are pinned."""
    at = probe_start(row_id, usable)
    best = -1
    best_seen = np.int64(0)
    for _ in range(max_probe):
        if entries[base + at, 0] == EMPTY:
            return at
        seen = entries[base + at, 1]
        if not get_bit(pinned, bit + at):
            if seen < expired_before:
                return at
            if best < 0 or seen < best_seen:
                best = at
                best_seen = seen
        at += 1
        if at == usable:
            at = 0
    return best


@njit(cache=True, nogil=True)
def counter_set(p, bucket, row_id):  # type: ignore[no-untyped-def]
    sets = p[COUNTER_SETS]
    # A start of the map is hash % rows; the set takes other bits, so that full windows do not mean full sets.
    chosen = (probe_start(row_id, np.int64(1) << np.int64(62)) >> 20) % sets
    return p[COUNTER_BASE] + (bucket * sets + chosen) * WAYS


@njit(cache=True, nogil=True)
def count_sighting(counters, touched, start, row_id, dropped, n_dropped):  # type: ignore[no-untyped-def]
    """Count one sighting; a full set gives up its lowest count, the first of equals."""
    free = -1
    lowest = start
    for way in range(start, start + WAYS):
        if counters[way, 0] == row_id:
            counters[way, 1] += 1
            touched[way] = True
            return n_dropped
        if counters[way, 0] == EMPTY:
            if free < 0:
                free = way
        elif counters[lowest, 0] == EMPTY or counters[way, 1] < counters[lowest, 1]:
            lowest = way
    if free < 0:
        free = lowest
        dropped[n_dropped] = counters[free, 0]
        n_dropped += 1
    counters[free, 0] = row_id
    counters[free, 1] = 1
    touched[free] = True
    return n_dropped


@njit(cache=True, nogil=True)
def count_sightings(values, starts, tables, params, entries, counters, touched, drop_ids, drop_tables):  # type: ignore[no-untyped-def]  # noqa: E501
    """Count every occurrence of every absent id, before any is admitted; returns how many counters were given up."""
    n = 0
    for f in range(tables.size):
        p = params[tables[f]]
        if p[ADMIT] <= 1:
            continue
        usable = p[BUCKET_ROWS] - 1
        for i in range(starts[f], starts[f + 1]):
            row_id = values[i]
            bucket = row_id % p[BUCKETS] - p[FIRST_BUCKET]
            base = p[ENTRY_BASE] + bucket * p[BUCKET_ROWS]
            if find(entries, base, usable, p[MAX_PROBE], row_id) < 0:
                m = count_sighting(counters, touched, counter_set(p, bucket, row_id), row_id, drop_ids, n)
                for k in range(n, m):
                    drop_tables[k] = tables[f]
                n = m
    return n


@njit(cache=True, nogil=True)
def is_admitted(p, counters, bucket, row_id):  # type: ignore[no-untyped-def]
    """Whether the id has been seen often enough."""
    start = counter_set(p, bucket, row_id)
    for way in range(start, start + WAYS):
        if counters[way, 0] == row_id:
            return counters[way, 1] >= p[ADMIT]
    return False


@njit(cache=True, nogil=True)
def give_back(p, counters, touched, bucket, row_id):  # type: ignore[no-untyped-def]
    """Empty the counter of an id that has a row now."""
    start = counter_set(p, bucket, row_id)
    for way in range(start, start + WAYS):
        if counters[way, 0] == row_id:
            counters[way, 0] = EMPTY
            counters[way, 1] = 0
            touched[way] = False


@njit(cache=True, nogil=True)
def remap_train(  # type: ignore[no-untyped-def]
    values,
    starts,
    tables,
    params,
    entries,
    counters,
    counter_touched,
    touched,
    pinned,
    pinned_words,
    pinned_count,
    missed,
    figures,
    now,
    out,
    new_table,
    new_row,
    new_id,
    old_id,
):
    """Map ids to rows of the shard, admitting and evicting; mark what the step will change.

    Within a table a feature's known ids are pinned before its new ones are placed.

    Returns (number of fresh rows, -1); they are listed in `new_*`, with the id that each evicted, or -1, in `old_id`.
    An id outside a direct table stops the loop: (…, index of the value).
    """
    longest = 0
    for f in range(tables.size):
        longest = max(longest, starts[f + 1] - starts[f])
    # Values of a feature that differ, as far as a small cache can tell; a repeated one is only looked for again.
    ids = np.empty(longest, np.int64)
    slots = np.empty(longest, np.int64)
    waiting = np.empty(longest, np.int64)
    cache = np.empty((_CACHE, 2), np.int64)
    fresh = 0
    pins = pinned_count[0]
    touch = np.int64(0)
    for f in range(tables.size):
        t = tables[f]
        p = params[t]
        bit_base = p[BIT_BASE]
        if p[KIND] == SORTED:
            continue
        if p[KIND] == DIRECT:
            first = p[FIRST_ROW]
            rows = p[ROWS]
            tracked = p[TRACKED] != 0
            for i in range(starts[f], starts[f + 1]):
                row = values[i] - first
                if row < 0 or row >= rows:
                    return fresh, i
                out[i] = row
                if tracked:
                    set_bit(touched, bit_base + row)
            continue
        bucket_rows = p[BUCKET_ROWS]
        usable = bucket_rows - 1
        buckets = np.uint64(p[BUCKETS])
        mask = buckets - np.uint64(1) if buckets & (buckets - np.uint64(1)) == 0 else np.uint64(0)
        first_bucket = p[FIRST_BUCKET]
        own_buckets = p[OWN_BUCKETS]
        max_probe = p[MAX_PROBE]
        entry_base = p[ENTRY_BASE]
        expired_before = now - p[TTL_MS] if p[TTL_MS] >= 0 else np.int64(-(2**62))
        cache[:, 0] = EMPTY
        distinct = 0
        for i in range(starts[f], starts[f + 1]):
            row_id = values[i]
            line = np.int64((np.uint64(row_id) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - _CACHE_BITS))
            if cache[line, 0] != row_id:
                if mask or buckets == 1:
                    bucket = np.int64(np.uint64(row_id) & mask) - first_bucket
                else:
                    bucket = np.int64(np.uint64(row_id) % buckets) - first_bucket
                if row_id < 0 or bucket < 0 or bucket >= own_buckets:
                    return fresh, i
                ids[distinct] = row_id
                slots[distinct] = bucket * bucket_rows + probe_start(row_id, usable)
                cache[line, 0] = row_id
                cache[line, 1] = distinct
                distinct += 1
            out[i] = cache[line, 1]
        # Reading all entries first, without a branch on what they hold, overlaps the cache misses.
        for k in range(distinct):
            touch ^= entries[entry_base + slots[k], 0]
        before = fresh
        absent = 0
        for k in range(distinct):
            row = slots[k]
            if entries[entry_base + row, 0] != ids[k]:
                offset = row - row % bucket_rows
                at = find(entries, entry_base + offset, usable, max_probe, ids[k])
                if at < 0:
                    waiting[absent] = k
                    absent += 1
                    continue
                row = offset + at
                slots[k] = row
            bit = bit_base + row
            if not get_bit(pinned, bit):
                if entries[entry_base + row, 1] < expired_before:
                    figures[t, EVICTIONS] += 1
                    new_table[fresh] = t
                    new_row[fresh] = row
                    new_id[fresh] = ids[k]
                    old_id[fresh] = EMPTY
                    fresh += 1
                set_bit(pinned, bit)
                set_bit(touched, bit)
                pinned_words[pins] = bit >> 6
                pins += 1
                if entries[entry_base + row, 1] < now:
                    entries[entry_base + row, 1] = now
        # Ids come in only now, when every row that the feature already has is pinned.
        missing = False
        for w in range(absent):
            k = waiting[w]
            row_id = ids[k]
            offset = slots[k] - slots[k] % bucket_rows
            base = entry_base + offset
            at = find(entries, base, usable, max_probe, row_id)
            if at >= 0:
                slots[k] = offset + at
                continue
            bucket = offset // bucket_rows
            if p[ADMIT] <= 1 or is_admitted(p, counters, bucket, row_id):
                at = place(entries, base, usable, max_probe, row_id, expired_before, pinned, bit_base + offset)
            if at < 0:
                missed[p[MISS_BASE] + bucket] = 1
                missing = True
                slots[k] = -1 - (offset + usable)
                continue
            if p[ADMIT] > 1:
                give_back(p, counters, counter_touched, bucket, row_id)
            if offset + at != slots[k]:
                figures[t, COLLISIONS] += 1
            evicted = entries[base + at, 0]
            if evicted == EMPTY:
                figures[t, SIZE] += 1
            else:
                figures[t, EVICTIONS] += 1
            entries[base + at, 0] = row_id
            entries[base + at, 1] = now
            row = offset + at
            slots[k] = row
            new_table[fresh] = t
            new_row[fresh] = row
            new_id[fresh] = row_id
            old_id[fresh] = evicted
            fresh += 1
            bit = bit_base + row
            set_bit(pinned, bit)
            set_bit(touched, bit)
            pinned_words[pins] = bit >> 6
            pins += 1
        figures[t, INSERTS] += fresh - before
        figures[t, HITS] += starts[f + 1] - starts[f] - (fresh - before)
        if not missing:
            for i in range(starts[f], starts[f + 1]):
                out[i] = slots[out[i]]
            continue
        for i in range(starts[f], starts[f + 1]):
            row = slots[out[i]]
            if row < 0:
                figures[t, UNADMITTED] += 1
                figures[t, HITS] -= 1
                row = -1 - row
            out[i] = row
    pinned_count[0] = pins
    pinned_words[pins] = touch
    return fresh, np.int64(-1)


@njit(cache=True, nogil=True)
def remap_read(values, starts, tables, params, entries, out):  # type: ignore[no-untyped-def]
    """Map ids to rows of the shard and change nothing; returns the index of an id outside its table, or -1."""
    for f in range(tables.size):
        p = params[tables[f]]
        bucket_rows = p[BUCKET_ROWS]
        if p[KIND] == SORTED:
            continue
        for i in range(starts[f], starts[f + 1]):
            row_id = values[i]
            if p[KIND] == DIRECT:
                row = row_id - p[FIRST_ROW]
                if row < 0 or row >= p[ROWS]:
                    return i
                out[i] = row
                continue
            if row_id < 0:
                return i
            offset = (row_id % p[BUCKETS] - p[FIRST_BUCKET]) * bucket_rows
            if offset < 0 or offset >= p[ROWS]:
                return i
            at = find(entries, p[ENTRY_BASE] + offset, bucket_rows - 1, p[MAX_PROBE], row_id)
            out[i] = offset + (at if at >= 0 else bucket_rows - 1)
    return np.int64(-1)


@njit(cache=True, nogil=True)
def read_entries(entries, base, rows, ids, seen):  # type: ignore[no-untyped-def]
    """Copy id and last-seen time of these rows of a hashed table."""
    for i in range(rows.size):
        ids[i] = entries[base + rows[i], 0]
        seen[i] = entries[base + rows[i], 1]
