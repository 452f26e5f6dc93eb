"""Bucketizers: tokens or numbers become row ids (reference: feature_generation.md 2.4 and 2.5)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from features import hashes, kernels
from features.bounds import reached
from features.elements import Int64s, Tokens, as_tokens, text_tokens, to_floats
from features.errors import FeatureConfigError
from features.spec import MAX_RAW_ID

logger = logging.getLogger(__name__)

Status = npt.NDArray[np.uint8] | None
"""Per element: kernels.OK, MALFORMED or OUT_OF_RANGE; None: all are OK."""

RAW_ID_BUCKETS = MAX_RAW_ID + 1


class Bucketizer(Protocol):
    """Maps what rows hold to ids in 0 ... size-1."""

    @property
    def size(self) -> int:
        """How many different ids there are."""
        ...

    @property
    def total(self) -> bool:
        """Every element has an id."""
        ...

    def __call__(self, values: Int64s | Tokens, *, check: bool = True) -> tuple[Int64s, Status]:
        """The id of every element, and which elements have none; numbers need no look where that is known."""
        ...

    def unknown(self, values: Int64s | Tokens, ids: Int64s) -> int:
        """How many of the values are no word and no number of the feature; `ids` are what was made of them."""
        ...

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        ...


@dataclass(frozen=True, slots=True)
class Encoded:
    """Ids that are given as such: integers 0 ... size-1; anything else is no id."""

    size: int
    total: ClassVar[bool] = False

    def __call__(self, values: Int64s | Tokens, *, check: bool = True) -> tuple[Int64s, Status]:
        if not isinstance(values, Tokens):
            if not check or kernels.all_at_most(np.ascontiguousarray(values).view(np.uint64), self.size - 1):
                return values, None
            return values, self._beyond(values).astype(np.uint8) * np.uint8(kernels.OUT_OF_RANGE)
        ids, status = kernels.parse_integers(values.data, values.starts, values.ends, False)
        status[self._beyond(ids) & (status == kernels.OK)] = kernels.OUT_OF_RANGE
        return ids, status

    def _beyond(self, ids: Int64s) -> npt.NDArray[np.bool_]:
        return (ids < 0) | (ids > self.size - 1)

    def unknown(self, values: Int64s | Tokens, ids: Int64s) -> int:
        """None: every value has an id of its own."""
        return 0

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        return {"encoded": self.size}


@dataclass(frozen=True, slots=True)
class Hashed:
    """Hash of the token, or of the number in decimal, modulo size: MurmurHash64A, or FarmHash's Fingerprint64."""

    size: int
    farm: bool = False
    total: ClassVar[bool] = True

    def __call__(self, values: Int64s | Tokens, *, check: bool = True) -> tuple[Int64s, Status]:
        tokens = as_tokens(values)
        hash_all = hashes.farm_tokens if self.farm else kernels.hash_tokens
        return hash_all(tokens.data, tokens.starts, tokens.ends, self.size), None

    def unknown(self, values: Int64s | Tokens, ids: Int64s) -> int:
        """None: every value has an id of its own."""
        return 0

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        return {"hash": hashes.FARM if self.farm else hashes.MURMUR, "buckets": self.size}


@dataclass(frozen=True, slots=True)
class HashedFloats:
    """`fg_value_type: "float"`: tokens are read as float32, and their four bytes are hashed."""

    size: int
    total: ClassVar[bool] = False

    def __call__(self, values: Int64s | Tokens, *, check: bool = True) -> tuple[Int64s, Status]:
        numbers, status = to_floats(as_tokens(values))
        with np.errstate(over="ignore"):
            narrow = numbers.astype(np.float32)
        return hashes.hash_floats(narrow, self.size), status

    def unknown(self, values: Int64s | Tokens, ids: Int64s) -> int:
        """None: every value has an id of its own."""
        return 0

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        return {"hash": "std::hash<float>", "buckets": self.size}


