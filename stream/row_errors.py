"""Which rows of a record batch cannot be used, and why: what `validate` gives to the feed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

BoolArray = npt.NDArray[np.bool_]
IndexArray = npt.NDArray[np.int64]


Spend = Callable[[str, int], None]
"""Takes a column's name and comparisons; raises where all rows together cost too much."""

DETAIL_CHARACTERS = 500


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RowErrors:
    """The bad rows of a batch of `count` rows, ascending, each with a reason code and a sentence for a person."""

    count: int
    rows: IndexArray
    reasons: tuple[str, ...] = ()
    details: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.rows) == len(self.reasons) == len(self.details):
            raise ValueError(
                f"row errors must have one reason and detail per row, got {len(self.rows)} rows, "
                f"{len(self.reasons)} reasons, {len(self.details)} details"
            )

    def __bool__(self) -> bool:
        return len(self.rows) > 0

    @property
    def bad(self) -> BoolArray:
        """bool[count], true where the row is bad."""
        mask = np.zeros(self.count, np.bool_)
        mask[self.rows] = True
        return mask

    @classmethod
    def none(cls, count: int) -> RowErrors:
        """All rows are good."""
        return cls(count=count, rows=np.empty(0, np.int64))


class Faults:
    """Collects bad rows while a batch is looked at; the first reason of a row stays.

    >>> faults = Faults(3)
    >>> faults.add(np.array([False, True, False]), "null_label", lambda row: f"row {row}")
    >>> faults.add_all("missing_column", "column 'a' is missing")
    >>> faults.errors().reasons
    ('missing_column', 'null_label', 'missing_column')
    """

    def __init__(self, count: int, spend: Spend | None = None) -> None:
        """`spend` counts what looking at the rows costs, where that is bounded for all of them together."""
        self._count = count
        self.spend = spend
        self._found: dict[int, tuple[str, str]] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, mask: BoolArray, reason: str, detail: Callable[[int], str]) -> None:
        """Mark the rows of a mask as bad; `detail` is asked once per row that was good before."""
        for row in np.flatnonzero(mask).tolist():
            if row not in self._found:
                self._found[row] = (reason, detail(row))

    def add_all(self, reason: str, detail: str) -> None:
        """Mark every row that was good before as bad."""
        for row in range(self._count):
            self._found.setdefault(row, (reason, detail))

    def merge(self, errors: RowErrors) -> None:
        """Mark what another judge found, where the rows were good before."""
        for row, reason, detail in zip(errors.rows.tolist(), errors.reasons, errors.details, strict=True):
            self._found.setdefault(row, (reason, detail))

    def errors(self) -> RowErrors:
        """What was found."""
        rows = sorted(self._found)
        return RowErrors(
            count=self._count,
            rows=np.array(rows, np.int64),
            reasons=tuple(self._found[row][0] for row in rows),
            details=tuple(_short(self._found[row][1]) for row in rows),
        )


Validate = Callable[[pa.RecordBatch], RowErrors]
"""Judges rows one by one: the answer for a row must not depend on its neighbours."""


def describe(name: str, column: pa.Array, row: int) -> str:
    """A column's value for a person to read, shortened."""
    try:
        text = repr(column[row].as_py())
    except UnicodeDecodeError as error:
        text = f"no UTF-8: {error.object[:40]!r}"
    return f"column {name!r} is {text if len(text) <= 80 else text[:77] + '...'}"


def _short(detail: str) -> str:
    """A detail that fits a message header: the type of a nested column alone may fill pages."""
    return detail if len(detail) <= DETAIL_CHARACTERS else f"{detail[: DETAIL_CHARACTERS - 1]}…"
