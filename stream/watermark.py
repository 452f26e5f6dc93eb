"""The event time that the whole stream has reached: the least of the partitions that are not idle."""

from __future__ import annotations

from collections.abc import Mapping

from stream.cursor import PartitionKey
from stream.duplicates import UNKNOWN_TIME
from stream.source import Clock


class StreamWatermark:
    """Never goes back. A partition that gave nothing for `idle_ms` of the clock holds nobody up, until it speaks again.

    >>> now = [0.0]
    >>> mark = StreamWatermark({("clicks", 0): 700, ("clicks", 1): 800}, idle_ms=5000, clock=lambda: now[0])
    >>> mark.observe(("clicks", 0), 900); mark.current()
    800
    >>> now[0] = 6.0; mark.observe(("clicks", 0), 1000); mark.current()
    1000
    """

    def __init__(self, marks: Mapping[PartitionKey, int], *, idle_ms: int, clock: Clock) -> None:
        """`marks` are where the partitions stand, -1 where that is unknown."""
        self._idle_s = idle_ms / 1000
        self._clock = clock
        self._marks = dict(marks)
        self._heard = dict.fromkeys(self._marks, clock())
        self._current = UNKNOWN_TIME

    def add(self, key: PartitionKey) -> None:
        """Wait for one more partition."""
        self._heard[key] = self._clock()
        self._marks.setdefault(key, UNKNOWN_TIME)

    def observe(self, key: PartitionKey, watermark: int) -> None:
        """A partition spoke, and has come this far."""
        self._heard[key] = self._clock()
        self._marks[key] = max(self._marks[key], watermark)

    def end(self, key: PartitionKey) -> None:
        """A partition will never speak again."""
        self._heard[key] = float("-inf")

    def current(self) -> int:
        """Milliseconds; -1 while nothing is known."""
        now = self._clock()
        # Where the clock went back, silence begins anew: nobody is held up until it is there again.
        self._heard = {key: min(heard, now) for key, heard in self._heard.items()}
        limit = now - self._idle_s
        active = [self._marks[key] for key, heard in self._heard.items() if heard >= limit]
        reached = min(active) if active else max(self._marks.values(), default=UNKNOWN_TIME)
        self._current = max(self._current, reached)
        return self._current
