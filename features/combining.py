"""One number out of the numbers of a row, in float32 and in their order (feature_generation.md 3.1 and 3.2)."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

Float32s = npt.NDArray[np.float32]
Int32s = npt.NDArray[np.int32]

COMBINERS = ("sum", "mean", "min", "max", "count", "gap_min", "gap_max")


@nb.njit(nogil=True, cache=True)
def _fold(values: Float32s, lengths: Int32s, how: int) -> Float32s:
    out = np.zeros(len(lengths), np.float32)
    at = 0
    for row in range(len(lengths)):
        size = lengths[row]
        if size == 0:
            continue
        total = values[at] if how != 4 else np.float32(size)
        if how >= 5:
            total = np.float32(0)
        for k in range(1, size):
            value = values[at + k]
            if how <= 1:
                total = np.float32(total + value)
            elif how == 2:
                total = min(total, value)
            elif how == 3:
                total = max(total, value)
            elif how >= 5:
                gap = np.float32(abs(np.float32(value - values[at + k - 1])))
                total = gap if k == 1 else min(total, gap) if how == 5 else max(total, gap)
        out[row] = np.float32(total / np.float32(size)) if how == 1 else total
        at += size
    return out


def combine(values: Float32s, lengths: Int32s, combiner: str) -> Float32s:
    """One number a row, 0 for rows without any. Gaps are the differences of neighbours.

    >>> combine(np.array([1, 2, 5], np.float32), np.array([3, 0], np.int32), "gap_max").tolist()
    [3.0, 0.0]
    """
    return _fold(np.ascontiguousarray(values), lengths, COMBINERS.index(combiner))
