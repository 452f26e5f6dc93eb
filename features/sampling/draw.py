"""The randomness of one batch: a function of seed, epoch and place in the data, so that a resume draws the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stream.cursor import Cursor, PartitionKey


@dataclass(frozen=True, kw_only=True, slots=True)
class Draw:
    """What a batch's draws are keyed by; `place` names its rows among all rows of an epoch."""

    seed: int = 0
    epoch: int = 0
    place: str = ""
    evaluating: bool = False

    @classmethod
    def after(cls, cursors: Mapping[PartitionKey, Cursor], *, seed: int, epoch: int, evaluating: bool = False) -> Draw:
        """Of the cut that moved the partitions to `cursors`.

        Only places count, not paths and digests: a copy of the files elsewhere draws the same.
        """
        places = [f"{key[1]}/{cursors[key].offset}/{cursors[key].row}" for key in sorted(cursors)]
        return cls(seed=seed, epoch=epoch, place=" ".join(places), evaluating=evaluating)

    def generator(self, purpose: str) -> np.random.Generator:
        """A generator of its own for each purpose, so that one more draw of one changes no other.

        >>> draw = Draw(seed=1, place="0/3/0")
        >>> bool(draw.generator("mask").integers(1000) == draw.generator("mask").integers(1000))
        True
        """
        text = f"{self.seed}\n{self.epoch}\n{int(self.evaluating)}\n{self.place}\n{purpose}"
        key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
        return np.random.Generator(np.random.Philox(key=key))
