"""The arithmetic of staleness."""

import numpy as np
import pytest

from benchmarks.staleness import staleness_s


def test_staleness_ends_with_the_first_answer_that_covers_the_message() -> None:
    appended = np.array([10.0, 10.5, 11.0])
    answers = [(0, 10.1), (2, 11.0), (3, 11.2), (3, 11.9)]
    assert staleness_s(appended, answers).tolist() == pytest.approx([1.0, 0.5, 0.2])


def test_staleness_counts_a_rollback_as_no_loss() -> None:
    assert staleness_s(np.array([1.0, 2.0]), [(2, 3.0), (1, 4.0)]).tolist() == [2.0, 1.0]


def test_staleness_of_what_no_answer_covers_is_infinite() -> None:
    assert staleness_s(np.array([1.0, 2.0]), [(1, 3.0)]).tolist() == [2.0, np.inf]
