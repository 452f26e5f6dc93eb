"""Large batches are made in blocks of rows: the ids are those of small ones, and little memory lies in between."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa
import pytest
import torch

from benchmarks import feature_cases, feature_inputs
from benchmarks.feature_kinds import batch_bytes
from features import BASE, FeatureSet
from features.assemble import DenseGroup, SparseGroup

KINDS = [case for case in feature_cases.CASES if case.name not in ("tokenize", "custom_edit_distance")]
LIVE = 3 << 20
"""The largest live intermediate: what one feature keeps while it makes one block of rows, however many there are."""


def repeated(rows: pa.RecordBatch, times: int) -> pa.RecordBatch:
    """More rows of the same values."""
    return pa.Table.from_batches([rows] * times).combine_chunks().to_batches()[0]


@pytest.fixture(scope="module")
def given() -> dict[str, pa.Array]:
    return feature_cases.columns(0)


class Joining:
    """A profiler that tells the making of features from the joining of tensors, which begins when making has ended."""

    def __init__(self) -> None:
        self.making = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if (
            not self.making
            and event == "call"
            and frame.f_code in (SparseGroup.join.__code__, DenseGroup.join.__code__)
        ):
            self.making = tracemalloc.get_traced_memory()[1]
            tracemalloc.reset_peak()


def memory(features: FeatureSet, rows: pa.RecordBatch) -> tuple[int, int]:
    """Bytes of the batch, and the most that were allocated beyond the rows while it was made.

    NumPy and numba tell tracemalloc, Arrow its pool; tensors, which tell nobody, are the batch, since the joining.
    """
    size = batch_bytes(features.parse(rows))
    usual, joining = pa.default_memory_pool(), Joining()
    pool = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    sys.setprofile(joining)
    batch = features.parse(rows)
    sys.setprofile(None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    pa.set_memory_pool(usual)
    assert batch.size == rows.num_rows
    return size, max(joining.making, peak + size) + pool.max_memory()


@pytest.mark.parametrize("case", KINDS, ids=lambda case: case.name)
def test_a_kind_allocates_twice_its_output_and_one_block(
    case: feature_cases.Case, given: dict[str, pa.Array], tmp_path: Path
) -> None:
    rows = repeated(pa.record_batch({name: given[name] for name in case.columns}), 8)
    size, peak = memory(feature_cases.feature_set(case, tmp_path), rows)
    assert peak <= 2 * size + LIVE


def test_forty_features_allocate_twice_their_output_and_one_block() -> None:
    size, peak = memory(feature_inputs.feature_set(), repeated(feature_inputs.rows(1000), 24))
    assert size > 10 * LIVE
    assert peak <= 2 * size + LIVE


def test_blocks_give_what_small_batches_give() -> None:
    features, rows = feature_inputs.feature_set(), repeated(feature_inputs.rows(999), 9)
    whole = features.parse(rows)
    parts = [features.parse(rows.slice(start, 256)) for start in range(0, rows.num_rows, 256)]
    assert whole.size == 8991
    for name, tensor in whole.sparse_features.items():
        for key in tensor.keys():  # noqa: SIM118 - no dictionary
            pieces = [part.sparse_features[name][key] for part in parts]
            assert torch.equal(tensor[key].values(), torch.cat([piece.values() for piece in pieces]))
            assert torch.equal(tensor[key].lengths(), torch.cat([piece.lengths() for piece in pieces]))
    for name, dense in whole.dense_features.items():
        assert torch.equal(dense.values(), torch.cat([part.dense_features[name].values() for part in parts]))


def test_bad_rows_of_later_blocks_are_told_by_their_place_and_value() -> None:
    features = feature_inputs.feature_set(("numbers",))
    bad = {0: "first", 9000: "nine", 19999: "last"}
    texts = pa.array([bad.get(row, str(row)) for row in range(20000)])
    rows = pa.record_batch({name: texts for name in features.input_columns})
    errors = features.validate(rows)
    assert dict(zip(errors.rows.tolist(), errors.reasons, strict=True)) == dict.fromkeys(bad, "not_an_integer")
    assert [text in detail for text, detail in zip(bad.values(), errors.details, strict=True)] == [True] * 3
    assert {features.counts.totals()[feature.name, "rejected"] for feature in features.features} == {3}


def test_values_are_counted_once_in_all_blocks() -> None:
    features, rows = feature_inputs.feature_set(("shops",)), repeated(feature_inputs.rows(1000), 20)
    batch = features.parse(rows)
    unknown = int(np.count_nonzero(batch.sparse_features[BASE].values().numpy() == 1))
    assert sum(features.counts.totals().values()) == unknown > 10_000
