"""What every source of rows promises: one contract suite, tests/contracts/test_sources.py."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stream.cursor import Cursor, PartitionKey
from stream.deadletter import DeadLetter

__all__ = ["Chunk", "Clock", "Cursor", "PartitionKey", "Source"]

Clock = Callable[[], float]
"""Seconds since the epoch."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Chunk:
    """Consecutive rows of one partition, of one schema; no rows (and then no columns) where all messages are dead."""

    key: PartitionKey
    rows: pa.RecordBatch
    offsets: npt.NDArray[np.int64]  # [n] offset of each row's message
    row_in_message: npt.NDArray[np.int32]  # [n]
    broker_time_ms: npt.NDArray[np.int64]  # [n] append time, else create time, else -1
    start: Cursor  # the first row or dead message
    end: Cursor  # the row after the last, dead messages included
    dead: tuple[DeadLetter, ...] = ()  # between start and end, in order
    append_time: bool = False  # broker_time_ms is the time of appending, not of creation

    def __post_init__(self) -> None:
        n = self.rows.num_rows
        if not len(self.offsets) == len(self.row_in_message) == len(self.broker_time_ms) == n:
            raise ValueError(f"chunk of {self.key}: {n} rows, but other numbers of offsets, rows in message or times")

    def cursor(self, index: int) -> Cursor:
        """Where row `index` is; `end` for the number of rows."""
        if index == len(self.offsets):
            return self.end
        return self.start.at(int(self.offsets[index]), int(self.row_in_message[index]))


class Source(Protocol):
    """Rows by partition, from any cursor.

    One thread at a time. `start` comes once and before everything but `partitions` and `close`.
    """

    def partitions(self) -> tuple[PartitionKey, ...]:
        """All partitions, sorted; may grow while reading."""
        ...

    def start(self, keys: Iterable[PartitionKey], cursors: Mapping[PartitionKey, Cursor]) -> None:
        """Read `keys`, from their cursors; those without one from the declared start position."""
        ...

    def add(self, key: PartitionKey) -> None:
        """Read a partition that appeared later too, from its earliest row."""
        ...

    def read(self, timeout_s: float) -> Chunk | None:
        """The next chunk of any partition; None where nothing came within the time."""
        ...

    def hold(self, keys: Collection[PartitionKey]) -> None:
        """From now on `read` gives nothing of these partitions (and of these only), and loses nothing."""
        ...

    def ended(self, key: PartitionKey) -> bool:
        """Nothing will follow: a bounded source gave all rows of the partition."""
        ...

    def position(self, key: PartitionKey) -> Cursor:
        """Where reading stands: the row after the last one given, also before the first."""
        ...

    def lag(self) -> Mapping[PartitionKey, int]:
        """Messages (row groups, blocks) not yet given, as far as known without waiting."""
        ...

    def skipped(self) -> Mapping[PartitionKey, int]:
        """Messages that were gone before they could be read, since the start, where that is no error."""
        ...

    def acknowledge(self, cursors: Mapping[PartitionKey, Cursor]) -> None:
        """Tell others how far the commits are; never read back. Does nothing where nobody listens."""
        ...

    def close(self) -> None:
        """Let go of connections and files; a second call does nothing."""
        ...
