"""A source over record batches in memory: for tests, and the reference for the contract of `Source`."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from stream.cursor import Cursor, PartitionKey
from stream.errors import PositionError, SourceError
from stream.source import Chunk


class MemorySource:
    """Each record batch counts as one message; bounded unless `unbounded`.

    >>> source = MemorySource({("clicks", 0): [pa.record_batch({"id": [1, 2, 3]})]})
    >>> source.start([("clicks", 0)], {("clicks", 0): Cursor(topic="clicks", partition=0, row=1)})
    >>> source.read(0.0).rows.to_pydict(), source.ended(("clicks", 0))
    ({'id': [2, 3]}, True)
    """

    def __init__(
        self,
        messages: Mapping[PartitionKey, Sequence[pa.RecordBatch]],
        *,
        columns: Collection[str] | None = None,
        broker_time_ms: int = -1,
        unbounded: bool = False,
    ) -> None:
        self._messages = {key: list(batches) for key, batches in messages.items()}
        self._columns = columns
        self._broker_time_ms = broker_time_ms
        self._unbounded = unbounded
        self._at: dict[PartitionKey, Cursor] = {}
        self._turn: deque[PartitionKey] = deque()
        self._held: frozenset[PartitionKey] = frozenset()

    def append(self, key: PartitionKey, batch: pa.RecordBatch) -> None:
        """Add one message; a new key is a new partition."""
        self._messages.setdefault(key, []).append(batch)

    def partitions(self) -> tuple[PartitionKey, ...]:
        """All partitions, sorted."""
        return tuple(sorted(self._messages))

    def start(self, keys: Iterable[PartitionKey], cursors: Mapping[PartitionKey, Cursor]) -> None:
        """Read `keys` from their cursors, else from the first row."""
        for key in keys:
            self._open(key, cursors.get(key, Cursor(topic=key[0], partition=key[1])))

    def add(self, key: PartitionKey) -> None:
        """Read one more partition from its first row."""
        self._open(key, Cursor(topic=key[0], partition=key[1]))

    def _open(self, key: PartitionKey, cursor: Cursor) -> None:
        if key not in self._messages:
            raise SourceError(f"no partition {key}; there are {self.partitions()}")
        if cursor.offset > len(self._messages[key]):
            raise PositionError(f"cursor {cursor.text} is behind the last of {len(self._messages[key])} messages")
        if key not in self._at:
            self._turn.append(key)
        self._at[key] = cursor

    def read(self, timeout_s: float) -> Chunk | None:
        """The rest of one message, partitions taking turns."""
        for _ in range(len(self._turn)):
            key = self._turn[0]
            self._turn.rotate(-1)
            if key not in self._held and self._at[key].offset < len(self._messages[key]):
                return self._take(key)
        return None

    def _take(self, key: PartitionKey) -> Chunk:
        start = self._at[key]
        rows = self._messages[key][start.offset].slice(start.row)
        if self._columns is not None:
            rows = rows.select([name for name in rows.schema.names if name in self._columns])
        n = rows.num_rows
        end = start.at(start.offset + 1)
        self._at[key] = end
        return Chunk(
            key=key,
            rows=rows,
            offsets=np.full(n, start.offset, np.int64),
            row_in_message=np.arange(start.row, start.row + n, dtype=np.int32),
            broker_time_ms=np.full(n, self._broker_time_ms, np.int64),
            start=start,
            end=end,
        )

    def hold(self, keys: Collection[PartitionKey]) -> None:
        """Give nothing of these."""
        self._held = frozenset(keys)

    def ended(self, key: PartitionKey) -> bool:
        """All messages were given, and the source is bounded."""
        return not self._unbounded and self._at[key].offset >= len(self._messages[key])

    def position(self, key: PartitionKey) -> Cursor:
        """The row after the last one given."""
        return self._at[key]

    def lag(self) -> Mapping[PartitionKey, int]:
        """Messages not yet given."""
        return {key: len(self._messages[key]) - cursor.offset for key, cursor in self._at.items()}

    def skipped(self) -> Mapping[PartitionKey, int]:
        """None: what is listed stays, or reading fails."""
        return {}

    def acknowledge(self, cursors: Mapping[PartitionKey, Cursor]) -> None:
        """Do nothing: nobody listens."""

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""
