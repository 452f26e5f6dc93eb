"""Numba kernels of match features: nested maps as text, "pk^sk:v,sk:v|pk^sk:v", and the entries that keys select."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from features.pairs import MOST_WORK, same

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

_BAR, _HAT, _COMMA, _COLON, _BLANK = 124, 94, 44, 58, 32


@nb.njit(nogil=True, cache=True, inline="always")
def _find(data: Bytes, start: int, end: int, char: int) -> int:
    at = start
    while at < end and data[at] != char:
        at += 1
    return at


@nb.njit(nogil=True, cache=True, inline="always")
def _trim(data: Bytes, start: int, end: int) -> tuple[int, int]:
    while start < end and data[start] <= _BLANK:
        start += 1
    while end > start and data[end - 1] <= _BLANK:
        end -= 1
    return start, end


@nb.njit(nogil=True, cache=True)
def _inner(data: Bytes, start: int, end: int, outer: tuple[int, int], out: Int64s, at: int) -> tuple[int, bool]:
    """Entries of "sk:v,sk:v", six numbers each; False where a part has not exactly two halves."""
    while start < end:
        stop = _find(data, start, end, _COMMA)
        a, b = _trim(data, start, stop)
        start = stop + 1
        if a == b:
            continue
        cut = _find(data, a, b, _COLON)
        if cut == b or _find(data, cut + 1, b, _COLON) != b:
            return at, False
        key_start, key_end = _trim(data, a, cut)
        value_start, value_end = _trim(data, cut + 1, b)
        if key_start == key_end or value_start == value_end:
            return at, False
        out[at, 0], out[at, 1] = outer
        out[at, 2], out[at, 3] = key_start, key_end
        out[at, 4], out[at, 5] = value_start, value_end
        at += 1
    return at, True


@nb.njit(nogil=True, cache=True)
def _colons(data: Bytes, starts: Int64s, ends: Int64s) -> int:
    count = 0
    for row in range(len(starts)):
        for i in range(starts[row], ends[row]):
            count += data[i] == _COLON
    return count


@nb.njit(nogil=True, cache=True)
def parse_nested(data: Bytes, starts: Int64s, ends: Int64s, valid: Bools) -> tuple[Int64s, Int64s]:
    """Entries [n, 6] (starts and ends of pk, sk and value), and where every row's begin; `valid` empty: no nulls.

    A malformed part stops its row; what came before it stays.
    """
    out = np.empty((_colons(data, starts, ends), 6), np.int64)
    rows = np.zeros(len(starts) + 1, np.int64)
    at = 0
    for row in range(len(starts)):
        start, end = starts[row], ends[row]
        good = len(valid) == 0 or valid[row]
        while good and start < end:
            stop = _find(data, start, end, _BAR)
            a, b = _trim(data, start, stop)
            start = stop + 1
            if a == b:
                continue
            cut = _find(data, a, b, _HAT)
            if cut == b or _find(data, cut + 1, b, _HAT) != b:
                break
            outer = _trim(data, a, cut)
            if outer[0] == outer[1]:
                break
            at, good = _inner(data, cut + 1, b, outer, out, at)
        rows[row + 1] = at
    return out[:at], rows


@nb.njit(nogil=True, cache=True)
def parse_inner(
    keys: Bytes, key_starts: Int64s, key_ends: Int64s, key_offsets: Int64s, data: Bytes, starts: Int64s, ends: Int64s
) -> tuple[Int64s, Int64s]:
    """Entries of Arrow maps from pk to "sk:v,sk:v": those of `parse_nested`, but pk is a slice of `keys`."""
    out = np.empty((_colons(data, starts, ends), 6), np.int64)
    rows = np.zeros(len(key_offsets), np.int64)
    at = 0
    for row in range(len(key_offsets) - 1):
        for i in range(key_offsets[row], key_offsets[row + 1]):
            at, good = _inner(data, starts[i], ends[i], (key_starts[i], key_ends[i]), out, at)
            if not good:
                break
        rows[row + 1] = at
    return out[:at], rows


@nb.njit(nogil=True, cache=True, inline="always")
def _equal(a: Bytes, entries: Int64s, i: int, at: int, b: Bytes, starts: Int64s, ends: Int64s, k: int) -> bool:
    return same(a, entries[i, at], entries[i, at + 1], b, starts[k], ends[k])


@nb.njit(nogil=True, cache=True)
def _shadowed(keys: Bytes, data: Bytes, entries: Int64s, i: int, end: int) -> bool:
    """A later entry of the row has both keys."""
    for other in range(i + 1, end):
        if same(keys, entries[i, 0], entries[i, 1], keys, entries[other, 0], entries[other, 1]) and same(
            data, entries[i, 2], entries[i, 3], data, entries[other, 2], entries[other, 3]
        ):
            return True
    return False


@nb.njit(nogil=True, cache=True)
def find_hits(
    keys: Bytes, data: Bytes, entries: Int64s, rows: Int64s,
    p: Bytes, p_starts: Int64s, p_ends: Int64s, p_offsets: Int64s,
    s: Bytes, s_starts: Int64s, s_ends: Int64s, s_offsets: Int64s,
) -> tuple[Int64s, Int32s]:  # fmt: skip
    """The entry of every pair of a pk (outer loop) and an sk that the row's map has, the last of equal ones."""
    lengths = np.zeros(len(rows) - 1, np.int32)
    room = 0
    for row in range(len(lengths)):
        pairs = (p_offsets[row + 1] - p_offsets[row]) * (s_offsets[row + 1] - s_offsets[row])
        if rows[row + 1] > rows[row] and pairs * (rows[row + 1] - rows[row]) <= MOST_WORK:
            room += pairs
    out = np.empty(room, np.int64)
    at = 0
    for row in range(len(lengths)):
        begin = at
        pairs = (p_offsets[row + 1] - p_offsets[row]) * (s_offsets[row + 1] - s_offsets[row])
        if pairs * (rows[row + 1] - rows[row]) > MOST_WORK:
            continue
        for k in range(p_offsets[row], p_offsets[row + 1]):
            for m in range(s_offsets[row], s_offsets[row + 1]):
                for i in range(rows[row + 1] - 1, rows[row] - 1, -1):
                    if _equal(keys, entries, i, 0, p, p_starts, p_ends, k) and _equal(
                        data, entries, i, 2, s, s_starts, s_ends, m
                    ):
                        out[at] = i
                        at += 1
                        break
        lengths[row] = at - begin
    return out[:at], lengths


