"""`TableRows`: what one shard of one table hands to a commit, and what a restore hands back (FORMAT.md, section 4)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from checkpointer.errors import InvalidRowsError

Ids = npt.NDArray[np.int64]
Column = npt.NDArray[np.generic]

KINDS = ("zch", "direct", "admission")


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRows:
    """Rows of one table: PUTs in `ids`, DELs in `deleted`, and RESET.

    `kind` "zch": keyed by raw id; "direct": keyed by row number; "admission": id -> count.
    Within one commit RESET comes before every DEL, and every DEL before every PUT, whatever shard carries them.

    >>> rows = TableRows(table="user", shard=0, kind="zch", ids=np.array([3, 9]), slots=np.array([1, 0]),
    ...                  columns={"weight": np.zeros((2, 4), np.float32)}, deleted=np.array([5]))
    >>> len(rows), rows.key
    (2, ('user', 'zch'))
    """

    table: str
    shard: int
    kind: str
    ids: Ids  # int64[n], ascending
    slots: Ids  # int64[n], global slot (== ids for "direct")
    columns: Mapping[str, Column]  # "weight" [n, D]; "momentum1" [n] or [n, D]; "last_seen_ms" int64[n]
    deleted: Ids  # int64[m], ascending: DEL
    reset: bool = False  # every earlier row of this table is void

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidRowsError(f"table {self.table!r}: kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        _check_ids(self.table, "ids", self.ids)
        _check_ids(self.table, "deleted", self.deleted)
        if self.slots.shape != self.ids.shape:
            raise InvalidRowsError(f"table {self.table!r}: {len(self.ids)} ids but {len(self.slots)} slots")
        for name, column in self.columns.items():
            _check_column(self.table, name, column, len(self.ids))
        if len(self.deleted) and np.isin(self.deleted, self.ids, assume_unique=True).any():
            raise InvalidRowsError(f"table {self.table!r}: an id is both put and deleted")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def key(self) -> tuple[str, str]:
        """What rows are resolved by: a table's rows and its admission counters are apart."""
        return (self.table, self.kind)

    @property
    def empty(self) -> bool:
        """Whether this says nothing at all."""
        return not (len(self.ids) or len(self.deleted) or self.reset)


def no_ids() -> Ids:
    """An empty int64 array."""
    return np.empty(0, np.int64)


def _check_ids(table: str, what: str, ids: Ids) -> None:
    if ids.dtype != np.int64 or ids.ndim != 1:
        raise InvalidRowsError(f"table {table!r}: {what} must be int64[n], got {ids.dtype}{list(ids.shape)}")
    if len(ids) and (ids[0] < 0 or not bool((ids[1:] > ids[:-1]).all())):
        raise InvalidRowsError(f"table {table!r}: {what} must be ascending, distinct and not negative")


def _check_column(table: str, name: str, column: Column, rows: int) -> None:
    if column.ndim not in (1, 2) or len(column) != rows:
        raise InvalidRowsError(
            f"table {table!r}: column {name!r} must be [{rows}] or [{rows}, D], got {list(column.shape)}"
        )
    if name in ("id", "slot"):
        raise InvalidRowsError(f"table {table!r}: the column name {name!r} is taken")
    if column.dtype.kind not in "iuf" or column.dtype.byteorder == ">":
        raise InvalidRowsError(
            f"table {table!r}: column {name!r} has type {column.dtype}, not a plain little-endian one"
        )
