"""Numbers from one column: parse, normalise, fill in, bucketize. Raw features, and every dense one under FG_NONE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from features import kernels
from features.bucketize import Boundaries
from features.columns import Column, Columns, Floats, Integers, Lists, Maps, Text
from features.counts import DEFAULTED, NULL
from features.elements import Tokens, split_text, to_floats, tokens_of
from features.errors import ColumnTypeError, FeatureConfigError
from features.generator import Dense, Sparse
from features.normalize import Normalizer
from features.plain import Plain
from features.spec import Feature
from stream.row_errors import Faults, describe

Float32s = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """[rows, dim] numbers and the rows that have some; `from_text` makes the arithmetic double."""

    values: npt.NDArray[np.float32] | npt.NDArray[np.float64]
    present: Bools | None
    from_text: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class DenseColumn:
    """Generator of a feature with a single column of numbers.

    `default` is None where a row without a value is a bad row, () where it has no ids (only with boundaries).
    """

    feature: Feature
    first: int
    second: int
    keep_empty: bool
    exact_width: bool
    """A row of several values for a feature of one is bad; else the first is kept."""
    default: tuple[float, ...] | None
    normalizer: Normalizer | None = None
    boundaries: Boundaries | None = None

    @property
    def plain(self) -> Plain | None:
        """A number that nothing is done to (features/generator.py)."""
        untouched = self.feature.value_dim == 1 and self.normalizer is None and self.boundaries is None
        return Plain() if untouched else None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Dense:
        """Compute the numbers, or their buckets, of all rows (features/generator.py)."""
        work = _Work(self, columns, faults)
        numbers = work.numbers(columns[self.feature.inputs[0]])
        values = self._normalise(work, numbers)
        if faults is None and numbers.present is not None and columns.tally is not None:
            self._count(columns, numbers.present)
        if self.boundaries is None:
            filled = values if numbers.present is None else self._fill(work, values, numbers.present)
            return Dense(filled if self.feature.value_dim > 1 else filled.reshape(-1))
        return self._bucketize(values, numbers.present, isinstance(columns[self.feature.inputs[0]], Integers | Floats))

    def _count(self, columns: Columns, present: Bools) -> None:
        missing = len(present) - int(np.count_nonzero(present))
        columns.note(NULL, missing)
        scalar = isinstance(columns[self.feature.inputs[0]], Integers | Floats)
        if self.boundaries is None or self.default or scalar:
            columns.note(DEFAULTED, missing)

    def _normalise(self, work: _Work, numbers: _Numbers) -> Float32s:
        values = numbers.values
        if self.normalizer is None:
            wide = values
        elif numbers.from_text:
            wide = self.normalizer(values.astype(np.float64, copy=False))
        else:
            wide = self.normalizer(values.astype(np.float32, copy=False))
        narrow = wide.astype(np.float32, copy=False) if wide.dtype == np.float32 else _narrow(wide)
        work.require_finite(narrow, numbers.present)
        return narrow

    def _fill(self, work: _Work, values: Float32s, present: Bools) -> Float32s:
        if self.default is None:
            work.blame(~present, "null_value")
            return values
        # The column's own buffer must not be written to.
        fill = np.array(self.default or (0.0,) * self.feature.value_dim, np.float32)
        return np.where(present[:, None], values, fill[None, :])

    def _bucketize(self, values: Float32s, present: Bools | None, scalar: bool) -> Sparse:
        dim = self.feature.value_dim
        bounds = self.boundaries or Boundaries(())
        if present is None:
            lengths = None if dim == 1 else np.full(len(values), dim, np.int32)
            return Sparse(bounds.of(values.reshape(-1)), lengths)
        # A numeric column with an empty default gives the bucket of 0.0, past the normalizer (feature_generation.md 1).
        fill = self.default or ((0.0,) * dim if scalar else ())
        if not fill:
            return Sparse(bounds.of(values[present].reshape(-1)), present.astype(np.int32) * np.int32(dim))
        filled = np.where(present[:, None], values, np.array(fill, np.float32)[None, :])
        return Sparse(bounds.of(filled.reshape(-1)), np.full(len(values), dim, np.int32))

    def describe(self) -> dict[str, object]:
        """What the numbers depend on, for the digest."""
        return {
            "separators": sorted({self.first, self.second}),
            "keep_empty": self.keep_empty,
            "exact_width": self.exact_width,
            "value_dim": self.feature.value_dim,
            "default": None if self.default is None else [float(np.float32(value)) for value in self.default],
            "normalizer": None if self.normalizer is None else self.normalizer.describe(),
            "bucketizer": None if self.boundaries is None else self.boundaries.describe(),
        }


class _Work:
    """One column of one batch on its way to numbers."""

    def __init__(self, how: DenseColumn, columns: Columns, faults: Faults | None) -> None:
        self._how = how
        self._name = how.feature.inputs[0]
        self._columns = columns
        self._faults = faults

    def blame(self, rows: Bools, reason: str) -> None:
        if self._faults is not None and rows.any():
            array = self._columns.array(self._name)
            self._faults.add(rows, reason, lambda row: describe(self._name, array, row))

    def require_finite(self, values: Float32s, present: Bools | None) -> None:
        if self._faults is None:
            return
        flat = np.ascontiguousarray(values)
        if kernels.all_finite32(flat.reshape(-1).view(np.uint32)):
            return
        bad = (~np.isfinite(flat)).any(axis=1)
        self.blame(np.asarray(bad if present is None else bad & present), "not_finite")

    def numbers(self, view: Column) -> _Numbers:
        match view:
            case Integers() | Floats():
                return self._scalars(view)
            case Text():
                return self._text(view)
            case Lists():
                return self._lists(view)
            case Maps():
                raise ColumnTypeError(f"column {self._name!r} is a map, which is no number")

    def _scalars(self, view: Integers | Floats) -> _Numbers:
        if self._how.feature.value_dim != 1:
            raise ColumnTypeError(
                f"column {self._name!r} holds one number a row, its feature {self._how.feature.value_dim}"
            )
        values = view.values
        if isinstance(view, Integers):
            # uint64 beyond int64 wrapped to negative.
            floats = values.astype(np.float32)
            values = (
                floats if view.wide is None else np.where(view.wide, values.view(np.uint64).astype(np.float32), floats)
            )
        return _Numbers(values.reshape(-1, 1), view.valid, False)  # type: ignore[arg-type]

    def _text(self, view: Text) -> _Numbers:
        how = self._how
        tokens, lengths = split_text(view, how.first, how.second, how.keep_empty)
        return self._parsed(tokens, np.ones(len(tokens), np.int32) if lengths is None else lengths, True)

    def _parsed(self, tokens: Tokens, lengths: npt.NDArray[np.int32], from_text: bool) -> _Numbers:
        values, status = to_floats(tokens)
        bad = status != kernels.OK
        if self._faults is not None and bad.any():
            self.blame(kernels.rows_of(bad, lengths), "not_a_number")
        return self._shape(values, lengths, from_text)

    def _lists(self, view: Lists) -> _Numbers:
        lengths = np.diff(view.offsets).astype(np.int32)
        child = view.child
        if child.valid is not None and self._faults is not None:
            self.blame(kernels.rows_of(~child.valid, lengths), "null_element")
        if isinstance(child, Text):
            # Measured: list<string> is computed in double only where boundaries follow.
            return self._parsed(tokens_of(child), lengths, self._how.boundaries is not None)
        return self._shape(child.values.astype(np.float32, copy=False), lengths, False)

    def _shape(self, values: npt.NDArray[np.generic], lengths: npt.NDArray[np.int32], from_text: bool) -> _Numbers:
        """[rows, dim]: rows without values are not present, rows of another width are bad."""
        dim = self._how.feature.value_dim
        if len(lengths) * dim == len(values) and bool((lengths == dim).all()):
            return _Numbers(values.reshape(-1, dim), None, from_text)  # type: ignore[arg-type]
        present = lengths > 0
        wrong = np.zeros_like(present) if dim == 1 and not self._how.exact_width else present & (lengths != dim)
        self.blame(wrong, "wrong_width")
        starts = np.cumsum(lengths) - lengths
        out = np.zeros((len(lengths), dim), values.dtype)
        usable = np.flatnonzero(present & ~wrong)
        out[usable] = values[starts[usable, None] + np.arange(dim)]
        return _Numbers(out, present, from_text)


def _narrow(values: npt.NDArray[np.generic]) -> Float32s:
    # What overflows becomes infinite, and a bad row.
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def number_list(name: str, field: str, text: str, separators: tuple[str, ...], dim: int) -> tuple[float, ...]:
    """A default of `dim` numbers: as many as that, or one that is repeated; () for ""."""
    if not text:
        return ()
    parts = [text]
    for separator in separators:
        parts = [piece for part in parts for piece in part.split(separator)]
    try:
        values = tuple(float(part) for part in parts)
    except ValueError:
        raise FeatureConfigError(f"feature {name!r}: {field} {text!r} must be numbers") from None
    if len(values) not in (1, dim) or not np.isfinite(np.array(values, np.float32)).all():
        raise FeatureConfigError(f"feature {name!r}: {field} {text!r} must be one or {dim} finite numbers")
    return values if len(values) == dim else values * dim
