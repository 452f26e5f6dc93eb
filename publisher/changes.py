"""The net effect of several commits on the served tables: the latest state of every row that they touched."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from checkpointer.rows import TableRows
from publisher.errors import ContractError
from publisher.manifest import Table

SERVED = ("zch", "direct")
WEIGHT = "weight"


@dataclass(frozen=True, kw_only=True, slots=True)
class NetRows:
    """One table: drop every earlier row if `reset`, then DEL `deleted`, then PUT `ids` (ascending) with `weights`."""

    table: str
    reset: bool
    ids: np.ndarray
    weights: np.ndarray
    deleted: np.ndarray

    def __len__(self) -> int:
        return len(self.ids) + len(self.deleted)


@dataclass(kw_only=True, slots=True)
class _Touched:
    """Operations on one table, oldest first; `weights` is None for deletions."""

    reset: bool = False
    ids: list[np.ndarray] = field(default_factory=list)
    weights: list[np.ndarray | None] = field(default_factory=list)


class Changes:
    """Collects commits in order; memory grows with the rows that they touch."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self._tables = {table.name: table for table in tables}
        self._touched = {name: _Touched() for name in self._tables}
        self.bytes = 0

    def add(self, commit: Iterable[TableRows]) -> None:
        """Add one commit. Whatever shard carries them, RESETs come before DELs and DELs before PUTs."""
        parts = [part for part in commit if part.kind in SERVED]
        for part in parts:
            check_rows(part, self._tables)
        for part in parts:
            if part.reset:
                self._touched[part.table] = _Touched(reset=True)
        for part in parts:
            if len(part.deleted):
                self._append(part.table, part.deleted, None)
        for part in parts:
            if len(part.ids):
                self._append(part.table, part.ids, part.columns[WEIGHT])

    def net(self) -> Iterator[NetRows]:
        """Resolve, table by table in their order; tables that nothing touched are left out."""
        for name, touched in self._touched.items():
            if touched.reset or touched.ids:
                yield _resolve(self._tables[name], touched)

    def _append(self, table: str, ids: np.ndarray, weights: np.ndarray | None) -> None:
        self._touched[table].ids.append(ids)
        self._touched[table].weights.append(weights)
        self.bytes += ids.nbytes + (0 if weights is None else weights.nbytes)


def check_rows(part: TableRows, tables: Mapping[str, Table]) -> None:
    """Refuse rows of a table that is not served, or of another kind or width than the contract says."""
    table = tables.get(part.table)
    if table is None:
        raise ContractError(f"a commit holds rows of table {part.table!r}; the serving contract has {sorted(tables)}")
    if part.kind != table.kind:
        raise ContractError(f"table {table.name!r} is keyed as {part.kind!r}, the serving contract says {table.kind!r}")
    if len(part.ids) and WEIGHT not in part.columns:
        raise ContractError(f"a commit holds rows of table {table.name!r} without the column 'weight'")
    if len(part.ids) and part.columns[WEIGHT].shape[1:] != (table.dim,):
        shape = part.columns[WEIGHT].shape[1:]
        raise ContractError(f"table {table.name!r} has rows of shape {shape}, the serving contract says {table.dim}")


def _resolve(table: Table, touched: _Touched) -> NetRows:
    """Keep the latest operation on each id."""
    none = np.empty(0, dtype=np.int64), np.empty((0, table.dim), dtype=np.float32)
    if len(touched.ids) == 1 and touched.weights[0] is not None:
        # The usual case, one commit without deletions, has nothing to resolve and copies nothing.
        only = touched.weights[0].astype(np.float32, copy=False)
        return NetRows(table=table.name, reset=touched.reset, ids=touched.ids[0], weights=only, deleted=none[0])
    ids = np.concatenate(touched.ids) if touched.ids else none[0]
    # A number for each operation's row among all PUT rows; -1 where it deletes.
    sources, puts = [], 0
    for part, weights in zip(touched.ids, touched.weights, strict=True):
        count = len(part)
        sources.append(np.full(count, -1) if weights is None else np.arange(puts, puts + count))
        puts += 0 if weights is None else count
    source = np.concatenate(sources) if sources else none[0]
    rows = [weights for weights in touched.weights if weights is not None]
    weights = np.concatenate(rows).astype(np.float32, copy=False) if rows else none[1]
    if len(touched.ids) > 1:
        # unique() keeps the first of equals: reversed, that is the latest.
        ids, last = np.unique(ids[::-1], return_index=True)
        source = source[::-1][last]
    put = source >= 0
    deleted = none[0] if touched.reset else ids[~put]
    return NetRows(table=table.name, reset=touched.reset, ids=ids[put], weights=weights[source[put]], deleted=deleted)
