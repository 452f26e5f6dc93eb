"""Put resolved rows of the commit log back into table shards: in place where slots hold, else in a fixed order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from checkpointer.rows import TableRows
from recmodels.errors import TableRowsError
from recmodels.layout import TableSpec
from recmodels.tables_load_sorted import load_sorted
from recmodels.tables_seal import SealedLookup, counter_rows
from recmodels.zch import placing
from recmodels.zch.arena import (
    ADMIT,
    BUCKETS,
    COUNTER_BASE,
    DIRECT,
    EMPTY,
    EVICTIONS,
    FIRST_BUCKET,
    FIRST_ROW,
    KIND,
    OWN_BUCKETS,
    ROWS,
    SIZE,
    Int64s,
)
from recmodels.zch.memory import Array


@dataclass(kw_only=True, slots=True)
class Parts:
    """Rows of one shard and kind, as they come."""

    ids: list[Int64s] = field(default_factory=list)
    slots: list[Int64s] = field(default_factory=list)
    columns: dict[str, list[Array]] = field(default_factory=dict)
    deleted: list[Int64s] = field(default_factory=list)

    def add(self, rows: TableRows, p: Int64s) -> None:
        """Take the rows that the shard of these parameters owns."""
        kept = _owned(rows.ids, p)
        whole = bool(kept.all())
        self.ids.append(rows.ids if whole else rows.ids[kept])
        self.slots.append(rows.slots if whole else rows.slots[kept])
        for name, column in rows.columns.items():
            self.columns.setdefault(name, []).append(column if whole else column[kept])
        self.deleted.append(rows.deleted[_owned(rows.deleted, p)])

    def joined(self) -> tuple[Int64s, Int64s, dict[str, Array]]:
        """Ids, slots and columns of the rows that were put."""
        if not self.ids:
            return np.empty(0, np.int64), np.empty(0, np.int64), {}
        columns = {name: _concatenated(parts) for name, parts in self.columns.items()}
        return np.concatenate(self.ids), np.concatenate(self.slots), columns


class Loader:
    """Collects the rows that this rank owns, then replaces the content of its shards."""

    def __init__(self, tables: Mapping[str, TableSpec], lookups: Sequence[SealedLookup]) -> None:
        self._tables = tables
        self._lookups = lookups
        self._owners = {
            shard.table.name: (lookup, number)
            for lookup in lookups
            for number, shard in enumerate(lookup.lookup.book.shards)
        }
        self._parts: dict[tuple[str, str], Parts] = {}

    def take(self, rows: TableRows) -> None:
        """Keep what this rank owns of some resolved rows."""
        spec = self._tables.get(rows.table)
        if spec is None:
            raise TableRowsError(
                f"the log has rows of table {rows.table!r}, which the model does not have; "
                f"its tables are {', '.join(self._tables)}: train with the config that wrote the log"
            )
        refuse_foreign(rows, spec)
        if len(rows.deleted):
            raise TableRowsError(
                f"table {spec.name!r}: rows to load must be resolved, these still delete {len(rows.deleted)} ids"
            )
        if rows.table not in self._owners:
            return
        lookup, number = self._owners[rows.table]
        parts = self._parts.setdefault((rows.table, rows.kind), Parts())
        parts.add(rows, lookup.lookup.book.params[number])

    def finish(self) -> None:
        """Replace the content of every shard by what was taken."""
        for lookup in self._lookups:
            lookup.forget()
        for name, (lookup, number) in self._owners.items():
            direct, rows, admission = (
                self._parts.get((name, kind), Parts()) for kind in ("direct", "zch", "admission")
            )
            if self._tables[name].zch is None:
                _load_direct(lookup, number, direct)
            elif number in lookup.lookup.sorted:
                load_sorted(lookup, number, rows.joined(), admission.joined())
            else:
                _load_hashed(lookup, number, rows)
                _load_admission(lookup, number, admission)


def refuse_foreign(rows: TableRows, spec: TableSpec) -> None:
    kind = "direct" if spec.zch is None else "zch"
    if rows.kind != kind and not (kind == "zch" and rows.kind == "admission"):
        raise TableRowsError(f"table {spec.name!r} is {kind}, but the log has {rows.kind} rows of it")
    if spec.zch is None and len(rows) and rows.ids[-1] >= spec.num_embeddings:
        raise TableRowsError(
            f"table {spec.name!r} has {spec.num_embeddings} rows, but the log has row {rows.ids[-1]}: "
            "a table without zch may grow, not shrink"
        )
    weight = rows.columns.get("weight")
    if rows.kind != "admission" and len(rows) and (weight is None or weight.shape[1:] != (spec.dim,)):
        found = "no weight" if weight is None else f"dimension {weight.shape[1:]}"
        raise TableRowsError(f"table {spec.name!r} has dimension {spec.dim}, but the log has {found}")


def _owned(ids: Int64s, p: Int64s) -> Array:
    if p[KIND] == DIRECT:
        return np.asarray((ids >= p[FIRST_ROW]) & (ids < p[FIRST_ROW] + p[ROWS]))
    if p[OWN_BUCKETS] == p[BUCKETS]:
        return np.ones(len(ids), np.bool_)
    bucket = ids % p[BUCKETS]
    first = p[FIRST_BUCKET]
    return np.asarray((bucket >= first) & (bucket < first + p[OWN_BUCKETS]))


def _concatenated(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _load_direct(lookup: SealedLookup, number: int, parts: Parts) -> None:
    ids, _, columns = parts.joined()
    p = lookup.lookup.book.params[number]
    unknown = np.ones(p[ROWS], np.bool_)
    if len(ids):
        unknown[ids - p[FIRST_ROW]] = False
        lookup.lookup.write_rows(number, ids - p[FIRST_ROW], columns)
    lookup.lookup.mark(number, np.flatnonzero(unknown))


def _load_hashed(sealed: SealedLookup, number: int, parts: Parts) -> None:
    ids, slots, columns = parts.joined()
    lookup, book = sealed.lookup, sealed.lookup.book
    p = book.params[number]
    lookup.zero_rows(number)
    book.figures[number, SIZE] = 0
    seen = columns.get("last_seen_ms", np.empty(0, np.int64))
    if len(seen) != len(ids):
        raise TableRowsError(f"table {book.shards[number].table.name!r}: the log has no last_seen_ms of its rows")
    order = np.lexsort((ids, seen))
    with lookup.entries(number) as entries:
        entries[:] = EMPTY
        at, moved = placing.place_rows(
            ids[order], slots[order] - p[FIRST_ROW], seen[order].astype(np.int64), p, entries
        )
    if not len(ids):
        return
    kept = at >= 0
    lookup.write_rows(number, at[kept], {name: column[order][kept] for name, column in columns.items()})
    gone = np.sort(ids[order][~kept])
    book.figures[number, SIZE] = int(kept.sum())
    book.figures[number, EVICTIONS] += len(gone)
    lookup.evict(number, gone)
    lookup.mark(number, at[kept & moved])


def _load_admission(sealed: SealedLookup, number: int, parts: Parts) -> None:
    ids, slots, columns = parts.joined()
    book = sealed.lookup.book
    p = book.params[number]
    own = slice(int(p[COUNTER_BASE]), int(p[COUNTER_BASE]) + counter_rows(p))
    counters = book.counters[own]
    counters[:] = EMPTY
    if not len(ids):
        return
    dropped = ids
    if p[ADMIT] > 1:
        order = np.lexsort((ids, -columns["count"].astype(np.int64)))
        dropped = placing.place_counters(
            ids[order], slots[order], columns["count"][order].astype(np.int64), p, counters, book.counter_touched[own]
        )
    sealed.lookup.drop(number, dropped)
