"""The seam between tables and where their rows are: what remapping, sealing, loading and following need of a lookup.

One implementation is for the host's memory (host_lookup.py), one for a device's (device_lookup.py).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from checkpointer.rows import Column
from recmodels.errors import IdError, TableRowsError
from recmodels.zch.arena import (
    ADMIT,
    BUCKET_ROWS,
    EVICTIONS,
    FIRST_ROW,
    HASHED,
    HITS,
    INSERTS,
    KIND,
    ROWS,
    SIZE,
    SORTED,
    UNADMITTED,
    Book,
    Int64s,
    Shard,
)
from recmodels.zch.sorted_map import Change, SortedMap

Deletions = list[tuple[Int64s, Int64s]]


class Lookup(ABC):
    """The shards behind one of TorchRec's lookups.

    `evicted` and `dropped` list (tables, ids) that lost their row or their admission counter since the last seal.
    Sorted maps, and the `book`, are on the host everywhere. All arrays that come in or go out are on the host.
    """

    def __init__(self, book: Book) -> None:
        self.book = book
        self.now_ms = 0
        self.evicted: Deletions = []
        self.dropped: Deletions = []
        by_feature = [number for number, shard in enumerate(book.shards) for _ in shard.table.features]
        self._tables: Int64s = np.array(by_feature, np.int64)
        self.sorted = {
            number: SortedMap(shard.table.zch, shard.rows)
            for number, shard in enumerate(book.shards)
            if shard.table.zch is not None and shard.table.zch.policy != "hash"
        }
        self._counts_sightings = any(row[ADMIT] > 1 for row in book.params)

    @abstractmethod
    def remap(self, features: KeyedJaggedTensor, *, write: bool) -> KeyedJaggedTensor:
        """The same features with rows of the local shards for ids; `write` admits, evicts and marks."""

    @abstractmethod
    def settle(self) -> None:
        """End the step: reserved rows and their optimizer state become fresh zeros, and no row is pinned any more."""

    @abstractmethod
    def rows_of(self, number: int, ids: Int64s) -> Int64s:
        """The row of each id in a hashed shard; the reserved one of its bucket for those that have none."""

    @abstractmethod
    def entries(self, number: int) -> AbstractContextManager[Int64s]:
        """The (id, last seen ms) of each row of a hashed shard, to be changed; the map has them when the block ends."""

    @abstractmethod
    def read_rows(self, number: int, rows: Int64s) -> dict[str, Column]:
        """Copies of "weight" and the optimizer state of these rows."""

    @abstractmethod
    def put_rows(self, number: int, rows: Int64s, columns: Mapping[str, Column]) -> None:
        """Write "weight" and all of the optimizer state of these rows."""

    @abstractmethod
    def reset_rows(self, number: int, rows: Int64s, ids: Int64s) -> None:
        """Draw the first weights of these ids anew, and start their optimizer state afresh."""

    @abstractmethod
    def zero_rows(self, number: int) -> None:
        """Make all rows of a shard zero, with fresh optimizer state."""

    @abstractmethod
    def state_shapes(self, number: int) -> dict[str, tuple[int, ...]]:
        """The shape of a row in each column of the optimizer state."""

    @abstractmethod
    def mark(self, number: int, rows: Int64s) -> None:
        """Count these rows of a shard as touched."""

    @abstractmethod
    def marked(self, number: int) -> Int64s:
        """The touched rows of a shard, ascending."""

    @abstractmethod
    def any_marked(self) -> bool:
        """Whether any row of any shard is touched."""

    @abstractmethod
    def unmark(self) -> None:
        """No row is touched."""

    @abstractmethod
    def depart(self) -> None:
        """The touched rows are in flight, and not touched any more."""

    @abstractmethod
    def land(self) -> None:
        """No row is in flight."""

    @abstractmethod
    def come_back(self) -> None:
        """The rows in flight are touched again."""

    @abstractmethod
    def _held_hashed(self, number: int, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Id and last-seen time of these rows."""

    @abstractmethod
    def _miss(self, number: int) -> None:
        """The reserved row of a sorted shard is used in this step."""

    def held(self, number: int, rows: Int64s) -> tuple[Int64s, dict[str, Int64s]]:
        """The keys of a shard's rows, -1 where a row is free, and what the map keeps of each beside its memory."""
        p = self.book.params[number]
        if p[KIND] == SORTED:
            return self.sorted[number].ids[rows], self.sorted[number].record(rows)
        if p[KIND] == HASHED:
            ids, seen = self._held_hashed(number, rows)
            return ids, {"last_seen_ms": seen}
        return rows + p[FIRST_ROW], {}

    def absent(self, number: int, ids: Int64s) -> Int64s:
        """Those of the ids, ascending, that have no row of a shard."""
        if number in self.sorted:
            return np.setdiff1d(ids, self.sorted[number].ids)
        rows, bucket_rows = self.rows_of(number, ids), self.book.params[number, BUCKET_ROWS]
        missing: Int64s = ids[rows % bucket_rows == bucket_rows - 1]
        return missing

    def write_rows(self, number: int, rows: Int64s, columns: Mapping[str, Column]) -> None:
        """Write weights and optimizer state of rows of a shard; TableRowsError when the log lacks what is trained."""
        for name, shape in self.state_shapes(number).items():
            found = columns.get(name)
            if found is None or found.shape[1:] != shape:
                raise TableRowsError(
                    f"table {self.book.shards[number].table.name!r}: the log has no optimizer state {name!r} of the "
                    "trained shape; train with the sparse optimizer that wrote the log"
                )
        self.put_rows(number, rows, columns)

    def evict(self, number: int, ids: Int64s) -> None:
        """These ids have lost their rows."""
        if len(ids):
            self.evicted.append((np.full(len(ids), number, np.int64), ids))

    def drop(self, number: int, ids: Int64s) -> None:
        """These ids have lost their admission counters."""
        if len(ids):
            self.dropped.append((np.full(len(ids), number, np.int64), ids))

    def _remap_sorted(self, number: int, parts: Sequence[Int64s], *, write: bool) -> list[Int64s]:
        """The rows of a batch's ids, feature by feature, none of them negative."""
        sorted_map = self.sorted[number]
        looked_up = np.concatenate(parts)
        if not len(looked_up):
            return list(parts)
        if write:
            self._note(number, sorted_map.write(looked_up), sorted_map)
        found = [sorted_map.find(part) for part in parts]
        if write:
            for rows in found:
                self._mark_sorted(number, rows)
        return found

    def _note(self, number: int, change: Change, sorted_map: SortedMap) -> None:
        """Reset rows that have new owners, list the evicted ids, mark what changed."""
        figures = self.book.figures[number]
        figures[INSERTS] += len(change.fresh_rows)
        figures[EVICTIONS] += len(change.gone)
        figures[SIZE] = int((sorted_map.ids >= 0).sum())
        self.reset_rows(number, change.fresh_rows, change.fresh_ids)
        self.evict(number, change.gone)
        self.mark(number, change.changed)

    def _mark_sorted(self, number: int, rows: Int64s) -> None:
        missed = rows == self.book.params[number, ROWS] - 1
        misses = int(missed.sum())
        self.book.figures[number, UNADMITTED] += misses
        self.book.figures[number, HITS] += len(rows) - misses
        if misses:
            self._miss(number)
        self.mark(number, rows[~missed])

    def _refuse(self, row_id: int, at: int, starts: Int64s) -> None:
        number = self._tables[int(np.searchsorted(starts, at, side="right")) - 1]
        shard = self.book.shards[number]
        raise IdError(
            f"table {shard.table.name!r}: id {row_id} is outside rows {shard.first_row} to "
            f"{shard.first_row + shard.rows - 1} or its buckets; validate the feature before it is looked up"
        )


LookupFactory = Callable[[tuple[Shard, ...], Any, int], Lookup]
"""Makes a lookup of its shards, TorchRec's own lookup of them, and the seed of their rows."""


def with_rows(features: KeyedJaggedTensor, rows: torch.Tensor) -> KeyedJaggedTensor:
    """The same features with other values."""
    return KeyedJaggedTensor(
        keys=features.keys(),
        values=rows,
        weights=features.weights_or_none(),
        lengths=features.lengths_or_none(),
        offsets=features.offsets_or_none(),
        stride=None if features.variable_stride_per_key() else features.stride(),
        stride_per_key_per_rank=(features.stride_per_key_per_rank() if features.variable_stride_per_key() else None),
        length_per_key=features.length_per_key_or_none(),
        offset_per_key=features.offset_per_key_or_none(),
    )
