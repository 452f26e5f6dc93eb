"""Learning rate schedules against the formulas of the reference."""

import math

import pytest
from google.protobuf import text_format

from protos.train_pb2 import DenseOptimizer
from recmodels.errors import ModelConfigError
from recmodels.schedules import Schedule, create_schedule


def schedule_of(text: str) -> Schedule:
    schedule = create_schedule(text_format.Parse(text, DenseOptimizer()))
    assert schedule is not None
    return schedule


def rates(text: str, steps: list[int], base: float = 1.0) -> list[float]:
    schedule = schedule_of(text)
    return [schedule.rate(base, step) for step in steps]


def test_constant_stays() -> None:
    assert rates("constant_learning_rate {}", [0, 7, 10**9], 0.3) == [0.3, 0.3, 0.3]


def test_no_schedule_is_none() -> None:
    assert create_schedule(DenseOptimizer()) is None


def test_exponential_decays_in_stairs() -> None:
    text = "exponential_decay_learning_rate { decay_size: 10 decay_factor: 0.5 }"
    assert rates(text, [0, 9, 10, 25]) == [1.0, 1.0, 0.5, 0.25]


def test_exponential_decays_smoothly_after_warmup_down_to_the_floor() -> None:
    text = """exponential_decay_learning_rate {
      decay_size: 10 decay_factor: 0.5 staircase: false warmup_learning_rate: 0.2 warmup_size: 4 min_learning_rate: 0.3
    }"""
    assert rates(text, [0, 2, 4, 9, 100]) == pytest.approx([0.2, 0.6, 1.0, 0.5**0.5, 0.3])


def test_manual_steps_begin_once_the_size_is_passed() -> None:
    text = "manual_step_learning_rate { schedule_sizes: [10, 20] learning_rates: [0.5, 0.1] }"
    assert rates(text, [0, 10, 11, 20, 21]) == pytest.approx([1.0, 1.0, 0.5, 0.5, 0.1])


def test_manual_steps_warm_up_towards_the_first_rate() -> None:
    text = "manual_step_learning_rate { schedule_sizes: [10] learning_rates: [2.0] warmup: true }"
    assert rates(text, [0, 5, 10, 11]) == pytest.approx([1.0, 1.5, 2.0, 2.0])


def test_cosine_ends_at_the_lowest_rate() -> None:
    text = "cosine_annealing_learning_rate { T_max: 8 min_learning_rate: 0.2 warmup_size: 2 }"
    expected = [0.0, 0.5, 1.0, 0.2 + 0.8 * 0.5 * (1 + math.cos(math.pi / 4)), 0.6, 0.2, 0.2]
    assert rates(text, [0, 1, 2, 4, 6, 10, 500]) == pytest.approx(expected)


def test_restarts_lengthen_each_period() -> None:
    text = "cosine_annealing_warm_restarts_learning_rate { T_0: 4 T_mult: 2 }"
    assert rates(text, [0, 2, 4, 8, 12, 28]) == pytest.approx([1.0, 0.5, 1.0, 0.5, 1.0, 1.0])


def test_restarts_of_equal_periods_repeat() -> None:
    text = "cosine_annealing_warm_restarts_learning_rate { T_0: 4 }"
    assert rates(text, [3, 7, 4 * 10**6 + 3])[0] == rates(text, [4 * 10**6 + 3])[0]


@pytest.mark.parametrize(
    "text",
    [
        "exponential_decay_learning_rate { decay_size: 5 warmup_learning_rate: 0.1 warmup_size: 3 }",
        "manual_step_learning_rate { schedule_sizes: [1] learning_rates: [0.5] }",
        "cosine_annealing_learning_rate { T_max: 8 min_learning_rate: 0.2 }",
        "cosine_annealing_warm_restarts_learning_rate { T_0: 4 min_learning_rate: 0.2 }",
    ],
)
def test_a_rate_of_zero_stays_zero(text: str) -> None:
    assert rates(text, [0, 1, 2, 50], base=0.0) == [0.0] * 4


@pytest.mark.parametrize(
    "text",
    [
        "exponential_decay_learning_rate {}",
        "manual_step_learning_rate {}",
        "manual_step_learning_rate { schedule_sizes: [5, 3] learning_rates: [1, 2] }",
        "manual_step_learning_rate { schedule_sizes: [5] learning_rates: [1, 2] }",
        "cosine_annealing_learning_rate {}",
        "cosine_annealing_warm_restarts_learning_rate {}",
        "cosine_annealing_warm_restarts_learning_rate { T_0: 4 T_mult: 0 }",
    ],
)
def test_schedule_refuses_lengths_that_are_not_set(text: str) -> None:
    with pytest.raises(ModelConfigError):
        schedule_of(text)


def test_by_epoch_is_told() -> None:
    assert schedule_of("cosine_annealing_learning_rate { T_max: 3 by_epoch: true }").by_epoch
