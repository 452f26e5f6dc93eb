"""Bytes by address: right at every length and place, up to the last byte of the memory."""

from __future__ import annotations

import numpy as np
import pytest

from features import kernels
from stream.hashing import SEED, hash_bytes, hash_slices

MULTIPLIER, WORD = 0xC6A4A7935BD1E995, (1 << 64) - 1


def plain_murmur(data: bytes) -> int:
    """MurmurHash64A as libstdc++ writes it."""
    state = SEED ^ (len(data) * MULTIPLIER & WORD)
    whole = len(data) // 8 * 8
    for at in range(0, whole, 8):
        word = int.from_bytes(data[at : at + 8], "little") * MULTIPLIER & WORD
        word = (word ^ word >> 47) * MULTIPLIER & WORD
        state = (state ^ word) * MULTIPLIER & WORD
    if data[whole:]:
        state = (state ^ int.from_bytes(data[whole:], "little")) * MULTIPLIER & WORD
    state = (state ^ state >> 47) * MULTIPLIER & WORD
    return state ^ state >> 47


def test_hashes_of_every_length_and_place_equal_plain_ones() -> None:
    data = np.random.default_rng(0).integers(0, 256, 40, np.uint8)
    places = [(start, end) for start in range(41) for end in range(start, 41)]
    starts, ends = (np.array(side) for side in zip(*places, strict=True))
    expected = [plain_murmur(data[start:end].tobytes()) for start, end in places]
    assert hash_slices(data, starts, ends).tolist() == expected
    assert [hash_bytes(data[start:end].tobytes()) for start, end in places[:99]] == expected[:99]


@pytest.mark.parametrize("keep_empty", [False, True])
def test_splits_of_every_length_equal_plain_ones(keep_empty: bool) -> None:
    rng = np.random.default_rng(1)
    texts = ["".join(rng.choice(list("ab,;"), size)) for size in range(200)]
    data = np.frombuffer("".join(texts).encode(), np.uint8)
    ends = np.cumsum([len(text) for text in texts])
    starts = ends - [len(text) for text in texts]
    expected = [text.replace(";", ",").split(",") if text else [] for text in texts]
    if not keep_empty:
        expected = [[piece for piece in pieces if piece] for pieces in expected]
    begin, stop, lengths = kernels.split(starts, ends, data, np.empty(0, np.bool_), ord(","), ord(";"), keep_empty)
    assert lengths.tolist() == [len(pieces) for pieces in expected]
    assert [bytes(data[a:b]).decode() for a, b in zip(begin, stop, strict=True)] == sum(expected, [])
