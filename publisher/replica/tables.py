"""In-memory serving tables: one copy of every table of a version, changed by patches and read by one pooled lookup.

A copy is either being read or being changed, never both: `switch.py` keeps two. Rows stay encoded as published.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from checkpointer.encoding import Encoding, row_bytes
from publisher.errors import Reason, VersionError
from publisher.replica import kernels

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

_ENCODINGS: Final[Mapping[Encoding, int]] = {
    Encoding.FP32: kernels.FP32,
    Encoding.FP16: kernels.FP16,
    Encoding.INT8: kernels.INT8,
    Encoding.INT4: kernels.INT4,
}
_FIRST_ROWS: Final = 1024
_MORE_ROWS: Final = 4096


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """What one base or delta does to one table, in the order RESET, DEL, PUT."""

    table: str
    ids: Int64s
    rows: Bytes  # [n, width], C order
    deleted: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    reset: bool = False

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.ids.nbytes + self.rows.nbytes + self.deleted.nbytes

    def slices(self, max_bytes: int) -> Iterator["Patch"]:
        """Yield patches of about `max_bytes` at most that together do the same; at least one."""
        count = max(1, max_bytes // (8 + self.rows.shape[1]))
        for start in range(0, max(len(self.ids), 1), count):
            part = slice(start, start + count)
            if start == 0:
                yield replace(self, ids=self.ids[part], rows=self.rows[part])
            else:
                yield Patch(table=self.table, ids=self.ids[part], rows=self.rows[part])


def _power_of_two(at_least: int) -> int:
    return 1 << max(at_least - 1, 1).bit_length()


class ServingTable:
    """One copy of one table."""

    def __init__(self, shape: TableShape) -> None:
        self.shape = shape
        self._clear()

    def _clear(self) -> None:
        first = _FIRST_ROWS if self.shape.rows is None else self.shape.rows
        self._rows: Bytes = np.empty((first, self.shape.width), np.uint8)
        self._state = np.zeros(3, np.int64)
        self._free: Int64s = np.empty(0, np.int64)
        indexed = self.shape.rows is None
        self._index: Int64s = np.full(2 * _power_of_two(2 * _FIRST_ROWS) if indexed else 2, kernels.EMPTY, np.int64)
        # Rows of a direct table that nobody has put yet: a base must hold them all.
        self._present = np.zeros(0 if indexed else first, np.bool_)

    def __len__(self) -> int:
        if self.shape.rows is None:
            return int(self._state[kernels.COUNT])
        return int(np.count_nonzero(self._present))

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self._rows.nbytes + self._index.nbytes + self._free.nbytes

    def catalogue_entry(self) -> tuple[int, ...]:
        """Addresses and sizes in the order that `kernels.pool` reads them; void after the next change."""
        return (
            self._index.__array_interface__["data"][0],
            self._index.shape[0] // 2 - 1,
            self._rows.__array_interface__["data"][0],
            self.shape.width,
            self.shape.dim,
            _ENCODINGS[self.shape.encoding],
            -1 if self.shape.rows is None else self.shape.rows,
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

    def apply(self, patch: Patch) -> None:
        """Apply one patch."""
        self._check(patch)
        if patch.reset:
            self._clear()
        if self.shape.rows is not None:
            self._apply_direct(patch)
            return
        if len(patch.deleted):
            self._delete(patch.deleted)
        if len(self) == 0:
            self._reserve(len(patch.ids))
        taken = 0
        while taken < len(patch.ids):
            mask = self._index.shape[0] // 2 - 1
            ids, rows = patch.ids[taken:], patch.rows[taken:]
            taken += kernels.put(self._index, mask, self._state, self._free, self._rows, ids, rows)
            if taken < len(patch.ids):
                # Only now: most rows of a delta are there already, and room for all of them would double the table.
                self._reserve(_MORE_ROWS)

    def _check(self, patch: Patch) -> None:
        expected = (len(patch.ids), self.shape.width)
        if patch.rows.shape != expected:
            raise VersionError(
                Reason.CONTRACT, f"table {self.shape.name}: rows of shape {patch.rows.shape}, expected {expected}"
            )
        for ids in (patch.ids, patch.deleted):
            if len(ids) and int(ids.min()) < 0:
                raise VersionError(Reason.CORRUPT, f"table {self.shape.name}: negative id {ids.min()}")
        if self.shape.rows is not None and len(patch.ids) and int(patch.ids.max()) >= self.shape.rows:
            raise VersionError(
                Reason.CONTRACT, f"table {self.shape.name}: row {patch.ids.max()} of a table of {self.shape.rows} rows"
            )
        if self.shape.rows is not None and len(patch.deleted):
            raise VersionError(Reason.CORRUPT, f"table {self.shape.name} is keyed by row number and cannot lose rows")

    def _apply_direct(self, patch: Patch) -> None:
        kernels.put_direct(self._rows, patch.ids, patch.rows)
        self._present[patch.ids] = True

    def _delete(self, ids: Int64s) -> None:
        free = int(self._state[kernels.FREE]) + len(ids)
        if free > len(self._free):
            grown = np.empty(_power_of_two(free), np.int64)
            grown[: len(self._free)] = self._free
            self._free = grown
        mask = self._index.shape[0] // 2 - 1
        kernels.delete(self._index, mask, self._state, self._free, ids)

    def _reserve(self, more: int) -> None:
        """Make room for `more` new ids: index at most half full, rows for every slot."""
        wanted = int(self._state[kernels.COUNT]) + more
        if 2 * wanted > self._index.shape[0] // 2:
            old, pairs = self._index, _power_of_two(2 * wanted)
            self._index = np.full(2 * pairs, kernels.EMPTY, np.int64)
            kernels.rehash(old, self._index, pairs - 1)
        slots = int(self._state[kernels.USED]) + max(0, more - int(self._state[kernels.FREE]))
        if slots > len(self._rows):
            used = int(self._state[kernels.USED])
            # A quarter of slack: doubling would double the memory of a table that has stopped growing.
            grown = np.empty((slots + slots // 4, self.shape.width), np.uint8)
            grown[:used] = self._rows[:used]
            self._rows = grown

    def inverse(self, patch: Patch) -> Patch:
        """Return the patch that undoes `patch`, which is not a reset, on the rows as they are now."""
        ids = np.concatenate([patch.ids, patch.deleted]) if len(patch.deleted) else patch.ids
        if self.shape.rows is not None:
            return Patch(table=patch.table, ids=ids, rows=self._rows[ids])
        there, rows = np.empty(len(ids), np.int64), np.empty((len(ids), self.shape.width), np.uint8)
        mask = self._index.shape[0] // 2 - 1
        found = kernels.gather(self._index, mask, self._rows, ids, there, rows)
        new = np.setdiff1d(ids, there[:found]) if found < len(ids) else there[found:]
        return Patch(table=patch.table, ids=there[:found], rows=rows[:found], deleted=new)

    def copy(self) -> "ServingTable":
        """Return a table of its own with the same rows."""
        twin = ServingTable(self.shape)
        twin._rows, twin._index, twin._free = self._rows.copy(), self._index.copy(), self._free.copy()
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
        try:
            for patch in patches:
                table = self._tables.get(patch.table)
                if table is None:
                    raise VersionError(
                        Reason.CONTRACT, f"rows of table {patch.table}, which the contract does not name"
                    )
                table.apply(patch)
                rows += len(patch.ids) + len(patch.deleted)
        finally:
            self._refresh()
        return rows

    def inverse(self, patches: Iterable[Patch]) -> tuple[Patch, ...] | None:
        """Return what undoes `patches`, none of them applied yet; None where one resets a table.

        Each is undone to the rows as they are now, so the order among them does not matter.
        """
        undo = []
        for patch in patches:
            if patch.reset:
                return None
            undo.append(self._tables[patch.table].inverse(patch))
        return tuple(undo)

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
    for writeable in (True, False):
        ids, row = np.arange(2, dtype=np.int64), np.zeros((2, 4), np.uint8)
        # Rows come out of files and are read-only, unless the file has deletions: to numba these are two types.
        row.flags.writeable = ids.flags.writeable = writeable
        patches = [Patch(table=shape.name, ids=ids, rows=row) for shape in shapes]
        tables.apply(patches)
        undo = tables.inverse(patches)
        tables.apply([*(undo or ()), Patch(table="i", ids=ids[:0], rows=row[:0], deleted=ids)])
    plan = tables.plan(
        [PlanEntry(key=0, table=shape.name, group=0, column=at, mean=True) for at, shape in enumerate(shapes)]
    )
    tables.copy().pool(plan, Ids(values=np.arange(2), lengths=np.ones(2, np.int32)), 2, tables.outputs(2))