@dataclass(frozen=True, slots=True)
class HashedIntegers:
    """`fg_value_type: "int64"`: the number itself, truncated towards zero, as an unsigned number modulo size."""

    size: int
    total: ClassVar[bool] = False

    def __call__(self, values: Int64s | Tokens, *, check: bool = True) -> tuple[Int64s, Status]:
        if not isinstance(values, Tokens):
            return hashes.hash_integers(values, self.size), None
        numbers, status = truncated(values)
        return hashes.hash_integers(numbers, self.size), status

    def unknown(self, values: Int64s | Tokens, ids: Int64s) -> int:
        """None: every value has an id of its own."""
        return 0

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        return {"hash": "std::hash<int64>", "buckets": self.size}


def truncated(values: Tokens) -> tuple[Int64s, npt.NDArray[np.uint8]]:
    """Numbers without their fractions; what is none, or beyond int64, has a status."""
    numbers, status = kernels.parse_integers(values.data, values.starts, values.ends, True)
    other = np.flatnonzero(status == kernels.MALFORMED)
    if len(other):
        floats, states = to_floats(Tokens(values.data, values.starts[other], values.ends[other]))
        inside = np.abs(floats) < 2.0**63
        numbers[other] = np.where(inside, floats, 0).astype(np.int64)
        status[other] = np.where(inside | (states != kernels.OK), states, kernels.OUT_OF_RANGE)
    return numbers, status


@dataclass(frozen=True, slots=True)
class Numbered:
    """`num_buckets`: the integer itself, or 0 where it is out of range; a token that is no integer has no id.

    `typed` takes any number, truncated towards zero.
    """

    size: int
    typed: bool = False
    total: ClassVar[bool] = False

    def __call__(self, values: Int64s | Tokens, *, check: bool = True) -> tuple[Int64s, Status]:
        if not isinstance(values, Tokens):
            return self._inside(values), None
        ids, status = self._read(values)
        status[status == kernels.OUT_OF_RANGE] = kernels.OK
        return self._inside(ids), status

    def _read(self, tokens: Tokens) -> tuple[Int64s, npt.NDArray[np.uint8]]:
        return (
            truncated(tokens) if self.typed else kernels.parse_integers(tokens.data, tokens.starts, tokens.ends, True)
        )

    def _inside(self, ids: Int64s) -> Int64s:
        outside = (ids < 0) | (ids >= self.size)
        return np.where(outside, 0, ids) if outside.any() else ids

    def unknown(self, values: Int64s | Tokens, ids: Int64s) -> int:
        """Numbers out of range, which share row 0 with 0."""
        zeros = np.flatnonzero(ids == 0)
        if not len(zeros):
            return 0
        if not isinstance(values, Tokens):
            return int(np.count_nonzero(values[zeros]))
        numbers, status = self._read(Tokens(values.data, values.starts[zeros], values.ends[zeros]))
        return int(np.count_nonzero((numbers != 0) | (status == kernels.OUT_OF_RANGE)))

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        return {"num_buckets": self.size, **({"typed": True} if self.typed else {})}


class Vocabulary:
    """Exact match in a list of words; others get `missing`.

    >>> Vocabulary({"abc": 1, "efg": 2}, missing=0, size=3)(text_tokens(["efg", "x"]))[0].tolist()
    [2, 0]
    """

    total = True

    def __init__(self, words: Mapping[str, int], *, missing: int, size: int) -> None:
        self.size = size
        self._missing = missing
        self._words = dict(words)
        self._tokens = text_tokens(list(words))
        self._indices = np.array(list(words.values()), np.int64)
        capacity = 1 << max(4, (2 * len(words)).bit_length())
        self._slots = np.full(capacity, -1, np.int32)
        kernels.fill_slots(self._tokens.data, self._tokens.starts, self._tokens.ends, self._slots)

    def __call__(self, values: Int64s | Tokens, *, check: bool = True) -> tuple[Int64s, Status]:
        """The index of every word, and no faults."""
        tokens, words = as_tokens(values), self._tokens
        ids = kernels.look_up(
            tokens.data, tokens.starts, tokens.ends, words.data, words.starts, words.ends,
            self._slots, self._indices, self._missing,
        )  # fmt: skip
        return ids, None

    def unknown(self, values: Int64s | Tokens, ids: Int64s) -> int:
        """Values that got the row of unknown words."""
        return int(np.count_nonzero(ids == self._missing))

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        content = "\n".join(f"{index} {word!r}" for word, index in sorted(self._words.items()))
        return {"vocabulary": sha256(content.encode()).hexdigest(), "missing": self._missing, "size": self.size}


