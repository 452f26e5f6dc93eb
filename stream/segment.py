"""Judged rows of one partition that wait for a cut, and the trail of those that are not trained on."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stream.accounting import Counts
from stream.cursor import Cursor
from stream.deadletter import DeadLetter
from stream.duplicates import DEAD, DUPLICATE, FILTERED, LATE

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

GAP_KINDS = (DEAD, FILTERED, LATE, DUPLICATE)
"""The columns of a gap count."""


def no_gap() -> Int64s:
    """A gap count of nothing."""
    return np.zeros(len(GAP_KINDS), np.int64)


@dataclass(kw_only=True, slots=True, eq=False)
class Segment:
    """The accepted rows of one chunk, and what lies between them.

    `gaps[k]` counts what precedes accepted row k (and follows none after it), cumulated; the last entry is the total.
    None: every row is accepted. `dead` has the number of accepted rows before each letter.
    """

    rows: pa.RecordBatch
    event_time_ms: Int64s
    broker_time_ms: Int64s
    watermarks: Int64s  # after each accepted row
    ids: UInt64s | None
    next_offset: Int64s  # where the item after each accepted row is
    next_row: npt.NDArray[np.int32]
    start: Cursor
    end: Cursor
    gaps: Int64s | None = None
    dead: list[tuple[int, DeadLetter]] = field(default_factory=list)
    append_time: bool = False  # broker_time_ms is the time of appending
    costs: npt.NDArray[np.float64] | None = None  # [n + 1] of the accepted rows, cumulated from 0
    taken: int = 0
    counted: Int64s = field(default_factory=no_gap)

    @property
    def left(self) -> int:
        """Accepted rows not yet taken."""
        return len(self.event_time_ms) - self.taken

    @property
    def has_tail(self) -> bool:
        """Something that is not accepted lies after the last row taken."""
        return self.gaps is not None and bool((self.gaps[-1] != self.counted).any())

    def cursor_after(self, accepted: int) -> Cursor:
        """Where the item after the accepted row `accepted - 1` is."""
        place = int(self.next_offset[accepted - 1]), int(self.next_row[accepted - 1])
        return self.end if place == self.end.place else self.start.at(*place)


@dataclass(kw_only=True, slots=True, eq=False)
class Taken:
    """What one cut takes from one partition."""

    rows: list[pa.RecordBatch] = field(default_factory=list)
    event_time_ms: list[Int64s] = field(default_factory=list)
    broker_time_ms: list[Int64s] = field(default_factory=list)
    watermarks: list[Int64s] = field(default_factory=list)
    ids: list[UInt64s] = field(default_factory=list)
    gap: Int64s = field(default_factory=no_gap)
    dead: list[DeadLetter] = field(default_factory=list)
    cursor: Cursor | None = None
    append_time: bool = True  # of all rows taken

    @property
    def count(self) -> int:
        """Rows taken."""
        return sum(len(part) for part in self.event_time_ms)

    @property
    def moves(self) -> bool:
        """Whether the partition's cursor moves."""
        return self.cursor is not None

    def counts(self, *, dropped: bool = False) -> Counts:
        """What became of the rows; `dropped`: the accepted ones are the remainder that is not trained."""
        dead, filtered, late, duplicate = (int(value) for value in self.gap)
        rows = {"remainder": self.count} if dropped else {"trained": self.count}
        return Counts(dead_lettered=dead, filtered=filtered, late=late, duplicate=duplicate, **rows)


class Pending:
    """The segments of one partition, oldest first."""

    def __init__(self) -> None:
        self._segments: deque[Segment] = deque()
        self.available = 0

    @property
    def holds_any(self) -> bool:
        """Something waits for a cut, accepted or not."""
        return bool(self._segments)

    @property
    def has_tail(self) -> bool:
        """No accepted row is left, but something that was not accepted is."""
        return self.available == 0 and bool(self._segments)

    def cost(self, count: int) -> float:
        """What the first `count` accepted rows cost together."""
        total = 0.0
        for segment in self._segments:
            part = min(count, segment.left)
            if segment.costs is not None:
                total += float(segment.costs[segment.taken + part] - segment.costs[segment.taken])
            count -= part
            if not count:
                break
        return total

    def append(self, segment: Segment) -> None:
        """Add what was read next; trails that nothing separates become one."""
        self.available += segment.left
        last = self._segments[-1] if self._segments else None
        if last is not None and last.left == 0 and segment.left == 0:
            _join(last, segment)
        else:
            self._segments.append(segment)

    def take(self, count: int, *, tail: bool) -> Taken:
        """Take accepted rows and all that precedes them; with `tail` also what follows the last accepted row."""
        taken = Taken()
        while count > 0:
            segment = self._segments[0]
            part = min(count, segment.left)
            if part:
                _take_rows(segment, part, taken)
                count -= part
                self.available -= part
            if segment.left == 0 and (count > 0 or not segment.has_tail):
                self._drop_first(taken)
        if tail and self.available == 0:
            while self._segments:
                self._drop_first(taken)
        return taken

    def _drop_first(self, taken: Taken) -> None:
        segment = self._segments.popleft()
        if segment.gaps is not None:
            taken.gap += segment.gaps[-1] - segment.counted
        taken.dead.extend(letter for _, letter in segment.dead)
        taken.cursor = segment.end


def _take_rows(segment: Segment, part: int, taken: Taken) -> None:
    begin, end = segment.taken, segment.taken + part
    taken.rows.append(segment.rows.slice(begin, part))
    taken.append_time &= segment.append_time
    taken.event_time_ms.append(segment.event_time_ms[begin:end])
    taken.broker_time_ms.append(segment.broker_time_ms[begin:end])
    taken.watermarks.append(segment.watermarks[begin:end])
    if segment.ids is not None:
        taken.ids.append(segment.ids[begin:end])
    if segment.gaps is not None:
        passed = segment.gaps[end - 1]
        taken.gap += passed - segment.counted
        segment.counted = passed
        taken.dead.extend(letter for before, letter in segment.dead if before < end)
        segment.dead = [item for item in segment.dead if item[0] >= end]
    segment.taken = end
    taken.cursor = segment.cursor_after(end)


def _join(last: Segment, more: Segment) -> None:
    """Put the trail of a segment without accepted rows behind another trail."""
    total = no_gap() if last.gaps is None else last.gaps[-1]
    added = no_gap() if more.gaps is None else more.gaps[-1]
    head = np.repeat(no_gap()[None], len(last.event_time_ms), axis=0) if last.gaps is None else last.gaps[:-1]
    last.gaps = np.concatenate((head, (total + added)[None]))
    last.dead.extend((len(last.event_time_ms), letter) for _, letter in more.dead)
    last.end = more.end


def concatenated(parts: Sequence[Int64s]) -> Int64s:
    """One array; empty where there are no parts."""
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
