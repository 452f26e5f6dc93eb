"""Sequences as rows of steps: every column of a feature cut, zipped and broadcast (feature_generation.md section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from features import view_kernels
from features.columns import Column, Columns, Floats, Integers, Lists, Maps, Nested, Text
from features.counts import TRUNCATED
from features.elements import NO_MASK
from features.errors import ColumnTypeError
from features.views import Views, take
from stream.row_errors import Faults, RowErrors, describe

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """An input as the kind knows it (`name`), as the rows have it (`column`), and whether it is cut into steps."""

    name: str
    column: str
    sequence: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Cutting:
    """How columns become steps."""

    inputs: tuple[Input, ...]
    delimiter: int
    limit: int
    """At most so many steps of a row, the first ones; 0: all."""
    stretch: bool = False
    """An input of one step in a row gives it to all steps of the row."""
    keep_empty_rows: bool = False
    """A row without steps has none, instead of a missing one."""
    refuse_empty_steps: bool = False
    width: int = 1
    """In a plain list of numbers, those of one step."""

    def cut(self, columns: Columns, faults: Faults | None) -> Stepped:
        """The steps of all rows; rows whose sequences differ in length are bad and have one missing step."""
        parts = {item.name: self._part(columns, item.column, faults) for item in self.inputs if item.sequence}
        wanted, unequal = self._zip([part.lengths for part in parts.values()])
        if faults is not None and unequal.any():
            faults.add(unequal, "unequal_steps", lambda row: self._unequal(parts, row))
        views = {name: self._aligned(part, wanted, unequal) for name, part in parts.items()}
        owners: Int64s | None = None
        for item in self.inputs:
            if not item.sequence:
                owners = np.repeat(np.arange(len(wanted)), wanted) if owners is None else owners
                views[item.name] = take(columns[item.column], owners)
        stepped = Views(views, int(wanted.sum()))
        stepped.tally = columns.tally
        flat = all(isinstance(part.child, Integers | Floats) for part in parts.values())
        return Stepped(stepped, wanted, flat)

    def is_of_text(self, columns: Columns) -> bool:
        """The steps are those of one text, and any will do."""
        if len(self.inputs) != 1 or self.refuse_empty_steps:
            return False
        return isinstance(columns.sequence(self.inputs[0].column), Text)

    def steps(self, columns: Columns, name: str) -> Int32s:
        """How many steps a column has in each row, of those that count; 0 where it is missing."""
        view = columns.sequence(name)
        if isinstance(view, Text):
            valid = NO_MASK if view.valid is None else view.valid
            counts = view_kernels.count_steps(view.starts, view.ends, view.data, valid, self.delimiter, self.limit)
            return np.asarray(counts)
        return self._cut_column(name, view).lengths

    def _part(self, columns: Columns, name: str, faults: Faults | None) -> _Part:
        view = columns.sequence(name)
        part = self._cut_column(name, view)
        if faults is not None and self.width > 1 and isinstance(view, Lists):
            array = columns.array(name)
            faults.add(np.diff(view.offsets) % self.width != 0, "wrong_width", lambda row: describe(name, array, row))
        if self.limit and columns.tally is not None:
            columns.note(TRUNCATED, _truncated(view, part, self.limit))
        if faults is not None and self.refuse_empty_steps and isinstance(view, Text) and isinstance(part.child, Text):
            empty = part.child.ends == part.child.starts
            if empty.any():
                owners = np.repeat(np.arange(len(part.lengths)), part.lengths)
                rows = np.zeros(len(part.lengths), np.bool_)
                rows[owners[empty]] = True
                array = columns.array(name)
                faults.add(rows, "empty_step", lambda row: describe(name, array, row))
        return part

    def _cut_column(self, name: str, view: Column | Nested) -> _Part:
        match view:
            case Text():
                valid = NO_MASK if view.valid is None else view.valid
                starts, ends, lengths = view_kernels.cut_steps(
                    view.starts, view.ends, view.data, valid, self.delimiter, self.limit
                )
                child = Text(starts, ends, view.data, None)
                return _Part(child, np.cumsum(lengths, dtype=np.int64) - lengths, lengths)
            case Integers() | Floats():
                count = len(view.values)
                lengths = np.ones(count, np.int32) if view.valid is None else view.valid.astype(np.int32)
                return _Part(view, np.arange(count), lengths)
            case Lists() if self.width > 1 and not isinstance(view.child, Text):
                return self._cut_flat(view)
            case Lists() | Nested():
                lengths = np.diff(view.offsets).astype(np.int32)
                kept = np.minimum(lengths, np.int32(self.limit)) if self.limit else lengths
                return _Part(view.child, view.offsets[:-1], kept)
            case Maps():
                raise ColumnTypeError(f"column {name!r} is a map, which is no sequence")

    def _cut_flat(self, view: Lists) -> _Part:
        """Steps of `width` numbers; what is left over in a row is in none."""
        lengths = (np.diff(view.offsets) // self.width).astype(np.int32)
        starts = np.cumsum(lengths, dtype=np.int64) - lengths
        step = np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
        first = np.repeat(view.offsets[:-1], lengths) + step * self.width
        numbers = take(view.child, (first[:, None] + np.arange(self.width)).reshape(-1))
        if isinstance(numbers, Lists | Maps):
            raise TypeError("a list holds scalars")
        return _Part(Lists(np.arange(len(first) + 1) * self.width, None, numbers), starts, lengths)

    def _zip(self, lengths: list[Int32s]) -> tuple[Int32s, Bools]:
        """Steps per row, and which rows have sequences of different lengths; missing ones do not count."""
        longest = lengths[0] if len(lengths) == 1 else np.maximum.reduce(lengths)
        unequal = np.zeros(len(longest), np.bool_)
        for one in lengths if len(lengths) > 1 else ():
            fits = (one == longest) | (one == 0)
            unequal |= ~(fits | (one == 1) if self.stretch else fits)
        wanted = longest if self.keep_empty_rows else np.maximum(longest, np.int32(1))
        return (np.where(unequal, np.int32(1), wanted) if unequal.any() else wanted), unequal

    def _aligned(self, part: _Part, wanted: Int32s, unequal: Bools) -> Column:
        total = int(wanted.sum())
        whole = total == _rows(part.child) and bool((part.lengths == wanted).all())
        if whole:
            return part.child
        indices = view_kernels.step_indices(part.starts, part.lengths, wanted, ~unequal, self.stretch)
        return take(part.child, indices)

    def _unequal(self, parts: dict[str, _Part], row: int) -> str:
        found = ", ".join(f"{name!r} has {int(part.lengths[row])}" for name, part in parts.items())
        return f"its sequences differ in length: {found}"

    def describe(self) -> dict[str, object]:
        """What the steps depend on, for the digest."""
        return {
            "sequences": [item.name for item in self.inputs if item.sequence],
            "delimiter": self.delimiter,
            "limit": self.limit,
            "stretch": self.stretch,
            "keep_empty_rows": self.keep_empty_rows,
        }


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """One sequence column: a view of all steps, where each row's begin, and how many count."""

    child: Column
    starts: Int64s
    lengths: Int32s


