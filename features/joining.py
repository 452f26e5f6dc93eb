"""Joining tokens with "_": the crosses of combo features, the labels of lookup and match features."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from features.elements import Int32s, Int64s, Tokens
from features.pairs import readonly

Bytes = npt.NDArray[np.uint8]
_JOIN = 95


@nb.njit(nogil=True, cache=True)
def _product(
    a: Bytes, a_starts: Int64s, a_ends: Int64s, a_offsets: Int64s,
    b: Bytes, b_starts: Int64s, b_ends: Int64s, b_offsets: Int64s,
) -> tuple[Bytes, Int64s, Int64s, Int32s]:  # fmt: skip
    rows = len(a_offsets) - 1
    lengths = np.empty(rows, np.int32)
    total, size = 0, 0
    for row in range(rows):
        left, right = a_offsets[row + 1] - a_offsets[row], b_offsets[row + 1] - b_offsets[row]
        lengths[row] = left * right
        total += left * right
        if right:
            for i in range(a_offsets[row], a_offsets[row + 1]):
                size += right * (a_ends[i] - a_starts[i] + 1)
        if left:
            for k in range(b_offsets[row], b_offsets[row + 1]):
                size += left * (b_ends[k] - b_starts[k])
    data = np.empty(size, np.uint8)
    starts, ends = np.empty(total, np.int64), np.empty(total, np.int64)
    out, at = 0, 0
    for row in range(rows):
        for i in range(a_offsets[row], a_offsets[row + 1]):
            for k in range(b_offsets[row], b_offsets[row + 1]):
                starts[out] = at
                for source in range(a_starts[i], a_ends[i]):
                    data[at] = a[source]
                    at += 1
                data[at] = _JOIN
                at += 1
                for source in range(b_starts[k], b_ends[k]):
                    data[at] = b[source]
                    at += 1
                ends[out] = at
                out += 1
    return data, starts, ends, lengths


def product(a: Tokens, a_offsets: Int64s, b: Tokens, b_offsets: Int64s) -> tuple[Tokens, Int32s]:
    """In every row each token of `a` with each of `b`, those of `a` varying slowest."""
    data, starts, ends, lengths = _product(
        readonly(a.data), a.starts, a.ends, a_offsets, readonly(b.data), b.starts, b.ends, b_offsets
    )
    return Tokens(data, starts, ends), lengths


def join_each(a: Tokens, b: Tokens) -> Tokens:
    """The i-th of `a` with the i-th of `b`."""
    offsets = np.arange(len(a) + 1, dtype=np.int64)
    return product(a, offsets, b, offsets)[0]
