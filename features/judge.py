"""Noting the rows that a feature of several columns cannot use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from features import kernels
from features.columns import Columns
from features.counts import DEFAULTED, NULL
from stream.row_errors import Faults, describe

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Status = npt.NDArray[np.uint8]


class Judge:
    """Adds faults of one feature; the detail shows the row's values of all its columns."""

    def __init__(self, columns: Columns, names: tuple[str, ...], faults: Faults | None) -> None:
        self._columns = columns
        self._names = names
        self.faults = faults

    def over(self, columns: Columns, names: tuple[str, ...], owners: Int64s | None) -> Judge:
        """The judge of columns of which each row stands for several here; `owners` says which, None: for itself."""
        if owners is None:
            return self
        return Judge(columns, names, None if self.faults is None else _Owned(self.faults, owners))

    def rows(self, mask: Bools, reason: str, more: Callable[[int], str] | None = None) -> None:
        """Mark rows as bad, where anyone wants to know; `more` is to be said of each."""
        if self.faults is not None and mask.any():
            tell = self._detail if more is None else lambda row: f"{self._detail(row)}: {more(row)}"
            self.faults.add(mask, reason, tell)

    def spend(self, work: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> None:
        """Count the comparisons of every row, where all rows are bounded together."""
        if self.faults is not None and self.faults.spend is not None:
            self.faults.spend(self._names[0], int(work.sum()))

    def elements(self, flags: Bools, lengths: Int32s | None, reason: str) -> None:
        """Mark the rows that own a flagged element."""
        if self.faults is not None and flags.any():
            self.rows(flags if lengths is None else kernels.rows_of(flags, lengths), reason)

    def note(self, outcome: str, count: int) -> None:
        """Count rows, or values, of the feature, unless rows are only looked at."""
        if self.faults is None:
            self._columns.note(outcome, count)

    def missing(self, lengths: Int32s | None, defaulted: bool) -> None:
        """Count the rows that have no value of their own."""
        if lengths is not None and self._columns.tally is not None:
            count = len(lengths) - int(np.count_nonzero(lengths))
            self.note(NULL, count)
            if defaulted:
                self.note(DEFAULTED, count)

    @property
    def counting(self) -> bool:
        """Whether anyone counts."""
        return self.faults is None and self._columns.tally is not None

    def numbers(self, status: Status, lengths: Int32s | None) -> None:
        """Mark the rows that own a token that is no number."""
        self.elements(status != kernels.OK, lengths, "not_a_number")

    def ids(self, status: Status | None, lengths: Int32s | None) -> None:
        """Mark the rows that own an element without an id."""
        if status is not None:
            self.elements(status == kernels.MALFORMED, lengths, "not_an_integer")
            self.elements(status == kernels.OUT_OF_RANGE, lengths, "id_out_of_range")

    def _detail(self, row: int) -> str:
        return ", ".join(describe(name, self._columns.array(name), row) for name in self._names)


class _Owned(Faults):
    """Adds the faults of rows to those of the rows that have them as owners."""

    def __init__(self, faults: Faults, owners: Int64s) -> None:
        self._faults = faults
        self.spend = faults.spend
        self._owners = owners

    def add(self, mask: Bools, reason: str, detail: Callable[[int], str]) -> None:
        self._faults.add(mask[self._owners], reason, lambda row: detail(int(self._owners[row])))