@dataclass(frozen=True, slots=True, eq=False)
class Stepped:
    """Columns with a row for every step, the steps of each row, and whether each step is one number."""

    columns: Views
    lengths: Int32s
    flat: bool

    def blame(self, name: str, errors: RowErrors, faults: Faults) -> None:
        """Tell of bad steps as bad rows."""
        owners = np.repeat(np.arange(len(self.lengths)), self.lengths)
        starts = np.cumsum(self.lengths) - self.lengths
        rows = owners[errors.rows]
        details = tuple(
            f"feature {name!r}, step {step - starts[row]}: {detail}"
            for step, row, detail in zip(errors.rows.tolist(), rows.tolist(), errors.details, strict=True)
        )
        faults.merge(RowErrors(count=len(self.lengths), rows=rows, reasons=errors.reasons, details=details))


def _truncated(view: Column | Nested, part: _Part, limit: int) -> int:
    """Rows that have more steps than those that are kept."""
    full = part.lengths == limit
    if isinstance(view, Text) and isinstance(part.child, Text):
        rows = np.flatnonzero(full)
        return int((part.child.ends[part.starts[rows] + limit - 1] < view.ends[rows]).sum())
    return int((full & (np.diff(view.offsets) > limit)).sum()) if isinstance(view, Lists | Nested) else 0


def _rows(view: Column) -> int:
    if isinstance(view, Integers | Floats):
        return len(view.values)
    return len(view.starts) if isinstance(view, Text) else len(view.offsets) - 1
