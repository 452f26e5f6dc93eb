"""What a lookup owes the next commit: touched rows and deleted ids, copied out by `seal`, held until confirmed."""

from collections.abc import Iterator

import numpy as np

from checkpointer.rows import TableRows, no_ids
from recmodels.zch.arena import (
    ADMIT,
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
from recmodels.zch.lookup import Deletions, Lookup
from recmodels.zch.sorted_map import History, SortedMap


class SealedLookup:
    """The touched rows, in their two stages, of one lookup's shards."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self._reset = False
        self._reset_in_flight = False
        self._evicted_in_flight: Deletions = []
        self._dropped_in_flight: Deletions = []
        # Ids that the log may have as history of a sorted map.
        self._histories: dict[int, Int64s] = {}
        self._histories_in_flight: dict[int, History] = {}
        self._counters_in_flight = np.zeros(len(lookup.book.counters), np.bool_)
        for number, shard in enumerate(lookup.book.shards):
            if shard.table.zch is None:
                lookup.mark(number, np.arange(shard.rows, dtype=np.int64))

    def seal(self) -> list[TableRows]:
        """Copy rows and deletions out; they are in flight from here on."""
        lookup, book = self.lookup, self.lookup.book
        evicted, dropped = _by_table(lookup.evicted), _by_table(lookup.dropped)
        sealed = [self._rows(number, evicted.get(number, no_ids())) for number in range(len(book.shards))]
        for number in np.flatnonzero(book.params[:, ADMIT] > 1):
            sealed.append(self._admission(int(number), dropped.get(int(number), no_ids())))
        sealed += [self._history(number, sorted_map) for number, sorted_map in lookup.sorted.items()]
        self._take_off()
        return sealed

    def confirm(self) -> None:
        self._histories = {number: held.ids for number, held in self._histories_in_flight.items()}
        self._land()

    def _land(self) -> None:
        self.lookup.land()
        self._counters_in_flight[:] = False
        self._evicted_in_flight, self._dropped_in_flight, self._reset_in_flight = [], [], False

    def restore_touched(self) -> None:
        lookup = self.lookup
        lookup.come_back()
        lookup.book.counter_touched |= self._counters_in_flight
        lookup.evicted = self._evicted_in_flight + lookup.evicted
        lookup.dropped = self._dropped_in_flight + lookup.dropped
        self._reset |= self._reset_in_flight
        self._land()

    def touch_all(self) -> None:
        book = self.lookup.book
        for number in range(len(book.shards)):
            self.lookup.mark(number, self._occupied(number))
        book.counter_touched[:] = book.counters[:, 0] != EMPTY
        self._reset = True

    def forget(self) -> None:
        """Nothing is touched: the state is that of a commit."""
        lookup = self.lookup
        lookup.unmark()
        lookup.book.counter_touched[:] = False
        lookup.evicted, lookup.dropped, self._reset = [], [], False
        self._histories = {number: held.history().ids for number, held in lookup.sorted.items()}

    def remember_history(self, number: int, ids: Int64s) -> None:
        """The log has these ids as history of a sorted map."""
        self._histories[number] = ids

    def _occupied(self, number: int) -> Int64s:
        ids, _ = self.lookup.held(number, np.arange(self.lookup.book.params[number, ROWS]))
        return np.flatnonzero(ids != EMPTY)

    def _take_off(self) -> None:
        lookup = self.lookup
        lookup.depart()
        self._counters_in_flight[:] = lookup.book.counter_touched
        lookup.book.counter_touched[:] = False
        self._evicted_in_flight, lookup.evicted = lookup.evicted, []
        self._dropped_in_flight, lookup.dropped = lookup.dropped, []
        self._reset_in_flight, self._reset = self._reset, False

    def _rows(self, number: int, evicted: Int64s) -> TableRows:
        lookup, p = self.lookup, self.lookup.book.params[number]
        shard, rows = lookup.book.shards[number], lookup.marked(number)
        ids, records = lookup.held(number, rows)
        if p[KIND] != DIRECT:
            order = np.argsort(ids)
            rows, ids = rows[order], ids[order]
            records = {name: column[order] for name, column in records.items()}
        return TableRows(
            table=shard.table.name,
            shard=shard.number,
            kind="direct" if p[KIND] == DIRECT else "zch",
            ids=ids,
            slots=rows + p[FIRST_ROW],
            columns={**lookup.read_rows(number, rows), **records},
            deleted=lookup.absent(number, np.unique(evicted)) if len(evicted) else evicted,
            reset=self._reset,
        )

    def _admission(self, number: int, dropped: Int64s) -> TableRows:
        book, p = self.lookup.book, self.lookup.book.params[number]
        shard = book.shards[number]
        own = slice(int(p[COUNTER_BASE]), int(p[COUNTER_BASE]) + counter_rows(p))
        held = book.counters[own]
        rows = np.flatnonzero(book.counter_touched[own] & (held[:, 0] != EMPTY))
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
        shard, history = self.lookup.book.shards[number], sorted_map.history()
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
