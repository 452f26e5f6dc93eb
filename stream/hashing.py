"""MurmurHash64A over bytes, as GNU libstdc++'s std::hash<std::string>: for ids of features and of events."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from stream.words import address_of, load8, load32, load64

SEED = 0xC70F6907

_MULTIPLIER = np.uint64(0xC6A4A7935BD1E995)
_SHIFT = np.uint64(47)
_SEED = np.uint64(SEED)
_EIGHT = np.uint64(8)


@nb.njit(nogil=True, cache=True, inline="always")
def _mix(state: int, word: int) -> int:
    word = np.uint64(word) * _MULTIPLIER
    word ^= word >> _SHIFT
    word *= _MULTIPLIER
    return (np.uint64(state) ^ word) * _MULTIPLIER


@nb.njit(nogil=True, cache=True)
def murmur_at(at: int, end: int) -> int:
    """Hash the bytes between two addresses."""
    size = end - at
    state = _SEED ^ (np.uint64(size) * _MULTIPLIER)
    while at + 8 <= end:
        state = _mix(state, load64(at))
        at += 8
    rest = end - at
    if rest:
        # Overlapping loads stay within the token, and what they have in common is the same.
        if size >= 8:
            tail = load64(end - 8) >> np.uint64(64 - 8 * rest)
        elif rest >= 4:
            tail = load32(at) | load32(end - 4) << np.uint64(8 * (rest - 4))
        else:
            middle = rest >> 1
            tail = load8(at) | load8(at + middle) << np.uint64(8 * middle) | load8(end - 1) << np.uint64(8 * (rest - 1))
        state = (state ^ tail) * _MULTIPLIER
    state ^= state >> _SHIFT
    state *= _MULTIPLIER
    return state ^ (state >> _SHIFT)


@nb.njit(nogil=True, cache=True)
def murmur64a(data: npt.NDArray[np.uint8], start: int, end: int) -> int:
    """Hash data[start:end]."""
    base = address_of(data)
    return murmur_at(base + start, base + end)


@nb.njit(nogil=True, cache=True)
def hash_slices(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """Hash data[starts[i]:ends[i]] for every i."""
    out = np.empty(len(starts), np.uint64)
    base = address_of(data)
    for i in range(len(starts)):
        out[i] = murmur_at(base + starts[i], base + ends[i])
    return out


@nb.njit(nogil=True, cache=True)
def hash_integers(values: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Hash the eight little-endian bytes of every value."""
    out = np.empty(len(values), np.uint64)
    start = _SEED ^ (_EIGHT * _MULTIPLIER)
    for i in range(len(values)):
        state = _mix(start, np.uint64(values[i]))
        state ^= state >> _SHIFT
        state *= _MULTIPLIER
        out[i] = state ^ (state >> _SHIFT)
    return out


def hash_bytes(data: bytes) -> int:
    """Hash a byte string.

    >>> hash_bytes(b"abc"), hash_bytes(b"hello world, this is long")
    (3663726644998027833, 2369277252547399713)
    """
    return int(murmur64a(np.frombuffer(data, np.uint8), 0, len(data)))
