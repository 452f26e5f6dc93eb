"""This rank's table shards behind DistributedModelParallel, as the trainer and the commit log see them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch import nn

from checkpointer.rows import TableRows
from recmodels.errors import SealError
from recmodels.layout import Layout
from recmodels.tables_follow import follow, in_place
from recmodels.tables_load import Loader
from recmodels.tables_seal import SealedLookup
from recmodels.zch.arena import (
    BUCKET_ROWS,
    COLLISIONS,
    DIRECT,
    EVICTIONS,
    HITS,
    INSERTS,
    KIND,
    ROWS,
    SIZE,
    UNADMITTED,
)
from recmodels.zch.collection import ShardedTrackedCollection
from recmodels.zch.lookup import Lookup


@dataclass(frozen=True, kw_only=True, slots=True)
class TableFigures:
    """What one table shard holds and has done since the process started.

    `hits` are lookups of ids that had a row, `collisions` ids placed away from their hash, `unadmitted` lookups that
    got the reserved row in training. Direct tables only have a size.
    """

    table: str
    shard: int
    capacity: int
    size: int
    hits: int
    inserts: int
    evictions: int
    collisions: int
    unadmitted: int


class ShardedTables:
    """Touched rows, sealing and loading of every table shard of this rank; one commit is in flight at a time."""

    def __init__(self, lookups: Sequence[Lookup], layout: Layout) -> None:
        self._lookups = tuple(lookups)
        self._sealed = tuple(SealedLookup(lookup) for lookup in lookups)
        self._specs = {table.name: table for table in layout.tables}
        self._in_flight = False

    @classmethod
    def of(cls, dmp: nn.Module, layout: Layout) -> "ShardedTables":
        """The shards inside a wrapped model. Rows of new direct tables count as touched: no commit has them yet."""
        lookups = [
            lookup
            for module in dmp.modules()
            if isinstance(module, ShardedTrackedCollection)
            for lookup in module.lookups
        ]
        return cls(lookups, layout)

    def set_event_time(self, ms: int) -> None:
        """Event time of the next batch: what is looked up is seen then."""
        for lookup in self._lookups:
            lookup.now_ms = ms

    def after_step(self) -> None:
        """End the step that backward has just applied: zero the reserved rows, release the step's rows."""
        for lookup in self._lookups:
            lookup.settle()

    def seal(self) -> list[TableRows]:
        """Copy what has changed since the last seal; SealError while one is in flight."""
        if self._in_flight:
            raise SealError("a sealed commit is still in flight: confirm it or restore its touched rows first")
        self.after_step()
        self._in_flight = True
        return [rows for lookup in self._sealed for rows in lookup.seal() if not rows.empty]

    def confirm(self) -> None:
        """The sealed commit is durable."""
        self._end_flight()
        for lookup in self._sealed:
            lookup.confirm()

    def restore_touched(self) -> None:
        """The sealed commit failed: what it carried is touched again."""
        self._end_flight()
        for lookup in self._sealed:
            lookup.restore_touched()

    def touch_all(self) -> None:
        """Make the next seal a full one: every row, with RESET."""
        for lookup in self._sealed:
            lookup.touch_all()

    def load(self, rows: Iterable[TableRows]) -> None:
        """Replace the content of all tables by resolved rows; each rank keeps what it owns.

        Rows whose slot cannot hold are reinserted by last seen, then id; what no longer fits is evicted as DEL. Those
        that moved, and rows that the log does not know, count as touched.
        """
        if self._in_flight:
            raise SealError("a sealed commit is still in flight: confirm it or restore its touched rows before loading")
        loader = Loader(self._specs, self._sealed)
        for part in rows:
            loader.take(part)
        loader.finish()

    @property
    def in_place(self) -> bool:
        """Whether the rows lie where the log that was loaded says, so that the next commit can be followed."""
        return in_place(self._sealed)

    def follow(self, rows: Iterable[TableRows]) -> bool:
        """Put what the next commit changed on top of what `load` left `in_place`, instead of loading that commit.

        False: it does not fit there, and the tables hold neither commit until they are loaded.
        """
        return follow(self._specs, self._sealed, rows)

    def figures(self) -> list[TableFigures]:
        """Per table shard of this rank."""
        return [figures for lookup in self._lookups for figures in _figures(lookup)]

    def _end_flight(self) -> None:
        if not self._in_flight:
            raise SealError("no sealed commit is in flight: call seal first")
        self._in_flight = False


def _figures(lookup: Lookup) -> Iterable[TableFigures]:
    book = lookup.book
    for number, shard in enumerate(book.shards):
        p, counts = book.params[number], book.figures[number]
        mapped = p[KIND] != DIRECT
        yield TableFigures(
            table=shard.table.name,
            shard=shard.number,
            capacity=int(p[ROWS] - p[ROWS] // p[BUCKET_ROWS]) if mapped else shard.rows,
            size=int(counts[SIZE]) if mapped else shard.rows,
            hits=int(counts[HITS]),
            inserts=int(counts[INSERTS]),
            evictions=int(counts[EVICTIONS]),
            collisions=int(counts[COLLISIONS]),
            unadmitted=int(counts[UNADMITTED]),
        )
