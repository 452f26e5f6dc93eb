"""One lookup's tables with their memory: remaps batches, draws fresh rows, zeroes the reserved ones."""

from typing import Any

import numpy as np
import torch
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from recmodels.errors import IdError
from recmodels.zch import bitmaps, kernels
from recmodels.zch.arena import (
    ADMIT,
    BUCKET_ROWS,
    DIRECT,
    ENTRY_BASE,
    EVICTIONS,
    FIRST_ROW,
    HASHED,
    HITS,
    INSERTS,
    KIND,
    MISS_BASE,
    ROWS,
    SIZE,
    SORTED,
    UNADMITTED,
    Arena,
    Int64s,
    Shard,
)
from recmodels.zch.memory import FreshRows, memories
from recmodels.zch.sorted_map import Change, SortedMap


class RemappedLookup:
    """The shards behind one of TorchRec's lookups."""

    def __init__(self, shards: tuple[Shard, ...], lookup: Any, seed: int) -> None:
        self.arena = Arena(shards)
        self.now_ms = 0
        self.evicted: list[tuple[Int64s, Int64s]] = []
        self.dropped: list[tuple[Int64s, Int64s]] = []
        self.memory = memories(shards, lookup, seed)
        self._fresh = FreshRows(self.memory)
        self._scratch = np.empty((4, 0), np.int64)
        by_feature = [number for number, shard in enumerate(shards) for _ in shard.table.features]
        self._tables: Int64s = np.array(by_feature, np.int64)
        self.sorted = {
            number: SortedMap(shard.table.zch, shard.rows)
            for number, shard in enumerate(shards)
            if shard.table.zch is not None and shard.table.zch.policy != "hash"
        }
        self._counts_sightings = any(row[ADMIT] > 1 for row in self.arena.params)
        self._draw_first_rows()

    def remap(self, features: KeyedJaggedTensor, *, write: bool) -> KeyedJaggedTensor:
        """The same features with rows of the local shards for ids; `write` admits, evicts and marks."""
        values = features.values()
        if not len(self._tables) or not values.numel():
            return features
        ids = values.numpy()
        starts = np.array(features.offset_per_key(), np.int64)
        rows = np.empty(len(ids), np.int64)
        if write:
            bad = self._write(ids, starts, rows)
        else:
            bad = kernels.remap_read(ids, starts, self._tables, self.arena.params, self.arena.entries, rows)
        for number, sorted_map in self.sorted.items():
            self._remap_sorted(number, sorted_map, ids, starts, rows, write=write)
        if bad >= 0:
            self._refuse(int(ids[bad]), int(bad), starts)
        return KeyedJaggedTensor(
            keys=features.keys(),
            values=torch.from_numpy(rows),
            weights=features.weights_or_none(),
            lengths=features.lengths_or_none(),
            offsets=features.offsets_or_none(),
            stride=None if features.variable_stride_per_key() else features.stride(),
            stride_per_key_per_rank=(
                features.stride_per_key_per_rank() if features.variable_stride_per_key() else None
            ),
            length_per_key=features.length_per_key_or_none(),
            offset_per_key=features.offset_per_key_or_none(),
        )

    def held(self, number: int, rows: Int64s) -> tuple[Int64s, dict[str, Int64s]]:
        """The keys of a shard's rows, -1 where a row is free, and what the map keeps of each beside its memory."""
        p = self.arena.params[number]
        if p[KIND] == SORTED:
            return self.sorted[number].ids[rows], self.sorted[number].record(rows)
        if p[KIND] == HASHED:
            ids, seen = np.empty_like(rows), np.empty_like(rows)
            kernels.read_entries(self.arena.entries, p[ENTRY_BASE], rows, ids, seen)
            return ids, {"last_seen_ms": seen}
        return rows + p[FIRST_ROW], {}

    def settle(self) -> None:
        """End the step: reserved rows and their optimizer state become fresh zeros, and no row is pinned any more."""
        arena = self.arena
        if arena.missed.any():
            self._zero_reserved()
        bitmaps.unpin(arena.pinned, arena.pinned_words, arena.pinned_count)

    def _write(self, ids: Int64s, starts: Int64s, rows: Int64s) -> int:
        arena, n = self.arena, len(ids)
        arena.reserve_pins(n)
        if self._scratch.shape[1] < n:
            self._scratch = np.empty((4, n), np.int64)
        new = self._scratch
        if self._counts_sightings:
            count = kernels.count_sightings(
                ids,
                starts,
                self._tables,
                arena.params,
                arena.entries,
                arena.counters,
                arena.counter_touched,
                new[0],
                new[1],
            )
            if count:
                self.dropped.append((new[1, :count].copy(), new[0, :count].copy()))
        fresh, bad = kernels.remap_train(
            ids, starts, self._tables, arena.params, arena.entries, arena.counters, arena.counter_touched,
            arena.touched, arena.pinned, arena.pinned_words, arena.pinned_count, arena.missed, arena.figures,
            self.now_ms, rows, new[0], new[1], new[2], new[3],
        )  # fmt: skip
        if fresh:
            self._draw_fresh(new[:, :fresh])
        return int(bad)

    def _remap_sorted(
        self, number: int, sorted_map: SortedMap, ids: Int64s, starts: Int64s, rows: Int64s, *, write: bool
    ) -> None:
        parts = [slice(starts[f], starts[f + 1]) for f in np.flatnonzero(self._tables == number)]
        looked_up = np.concatenate([ids[part] for part in parts])
        if not len(looked_up):
            return
        if looked_up.min() < 0:
            at = next(int(part.start + np.argmin(ids[part])) for part in parts if (ids[part] < 0).any())
            self._refuse(int(ids[at]), at, starts)
        if write:
            self._note(number, sorted_map.write(looked_up), sorted_map)
        for part in parts:
            rows[part] = sorted_map.find(ids[part])
            if write:
                self._mark_sorted(number, rows[part])

    def _note(self, number: int, change: Change, sorted_map: SortedMap) -> None:
        """Reset rows that have new owners, list the evicted ids, mark what changed."""
        figures = self.arena.figures[number]
        figures[INSERTS] += len(change.fresh_rows)
        figures[EVICTIONS] += len(change.gone)
        figures[SIZE] = int((sorted_map.ids >= 0).sum())
        self.memory[number].reset(change.fresh_rows, change.fresh_ids)
        if len(change.gone):
            self.evicted.append((np.full(len(change.gone), number, np.int64), change.gone))
        self.arena.mark(number, change.changed)

    def _mark_sorted(self, number: int, rows: Int64s) -> None:
        p = self.arena.params[number]
        missed = rows == p[ROWS] - 1
        misses = int(missed.sum())
        self.arena.figures[number, UNADMITTED] += misses
        self.arena.figures[number, HITS] += len(rows) - misses
        self.arena.missed[p[MISS_BASE]] |= misses > 0
        self.arena.mark(number, rows[~missed])

    def _draw_fresh(self, new: Int64s) -> None:
        tables, rows, ids, old = new
        gone = old >= 0
        if gone.any():
            self.evicted.append((tables[gone], old[gone]))
        if self._counts_sightings:
            self.dropped.append((tables.copy(), ids.copy()))
        self._fresh.reset(tables, rows, ids)

    def _zero_reserved(self) -> None:
        missed = self.arena.missed
        for number, memory in enumerate(self.memory):
            p = self.arena.params[number]
            if p[KIND] == DIRECT:
                continue
            used = missed[p[MISS_BASE] : p[MISS_BASE] + p[ROWS] // p[BUCKET_ROWS]]
            if used.any():
                memory.zero((np.flatnonzero(used) + 1) * p[BUCKET_ROWS] - 1)
        missed[:] = 0

    def _draw_first_rows(self) -> None:
        for number, shard in enumerate(self.arena.shards):
            if shard.table.zch is not None:
                self.memory[number].weight[:] = 0
            else:
                rows = np.arange(shard.rows, dtype=np.int64)
                self.memory[number].reset(rows, rows + shard.first_row)

    def _refuse(self, row_id: int, at: int, starts: Int64s) -> None:
        number = self._tables[int(np.searchsorted(starts, at, side="right")) - 1]
        shard = self.arena.shards[number]
        raise IdError(
            f"table {shard.table.name!r}: id {row_id} is outside rows {shard.first_row} to "
            f"{shard.first_row + shard.rows - 1} or its buckets; validate the feature before it is looked up"
        )
