"""Numba kernels over Arrow buffers: splitting, parsing, hashing, defaults. No Python object per row."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from stream.hashing import murmur_at
from stream.words import address_of, count_bits, lowest, matches, same, without_lowest

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Float32s = npt.NDArray[np.float32]
Float64s = npt.NDArray[np.float64]
Uint8s = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

OK, MALFORMED, OUT_OF_RANGE, SLOW = 0, 1, 2, 3
"""Status of a parsed token; SLOW: well formed, but more digits than the fast path rounds correctly."""


@nb.njit(nogil=True, cache=True)
def has_either(data: Bytes, low: int, high: int, first: int, second: int) -> bool:
    """Whether either byte is in data[low:high]."""
    base = address_of(data)
    at, end, limit = base + low, base + high, base + len(data)
    while at < end:
        if matches(at, end, limit, first) | matches(at, end, limit, second):
            return True
        at += 64
    return False


@nb.njit(nogil=True, cache=True)
def split(
    starts: Int64s, ends: Int64s, data: Bytes, valid: Bools, first: int, second: int, keep_empty: bool
) -> tuple[Int64s, Int64s, Int32s]:
    """Split every string at either separator; null and "" have no tokens. `valid` is empty where nothing is null.

    Give starts, ends and the number of tokens per row.
    """
    base = address_of(data)
    limit, most = base + len(data), len(starts)
    for row in range(len(starts)):
        for at in range(base + starts[row], base + ends[row], 64):
            end = base + ends[row]
            most += count_bits(matches(at, end, limit, first) | matches(at, end, limit, second))
    token_starts, token_ends = np.empty(most, np.int64), np.empty(most, np.int64)
    lengths = np.zeros(len(starts), np.int32)
    out = 0
    for row in range(len(starts)):
        if starts[row] == ends[row] or (len(valid) and not valid[row]):
            continue
        row_begin, begin, end = out, starts[row], base + ends[row]
        for at in range(base + starts[row], end, 64):
            bits = matches(at, end, limit, first) | matches(at, end, limit, second)
            while bits:
                stop = at - base + lowest(bits)
                bits = without_lowest(bits)
                if keep_empty or stop > begin:
                    token_starts[out], token_ends[out] = begin, stop
                    out += 1
                begin = stop + 1
        if keep_empty or ends[row] > begin:
            token_starts[out], token_ends[out] = begin, ends[row]
            out += 1
        lengths[row] = out - row_begin
    return token_starts[:out], token_ends[:out], lengths


@nb.njit(nogil=True, cache=True)
def parse_integers(data: Bytes, starts: Int64s, ends: Int64s, allow_plus: bool) -> tuple[Int64s, Uint8s]:
    """Parse decimal integers; beyond int64 the status is OUT_OF_RANGE and the value 0."""
    values = np.zeros(len(starts), np.int64)
    status = np.zeros(len(starts), np.uint8)
    for i in range(len(starts)):
        at, end = starts[i], ends[i]
        negative = False
        if at < end and (data[at] == 45 or (allow_plus and data[at] == 43)):
            negative = data[at] == 45
            at += 1
        if at == end:
            status[i] = MALFORMED
            continue
        total = np.uint64(0)
        state = OK
        while at < end:
            digit = np.uint64(data[at]) - np.uint64(48)
            if digit > np.uint64(9):
                state = MALFORMED
                break
            if total > np.uint64(922337203685477580) or (
                total == np.uint64(922337203685477580) and digit > np.uint64(8)
            ):
                state = OUT_OF_RANGE
                total = np.uint64(0)
                at += 1
                while at < end:
                    if data[at] < 48 or data[at] > 57:
                        state = MALFORMED
                    at += 1
                break
            total = total * np.uint64(10) + digit
            at += 1
        if state == OK and total == np.uint64(1 << 63) and not negative:
            state = OUT_OF_RANGE
            total = np.uint64(0)
        status[i] = state
        if state == OK:
            values[i] = -np.int64(total) if negative else np.int64(total)
    return values, status


@nb.njit(nogil=True, cache=True)
def _word(data: Bytes, start: int, end: int, lower: str) -> bool:
    if end - start != len(lower):
        return False
    for i in range(len(lower)):
        char = data[start + i]
        if 65 <= char <= 90:
            char += 32
        if char != ord(lower[i]):
            return False
    return True


@nb.njit(nogil=True, cache=True)
def parse_floats(data: Bytes, starts: Int64s, ends: Int64s) -> tuple[Float64s, Uint8s]:
    """Parse decimal numbers: exact for up to 15 digits and powers of ten up to 22, SLOW beyond, MALFORMED otherwise."""
    values = np.zeros(len(starts), np.float64)
    status = np.zeros(len(starts), np.uint8)
    powers = np.array([10.0**k for k in range(23)])
    for i in range(len(starts)):
        at, end = starts[i], ends[i]
        sign = 1.0
        if at < end and (data[at] == 45 or data[at] == 43):
            if data[at] == 45:
                sign = -1.0
            at += 1
        if _word(data, at, end, "nan"):
            values[i] = np.nan
            continue
        if _word(data, at, end, "inf") or _word(data, at, end, "infinity"):
            values[i] = sign * np.inf
            continue
        mantissa = np.int64(0)
        significant, digits, scale = 0, 0, 0
        seen_point = False
        while at < end:
            char = data[at]
            if 48 <= char <= 57:
                digits += 1
                if mantissa > 0 or char != 48:
                    significant += 1
                if significant <= 17:
                    mantissa = mantissa * 10 + np.int64(char - 48)
                if seen_point:
                    scale -= 1
            elif char == 46 and not seen_point:
                seen_point = True
            else:
                break
            at += 1
        if digits == 0:
            status[i] = MALFORMED
            continue
        if at < end and (data[at] == 101 or data[at] == 69):
            at += 1
            negative = False
            if at < end and (data[at] == 45 or data[at] == 43):
                negative = data[at] == 45
                at += 1
            if at == end:
                status[i] = MALFORMED
                continue
            exponent = 0
            while at < end and 48 <= data[at] <= 57:
                exponent = min(exponent * 10 + np.int64(data[at] - 48), 100000)
                at += 1
            scale += -exponent if negative else exponent
        if at != end:
            status[i] = MALFORMED
            continue
        if significant > 15 or scale < -22 or scale > 22:
            status[i] = SLOW
            continue
        values[i] = sign * (mantissa * powers[scale] if scale >= 0 else mantissa / powers[-scale])
    return values, status


@nb.njit(nogil=True, cache=True)
def format_integers(values: Int64s) -> tuple[Bytes, Int64s, Int64s]:
    """Write every value in decimal: bytes, starts, ends."""
    data = np.empty(20 * len(values), np.uint8)
    starts, ends = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
    scratch = np.empty(20, np.uint8)
    out = 0
    for i in range(len(values)):
        starts[i] = out
        value = values[i]
        rest = np.uint64(value)
        if value < 0:
            data[out] = 45
            out += 1
            rest = np.uint64(0) - rest
        count = 0
        while True:
            scratch[count] = np.uint8(rest % np.uint64(10)) + 48
            rest //= np.uint64(10)
            count += 1
            if rest == 0:
                break
        for k in range(count):
            data[out] = scratch[count - 1 - k]
            out += 1
        ends[i] = out
    return data[:out], starts, ends


@nb.njit(nogil=True, cache=True, error_model="numpy")
def hash_tokens(data: Bytes, starts: Int64s, ends: Int64s, buckets: int) -> Int64s:
    """MurmurHash64A of every token, modulo `buckets` as unsigned numbers."""
    out = np.empty(len(starts), np.int64)
    base, size = address_of(data), np.uint64(buckets)
    limit = base + len(data)
    for i in range(len(starts)):
        out[i] = np.int64(murmur_at(base + starts[i], base + ends[i], limit) % size)
    return out


@nb.njit(nogil=True, cache=True)
def fill_slots(data: Bytes, starts: Int64s, ends: Int64s, slots: Int32s) -> int:
    """Fill an open-addressing table (a power of two, -1 empty) with token numbers; give a repeated token, or -1."""
    mask = np.uint64(len(slots) - 1)
    base = address_of(data)
    limit = base + len(data)
    for i in range(len(starts)):
        a, b = base + starts[i], base + ends[i]
        at = murmur_at(a, b, limit) & mask
        while slots[at] >= 0:
            if same(a, b, base + starts[slots[at]], base + ends[slots[at]]):
                return i
            at = (at + np.uint64(1)) & mask
        slots[at] = i
    return -1


@nb.njit(nogil=True, cache=True)
def look_up(
    data: Bytes,
    starts: Int64s,
    ends: Int64s,
    words: Bytes,
    word_starts: Int64s,
    word_ends: Int64s,
    slots: Int32s,
    indices: Int64s,
    missing: int,
) -> Int64s:
    """The index of every token in a table of words, or `missing`."""
    out = np.empty(len(starts), np.int64)
    mask = np.uint64(len(slots) - 1)
    base, other = address_of(data), address_of(words)
    limit = base + len(data)
    for i in range(len(starts)):
        out[i] = missing
        a, b = base + starts[i], base + ends[i]
        at = murmur_at(a, b, limit) & mask
        while slots[at] >= 0:
            word = slots[at]
            if same(a, b, other + word_starts[word], other + word_ends[word]):
                out[i] = indices[word]
                break
            at = (at + np.uint64(1)) & mask
    return out


@nb.njit(nogil=True, cache=True)
def split_pairs(data: Bytes, starts: Int64s, ends: Int64s) -> Int64s:
    """Where the last ":" of every token is; its end where it has none."""
    out = np.empty(len(starts), np.int64)
    for i in range(len(starts)):
        at = ends[i] - 1
        while at >= starts[i] and data[at] != 58:
            at -= 1
        out[i] = at if at >= starts[i] else ends[i]
    return out


@nb.njit(nogil=True, cache=True)
def fill_empty(
    values: Int64s, weights: Float32s, weighted: bool, lengths: Int32s, fill: Int64s
) -> tuple[Int64s, Float32s, Int32s]:
    """Give rows of length 0 the ids of `fill`, with weight 1."""
    missing = 0
    for row in range(len(lengths)):
        missing += lengths[row] == 0
    total = len(values) + missing * len(fill)
    ids = np.empty(total, np.int64)
    scales = np.empty(total if weighted else 0, np.float32)
    counts = np.empty(len(lengths), np.int32)
    source = out = 0
    for row in range(len(lengths)):
        if lengths[row] == 0:
            counts[row] = len(fill)
            for k in range(len(fill)):
                ids[out] = fill[k]
                if weighted:
                    scales[out] = 1.0
                out += 1
            continue
        counts[row] = lengths[row]
        for _ in range(lengths[row]):
            ids[out] = values[source]
            if weighted:
                scales[out] = weights[source]
            out += 1
            source += 1
    return ids, scales, counts


@nb.njit(nogil=True, cache=True)
def rows_of(flags: Bools, lengths: Int32s) -> Bools:
    """Which rows own a flagged element."""
    out = np.zeros(len(lengths), np.bool_)
    at = 0
    for row in range(len(lengths)):
        for _ in range(lengths[row]):
            if flags[at]:
                out[row] = True
            at += 1
    return out


@nb.njit(nogil=True, cache=True)
def keep_first(lengths: Int32s, limit: int) -> Bools:
    """Which elements are among the first `limit` of their row."""
    total = 0
    for row in range(len(lengths)):
        total += lengths[row]
    out = np.empty(total, np.bool_)
    at = 0
    for row in range(len(lengths)):
        for k in range(lengths[row]):
            out[at] = k < limit
            at += 1
    return out


@nb.njit(nogil=True, cache=True)
def count_kept(lengths: Int32s, keep: Bools) -> Int32s:
    """The length of every row when only the kept elements stay."""
    out = np.zeros(len(lengths), np.int32)
    at = 0
    for row in range(len(lengths)):
        for _ in range(lengths[row]):
            out[row] += keep[at]
            at += 1
    return out


@nb.njit(nogil=True, cache=True)
def all_finite32(bits: npt.NDArray[np.uint32]) -> bool:
    """No NaN and no infinity, on the bits of float32: a sum of floats would not vectorise."""
    found = np.uint32(0)
    for i in range(len(bits)):
        found |= np.uint32((bits[i] & np.uint32(0x7F800000)) == np.uint32(0x7F800000))
    return found == 0


@nb.njit(nogil=True, cache=True)
def all_at_most(values: npt.NDArray[np.uint64], limit: int) -> bool:
    """No value above the limit; negative ids, seen as unsigned, are."""
    found = np.uint64(0)
    top = np.uint64(limit)
    for i in range(len(values)):
        found |= np.uint64(values[i] > top)
    return found == 0
