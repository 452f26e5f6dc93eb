"""Numba kernels of match features: nested maps as text, "pk^sk:v,sk:v|pk^sk:v", and the entries that keys select."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from features.pairs import MOST_WORK
from stream.words import address_of, count_bits, find, load8, matches, same

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

_BAR, _HAT, _COMMA, _COLON = 124, 94, 44, 58
_BLANK = np.uint64(32)
_UNKNOWN, _COUNTS, _SHADOWED = 0, 1, 2


@nb.njit(nogil=True, cache=True)
def _trim(start: int, end: int) -> tuple[int, int]:
    while start < end and load8(start) <= _BLANK:
        start += 1
    while end > start and load8(end - 1) <= _BLANK:
        end -= 1
    return start, end


@nb.njit(nogil=True, cache=True)
def _cut(start: int, end: int, limit: int, byte: int) -> tuple[int, int]:
    """Where a part is cut in two halves, and whether it is cut exactly once."""
    at = find(start, end, limit, byte)
    return at, at < end and find(at + 1, end, limit, byte) == end


@nb.njit(nogil=True, cache=True, inline="always")
def _inner(
    base: int, limit: int, start: int, end: int, outer: tuple[int, int], out: Int64s, at: int
) -> tuple[int, bool]:
    """Entries of "sk:v,sk:v", six numbers each; False where a part has not exactly two halves."""
    good = True
    while good and start < end:
        stop = find(start, end, limit, _COMMA)
        a, b = _trim(start, stop)
        start = stop + 1
        if a < b:
            cut, good = _cut(a, b, limit, _COLON)
            key_start, key_end = _trim(a, cut)
            value_start, value_end = _trim(cut + 1, b)
            good = good and key_start < key_end and value_start < value_end
            if good:
                out[at, 0], out[at, 1] = outer
                out[at, 2], out[at, 3] = key_start - base, key_end - base
                out[at, 4], out[at, 5] = value_start - base, value_end - base
                at += 1
    return at, good


@nb.njit(nogil=True, cache=True)
def _colons(data: Bytes, starts: Int64s, ends: Int64s) -> int:
    base, count = address_of(data), 0
    for row in range(len(starts)):
        end = base + ends[row]
        for at in range(base + starts[row], end, 64):
            count += count_bits(matches(at, end, base + len(data), _COLON))
    return count


@nb.njit(nogil=True, cache=True)
def parse_nested(data: Bytes, starts: Int64s, ends: Int64s, valid: Bools) -> tuple[Int64s, Int64s]:
    """Entries [n, 6] (starts and ends of pk, sk and value), and where every row's begin; `valid` empty: no nulls.

    A malformed part stops its row; what came before it stays.
    """
    out = np.empty((_colons(data, starts, ends), 6), np.int64)
    rows = np.zeros(len(starts) + 1, np.int64)
    base, at = address_of(data), 0
    limit = base + len(data)
    for row in range(len(starts)):
        start, end = base + starts[row], base + ends[row]
        good = len(valid) == 0 or valid[row]
        while good and start < end:
            stop = find(start, end, limit, _BAR)
            a, b = _trim(start, stop)
            start = stop + 1
            if a < b:
                cut, good = _cut(a, b, limit, _HAT)
                first, last = _trim(a, cut)
                if good and first < last:
                    at, good = _inner(base, limit, cut + 1, b, (first - base, last - base), out, at)
                else:
                    good = False
        rows[row + 1] = at
    return out[:at], rows


@nb.njit(nogil=True, cache=True)
def parse_inner(
    key_starts: Int64s, key_ends: Int64s, key_offsets: Int64s, data: Bytes, starts: Int64s, ends: Int64s
) -> tuple[Int64s, Int64s]:
    """Entries of Arrow maps from pk to "sk:v,sk:v": those of `parse_nested`, but pk is a slice of `keys`."""
    out = np.empty((_colons(data, starts, ends), 6), np.int64)
    rows = np.zeros(len(key_offsets), np.int64)
    base, at = address_of(data), 0
    limit = base + len(data)
    for row in range(len(key_offsets) - 1):
        for i in range(key_offsets[row], key_offsets[row + 1]):
            keys = (key_starts[i], key_ends[i])
            at, good = _inner(base, limit, base + starts[i], base + ends[i], keys, out, at)
            if not good:
                break
        rows[row + 1] = at
    return out[:at], rows


@nb.njit(nogil=True, cache=True, inline="always")
def _shadowed(keys: int, data: int, entries: Int64s, i: int, end: int) -> bool:
    """A later entry of the row has both keys."""
    found = False
    for other in range(i + 1, end):
        found = found or (
            same(keys + entries[i, 0], keys + entries[i, 1], keys + entries[other, 0], keys + entries[other, 1])
            and same(data + entries[i, 2], data + entries[i, 3], data + entries[other, 2], data + entries[other, 3])
        )
    return found


@nb.njit(nogil=True, cache=True)
def find_hits(
    keys: Bytes, data: Bytes, entries: Int64s, begins: Int64s, ends_at: Int64s,
    p: Bytes, p_starts: Int64s, p_ends: Int64s, p_offsets: Int64s,
    s: Bytes, s_starts: Int64s, s_ends: Int64s, s_offsets: Int64s,
) -> tuple[Int64s, Int32s]:  # fmt: skip
    """The entry of every pair of a pk (outer loop) and an sk that the row's map has, the last of equal ones.

    `begins` and `ends_at`: where the entries of each row are; rows may share them.
    """
    lengths = np.zeros(len(begins), np.int32)
    room = 0
    for row in range(len(lengths)):
        pairs = (p_offsets[row + 1] - p_offsets[row]) * (s_offsets[row + 1] - s_offsets[row])
        if ends_at[row] > begins[row] and float(pairs) * (ends_at[row] - begins[row]) <= MOST_WORK:
            room += pairs
    out = np.empty(room, np.int64)
    a, b, c, d = address_of(keys), address_of(data), address_of(p), address_of(s)
    at = 0
    for row in range(len(lengths)):
        before = at
        pairs = (p_offsets[row + 1] - p_offsets[row]) * (s_offsets[row + 1] - s_offsets[row])
        if float(pairs) * (ends_at[row] - begins[row]) > MOST_WORK:
            continue
        for k in range(p_offsets[row], p_offsets[row + 1]):
            for m in range(s_offsets[row], s_offsets[row + 1]):
                for i in range(ends_at[row] - 1, begins[row] - 1, -1):
                    if same(a + entries[i, 0], a + entries[i, 1], c + p_starts[k], c + p_ends[k]) and same(
                        b + entries[i, 2], b + entries[i, 3], d + s_starts[m], d + s_ends[m]
                    ):
                        out[at] = i
                        at += 1
                        break
        lengths[row] = at - before
    return out[:at], lengths


@nb.njit(nogil=True, cache=True)
def find_all(
    keys: Bytes, data: Bytes, entries: Int64s, begins: Int64s, ends_at: Int64s, column: int,
    wanted: Bytes, starts: Int64s, ends: Int64s, offsets: Int64s,
) -> tuple[Int64s, Int32s]:  # fmt: skip
    """For every wanted key all entries that have it as pk (`column` 0) or sk (2), in the order of the map.

    `begins` and `ends_at` are those of `find_hits`.
    """
    lengths = np.zeros(len(begins), np.int32)
    room = 0
    for row in range(len(lengths)):
        # In double: a request may hold more than int64 does.
        work = float(ends_at[row] - begins[row]) ** 2 * (offsets[row + 1] - offsets[row])
        room += 0 if work > MOST_WORK else (ends_at[row] - begins[row]) * (offsets[row + 1] - offsets[row])
    out = np.empty(room, np.int64)
    # Rows may share a map: whether an entry of it counts is found out once, not for each.
    counts = np.zeros(len(entries), np.int8)
    a, b, c = address_of(keys), address_of(data), address_of(wanted)
    source = a if column == 0 else b
    at = 0
    for row in range(len(lengths)):
        before = at
        if float(ends_at[row] - begins[row]) ** 2 * (offsets[row + 1] - offsets[row]) > MOST_WORK:
            continue
        for k in range(offsets[row], offsets[row + 1]):
            for i in range(begins[row], ends_at[row]):
                if same(source + entries[i, column], source + entries[i, column + 1], c + starts[k], c + ends[k]):
                    if counts[i] == _UNKNOWN:
                        counts[i] = _SHADOWED if _shadowed(a, b, entries, i, ends_at[row]) else _COUNTS
                    if counts[i] == _COUNTS:
                        out[at] = i
                        at += 1
        lengths[row] = at - before
    return out[:at], lengths
