"""The report's charts: axes that a person can read."""

import numpy as np
import pytest

from headrace.demo.chart import Line, chart, ticks


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.53, 0.734, [0.55, 0.6, 0.65, 0.7]),
        (0.0007, 34.5, [10.0, 20.0, 30.0]),
        (0.0, 100_000.0, [0.0, 20_000.0, 40_000.0, 60_000.0, 80_000.0, 100_000.0]),
        (-0.5, 0.5, [-0.4, -0.2, 0.0, 0.2, 0.4]),
    ],
)
def test_ticks_are_round_numbers_inside_the_range(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == expected


@pytest.mark.parametrize("span", np.logspace(-3, 7, 31).tolist())
def test_ticks_are_three_to_eight_for_any_range(span: float) -> None:
    assert 3 <= len(ticks(0.0, span)) <= 8


def test_chart_labels_its_axes_without_exponents() -> None:
    figure = chart(
        "t", [Line(name="in", x=np.array([0.0, 1e5]), y=np.array([0.0, 1e5]))], x_label="events", y_label="events"
    )
    assert ">100,000</text>" in figure and "e+0" not in figure
