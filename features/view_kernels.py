"""Numba kernels that gather and pack byte strings, and cut the text of sequences into steps."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from stream.words import address_of, count_bits, lowest, matches, without_lowest

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
def gather_lists(values: Int64s, offsets: Int64s, indices: Int64s) -> tuple[Int64s, Int32s]:
    """Lists of numbers by index: their values one after the other, and their lengths."""
    lengths = np.empty(len(indices), np.int32)
    total = 0
    for row in range(len(indices)):
        lengths[row] = offsets[indices[row] + 1] - offsets[indices[row]]
        total += lengths[row]
    out = np.empty(total, np.int64)
    at = 0
    for row in range(len(indices)):
        for source in range(offsets[indices[row]], offsets[indices[row] + 1]):
            out[at] = values[source]
            at += 1
    return out, lengths


@nb.njit(nogil=True, cache=True)
def count_steps(starts: Int64s, ends: Int64s, data: Bytes, valid: Bools, delimiter: int, limit: int) -> Int32s:
    """How many steps `cut_steps` cuts every string into."""
    base = address_of(data)
    edge = base + len(data)
    lengths = np.zeros(len(starts), np.int32)
    for row in range(len(starts)):
        if starts[row] == ends[row] or (len(valid) and not valid[row]):
            continue
        taken, end = 1, base + ends[row]
        for at in range(base + starts[row], end, 64):
            taken += count_bits(matches(at, end, edge, delimiter))
        lengths[row] = min(taken, limit) if limit else taken
    return lengths


@nb.njit(nogil=True, cache=True)
def cut_steps(
    starts: Int64s, ends: Int64s, data: Bytes, valid: Bools, delimiter: int, limit: int
) -> tuple[Int64s, Int64s, Int32s]:
    """Cut every string at the delimiter, at most `limit` steps of a row (0: all); null and "" have none.

    Give where steps begin and end, and their number per row.
    """
    base = address_of(data)
    edge = base + len(data)
    lengths = count_steps(starts, ends, data, valid, delimiter, limit)
    steps = lengths.sum()
    step_starts, step_ends = np.empty(steps, np.int64), np.empty(steps, np.int64)
    step = last = 0
    for row in range(len(starts)):
        if lengths[row] == 0:
            continue
        last += lengths[row]
        begin, at, end = starts[row], base + starts[row], base + ends[row]
        while at < end and step < last:
            bits = matches(at, end, edge, delimiter)
            while bits and step < last:
                stop = at - base + lowest(bits)
                bits = without_lowest(bits)
                step_starts[step], step_ends[step] = begin, stop
                begin = stop + 1
                step += 1
            at += 64
        if step < last:
            step_starts[step], step_ends[step] = begin, ends[row]
            step += 1
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
