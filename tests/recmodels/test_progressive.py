"""Progressive metrics: close to the exact figures, small, additive over ranks, exact over restarts."""

import math

import numpy as np
import pytest

from recmodels.errors import StateError
from recmodels.metrics import ProgressiveMetrics
from recmodels.metrics.progressive import State, blank, merge
from recmodels.metrics.ranking import exact_auc, group_aucs

Step = tuple[np.ndarray, np.ndarray, np.ndarray]


def clicks(steps: int, rows: int, *, rate_logit: float = -3.0, spread: float = 1.0, seed: int = 0) -> list[Step]:
    """Steps of (probability, label, user): a calibrated model of a rate that varies by `spread` in logit."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(rate_logit, spread, (steps, rows))
    probability = 1 / (1 + np.exp(-logits))
    label = (rng.random((steps, rows)) < probability).astype(np.int64)
    noisy = 1 / (1 + np.exp(-(logits + rng.normal(0, 0.3, logits.shape))))
    return list(zip(noisy.astype(np.float32), label, rng.integers(0, 50, (steps, rows)), strict=True))


def fed(steps: list[Step], **settings: int) -> ProgressiveMetrics:
    metrics = ProgressiveMetrics(**settings)
    for probability, label, group in steps:
        metrics.update(probability, label, group)
    return metrics


def joined(steps: list[Step]) -> Step:
    probability, label, group = zip(*steps, strict=True)
    return np.concatenate(probability), np.concatenate(label), np.concatenate(group)


def same(one: State, other: State) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(("rate_logit", "spread"), [(-3.0, 1.0), (-5.0, 1.5), (0.3, 0.7), (-2.0, 0.3)])
def test_auc_is_within_a_ten_thousandth_of_exact(rate_logit: float, spread: float) -> None:
    steps = clicks(200, 500, rate_logit=rate_logit, spread=spread)
    metrics = fed(steps, window_steps=60)
    values = metrics.values()
    probability, label, _ = joined(steps)
    assert values["auc"] == pytest.approx(exact_auc(probability, label), abs=1e-4)
    recent_probability, recent_label, _ = joined(steps[120:])
    assert values["auc_window"] == pytest.approx(exact_auc(recent_probability, recent_label), abs=1e-4)
    assert (values["rows"], values["rows_window"]) == (100_000, 40_000)


def test_state_is_at_most_64_kilobytes() -> None:
    state = fed(clicks(5, 100)).state()
    assert sum(array.nbytes for array in state.values()) <= 64 * 1024


def test_entropy_calibration_and_log_loss_are_exact() -> None:
    steps = clicks(10, 300)
    values = fed(steps).values()
    probability, label, _ = joined(steps)
    exact = probability.astype(np.float64)
    loss = -np.where(label > 0, np.log(exact), np.log1p(-exact)).mean()
    rate = label.mean()
    entropy = -(rate * math.log(rate) + (1 - rate) * math.log1p(-rate))
    assert values["log_loss"] == pytest.approx(loss, rel=1e-9)
    assert values["normalized_entropy"] == pytest.approx(loss / entropy, rel=1e-9)
    assert values["calibration"] == pytest.approx(exact.sum() / label.sum(), rel=1e-9)


def test_states_of_ranks_add_up_to_one_run() -> None:
    steps = clicks(40, 200)
    whole = fed(steps, window_steps=12)
    halves = [[(p[r::2], y[r::2], g[r::2]) for p, y, g in steps] for r in range(2)]
    added = ProgressiveMetrics(window_steps=12)
    added.load(merge([fed(half, window_steps=12).state() for half in halves]))
    assert added.values() == pytest.approx(whole.values(), rel=1e-12)


def test_merge_refuses_ranks_at_different_steps() -> None:
    with pytest.raises(StateError, match="different steps"):
        merge([fed(clicks(3, 5)).state(), fed(clicks(4, 5)).state()])


def test_restart_at_any_step_gives_the_same_bits() -> None:
    steps = clicks(23, 64)
    through = fed(steps, window_steps=4, grouped_rows=300).state()
    for cut in range(len(steps) + 1):
        resumed = ProgressiveMetrics(window_steps=4, grouped_rows=300)
        resumed.load(fed(steps[:cut], window_steps=4, grouped_rows=300).state())
        for probability, label, group in steps[cut:]:
            resumed.update(probability, label, group)
        assert same(resumed.state(), through)


def test_restart_of_two_ranks_keeps_the_total() -> None:
    steps = clicks(20, 100)
    halves = [[(p[r::2], y[r::2], g[r::2]) for p, y, g in steps] for r in range(2)]
    saved = merge([fed(half[:10], window_steps=6).state() for half in halves])
    ranks = [ProgressiveMetrics(window_steps=6) for _ in halves]
    ranks[0].load(saved)
    ranks[1].load(blank(saved))
    for rank, half in zip(ranks, halves, strict=True):
        for probability, label, _ in half[10:]:
            rank.update(probability, label)
    total = ProgressiveMetrics(window_steps=6)
    total.load(merge([rank.state() for rank in ranks]))
    assert total.values() == pytest.approx(fed(steps, window_steps=6).values(), rel=1e-12)


def test_grouped_auc_is_exact_over_the_latest_rows() -> None:
    steps = clicks(30, 100)
    probability, label, group = (column[-700:] for column in joined(steps))
    value = fed(steps, grouped_rows=700).values()["gauc_window"]
    assert value == pytest.approx(group_aucs(probability, label, group).mean())


def test_auc_since_an_earlier_state_is_that_of_the_rows_after_it() -> None:
    steps = clicks(40, 200)
    metrics = fed(steps[:20])
    half = metrics.state()
    for probability, label, _ in steps[20:]:
        metrics.update(probability, label)
    assert metrics.auc_since(half) == fed(steps[20:]).values()["auc"]


def test_non_finite_predictions_are_counted_apart() -> None:
    metrics = ProgressiveMetrics()
    metrics.update(np.array([0.5, np.nan, np.inf], np.float32), np.array([1, 0, 1]))
    assert metrics.values()["non_finite"] == 2
    assert metrics.values()["rows"] == 1


def test_certain_predictions_stay_finite() -> None:
    metrics = ProgressiveMetrics()
    metrics.update(np.array([0.0, 1.0], np.float32), np.array([0, 1]))
    assert metrics.values()["auc"] == 1
    assert math.isfinite(metrics.values()["log_loss"])


def test_nothing_counted_gives_no_figures() -> None:
    metrics = ProgressiveMetrics(grouped_rows=10)
    metrics.update(np.empty(0, np.float32), np.empty(0, np.int64), np.empty(0, np.int64))
    values = metrics.values()
    assert values["rows"] == 0
    assert all(math.isnan(values[name]) for name in ("auc", "log_loss", "normalized_entropy", "calibration"))


def test_load_refuses_a_state_of_other_bins() -> None:
    state = ProgressiveMetrics().state()
    state["all"] = state["all"][:, :-1]
    with pytest.raises(StateError, match="does not fit"):
        ProgressiveMetrics().load(state)
