"""What a lookup owes the next commit: touched rows and deleted ids, copied out by `seal`, held until confirmed."""

from collections.abc import Iterator

import numpy as np

from checkpointer.rows import TableRows, no_ids
from recmodels.zch import bitmaps, kernels
from recmodels.zch.arena import (
    ADMIT,
    BIT_BASE,
    BUCKET_ROWS,
    COUNTER_BASE,
    COUNTER_SETS,
    DIRECT,
    EMPTY,
    FIRST_BUCKET,
    FIRST_ROW,
    HASHED,
    KIND,
    ROWS,
    WAYS,
    Int64s,
)
from recmodels.zch.lookup import RemappedLookup
from recmodels.zch.sorted_map import History, SortedMap

Deletions = list[tuple[Int64s, Int64s]]


class SealedLookup:
    """The touched bitmaps, in their two stages, of one lookup's shards."""

    def __init__(self, lookup: RemappedLookup) -> None:
        self.lookup = lookup
        self._reset = False
        self._reset_in_flight = False
        self._evicted_in_flight: Deletions = []
        self._dropped_in_flight: Deletions = []
        # Ids that the log may have as history of a sorted map.
        self._histories: dict[int, Int64s] = {}
        self._histories_in_flight: dict[int, History] = {}
        self._counters_in_flight = np.zeros(len(lookup.arena.counters), np.bool_)
        for number, shard in enumerate(lookup.arena.shards):
            if shard.table.zch is None:
                lookup.arena.mark(number, np.arange(shard.rows, dtype=np.int64))

    def seal(self) -> list[TableRows]:
        """Copy rows and deletions out; they are in flight from here on."""
        lookup, arena = self.lookup, self.lookup.arena
        evicted, dropped = _by_table(lookup.evicted), _by_table(lookup.dropped)
        sealed = [self._rows(number, evicted.get(number, no_ids())) for number in range(len(arena.shards))]
        for number in np.flatnonzero(arena.params[:, ADMIT] > 1):
            sealed.append(self._admission(int(number), dropped.get(int(number), no_ids())))
        sealed += [self._history(number, sorted_map) for number, sorted_map in lookup.sorted.items()]
        self._take_off()
        return sealed

    def confirm(self) -> None:
        self._histories = {number: held.ids for number, held in self._histories_in_flight.items()}
        self._land()

    def _land(self) -> None:
        self.lookup.arena.in_flight[:] = 0
        self._counters_in_flight[:] = False
        self._evicted_in_flight, self._dropped_in_flight, self._reset_in_flight = [], [], False

    def restore_touched(self) -> None:
        lookup, arena = self.lookup, self.lookup.arena
        arena.touched |= arena.in_flight
        arena.counter_touched |= self._counters_in_flight
        lookup.evicted = self._evicted_in_flight + lookup.evicted
        lookup.dropped = self._dropped_in_flight + lookup.dropped
        self._reset |= self._reset_in_flight
        self._land()

    def touch_all(self) -> None:
        arena = self.lookup.arena
        for number in range(len(arena.shards)):
            arena.mark(number, self._occupied(number))
        arena.counter_touched[:] = arena.counters[:, 0] != EMPTY
        self._reset = True

    def forget(self) -> None:
        """Nothing is touched: the state is that of a commit."""
        lookup, arena = self.lookup, self.lookup.arena
        arena.touched[:] = 0
        arena.counter_touched[:] = False
        lookup.evicted, lookup.dropped, self._reset = [], [], False
        self._histories = {number: held.history().ids for number, held in lookup.sorted.items()}

    def remember_history(self, number: int, ids: Int64s) -> None:
        """The log has these ids as history of a sorted map."""
        self._histories[number] = ids

    def _occupied(self, number: int) -> Int64s:
        ids, _ = self.lookup.held(number, np.arange(self.lookup.arena.params[number, ROWS]))
        return np.flatnonzero(ids != EMPTY)

    def _take_off(self) -> None:
        lookup, arena = self.lookup, self.lookup.arena
        arena.in_flight[:] = arena.touched
        arena.touched[:] = 0
        self._counters_in_flight[:] = arena.counter_touched
        arena.counter_touched[:] = False
        self._evicted_in_flight, lookup.evicted = lookup.evicted, []
        self._dropped_in_flight, lookup.dropped = lookup.dropped, []
        self._reset_in_flight, self._reset = self._reset, False

    def _rows(self, number: int, evicted: Int64s) -> TableRows:
        lookup, arena, p = self.lookup, self.lookup.arena, self.lookup.arena.params[number]
        shard, memory = arena.shards[number], lookup.memory[number]
        rows = np.empty(bitmaps.count_marked(arena.touched, p[BIT_BASE], p[ROWS]), np.int64)
        bitmaps.marked_rows(arena.touched, p[BIT_BASE], p[ROWS], rows)
        ids, records = lookup.held(number, rows)
        if p[KIND] != DIRECT:
            order = np.argsort(ids)
            rows, ids = rows[order], ids[order]
            records = {name: column[order] for name, column in records.items()}
        columns = {name: np.take(column, rows, axis=0) for name, column in memory.state.items()}
        return TableRows(
            table=shard.table.name,
            shard=shard.number,
            kind="direct" if p[KIND] == DIRECT else "zch",
            ids=ids,
            slots=rows + p[FIRST_ROW],
            columns={"weight": np.take(memory.weight, rows, axis=0), **columns, **records},
            deleted=self._absent(number, evicted),
            reset=self._reset,
        )

    def _absent(self, number: int, ids: Int64s) -> Int64s:
        """Those of the ids that have no row (any more)."""
        if not len(ids):
            return ids
        arena = self.lookup.arena
        ids = np.unique(ids)
        if number in self.lookup.sorted:
            return np.setdiff1d(ids, self.lookup.sorted[number].ids)
        rows = np.empty(len(ids), np.int64)
        starts, tables = np.array([0, len(ids)], np.int64), np.array([number], np.int64)
        kernels.remap_read(ids, starts, tables, arena.params, arena.entries, rows)
        bucket_rows = arena.params[number, BUCKET_ROWS]
        absent: Int64s = ids[rows % bucket_rows == bucket_rows - 1]
        return absent

    def _admission(self, number: int, dropped: Int64s) -> TableRows:
        arena, p = self.lookup.arena, self.lookup.arena.params[number]
        shard = arena.shards[number]
        own = slice(int(p[COUNTER_BASE]), int(p[COUNTER_BASE]) + counter_rows(p))
        held = arena.counters[own]
        rows = np.flatnonzero(arena.counter_touched[own] & (held[:, 0] != EMPTY))
        order = np.argsort(held[rows, 0])
        rows = rows[order]
        first = int(p[FIRST_BUCKET] * p[COUNTER_SETS]) * WAYS
        return TableRows(
            table=shard.table.name,
            shard=shard.number,
            kind="admission",
            ids=held[rows, 0],
            slots=rows + first,
            columns={"count": held[rows, 1]},
            deleted=np.setdiff1d(dropped, held[:, 0]),
            reset=self._reset,
        )

    def _history(self, number: int, sorted_map: SortedMap) -> TableRows:
        """All of a sorted map's history, which is gone after its next admission: PUT what is there, DEL what was."""
        shard, history = self.lookup.arena.shards[number], sorted_map.history()
        before = self._histories.get(number, no_ids())
        self._histories[number] = np.union1d(before, history.ids)
        self._histories_in_flight[number] = history
        return TableRows(
            table=shard.table.name,
            shard=shard.number,
            kind="admission",
            ids=history.ids,
            slots=np.arange(len(history.ids)),
            columns={
                "count": history.counts,
                "last_iter": history.last_iter,
                "iter": np.full(len(history.ids), sorted_map.iteration, np.int64),
            },
            deleted=np.setdiff1d(before, history.ids),
            reset=self._reset,
        )


def counter_rows(p: Int64s) -> int:
    """How many admission counters a shard has."""
    return int(p[COUNTER_SETS] * WAYS * (p[ROWS] // p[BUCKET_ROWS])) if p[KIND] == HASHED else 0


def _by_table(deletions: Deletions) -> dict[int, Int64s]:
    if not deletions:
        return {}
    tables = np.concatenate([tables for tables, _ in deletions])
    ids = np.concatenate([ids for _, ids in deletions])
    return dict(_split(tables, ids))


def _split(tables: Int64s, ids: Int64s) -> Iterator[tuple[int, Int64s]]:
    order = np.argsort(tables, kind="stable")
    tables, ids = tables[order], ids[order]
    numbers, starts = np.unique(tables, return_index=True)
    for number, part in zip(numbers, np.split(ids, starts[1:]), strict=True):
        yield int(number), part
