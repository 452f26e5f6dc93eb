"""Bring loaded table shards forward by the rows of the commits that follow, in place, as long as slots hold."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from checkpointer.rows import TableRows
from recmodels.errors import TableRowsError
from recmodels.layout import TableSpec
from recmodels.tables_load import Parts, refuse_foreign
from recmodels.tables_seal import SealedLookup, counter_rows
from recmodels.zch.arena import ADMIT, COUNTER_BASE, DIRECT, FIRST_ROW, KIND, SIZE
from recmodels.zch.following import follow_counters, follow_rows


def in_place(lookups: Iterable[SealedLookup]) -> bool:
    """Whether what was loaded is, row by row, what the log says: nothing moved, nothing was added or dropped.

    Sorted maps have their order beside the rows and never count as in place.
    """
    for lookup in (sealed.lookup for sealed in lookups):
        if lookup.sorted or lookup.evicted or lookup.dropped:
            return False
        if lookup.any_marked() or lookup.book.counter_touched.any():
            return False
    return True


def follow(tables: Mapping[str, TableSpec], lookups: Sequence[SealedLookup], rows: Iterable[TableRows]) -> bool:
    """Put what one commit changed on top of what is `in_place`; False: it does not fit there, load anew."""
    owners = {
        shard.table.name: (lookup, number)
        for lookup in lookups
        for number, shard in enumerate(lookup.lookup.book.shards)
    }
    found: dict[tuple[str, str], Parts] = {}
    for part in rows:
        if part.reset or part.table not in tables:
            return False
        refuse_foreign(part, tables[part.table])
        if part.table in owners:
            lookup, number = owners[part.table]
            found.setdefault(part.key, Parts()).add(part, lookup.lookup.book.params[number])
    return all(_follow_shard(*owners[table], kind, parts) for (table, kind), parts in found.items())


def _follow_shard(sealed: SealedLookup, number: int, kind: str, parts: Parts) -> bool:
    lookup, book = sealed.lookup, sealed.lookup.book
    p = book.params[number]
    ids, slots, columns = parts.joined()
    deleted = np.concatenate(parts.deleted)
    if kind == "admission":
        own = slice(int(p[COUNTER_BASE]), int(p[COUNTER_BASE]) + counter_rows(p))
        counts = columns["count"].astype(np.int64) if len(ids) else ids
        return bool(p[ADMIT] > 1) and follow_counters(ids, slots, counts, deleted, p, book.counters[own])
    rows = slots - p[FIRST_ROW]
    if p[KIND] != DIRECT:
        if len(ids) and "last_seen_ms" not in columns:
            raise TableRowsError(f"table {book.shards[number].table.name!r}: the log has no last_seen_ms of its rows")
        seen = columns["last_seen_ms"].astype(np.int64) if len(ids) else ids
        with lookup.entries(number) as entries:
            fresh = follow_rows(ids, rows, seen, deleted, p, entries)
        if fresh < 0:
            return False
        book.figures[number, SIZE] += fresh
    if len(ids):
        lookup.write_rows(number, rows, columns)
    return not (p[KIND] == DIRECT and len(deleted))
