"""Values of a formula: numbers of rows, or vectors of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """One number a row, or one for all (shape []); with `lengths` so many in each row, at least one."""

    values: Float64s
    lengths: Int32s | None = None


def elementwise(how: Callable[..., Float64s], operands: Sequence[Operand], fill: float) -> Operand:
    """Apply a ufunc to each element: a row's number goes with every element of its vectors.

    Of two vectors the shorter one is filled up, unless it has one element, which goes with every one.
    """
    vectors = [operand.lengths for operand in operands if operand.lengths is not None]
    if not vectors:
        return Operand(how(*(operand.values for operand in operands)))
    longest = vectors[0] if len(vectors) == 1 else np.maximum.reduce(vectors)
    return Operand(how(*(stretched(operand, longest, fill) for operand in operands)), longest)


def stretched(operand: Operand, lengths: Int32s, fill: float) -> Float64s:
    """The values with `lengths` of them in each row."""
    if operand.lengths is None:
        return operand.values if operand.values.ndim == 0 else np.repeat(operand.values, lengths)
    if operand.lengths is lengths or bool((operand.lengths == lengths).all()):
        return operand.values
    starts = np.cumsum(operand.lengths, dtype=np.int64) - operand.lengths
    place = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths, dtype=np.int64) - lengths, lengths)
    own = np.repeat(operand.lengths, lengths)
    inside = place < own
    index = np.repeat(starts, lengths) + np.where(inside, place, 0)
    return np.where(inside | (own == 1), operand.values[index], fill)


def as_vector(operand: Operand, rows: int) -> tuple[Float64s, Int32s]:
    """The values and their number per row; a number is a vector of one."""
    if operand.lengths is not None:
        return operand.values, operand.lengths
    return np.broadcast_to(operand.values, (rows,)), np.ones(rows, np.int32)


def per_row(how: np.ufunc, values: Float64s, lengths: Int32s) -> Float64s:
    """Reduce each row's values."""
    if len(lengths) == 0:
        return np.empty(0, np.float64)
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    reduced: Float64s = how.reduceat(values, starts)
    return reduced
