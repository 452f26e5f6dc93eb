"""Floats as text, as C's "%g" writes them: how a column of floats becomes tokens (feature_generation.md 2.4)."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

Float64s = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_ZERO, _FAST, _SLOW = 0, 1, 2


@nb.njit(nogil=True, cache=True)
def _round(values: Float64s) -> tuple[Int64s, Int64s, npt.NDArray[np.uint8]]:
    """Six significant digits and the exponent of the first; SLOW where doubles cannot decide how to round."""
    digits = np.zeros(len(values), np.int64)
    exponents = np.zeros(len(values), np.int64)
    how = np.zeros(len(values), np.uint8)
    powers = np.array([10.0**k for k in range(23)])
    for i in range(len(values)):
        size = abs(values[i])
        if size == 0 or not np.isfinite(size):
            continue
        how[i] = _SLOW
        if size < 1e-15 or size >= 1e22:
            continue
        exponent = np.int64(np.floor(np.log10(size)))
        for _ in range(2):
            scale = 5 - exponent
            scaled = size * powers[scale] if scale >= 0 else size / powers[-scale]
            if scaled < 99999.5:
                exponent -= 1
            elif scaled >= 999999.5:
                exponent += 1
            else:
                break
        scale = 5 - exponent
        scaled = size * powers[scale] if scale >= 0 else size / powers[-scale]
        whole = np.floor(scaled)
        if abs(scaled - whole - 0.5) < 1e-6 or scaled < 100000 or scaled >= 999999.5:
            continue
        digits[i] = np.int64(np.rint(scaled))
        exponents[i] = exponent
        how[i] = _FAST
    return digits, exponents, how


@nb.njit(nogil=True, cache=True)
def _write(values: Float64s, digits: Int64s, exponents: Int64s) -> tuple[Bytes, Int64s, Int64s]:
    data = np.empty(14 * len(values), np.uint8)
    starts, ends = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
    figures = np.empty(6, np.uint8)
    out = 0
    for i in range(len(values)):
        starts[i] = out
        value, exponent = values[i], exponents[i]
        if np.signbit(value):
            data[out] = 45
            out += 1
        rest = digits[i]
        for k in range(6):
            figures[5 - k] = np.uint8(48 + rest % 10)
            rest //= 10
        count = 6
        while count > 1 and figures[count - 1] == 48:
            count -= 1
        scientific = exponent < -4 or exponent >= 6
        point = 0 if scientific else exponent
        if not scientific and exponent < 0:
            data[out], data[out + 1] = 48, 46
            out += 2
            for _ in range(-exponent - 1):
                data[out] = 48
                out += 1
            point = 6
        for k in range(max(count, point + 1) if point < 6 else count):
            data[out] = figures[k] if k < count else 48
            out += 1
            if k == point and k + 1 < count:
                data[out] = 46
                out += 1
        if scientific:
            data[out], data[out + 1] = 101, 45 if exponent < 0 else 43
            out += 2
            size = abs(exponent)
            if size >= 100:
                data[out] = np.uint8(48 + size // 100)
                out += 1
            data[out], data[out + 1] = np.uint8(48 + size // 10 % 10), np.uint8(48 + size % 10)
            out += 2
        ends[i] = out
    return data[:out], starts, ends


def format_floats(values: npt.NDArray[np.float32] | Float64s) -> tuple[Bytes, Int64s, Int64s]:
    """Write every value with six significant digits: bytes, starts, ends; what is not finite reads "0".

    >>> data, starts, ends = format_floats(np.array([5.2, 1.0, 1e6]))
    >>> [bytes(data[a:b]).decode() for a, b in zip(starts, ends)]
    ['5.2', '1', '1e+06']
    """
    # NumPy's own cast: numba would compile both kernels a second time.
    wide = np.ascontiguousarray(values, np.float64)
    digits, exponents, how = _round(wide)
    for place in np.flatnonzero(how == _SLOW).tolist():
        mantissa, _, exponent = f"{abs(float(wide[place])):.5e}".partition("e")
        digits[place], exponents[place] = int(mantissa.replace(".", "")), int(exponent)
    return _write(wide, digits, exponents)
