"""Draws by weight: their frequencies, and what they must never draw."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features.sampling.pool import Pool, distinct_rows

weights_of = st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0, 1000.0]), min_size=1, max_size=12).filter(any)


def _random(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=seed))


def _nothing() -> np.ndarray:
    return np.empty(0, np.int64)


@pytest.mark.parametrize("weights", [[1.0, 1.0], [1.0, 2.0, 3.0, 4.0], [5.0, 0.0, 5.0], [1e-3, 1.0, 1e3]])
def test_draw_follows_the_weights(weights: list[float]) -> None:
    draws = 200_000
    counts = np.bincount(Pool(np.array(weights)).draw(draws, _random()), minlength=len(weights))
    want = np.array(weights) / sum(weights)
    # Five standard deviations.
    assert (np.abs(counts / draws - want) <= 5 * np.sqrt(want * (1 - want) / draws)).all()


@settings(deadline=None)
@given(weights=weights_of, seed=st.integers(0, 2**32))
def test_draw_never_gives_a_candidate_without_weight(weights: list[float], seed: int) -> None:
    drawn = Pool(np.array(weights)).draw(100, _random(seed))
    assert (np.array(weights)[drawn] > 0).all()


@settings(deadline=None)
@given(weights=weights_of, data=st.data())
def test_draw_without_gives_none_of_the_excluded_unless_nothing_else_has_weight(weights: list[float], data) -> None:
    excluded = sorted(data.draw(st.sets(st.integers(0, len(weights) - 1))))
    picked = Pool(np.array(weights)).draw_without(20, np.array(excluded, np.int64), np.full(20, -1), _random())
    assert len(picked.items) == 20
    left = {i for i, weight in enumerate(weights) if weight > 0} - set(excluded)
    assert set(picked.items.tolist()) <= (left or set(range(len(weights))))
    assert picked.relaxed == (0 if left else 20)


def test_draw_without_relaxes_for_the_row_only() -> None:
    pool = Pool(np.ones(3))
    own = np.array([0, 0, 1, 2] * 10)
    picked = pool.draw_without(40, np.arange(3), own, _random())
    assert picked.relaxed == 40
    assert (picked.items != own).all()


def test_draw_without_gives_the_only_item_where_it_is_alone() -> None:
    picked = Pool(np.ones(1)).draw_without(2, np.zeros(1, np.int64), np.zeros(2, np.int64), _random())
    assert picked.items.tolist() == [0, 0]
    assert picked.relaxed == 2


def test_draw_without_finds_the_little_that_is_left() -> None:
    weights = np.ones(10_000)
    weights[0] = 1e9
    weights[7] = 5.0
    counts = np.bincount(Pool(weights).draw_without(50_000, _nothing() + 0, np.full(50_000, -1), _random()).items)
    assert counts[0] > 49_000
    rest = Pool(weights).draw_without(50_000, np.zeros(1, np.int64), np.full(50_000, -1), _random()).items
    assert (rest != 0).all()
    assert 50_000 * 5 / 10_004 * 0.5 < np.count_nonzero(rest == 7) < 50_000 * 5 / 10_004 * 2


def test_pool_refuses_candidates_without_any_weight() -> None:
    with pytest.raises(ValueError, match="no candidate has a positive weight"):
        Pool(np.zeros(3))


@settings(deadline=None)
@given(weights=weights_of, count=st.integers(0, 8), positive=st.integers(-1, 3), seed=st.integers(0, 2**62))
def test_distinct_rows_repeats_only_where_too_few_have_weight(
    weights: list[float], count: int, positive: int, seed: int
) -> None:
    positive = min(positive, len(weights) - 1)
    pool = Pool(np.array(weights))
    rows, repeated = distinct_rows(pool.weights, pool.keep, pool.alias, np.array([positive] * 3), count, seed)
    free = {i for i, weight in enumerate(weights) if weight > 0 and i != positive}
    for row in rows.tolist():
        assert set(row) <= (free or {positive})
        assert len(set(row)) == min(count, len(free) or 1)
    assert repeated == 3 * max(0, count - len(free))
