"""How Parquet packs integers: as differences of a width, and as runs."""

import numpy as np
import numpy.typing as npt
from numba import njit

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt8s = npt.NDArray[np.uint8]

_BLOCK, _MINIBLOCKS = 256, 4
_MINIBLOCK = _BLOCK // _MINIBLOCKS


def pack_deltas(values: Int64s) -> memoryview:
    """DELTA_BINARY_PACKED, with differences that wrap."""
    blocks = -(-max(len(values) - 1, 0) // _BLOCK)
    # 30 bytes before all blocks, and for each 10, its widths and at most 64 bits a value.
    packed = np.empty(30 + blocks * (10 + _MINIBLOCKS + 8 * _BLOCK), np.uint8)
    return packed[: _pack(values, packed)].data


def pack_runs(values: UInt8s | Int32s, width: int) -> bytes:
    """Runs of equal values and groups of eight bit-packed ones (the hybrid of RLE), of `width` <= 32 bits.

    Cut into runs and groups as Arrow does.
    """
    packed = np.zeros(16 + width + len(values) * (width + 15) // 8 + len(values), np.uint8)
    return packed[: _runs(values, width, packed)].tobytes()


@njit(cache=True, nogil=True)
def _put_varint(out, at, value):  # type: ignore[no-untyped-def]
    while value >= np.uint64(0x80):
        out[at] = np.uint8(value & np.uint64(0x7F)) | np.uint8(0x80)
        value >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(value)
    return at + 1


@njit(cache=True, nogil=True)
def _signed(value):  # type: ignore[no-untyped-def]
    return np.uint64((value << np.int64(1)) ^ (value >> np.int64(63)))


@njit(cache=True, nogil=True)
def _pack(values, out):  # type: ignore[no-untyped-def]
    at = _put_varint(out, 0, np.uint64(_BLOCK))
    at = _put_varint(out, at, np.uint64(_MINIBLOCKS))
    at = _put_varint(out, at, np.uint64(values.size))
    at = _put_varint(out, at, _signed(values[0]))
    start = 1
    while start < values.size:
        count = min(_BLOCK, values.size - start)
        least = values[start] - values[start - 1]
        for i in range(start + 1, start + count):
            least = min(least, values[i] - values[i - 1])
        at = _put_varint(out, at, _signed(least))
        widths = at
        out[widths : widths + _MINIBLOCKS] = 0
        at += _MINIBLOCKS
        for m in range((count + _MINIBLOCK - 1) // _MINIBLOCK):
            first = start + m * _MINIBLOCK
            last = min(first + _MINIBLOCK, start + count)
            every = np.uint64(0)
            for i in range(first, last):
                every |= np.uint64(values[i] - values[i - 1] - least)
            width = 0
            while every:
                every >>= np.uint64(1)
                width += 1
            out[widths + m] = width
            word = np.uint64(0)
            filled = 0
            end = at + width * _MINIBLOCK // 8
            for i in range(first, last):
                value = np.uint64(values[i] - values[i - 1] - least)
                word |= value << np.uint64(filled)
                filled += width
                if filled >= 64:
                    for b in range(8):
                        out[at + b] = np.uint8(word >> np.uint64(8 * b))
                    at += 8
                    filled -= 64
                    word = value >> np.uint64(width - filled) if filled else np.uint64(0)
            while at < end:
                out[at] = np.uint8(word)
                word >>= np.uint64(8)
                at += 1
        start += count
    return at


@njit(cache=True, nogil=True)
def _put_run(out, at, value, count, width):  # type: ignore[no-untyped-def]
    at = _put_varint(out, at, np.uint64(count) << np.uint64(1))
    for b in range((width + 7) // 8):
        out[at] = np.uint8(np.uint64(value) >> np.uint64(8 * b))
        at += 1
    return at


@njit(cache=True, nogil=True)
def _put_group(values, first, count, out, at, width):  # type: ignore[no-untyped-def]
    """Eight values, of which those behind `count` are zero, into bytes that are zero."""
    bit = 0
    for i in range(first, first + count):
        for k in range(width):
            if (np.uint64(values[i]) >> np.uint64(k)) & np.uint64(1):
                out[at + (bit >> 3)] |= np.uint8(1) << np.uint8(bit & 7)
            bit += 1
    return at + width


@njit(cache=True, nogil=True)
def _runs(values, width, out):  # type: ignore[no-untyped-def]
    """A run is one of at least 8 that fills a group of eight; fewer are packed with their neighbours."""
    at = 0
    head = -1
    groups = 0
    i = 0
    n = values.size
    while i < n:
        end = i
        while end < n and values[end] == values[i]:
            end += 1
        count = min(8, n - i)
        if end - i >= 8 or (end == n and head < 0):
            if head >= 0:
                out[head] = np.uint8(groups << 1 | 1)
                head = -1
            at = _put_run(out, at, values[i], end - i, width)
            i = end
            continue
        if head < 0:
            head = at
            groups = 0
            at += 1
        at = _put_group(values, i, count, out, at, width)
        groups += 1
        i += count
        if groups + 1 >= 64:
            out[head] = np.uint8(groups << 1 | 1)
            head = -1
    if head >= 0:
        out[head] = np.uint8(groups << 1 | 1)
    return at
