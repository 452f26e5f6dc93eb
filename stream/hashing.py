"""MurmurHash64A over bytes, as GNU libstdc++'s std::hash<std::string>: for ids of features and of events."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from stream.words import address_of, load8, load64

SEED = 0xC70F6907

_MULTIPLIER = np.uint64(0xC6A4A7935BD1E995)
_SHIFT = np.uint64(47)
_SEED = np.uint64(SEED)
_ONE, _EIGHT = np.uint64(1), np.uint64(8)


@nb.njit(nogil=True, cache=True, inline="always")
def _mix(state: int, word: int) -> int:
    word = np.uint64(word) * _MULTIPLIER
    word ^= word >> _SHIFT
    word *= _MULTIPLIER
    return (np.uint64(state) ^ word) * _MULTIPLIER


@nb.njit(nogil=True, cache=True)
def _last_bytes(at: int, end: int) -> int:
    """Fewer than eight bytes as a word."""
    word = np.uint64(0)
    for i in range(end - at):
        word |= load8(at + i) << np.uint64(8 * i)
    return word


@nb.njit(nogil=True, cache=True)
def murmur_at(at: int, end: int, limit: int) -> int:
    """Hash the bytes between two addresses; bytes before `limit` may be read."""
    size = end - at
    state = _SEED ^ (np.uint64(size) * _MULTIPLIER)
    while at + 8 <= end:
        state = _mix(state, load64(at))
        at += 8
    rest = end - at
    # The last bytes have a function of their own: with a loop in it this one would not be inlined.
    tail = load64(at) & ((_ONE << np.uint64(8 * rest)) - _ONE) if at + 8 <= limit else _last_bytes(at, end)
    state = (state ^ tail) * _MULTIPLIER if rest else state
    state ^= state >> _SHIFT
    state *= _MULTIPLIER
    return state ^ (state >> _SHIFT)


@nb.njit(nogil=True, cache=True)
def murmur64a(data: npt.NDArray[np.uint8], start: int, end: int) -> int:
    """Hash data[start:end]."""
    base = address_of(data)
    return murmur_at(base + start, base + end, base + len(data))


@nb.njit(nogil=True, cache=True)
def hash_slices(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """Hash data[starts[i]:ends[i]] for every i."""
    out = np.empty(len(starts), np.uint64)
    base = address_of(data)
    limit = base + len(data)
    for i in range(len(starts)):
        out[i] = murmur_at(base + starts[i], base + ends[i], limit)
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