def listed(name: str, words: Sequence[str], default: str, missing: int | None) -> Vocabulary:
    """`vocab_list`: without `default_bucketize_value`, rows 0 and 1 are the default's and the unknown words'."""
    if missing is not None:
        if missing >= len(words):
            raise FeatureConfigError(
                f"feature {name!r}: default_bucketize_value {missing} must be less than the "
                f"{len(words)} words of its vocabulary"
            )
        return Vocabulary(_numbered(name, words, 0), missing=missing, size=len(words))
    table = _numbered(name, words, 2)
    return Vocabulary({default: 0, "<OOV>": 1} | table, missing=1, size=len(words) + 2)


def mapped(name: str, words: Mapping[str, int], default: str, missing: int | None) -> Vocabulary:
    """`vocab_dict`: without `default_bucketize_value`, words start at 2 and the default is forced to 0."""
    size = max(words.values()) + 1
    if missing is not None:
        if missing >= size:
            raise FeatureConfigError(
                f"feature {name!r}: default_bucketize_value {missing} must not exceed the largest index "
                f"{size - 1} of its vocabulary"
            )
        return Vocabulary(words, missing=missing, size=size)
    if min(words.values()) < 2:
        logger.warning(
            "feature=%s vocab_dict has indices below 2, whose rows the default (0) and unknown words (1) share; "
            "set default_bucketize_value, or start at 2",
            name,
        )
    return Vocabulary({**words, **({default: 0} if default else {})}, missing=1, size=size)


def read_vocabulary(name: str, text: str, missing: int) -> Vocabulary:
    """`vocab_file`: a word per line, or a word, a blank and its index."""
    lines = text.splitlines()
    if not lines:
        raise FeatureConfigError(f"feature {name!r}: its vocab_file is empty")
    pairs = [line.rsplit(" ", 1) for line in lines]
    if all(len(pair) == 2 and pair[1].isascii() and pair[1].isdigit() for pair in pairs):
        words = {word: int(index) for word, index in pairs}
        _refuse_twice(name, "vocab_file", [word for word, _ in pairs])
        return mapped(name, words, "", missing)
    _refuse_twice(name, "vocab_file", lines)
    return listed(name, lines, "", missing)


def _refuse_twice(name: str, field: str, words: Sequence[str]) -> None:
    if len(set(words)) != len(words):
        word, count = Counter(words).most_common(1)[0]
        raise FeatureConfigError(f"feature {name!r}: {field} holds {word!r} {count} times; keep one")


def _numbered(name: str, words: Sequence[str], start: int) -> dict[str, int]:
    _refuse_twice(name, "vocab_list", words)
    return {word: start + index for index, word in enumerate(words)}


def ascending(name: str, bounds: Sequence[float]) -> Boundaries:
    """Boundaries of a configuration; raise FeatureConfigError where they are not finite or do not ascend."""
    given = np.array(bounds, np.float32)
    if not np.isfinite(given).all() or (np.diff(given) < 0).any():
        raise FeatureConfigError(f"feature {name!r}: boundaries must be finite and ascending")
    return Boundaries(tuple(float(bound) for bound in given))


@dataclass(frozen=True, slots=True)
class Boundaries:
    """The number of boundaries <= value, compared in float32."""

    bounds: tuple[float, ...]

    @property
    def size(self) -> int:
        """One id more than boundaries."""
        return len(self.bounds) + 1

    def of(self, values: npt.NDArray[np.float32]) -> Int64s:
        """The bucket of every value."""
        return reached(values, np.array(self.bounds, np.float32))

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        return {"boundaries": [float(np.float32(bound)) for bound in self.bounds]}
