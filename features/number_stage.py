"""What follows once a feature has its numbers: normalise, default, bucketize (feature_generation.md 2.6, 2.8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from features import kernels
from features.bucketize import Boundaries
from features.counts import OUT_OF_VOCABULARY
from features.generator import Dense, Sparse
from features.judge import Judge
from features.normalize import Normalizer

Float32s = npt.NDArray[np.float32]
Float64s = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

NO_IDS = np.empty(0, np.int64)
_NO_WEIGHTS = np.empty(0, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """float32 numbers of all rows, flat; `lengths` None means one in every row."""

    values: Float32s
    lengths: Int32s | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberStage:
    """Ends with a number a row, the first, or, with `buckets` or `size`, with an id for every number.

    `default` None stands for "": 0.0 in a dense feature, no ids in a sparse one. It is never normalised.
    """

    default: float | None
    normalizer: Normalizer | None = None
    buckets: Boundaries | None = None
    size: int = 0
    """`num_buckets`: numbers are truncated towards zero."""

    def __call__(self, numbers: Numbers, judge: Judge) -> Sparse | Dense:
        values = self._normalise(numbers, judge)
        if judge.faults is not None:
            return Sparse(NO_IDS)
        if judge.counting:
            sparse = self.buckets is not None or self.size > 0
            judge.missing(numbers.lengths, not sparse or self.default is not None)
            if self.size:
                outside = (values <= -1) | (values >= self.size)
                judge.note(OUT_OF_VOCABULARY, int(np.count_nonzero(outside)))
        if self.buckets is None and not self.size:
            return Dense(self._first(values, numbers.lengths))
        ids, lengths = self._bucket(values), numbers.lengths
        if lengths is None or self.default is None or lengths.all():
            return Sparse(ids, lengths)
        fill = self._bucket(np.array([self.default], np.float32))
        return Sparse(*fill_ids(ids, lengths, fill))

    def _normalise(self, numbers: Numbers, judge: Judge) -> Float32s:
        values = numbers.values if self.normalizer is None else self.normalizer(numbers.values)
        if judge.faults is not None:
            judge.elements(~np.isfinite(values), numbers.lengths, "not_finite")
        return values.astype(np.float32, copy=False)

    def _first(self, values: Float32s, lengths: Int32s | None) -> Float32s:
        if lengths is None:
            return values
        out = np.full(len(lengths), self.default or 0.0, np.float32)
        present = lengths > 0
        out[present] = values[(np.cumsum(lengths, dtype=np.int64) - lengths)[present]]
        return out

    def _bucket(self, values: Float32s) -> Int64s:
        if self.buckets is not None:
            return self.buckets.of(values)
        inside = (values > -1) & (values < self.size)
        return np.where(inside, values, 0).astype(np.int64)

    def describe(self) -> dict[str, object]:
        """What the values depend on, for the digest."""
        return {
            "default": None if self.default is None else float(np.float32(self.default)),
            "normalizer": None if self.normalizer is None else self.normalizer.describe(),
            "bucketizer": {"num_buckets": self.size} if self.buckets is None else self.buckets.describe(),
        }


def fill_ids(ids: Int64s, lengths: Int32s, fill: Int64s) -> tuple[Int64s, Int32s]:
    """Give rows without ids those of `fill`."""
    filled, _, counts = kernels.fill_empty(ids, _NO_WEIGHTS, False, lengths, fill)
    return filled, counts


def narrow(values: Float64s | Float32s | Int64s) -> Float32s:
    """float32; what overflows becomes infinite, and a bad row."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32, copy=False)
