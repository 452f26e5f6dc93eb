"""One bit per row in words of 64: marking, releasing, listing."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, inline="always")
def get_bit(words, bit):  # type: ignore[no-untyped-def]
    return (words[bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1)


@njit(cache=True, nogil=True, inline="always")
def set_bit(words, bit):  # type: ignore[no-untyped-def]
    words[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)


@njit(cache=True, nogil=True)
def unpin(pinned, pinned_words, pinned_count):  # type: ignore[no-untyped-def]
    """Release every pinned row."""
    for i in range(pinned_count[0]):
        pinned[pinned_words[i]] = 0
    pinned_count[0] = 0


@njit(cache=True, nogil=True, inline="always")
def _ones(word):  # type: ignore[no-untyped-def]
    """How many bits are set; LLVM makes one instruction of it."""
    x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@njit(cache=True, nogil=True)
def marked_rows(words, base, rows, out):  # type: ignore[no-untyped-def]
    """The set bits of [base, base + rows), ascending, relative to base (a multiple of 64); returns how many."""
    n = 0
    first = base >> 6
    for w in range((rows + 63) >> 6):
        word = words[first + w]
        while word:
            lowest = word & (~word + np.uint64(1))
            out[n] = w * 64 + np.int64(_ones(lowest - np.uint64(1)))
            word ^= lowest
            n += 1
    return n


@njit(cache=True, nogil=True)
def count_marked(words, base, rows):  # type: ignore[no-untyped-def]
    """How many bits of [base, base + rows) are set."""
    n = np.int64(0)
    first = base >> 6
    for w in range((rows + 63) >> 6):
        n += np.int64(_ones(words[first + w]))
    return n
