"""Which of some ascending bounds a number has reached."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

Float32s = npt.NDArray[np.float32]
Int64s = npt.NDArray[np.int64]

_FEW = 32
_BLOCK = 1024


@nb.njit(nogil=True, cache=True)
def _compare_all(values: Float32s, bounds: Float32s) -> Int64s:
    out = np.zeros(len(values), np.int64)
    for begin in range(0, len(values), _BLOCK):
        some, found = values[begin : begin + _BLOCK], out[begin : begin + _BLOCK]
        for bound in bounds:
            for i in range(len(some)):
                found[i] += not some[i] < bound
    return out


def reached(values: Float32s, bounds: Float32s) -> Int64s:
    """How many bounds are <= each value; NaN has reached all.

    >>> reached(np.array([0.5, 1, 7], np.float32), np.array([1, 2, 3], np.float32)).tolist()
    [0, 1, 3]
    """
    # Comparing with all of a few, many values at a time, beats a search that the processor cannot foresee.
    if len(bounds) <= _FEW:
        return _compare_all(np.ascontiguousarray(values), bounds)
    return np.searchsorted(bounds, values, side="right").astype(np.int64, copy=False)
