"""No Python object and no call per row: twice the rows, of the same values, take no more of them.

Tokenizers and users' own code are given each distinct text of a batch once, so that holds for them too.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pytest

from benchmarks import feature_cases, feature_inputs

ROWS = 300
FEW = 60
"""Calls or objects that one run may have more than another: caches, and other threads of the process."""


class Counting:
    """A profiler that counts calls, of Python and of C, and the most objects that are alive at one of them."""

    def __init__(self) -> None:
        self.calls = 0
        self._before = sys.getallocatedblocks()
        self.objects = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        self.calls += event in ("call", "c_call")
        self.objects = max(self.objects, sys.getallocatedblocks() - self._before)


def counted(make: Callable[[pa.RecordBatch], object], rows: pa.RecordBatch) -> tuple[int, int]:
    for _ in range(2):
        make(rows)
    # Garbage of other tests that is collected meanwhile would count as objects that were never made.
    gc.collect()
    gc.disable()
    try:
        counting = Counting()
        sys.setprofile(counting)
        made = make(rows)
    finally:
        sys.setprofile(None)
        gc.enable()
    assert made is not None
    return counting.calls, counting.objects


def assert_same_work(make: Callable[[pa.RecordBatch], object], rows: pa.RecordBatch) -> None:
    twice = pa.Table.from_batches([rows, rows]).combine_chunks().to_batches()[0]
    (calls, objects), (more_calls, more_objects) = counted(make, rows), counted(make, twice)
    assert more_calls <= calls + FEW
    assert more_objects <= objects + FEW


@pytest.fixture(scope="module")
def given() -> dict[str, pa.Array]:
    return {name: column.slice(0, ROWS) for name, column in feature_cases.columns(0).items()}


@pytest.mark.parametrize("case", feature_cases.CASES, ids=lambda case: case.name)
def test_a_kind_makes_no_object_per_row(case: feature_cases.Case, given: dict[str, pa.Array], tmp_path: Path) -> None:
    features = feature_cases.feature_set(case, tmp_path)
    rows = pa.record_batch({name: given[name] for name in case.columns})
    assert not features.validate(rows)
    assert_same_work(features.parse, rows)
    assert_same_work(lambda some: features.validate(some), rows)


def test_forty_features_make_no_object_per_row() -> None:
    features = feature_inputs.feature_set()
    assert_same_work(features.parse, feature_inputs.rows(ROWS))


def test_a_call_per_row_would_be_seen() -> None:
    with pytest.raises(AssertionError):
        assert_same_work(lambda rows: [value.as_py() for value in rows.column(0)], feature_inputs.rows(ROWS))
    with pytest.raises(AssertionError):
        assert_same_work(lambda rows: rows.column("click__item").to_pylist().copy(), feature_inputs.rows(ROWS))
