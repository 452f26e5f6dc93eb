"""The event ids of one partition that were seen within a window of event time, and the judgement of rows in order."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
Statuses = npt.NDArray[np.uint8]

ACCEPTED, DEAD, FILTERED, LATE, DUPLICATE = 0, 1, 2, 3, 4
"""What becomes of a row, in the order of judgement."""

UNKNOWN_TIME = -1
NEVER_LATE = -1

_FREE = np.iinfo(np.int64).min


@nb.njit(nogil=True, cache=True)
def _slot(keys: UInt64s, stamps: Int64s, key: int) -> int:
    """Where the key is, or the free slot where it belongs."""
    mask = np.uint64(len(keys) - 1)
    at = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)
    at &= mask
    while stamps[at] != _FREE and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return at


@nb.njit(nogil=True, cache=True)
def _insert(keys: UInt64s, stamps: Int64s, new_keys: UInt64s, new_stamps: Int64s, oldest: int) -> int:
    count = 0
    for i in range(len(new_keys)):
        if new_stamps[i] < oldest:
            continue
        at = _slot(keys, stamps, new_keys[i])
        if stamps[at] == _FREE:
            count += 1
            keys[at] = new_keys[i]
        stamps[at] = max(stamps[at], new_stamps[i])
    return count


@nb.njit(nogil=True, cache=True)
def _judge(
    status: Statuses,
    times: Int64s,
    ids: UInt64s,
    watermark: int,
    lateness: int,
    window: int,
    keys: UInt64s,
    stamps: Int64s,
) -> tuple[Int64s, int]:
    """Judge the rows that are still ACCEPTED; give the watermark after each row and how many ids are new."""
    after = np.empty(len(status), np.int64)
    fresh = 0
    for row in range(len(status)):
        after[row] = watermark
        if status[row] != ACCEPTED:
            continue
        time = times[row]
        if lateness >= 0 and time < watermark - lateness:
            status[row] = LATE
            continue
        clock = max(watermark, time)
        if len(ids):
            at = _slot(keys, stamps, ids[row])
            if stamps[at] != _FREE and stamps[at] >= clock - window:
                status[row] = DUPLICATE
                continue
            if stamps[at] == _FREE:
                fresh += 1
                keys[at] = ids[row]
            stamps[at] = clock
        watermark = clock
        after[row] = watermark
    return after, fresh


class PartitionJudge:
    """Judges the rows of one partition in order: late, then duplicate.

    The watermark is the greatest event time of the rows accepted so far. An id counts as seen while the watermark is
    within `window_ms` of where it stood when the id was accepted: these stamps only grow, so what left the window
    never matters again. All of it is a function of the partition's rows alone. Ids are told apart by 64-bit hashes:
    among 10 million in the window, one in 370,000 chances that any two are taken for one.
    """

    def __init__(self, *, lateness_ms: int | None, window_ms: int, watermark: int = UNKNOWN_TIME) -> None:
        self._lateness = NEVER_LATE if lateness_ms is None else lateness_ms
        self._window = window_ms
        self.watermark = watermark
        self._keys = np.zeros(64, np.uint64)
        self._stamps = np.full(64, _FREE, np.int64)
        self._count = 0

    def remember(self, ids: UInt64s, stamps: Int64s) -> None:
        """Take over what earlier runs accepted, in any order.

        Stamps beyond the watermark are an earlier pass's over the same rows, which says nothing about this one.
        """
        reached = stamps <= self.watermark
        ids, stamps = ids[reached], stamps[reached]
        self._make_room(len(ids))
        self._count += _insert(self._keys, self._stamps, ids, stamps, self.watermark - self._window)

    def judge(self, status: Statuses, times: Int64s, ids: UInt64s | None) -> Int64s:
        """Mark late and duplicate rows in `status`; give the watermark after each row."""
        if ids is None:
            ids = np.empty(0, np.uint64)
        else:
            self._make_room(len(ids))
        after, fresh = _judge(
            status, times, ids, self.watermark, self._lateness, self._window, self._keys, self._stamps
        )
        self._count += fresh
        if len(after):
            self.watermark = int(after[-1])
        return after

    def _make_room(self, more: int) -> None:
        """Forget what left the window and grow, so that the table stays at most half full."""
        if 2 * (self._count + more) <= len(self._keys):
            return
        live = self._stamps >= max(self.watermark - self._window, _FREE + 1)
        keys, stamps = self._keys[live], self._stamps[live]
        size = 1 << max(6, (4 * (len(keys) + more)).bit_length())
        self._keys, self._stamps = np.zeros(size, np.uint64), np.full(size, _FREE, np.int64)
        self._count = _insert(self._keys, self._stamps, keys, stamps, _FREE + 1)
