"""Weighted draws from many candidates in constant time each: an alias table, and exact exclusion."""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]

_LITTLE_LEFT = 0.01
"""With a smaller share of the weight left, drawing and rejecting takes too many rounds."""


@nb.njit(nogil=True, cache=True)
def _alias(weights: Float64s, total: float) -> tuple[Float64s, Int64s]:
    """Walker's table: slot i is i with probability `keep[i]`, else `alias[i]`."""
    count = len(weights)
    keep = weights * (count / total)
    alias = np.arange(count)
    small, large = np.empty(count, np.int64), np.empty(count, np.int64)
    smalls = larges = 0
    for i in range(count):
        if keep[i] < 1.0:
            small[smalls] = i
            smalls += 1
        else:
            large[larges] = i
            larges += 1
    while smalls and larges:
        smalls -= 1
        low, high = small[smalls], large[larges - 1]
        alias[low] = high
        keep[high] -= 1.0 - keep[low]
        if keep[high] < 1.0:
            larges -= 1
            small[smalls] = high
            smalls += 1
    # What rounding left over is whole; only a candidate without weight must never be drawn.
    for i in range(smalls):
        keep[small[i]] = 1.0 if weights[small[i]] > 0.0 else 0.0
    for i in range(larges):
        keep[large[i]] = 1.0
    return keep, alias


@dataclass(frozen=True, slots=True, eq=False)
class Picked:
    """Candidates by number; `relaxed` of them are excluded ones, because nothing else was left."""

    items: Int64s
    relaxed: int


class Pool:
    """Candidates 0 … n-1 with weights of at least 0, of which some are greater."""

    def __init__(self, weights: Float64s) -> None:
        """Raise ValueError where no weight is positive."""
        self.weights = np.ascontiguousarray(weights, np.float64)
        self.total = float(self.weights.sum())
        if not self.total > 0:
            raise ValueError("no candidate has a positive weight")
        self.keep, self.alias = _alias(self.weights, self.total)
        heaviest = int(np.argmax(self.weights))
        if (stray := (self.keep == 0) & (self.alias == np.arange(len(self.weights)))).any():
            self.alias[stray] = heaviest

    def draw(self, count: int, random: np.random.Generator) -> Int64s:
        """With replacement, by weight."""
        slots = random.integers(len(self.weights), size=count)
        return np.where(random.random(count) < self.keep[slots], slots, self.alias[slots])

    def draw_without(self, count: int, excluded: Int64s, own: Int64s, random: np.random.Generator) -> Picked:
        """With replacement, by weight, none of `excluded` (distinct candidates).

        Where those are all that has weight, draw i only avoids `own[i]` (-1: nothing), and is counted as relaxed.
        """
        taken = float(self.weights[excluded].sum())
        left = self.total - taken
        positive = np.count_nonzero(self.weights[excluded]) < np.count_nonzero(self.weights)
        if not positive:
            return Picked(self._draw_relaxed(count, own, random), count)
        if left < _LITTLE_LEFT * self.total:
            return Picked(self._draw_complement(count, excluded, random), 0)
        return Picked(self._draw_rejecting(count, np.sort(excluded), random), 0)

    def _draw_rejecting(self, count: int, excluded: Int64s, random: np.random.Generator) -> Int64s:
        found = np.empty(0, np.int64)
        while len(found) < count:
            drawn = self.draw(2 * (count - len(found)) + 8, random)
            found = np.concatenate((found, drawn[~is_in(drawn, excluded)]))
        return found[:count]

    def _draw_complement(self, count: int, excluded: Int64s, random: np.random.Generator) -> Int64s:
        weights = self.weights.copy()
        weights[excluded] = 0.0
        ends = np.cumsum(weights)
        last = int(np.flatnonzero(weights)[-1])
        drawn = np.searchsorted(ends, random.random(count) * ends[-1], side="right")
        found: Int64s = np.minimum(drawn, last).astype(np.int64)
        return found

    def _draw_relaxed(self, count: int, own: Int64s, random: np.random.Generator) -> Int64s:
        found = np.empty(count, np.int64)
        for item in np.unique(own).tolist():
            rows = np.flatnonzero(own == item)
            others = np.count_nonzero(self.weights) - int(item >= 0 and self.weights[item] > 0)
            avoid = np.array([item] if item >= 0 and others else [], np.int64)
            found[rows] = self._draw_complement(len(rows), avoid, random)
        return found


@nb.njit(nogil=True, cache=True)
def _next(state: npt.NDArray[np.uint64]) -> float:
    """SplitMix64, as a number in [0, 1)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    word = state[0]
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((word ^ (word >> np.uint64(31))) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@nb.njit(nogil=True, cache=True)
def _taken(out: Int64s, made: int, positive: int, item: int) -> bool:
    if item == positive:
        return True
    for k in range(made):  # noqa: SIM110
        if out[k] == item:
            return True
    return False


@nb.njit(nogil=True, cache=True)
def _scan(weights: Float64s, out: Int64s, made: int, positive: int, share: float) -> int:
    """By weight from what is not taken, looking at every candidate."""
    total, last = 0.0, -1
    for item in range(len(weights)):
        if weights[item] > 0.0 and not _taken(out, made, positive, item):
            total += weights[item]
            last = item
    at = share * total
    for item in range(len(weights)):
        if weights[item] > 0.0 and not _taken(out, made, positive, item):
            at -= weights[item]
            if at < 0.0:
                return item
    return last


@nb.njit(nogil=True, cache=True)
def distinct_rows(
    weights: Float64s, keep: Float64s, alias: Int64s, positives: Int64s, count: int, seed: int
) -> tuple[Int64s, int]:
    """`count` candidates for each row, by weight without replacement, not its positive (-1: none has to be avoided).

    Where too few have weight, they repeat in turn (the positive, where it is alone); also how many did.
    """
    rows, heavy, repeated = len(positives), 0, 0
    for item in range(len(weights)):
        heavy += weights[item] > 0.0
    out = np.empty((rows, count), np.int64)
    state = np.array([seed], np.uint64)
    for row in range(rows):
        positive = positives[row]
        free = heavy - (positive >= 0 and weights[positive] > 0.0)
        found = min(free, count)
        for made in range(found):
            item = positive
            for _ in range(32):
                slot = int(_next(state) * len(weights))
                item = slot if _next(state) < keep[slot] else alias[slot]
                if not _taken(out[row], made, positive, item):
                    break
            if _taken(out[row], made, positive, item):
                item = _scan(weights, out[row], made, positive, _next(state))
            out[row, made] = item
        for made in range(found, count):
            out[row, made] = out[row, made % found] if found else positive
            repeated += 1
    return out, repeated


def is_in(values: Int64s, ascending: Int64s) -> npt.NDArray[np.bool_]:
    """Which values are among sorted ones."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return np.asarray(ascending[at] == values, np.bool_)
