"""Numba kernels that gather and pack byte strings, and cut the text of sequences into steps."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


@nb.njit(nogil=True, cache=True)
def take_bytes(offsets: Int64s, data: Bytes, indices: Int64s) -> tuple[Int64s, Bytes]:
    """Byte strings by index; -1 gives an empty one."""
    out = np.zeros(len(indices) + 1, np.int64)
    for row in range(len(indices)):
        index = indices[row]
        out[row + 1] = out[row] + (offsets[index + 1] - offsets[index] if index >= 0 else 0)
    packed = np.empty(out[-1], np.uint8)
    for row in range(len(indices)):
        index = indices[row]
        if index >= 0:
            begin, at = offsets[index], out[row]
            for k in range(offsets[index + 1] - begin):
                packed[at + k] = data[begin + k]
    return out, packed


@nb.njit(nogil=True, cache=True)
def pack(data: Bytes, starts: Int64s, ends: Int64s) -> tuple[Int64s, Bytes]:
    """Tokens end to end."""
    out = np.zeros(len(starts) + 1, np.int64)
    for token in range(len(starts)):
        out[token + 1] = out[token] + ends[token] - starts[token]
    packed = np.empty(out[-1], np.uint8)
    for token in range(len(starts)):
        at, begin = out[token], starts[token]
        for k in range(ends[token] - begin):
            packed[at + k] = data[begin + k]
    return out, packed


@nb.njit(nogil=True, cache=True)
def cut_steps(offsets: Int64s, data: Bytes, valid: Bools, delimiter: int, limit: int) -> tuple[Int64s, Bytes, Int32s]:
    """Cut every string at the delimiter, at most `limit` steps of a row (0: all); null and "" have none.

    Give the steps end to end without delimiters, and their number per row.
    """
    rows = len(offsets) - 1
    lengths = np.zeros(rows, np.int32)
    steps = size = 0
    for row in range(rows):
        begin, end = offsets[row], offsets[row + 1]
        if begin == end or (len(valid) and not valid[row]):
            continue
        # Without a way out of the loop it is computed many bytes at a time.
        taken = 1
        for at in range(begin, end):
            taken += data[at] == delimiter
        if limit and taken > limit:
            taken = limit
        lengths[row] = taken
        steps += taken
        size += end - begin
    out = np.zeros(steps + 1, np.int64)
    packed = np.empty(size, np.uint8)
    step = place = 0
    for row in range(rows):
        taken = lengths[row]
        at = offsets[row]
        for _ in range(taken):
            while at < offsets[row + 1] and data[at] != delimiter:
                packed[place] = data[at]
                place += 1
                at += 1
            at += 1
            step += 1
            out[step] = place
    return out, packed[:place], lengths


@nb.njit(nogil=True, cache=True)
def step_indices(starts: Int64s, lengths: Int32s, wanted: Int32s, usable: Bools, stretch: bool) -> Int64s:
    """Which step of a column each of the `wanted` steps of a row is: -1 where it has none.

    With `stretch` a row of one step gives it to all.
    """
    total = 0
    for row in range(len(wanted)):
        total += wanted[row]
    out = np.empty(total, np.int64)
    at = 0
    for row in range(len(wanted)):
        for k in range(wanted[row]):
            source = 0 if stretch and lengths[row] == 1 else k
            out[at] = starts[row] + source if usable[row] and source < lengths[row] else -1
            at += 1
    return out