@nb.njit(nogil=True, cache=True)
def find_all(
    keys: Bytes, data: Bytes, entries: Int64s, rows: Int64s, column: int,
    wanted: Bytes, starts: Int64s, ends: Int64s, offsets: Int64s,
) -> tuple[Int64s, Int32s]:  # fmt: skip
    """For every wanted key all entries that have it as pk (`column` 0) or sk (2), in the order of the map."""
    lengths = np.zeros(len(rows) - 1, np.int32)
    room = 0
    for row in range(len(lengths)):
        work = (rows[row + 1] - rows[row]) ** 2 * (offsets[row + 1] - offsets[row])
        room += 0 if work > MOST_WORK else (rows[row + 1] - rows[row]) * (offsets[row + 1] - offsets[row])
    out = np.empty(room, np.int64)
    at = 0
    for row in range(len(lengths)):
        begin = at
        if (rows[row + 1] - rows[row]) ** 2 * (offsets[row + 1] - offsets[row]) > MOST_WORK:
            continue
        for k in range(offsets[row], offsets[row + 1]):
            for i in range(rows[row], rows[row + 1]):
                source = keys if column == 0 else data
                if _equal(source, entries, i, column, wanted, starts, ends, k) and not _shadowed(
                    keys, data, entries, i, rows[row + 1]
                ):
                    out[at] = i
                    at += 1
        lengths[row] = at - begin
    return out[:at], lengths
