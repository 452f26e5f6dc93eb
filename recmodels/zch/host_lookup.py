"""One lookup's tables in the host's memory: numba kernels remap batches over all of them at once."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from checkpointer.rows import Column
from recmodels.zch import bitmaps, kernels
from recmodels.zch.arena import (
    BIT_BASE,
    BUCKET_ROWS,
    DIRECT,
    ENTRY_BASE,
    KIND,
    MISS_BASE,
    ROWS,
    Arena,
    Int64s,
    Shard,
)
from recmodels.zch.lookup import Lookup, with_rows
from recmodels.zch.memory import FreshRows, memories


class HostLookup(Lookup):
    """The shards behind one of TorchRec's lookups on CPU."""

    def __init__(self, shards: tuple[Shard, ...], lookup: Any, seed: int) -> None:
        self.arena = Arena(shards)
        super().__init__(self.arena)
        self.memory = memories(shards, lookup, seed)
        self._fresh = FreshRows(self.memory)
        self._scratch = np.empty((4, 0), np.int64)
        self._draw_first_rows()

    def remap(self, features: KeyedJaggedTensor, *, write: bool) -> KeyedJaggedTensor:
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
        for number in self.sorted:
            self._look_up_sorted(number, ids, starts, rows, write=write)
        if bad >= 0:
            self._refuse(int(ids[bad]), int(bad), starts)
        return with_rows(features, torch.from_numpy(rows))

    def settle(self) -> None:
        arena = self.arena
        if arena.missed.any():
            self._zero_reserved()
        bitmaps.unpin(arena.pinned, arena.pinned_words, arena.pinned_count)

    def rows_of(self, number: int, ids: Int64s) -> Int64s:
        rows = np.empty(len(ids), np.int64)
        starts, tables = np.array([0, len(ids)], np.int64), np.array([number], np.int64)
        kernels.remap_read(ids, starts, tables, self.arena.params, self.arena.entries, rows)
        return rows

    @contextmanager
    def entries(self, number: int) -> Iterator[Int64s]:
        p = self.arena.params[number]
        yield self.arena.entries[p[ENTRY_BASE] : p[ENTRY_BASE] + p[ROWS]]

    def read_rows(self, number: int, rows: Int64s) -> dict[str, Column]:
        memory = self.memory[number]
        columns = {"weight": memory.weight, **memory.state}
        return {name: np.take(column, rows, axis=0) for name, column in columns.items()}

    def put_rows(self, number: int, rows: Int64s, columns: Mapping[str, Column]) -> None:
        memory = self.memory[number]
        memory.weight[rows] = columns["weight"]
        for name, column in memory.state.items():
            column[rows] = columns[name]

    def reset_rows(self, number: int, rows: Int64s, ids: Int64s) -> None:
        self.memory[number].reset(rows, ids)

    def zero_rows(self, number: int) -> None:
        self.memory[number].zero(np.arange(self.arena.params[number, ROWS]))

    def state_shapes(self, number: int) -> dict[str, tuple[int, ...]]:
        return {name: column.shape[1:] for name, column in self.memory[number].state.items()}

    def mark(self, number: int, rows: Int64s) -> None:
        self.arena.mark(number, rows)

    def marked(self, number: int) -> Int64s:
        arena, p = self.arena, self.arena.params[number]
        rows = np.empty(bitmaps.count_marked(arena.touched, p[BIT_BASE], p[ROWS]), np.int64)
        bitmaps.marked_rows(arena.touched, p[BIT_BASE], p[ROWS], rows)
        return rows

    def any_marked(self) -> bool:
        return bool(self.arena.touched.any())

    def unmark(self) -> None:
        self.arena.touched[:] = 0

    def depart(self) -> None:
        self.arena.in_flight[:] = self.arena.touched
        self.arena.touched[:] = 0

    def land(self) -> None:
        self.arena.in_flight[:] = 0

    def come_back(self) -> None:
        self.arena.touched |= self.arena.in_flight
        self.land()

    def _held_hashed(self, number: int, rows: Int64s) -> tuple[Int64s, Int64s]:
        ids, seen = np.empty_like(rows), np.empty_like(rows)
        kernels.read_entries(self.arena.entries, self.arena.params[number, ENTRY_BASE], rows, ids, seen)
        return ids, seen

    def _miss(self, number: int) -> None:
        self.arena.missed[self.arena.params[number, MISS_BASE]] = 1

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

    def _look_up_sorted(self, number: int, ids: Int64s, starts: Int64s, rows: Int64s, *, write: bool) -> None:
        parts = [slice(starts[f], starts[f + 1]) for f in np.flatnonzero(self._tables == number)]
        for part in parts:
            negative = np.flatnonzero(ids[part] < 0)
            if len(negative):
                at = int(part.start + negative[0])
                self._refuse(int(ids[at]), at, starts)
        found = self._remap_sorted(number, [ids[part] for part in parts], write=write)
        for part, held in zip(parts, found, strict=True):
            rows[part] = held

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
