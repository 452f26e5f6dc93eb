"""Numba kernels that gather and pack byte strings, and cut the text of sequences into steps."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from stream.words import address_of, find_either, repeated

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


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
def cut_steps(
    starts: Int64s, ends: Int64s, data: Bytes, valid: Bools, delimiter: int, limit: int
) -> tuple[Int64s, Int64s, Int32s]:
    """Cut every string at the delimiter, at most `limit` steps of a row (0: all); null and "" have none.

    Give where steps begin and end, and their number per row.
    """
    lengths = np.zeros(len(starts), np.int32)
    steps = 0
    for row in range(len(starts)):
        begin, end = starts[row], ends[row]
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
    step_starts, step_ends = np.empty(steps, np.int64), np.empty(steps, np.int64)
    base, wanted = address_of(data), repeated(delimiter)
    step, limit_address = 0, base + len(data)
    for row in range(len(starts)):
        at, end = base + starts[row], base + ends[row]
        for _ in range(lengths[row]):
            stop = find_either(at, end, limit_address, wanted, wanted)
            step_starts[step], step_ends[step] = at - base, stop - base
            step += 1
            at = stop + 1
    return step_starts, step_ends, lengths


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
