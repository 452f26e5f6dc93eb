"""MurmurHash64A over bytes, as GNU libstdc++'s std::hash<std::string>: for ids of features and of events."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

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
def murmur64a(data: npt.NDArray[np.uint8], start: int, end: int) -> int:
    """Hash data[start:end]."""
    length = np.uint64(end - start)
    state = _SEED ^ (length * _MULTIPLIER)
    at = start
    while at + 8 <= end:
        word = np.uint64(0)
        for i in range(8):
            word |= np.uint64(data[at + i]) << np.uint64(8 * i)
        state = _mix(state, word)
        at += 8
    if at < end:
        tail = np.uint64(0)
        for i in range(end - at):
            tail |= np.uint64(data[at + i]) << np.uint64(8 * i)
        state = (state ^ tail) * _MULTIPLIER
    state ^= state >> _SHIFT
    state *= _MULTIPLIER
    return state ^ (state >> _SHIFT)


@nb.njit(nogil=True, cache=True)
def hash_slices(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """Hash data[starts[i]:ends[i]] for every i."""
    out = np.empty(len(starts), np.uint64)
    for i in range(len(starts)):
        out[i] = murmur64a(data, starts[i], ends[i])
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
