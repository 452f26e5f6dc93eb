"""Hashes of tokens: MurmurHash64A or FarmHash's Fingerprint64, by configuration, and those of typed numbers."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from features import kernels

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Float32s = npt.NDArray[np.float32]

MURMUR, FARM = "murmur64a/0xc70f6907", "farmhash/fingerprint64"

_K0 = np.uint64(0xC3A5C85C97CB3127)
_K1 = np.uint64(0xB492B66FBE98F273)
_K2 = np.uint64(0x9AE16A3B2F90404F)
_SHIFT = np.uint64(47)


@nb.njit(nogil=True, cache=True, inline="always")
def _fetch64(data: Bytes, at: int) -> int:
    word = np.uint64(0)
    for i in range(8):
        word |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return word


@nb.njit(nogil=True, cache=True, inline="always")
def _fetch32(data: Bytes, at: int) -> int:
    word = np.uint64(0)
    for i in range(4):
        word |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return word


@nb.njit(nogil=True, cache=True, inline="always")
def _rotate(value: int, shift: int) -> int:
    return (np.uint64(value) >> np.uint64(shift)) | (np.uint64(value) << np.uint64(64 - shift))


@nb.njit(nogil=True, cache=True, inline="always")
def _mix16(u: int, v: int, multiplier: int) -> int:
    a = (np.uint64(u) ^ np.uint64(v)) * np.uint64(multiplier)
    a ^= a >> _SHIFT
    b = (np.uint64(v) ^ a) * np.uint64(multiplier)
    b ^= b >> _SHIFT
    return b * np.uint64(multiplier)


@nb.njit(nogil=True, cache=True)
def _short(data: Bytes, s: int, n: int) -> int:
    """Up to 16 bytes."""
    if n >= 8:
        multiplier = _K2 + np.uint64(n) * np.uint64(2)
        a = _fetch64(data, s) + _K2
        b = _fetch64(data, s + n - 8)
        c = _rotate(b, 37) * multiplier + a
        d = (_rotate(a, 25) + b) * multiplier
        return _mix16(c, d, multiplier)
    if n >= 4:
        multiplier = _K2 + np.uint64(n) * np.uint64(2)
        a = _fetch32(data, s)
        return _mix16(np.uint64(n) + (a << np.uint64(3)), _fetch32(data, s + n - 4), multiplier)
    if n > 0:
        first, middle, last = np.uint64(data[s]), np.uint64(data[s + (n >> 1)]), np.uint64(data[s + n - 1])
        y = first + (middle << np.uint64(8))
        z = np.uint64(n) + (last << np.uint64(2))
        mixed = (y * _K2) ^ (z * _K0)
        return (mixed ^ (mixed >> _SHIFT)) * _K2
    return _K2


@nb.njit(nogil=True, cache=True)
def _middle(data: Bytes, s: int, n: int) -> int:
    """17 to 64 bytes."""
    multiplier = _K2 + np.uint64(n) * np.uint64(2)
    if n <= 32:
        a = _fetch64(data, s) * _K1
        b = _fetch64(data, s + 8)
        c = _fetch64(data, s + n - 8) * multiplier
        d = _fetch64(data, s + n - 16) * _K2
        return _mix16(_rotate(a + b, 43) + _rotate(c, 30) + d, a + _rotate(b + _K2, 18) + c, multiplier)
    a = _fetch64(data, s) * _K2
    b = _fetch64(data, s + 8)
    c = _fetch64(data, s + n - 8) * multiplier
    d = _fetch64(data, s + n - 16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _mix16(y, a + _rotate(b + _K2, 18) + c, multiplier)
    e = _fetch64(data, s + 16) * multiplier
    f = _fetch64(data, s + 24)
    g = (y + _fetch64(data, s + n - 32)) * multiplier
    h = (z + _fetch64(data, s + n - 24)) * multiplier
    return _mix16(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, multiplier)


@nb.njit(nogil=True, cache=True)
def _weak(data: Bytes, s: int, a: int, b: int) -> tuple[int, int]:
    """Two words out of 32 bytes and two seeds."""
    w, x = _fetch64(data, s), _fetch64(data, s + 8)
    y, z = _fetch64(data, s + 16), _fetch64(data, s + 24)
    a = np.uint64(a) + w
    b = _rotate(np.uint64(b) + a + z, 21)
    c = a
    a = a + x + y
    b = b + _rotate(a, 44)
    return a + z, b + c


@nb.njit(nogil=True, cache=True)
def fingerprint64(data: Bytes, start: int, end: int) -> int:
    """FarmHash Fingerprint64 of data[start:end]."""
    n = end - start
    if n <= 16:
        return _short(data, start, n)
    if n <= 64:
        return _middle(data, start, n)
    seed = np.uint64(81)
    x = seed
    y = seed * _K1 + np.uint64(113)
    z = y * _K2 + np.uint64(113)
    z = (z ^ (z >> _SHIFT)) * _K2
    v0, v1, w0, w1 = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    x = x * _K2 + _fetch64(data, start)
    at = start
    tail = start + ((n - 1) // 64) * 64
    last = tail + ((n - 1) & 63) - 63
    while at != tail:
        x = _rotate(x + y + v0 + _fetch64(data, at + 8), 37) * _K1
        y = _rotate(y + v1 + _fetch64(data, at + 48), 42) * _K1
        x ^= w1
        y += v0 + _fetch64(data, at + 40)
        z = _rotate(z + w0, 33) * _K1
        v0, v1 = _weak(data, at, v1 * _K1, x + w0)
        w0, w1 = _weak(data, at + 32, z + w1, y + _fetch64(data, at + 16))
        x, z = z, x
        at += 64
    multiplier = _K1 + ((z & np.uint64(0xFF)) << np.uint64(1))
    at = last
    w0 += np.uint64((n - 1) & 63)
    v0 += w0
    w0 += v0
    x = _rotate(x + y + v0 + _fetch64(data, at + 8), 37) * multiplier
    y = _rotate(y + v1 + _fetch64(data, at + 48), 42) * multiplier
    x ^= w1 * np.uint64(9)
    y += v0 * np.uint64(9) + _fetch64(data, at + 40)
    z = _rotate(z + w0, 33) * multiplier
    v0, v1 = _weak(data, at, v1 * multiplier, x + w0)
    w0, w1 = _weak(data, at + 32, z + w1, y + _fetch64(data, at + 16))
    x, z = z, x
    front = _mix16(v0, w0, multiplier) + (y ^ (y >> _SHIFT)) * _K0 + z
    return _mix16(front, _mix16(v1, w1, multiplier) + x, multiplier)


@nb.njit(nogil=True, cache=True)
def farm_tokens(data: Bytes, starts: Int64s, ends: Int64s, buckets: int) -> Int64s:
    """Fingerprint64 of every token, modulo `buckets` as unsigned numbers."""
    out = np.empty(len(starts), np.int64)
    for i in range(len(starts)):
        out[i] = np.int64(fingerprint64(data, starts[i], ends[i]) % np.uint64(buckets))
    return out


def hash_floats(values: Float32s, buckets: int) -> Int64s:
    """libstdc++'s std::hash<float>: Murmur over the four bytes, 0 for both zeros (feature_generation.md 2.4).

    >>> hash_floats(np.array([10, 20, 30, -0.0], np.float32), 100).tolist()
    [39, 63, 46, 0]
    """
    ends = np.arange(4, 4 * len(values) + 4, 4, dtype=np.int64)
    hashed = kernels.hash_tokens(np.ascontiguousarray(values).view(np.uint8), ends - 4, ends, buckets)
    return np.where(values == 0, 0, hashed)


def hash_integers(values: Int64s, buckets: int) -> Int64s:
    """std::hash<int64>: the value itself as an unsigned number, modulo `buckets`.

    >>> hash_integers(np.array([7, 107, -1]), 100).tolist()
    [7, 7, 15]
    """
    return (values.view(np.uint64) % np.uint64(buckets)).astype(np.int64)
