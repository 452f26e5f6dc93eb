"""Drawn rows have the distribution that the config names."""

import numpy as np
import pytest

from recmodels.initializers import draw_rows, parse_init_fn, table_key


@pytest.mark.parametrize(
    ("text", "mean", "deviation", "bound"),
    [
        ("", 0.0, 0.1 / np.sqrt(3), 0.1),
        ("nn.init.uniform_,a=-0.2,b=0.4", 0.1, 0.6 / np.sqrt(12), 0.4),
        ("nn.init.normal_,mean=1,std=0.5", 1.0, 0.5, 9.0),
        ("nn.init.trunc_normal_,std=0.5", 0.0, 0.5 * 0.8796, 1.0),
        ("nn.init.constant_,val=2", 2.0, 0.0, 2.0),
        ("nn.init.ones_", 1.0, 0.0, 1.0),
        ("nn.init.xavier_normal_", 0.0, np.sqrt(2 / 116), 9.0),
    ],
)
def test_draws_follow_the_distribution(text: str, mean: float, deviation: float, bound: float) -> None:
    rows = draw_rows(parse_init_fn(text, rows=100, dim=16), table_key(0, "t"), np.arange(20_000), 16)
    assert abs(rows.mean() - mean) < 0.01
    assert abs(rows.std() - deviation) < 0.01
    assert np.abs(rows).max() <= bound + 1e-6


def test_draws_differ_between_ids_tables_and_seeds() -> None:
    init = parse_init_fn("", rows=100, dim=8)
    drawn = [
        draw_rows(init, table_key(s, t), np.array([i]), 8)
        for s, t, i in [(0, "t", 1), (0, "t", 2), (0, "u", 1), (1, "t", 1)]
    ]
    assert len({row.tobytes() for row in drawn}) == 4
