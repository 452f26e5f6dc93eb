"""Where an id lives: MurmurHash3 as fbgemm's `zero_collision_hash` computes it, and the probe of a bucket.

A table of n rows has k buckets of n/k rows; an id's bucket is id mod k. The bucket's last row is reserved for misses,
the others are probed linearly and circularly from the hash, at most `max_probe` of them.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, inline="always")
def murmur3_2x64(x):  # type: ignore[no-untyped-def]
    """The two halves of MurmurHash3_x64_128 of the 16 bytes (x, 0), seed 0, xor-ed."""
    k = np.uint64(x) * np.uint64(0x87C37B91114253D5)
    k = (k << np.uint64(31)) | (k >> np.uint64(33))
    h1 = k * np.uint64(0x4CF5AD432745937F)
    h1 = (h1 << np.uint64(27)) | (h1 >> np.uint64(37))
    h1 = h1 * np.uint64(5) + np.uint64(0x52DCE729)
    h2 = h1 * np.uint64(5) + np.uint64(0x38495AB5)
    h1 ^= np.uint64(16)
    h2 ^= np.uint64(16)
    h1 += h2
    h2 += h1
    h1 ^= h1 >> np.uint64(33)
    h1 *= np.uint64(0xFF51AFD7ED558CCD)
    h1 ^= h1 >> np.uint64(33)
    h1 *= np.uint64(0xC4CEB9FE1A85EC53)
    h1 ^= h1 >> np.uint64(33)
    h2 ^= h2 >> np.uint64(33)
    h2 *= np.uint64(0xFF51AFD7ED558CCD)
    h2 ^= h2 >> np.uint64(33)
    h2 *= np.uint64(0xC4CEB9FE1A85EC53)
    h2 ^= h2 >> np.uint64(33)
    h1 += h2
    return h1 ^ (h1 + h2)


@njit(cache=True, nogil=True, inline="always")
def probe_start(row_id, usable):  # type: ignore[no-untyped-def]
    """The first row, within its bucket, where an id is looked for."""
    return np.int64(murmur3_2x64(row_id) % np.uint64(usable))


@njit(cache=True, nogil=True)
def start_rows(ids, usable):  # type: ignore[no-untyped-def]
    """`probe_start` of each id."""
    starts = np.empty(ids.size, np.int64)
    for i in range(ids.size):
        starts[i] = probe_start(ids[i], usable)
    return starts
