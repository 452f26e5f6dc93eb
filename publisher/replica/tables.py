"""In-memory serving tables: one copy of every table of a version, changed by patches and read by one pooled lookup.

A copy is either being read or being changed, never both: `switch.py` keeps two. Rows stay encoded as published.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from checkpointer.encoding import Encoding, row_bytes
from publisher.errors import Reason, VersionError
from publisher.replica import kernels
from publisher.rows import RowBlock, Run

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
Array = TypeVar("Array", Int64s, Bytes)

_ENCODINGS: Final[Mapping[Encoding, int]] = {
    Encoding.FP32: kernels.FP32,
    Encoding.FP16: kernels.FP16,
    Encoding.INT8: kernels.INT8,
    Encoding.INT4: kernels.INT4,
}
_FIRST_ROWS: Final = 1024
_MORE_ROWS: Final = 4096
_LINE: Final = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class TableShape:
    """What never changes about a table within one serving contract; `rows` is set for tables keyed by row number."""

    name: str
    dim: int
    encoding: Encoding
    rows: int | None = None

    @property
    def width(self) -> int:
        """Bytes of one encoded row."""
        return row_bytes(self.encoding, self.dim)


_NO_ROWS: Final = RowBlock(
    runs=(), ids=np.empty(0, np.int64), rows=np.empty((0, 0), np.uint8), kept=np.empty(0, np.bool_)
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """What one file of a base or delta does: the tables in `resets` lose every row, then `block` is deleted and put."""

    block: RowBlock = _NO_ROWS
    resets: tuple[str, ...] = ()

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.block.nbytes


def _power_of_two(at_least: int) -> int:
    return 1 << max(at_least - 1, 1).bit_length()


def _aligned(rows: int, width: int) -> Bytes:
    """Room for rows that starts at a cache line: a row of 64 bytes is in one then, not in two."""
    raw = np.empty(rows * width + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + rows * width].reshape(rows, width)


class ServingTable:
    """One copy of one table; kernels change it by the addresses of its catalogue entry."""

    def __init__(self, shape: TableShape) -> None:
        self.shape = shape
        self.clear()

    def clear(self) -> None:
        """Forget every row."""
        first = _FIRST_ROWS if self.shape.rows is None else self.shape.rows
        self._rows = _aligned(first, self.shape.width)
        self._state = np.zeros(3, np.int64)
        self._free: Int64s = np.empty(0, np.int64)
        indexed = self.shape.rows is None
        self._index: Int64s = np.full(2 * _power_of_two(2 * _FIRST_ROWS) if indexed else 2, kernels.EMPTY, np.int64)
        # Rows of a direct table that nobody has put yet: a base must hold them all.
        self._present = np.zeros(0 if indexed else first, np.bool_)

    def __len__(self) -> int:
        return int(self._state[kernels.COUNT])

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self._rows.nbytes + self._index.nbytes + self._free.nbytes

    def catalogue_entry(self) -> tuple[int, ...]:
        """Addresses and sizes in the order of the kernels; void after `clear` and `make_room`."""
        return (
            self._index.ctypes.data,
            self._index.shape[0] // 2 - 1,
            self._rows.ctypes.data,
            self.shape.width,
            self.shape.dim,
            _ENCODINGS[self.shape.encoding],
            -1 if self.shape.rows is None else self.shape.rows,
            len(self._rows),
            self._state.ctypes.data,
            self._free.ctypes.data,
            self._present.ctypes.data,
        )

    def check_complete(self) -> None:
        """Refuse a direct table with rows that no base or delta has brought."""
        if self.shape.rows is not None and len(self) < self.shape.rows:
            missing = int(np.argmin(self._present))
            raise VersionError(
                Reason.MISSING,
                f"table {self.shape.name} holds {len(self)} of {self.shape.rows} rows, row {missing} is missing: "
                "publish a version with a full base",
            )

    def check(self, ids: Int64s, rows: Bytes, kept: Bools) -> None:
        """Refuse rows that this table cannot hold; ids are not negative."""
        expected = (len(ids), self.shape.width)
        if rows.shape != expected:
            raise VersionError(Reason.CONTRACT, f"table {self.shape.name}: rows of shape {rows.shape}, not {expected}")
        if self.shape.rows is None:
            return
        if len(ids) and int(ids.max()) >= self.shape.rows:
            raise VersionError(
                Reason.CONTRACT, f"table {self.shape.name}: row {ids.max()} of a table of {self.shape.rows} rows"
            )
        if not kept.all():
            raise VersionError(Reason.CORRUPT, f"table {self.shape.name} is keyed by row number and cannot lose rows")

    def make_room(self, rows: int, deletions: int) -> None:
        """Make room for new ids, index at most half full, rows for every slot, and for as many deletions."""
        freed = int(self._state[kernels.FREE]) + deletions
        if freed > len(self._free):
            self._free = _grown(self._free, np.empty(_power_of_two(freed), np.int64))
        wanted = len(self) + rows
        if 2 * wanted > self._index.shape[0] // 2:
            old, pairs = self._index, _power_of_two(2 * wanted)
            self._index = np.full(2 * pairs, kernels.EMPTY, np.int64)
            kernels.rehash(old, self._index, pairs - 1)
        used = int(self._state[kernels.USED])
        slots = used + max(0, rows - int(self._state[kernels.FREE]))
        if slots > len(self._rows):
            # A quarter of slack: doubling would double the memory of a table that has stopped growing.
            self._rows = _grown(self._rows, _aligned(slots + slots // 4, self.shape.width))

    def copy(self) -> "ServingTable":
        """Return a table of its own with the same rows."""
        twin = ServingTable(self.shape)
        twin._rows = _grown(self._rows, _aligned(*self._rows.shape))
        twin._index, twin._free = self._index.copy(), self._free.copy()
        twin._state, twin._present = self._state.copy(), self._present.copy()
        return twin

    def items(self) -> dict[int, bytes]:
        """Return every id with its encoded row; for tests and digests, not for serving."""
        if self.shape.rows is not None:
            return {int(i): self._rows[i].tobytes() for i in np.flatnonzero(self._present)}
        pairs = self._index.reshape(-1, 2)
        return {int(key): self._rows[slot].tobytes() for key, slot in pairs if key != kernels.EMPTY}


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanEntry:
    """One pooled lookup: key `key` of the batch in `table`, into `column` of `group`."""

    key: int
    table: str
    group: int
    column: int
    mean: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Ids:
    """The ids of a batch, key-major like a KeyedJaggedTensor: `lengths` has keys × batch entries."""

    values: Int64s
    lengths: npt.NDArray[np.int32]
    weights: Floats = field(default_factory=lambda: np.empty(0, np.float32))


def _grown(old: Array, fresh: Array) -> Array:
    fresh[: len(old)] = old
    return fresh


def _half_values() -> Floats:
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


class ServingTables:
    """One copy of all tables, with the plan of its pooled lookups."""

    def __init__(
        self, shapes: Iterable[TableShape], group_widths: tuple[int, ...], found: Int64s | None = None
    ) -> None:
        """`found` counts (lookups, hits) of each table; copies share it, so that the counts only grow."""
        self._tables = {shape.name: ServingTable(shape) for shape in shapes}
        self._position = {name: at for at, name in enumerate(self._tables)}
        self._group_widths = group_widths
        self._group_starts = np.concatenate([[0], np.cumsum(group_widths)]).astype(np.int64)
        self._halves = _half_values()
        self.found = np.zeros((len(self._tables), 2), np.int64) if found is None else found
        self._refresh()

    def _refresh(self) -> None:
        entries = [table.catalogue_entry() for table in self._tables.values()]
        self._catalogue = np.array(entries, np.int64).reshape(len(entries), kernels.CATALOGUE_WIDTH)

    def plan(self, entries: Iterable[PlanEntry]) -> Int64s:
        """Return the entries as the array that `pool` takes; entries of one call share one `Ids`."""
        rows = [
            (
                entry.key,
                self._position[entry.table],
                self._group_starts[entry.group],
                self._group_widths[entry.group],
                entry.column,
                int(entry.mean),
            )
            for entry in entries
        ]
        return np.array(rows, np.int64).reshape(len(rows), kernels.PLAN_WIDTH)

    def outputs(self, batch: int) -> Floats:
        """Return a zeroed buffer for the groups of `batch` rows."""
        return np.zeros(batch * int(self._group_starts[-1]), np.float32)

    def group(self, buffer: Floats, batch: int, group: int) -> Floats:
        """Return the (batch, width) view of one group in a buffer of `outputs`."""
        start = batch * int(self._group_starts[group])
        width = self._group_widths[group]
        return buffer[start : start + batch * width].reshape(batch, width)

    def pool(self, plan: Int64s, ids: Ids, batch: int, buffer: Floats) -> None:
        """Add the pooled rows of every entry of the plan to the buffer; misses add zero and count in means."""
        starts = np.empty(len(ids.lengths) + 1, np.int64)
        kernels.bounds(ids.lengths, starts)
        kernels.pool(self._catalogue, plan, ids.values, starts, ids.weights, self._halves, batch, buffer, self.found)

    def apply(self, patches: Iterable[Patch]) -> int:
        """Apply patches in order and return the rows put and deleted; nobody may be reading."""
        rows = 0
        for patch in patches:
            self._begin(patch)
            block = patch.block
            self._change(block, partial(kernels.put, block.ids, block.rows, block.kept))
            rows += len(block.ids)
        return rows

    def exchange(self, patches: Iterable[Patch]) -> tuple[Patch, ...] | None:
        """Apply patches in order and return those that undo them, in order; None where one resets a table."""
        undo: list[Patch] | None = []
        for patch in patches:
            self._begin(patch)
            block = patch.block
            old, existed = np.empty(block.rows.shape, np.uint8), np.empty(len(block.ids), np.bool_)
            self._change(block, partial(kernels.exchange, block.ids, block.rows, block.kept, old, existed))
            if patch.resets:
                undo = None
            if undo is not None:
                undo.append(Patch(block=replace(block, rows=old, kept=existed)))
        return None if undo is None else tuple(reversed(undo))

    def _begin(self, patch: Patch) -> None:
        """Check a patch, reset its tables, make room for what it deletes."""
        block = patch.block
        if len(block.ids) and int(block.ids.min()) < 0:
            raise VersionError(Reason.CORRUPT, f"negative id {block.ids.min()}")
        every = bool(block.kept.all())
        for run in block.runs:
            part = slice(run.start, run.end)
            table = self._table(run.table)
            table.check(block.ids[part], block.rows[part], block.kept[part])
        for name in patch.resets:
            self._table(name).clear()
        if not every:
            for run in block.runs:
                self._tables[run.table].make_room(0, int(np.count_nonzero(~block.kept[run.start : run.end])))
        if patch.resets or not every:
            self._refresh()

    def _table(self, name: str) -> ServingTable:
        if name not in self._tables:
            raise VersionError(Reason.CONTRACT, f"rows of table {name}, which the contract does not name")
        return self._tables[name]

    def _change(self, block: RowBlock, kernel: Callable[[Int64s, Int64s, int], int]) -> None:
        """Run a kernel over a block; in one call, since each waits for the interpreter, unless a table is full."""
        places = [(self._position[run.table], run.start, run.end) for run in block.runs]
        runs = np.array(places, np.int64).reshape(len(places), kernels.RUN_WIDTH)
        at = kernel(self._catalogue, runs, 0)
        while at < len(block.ids):
            # Only now: most rows of a delta are there already, and room for all of them would double the table.
            run = next(run for run in block.runs if run.start <= at < run.end)
            table = self._tables[run.table]
            table.make_room(_MORE_ROWS if len(table) else run.end - at, 0)
            self._refresh()
            at = kernel(self._catalogue, runs, at)

    def check_complete(self) -> None:
        """Refuse when a table keyed by row number lacks rows."""
        for table in self._tables.values():
            table.check_complete()

    def copy(self) -> "ServingTables":
        """Return another copy with the same rows."""
        twin = ServingTables((table.shape for table in self._tables.values()), self._group_widths, self.found)
        twin._tables = {name: table.copy() for name, table in self._tables.items()}
        twin._refresh()
        return twin

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Return (rows, bytes) per table."""
        return {name: (len(table), table.nbytes) for name, table in self._tables.items()}

    def lookups(self) -> dict[str, tuple[int, int]]:
        """Return (lookups, hits) per table; a few get lost when several threads count at once."""
        return {name: (int(n), int(hits)) for name, (n, hits) in zip(self._tables, self.found, strict=True)}

    def items(self, table: str) -> dict[int, bytes]:
        """Return every id of one table with its encoded row."""
        return self._tables[table].items()


def warm_kernels() -> None:
    """Run every kernel once, so that neither the first request nor the first flip waits for one to be compiled."""
    shapes = [TableShape(name=name, dim=1, encoding=Encoding.FP32, rows=rows) for name, rows in (("i", None), ("d", 2))]
    tables = ServingTables(shapes, (2,))
    runs = (Run(table="i", start=0, end=2), Run(table="d", start=2, end=4))
    ids, rows = np.array([0, 1, 0, 1]), np.zeros((4, 4), np.uint8)
    patch = Patch(block=RowBlock(runs=runs, ids=ids, rows=rows, kept=np.ones(4, np.bool_)))
    tables.apply([patch])
    tables.exchange([patch])
    plan = tables.plan(
        [PlanEntry(key=0, table=shape.name, group=0, column=at, mean=True) for at, shape in enumerate(shapes)]
    )
    tables.copy().pool(plan, Ids(values=np.arange(2), lengths=np.ones(2, np.int32)), 2, tables.outputs(2))
    ServingTable(shapes[0]).make_room(2 * _FIRST_ROWS, 0)
