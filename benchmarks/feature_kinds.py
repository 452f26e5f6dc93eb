"""Figures features_*: rows of one feature of each kind become its part of a batch, beside a memcpy of its bytes.

One core, both in one run, alternating, in cache. The bytes are those of the input's buffers and the output's tensors.
Inputs are fixed: benchmarks/feature_cases.py.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from benchmarks.feature_cases import CASES, ROWS, Case, columns, feature_set
from benchmarks.figure import Figure, load, run_script
from features import Batch, FeatureSet

Turns = dict[str, Callable[[], object]]


def batch_bytes(batch: Batch) -> int:
    """What the tensors of a batch hold."""
    found: int = 0
    for tensor in batch.sparse_features.values():
        found += int(tensor.values().nbytes + tensor.lengths().nbytes)
    for jagged in batch.sequence_dense_features.values():
        found += jagged.values().nbytes + jagged.lengths().nbytes
    return found + sum(int(tensor.values().nbytes) for tensor in batch.dense_features.values())


def _seconds(call: Callable[[], object], turns: int) -> float:
    """Seconds of processor time for one call, in all threads: other processes take none of it."""
    begin = time.process_time()
    for _ in range(turns):
        call()
    return (time.process_time() - begin) / turns


def rates(features: FeatureSet, rows: pa.RecordBatch, repeat: int) -> dict[str, float]:
    """Rows per second of parse, validate and memcpy, each the median of `repeat` rounds."""
    errors = features.validate(rows)
    if errors:
        raise RuntimeError(f"{features.features[0].name} has bad rows: {errors.details[0]}")
    block = np.zeros(rows.nbytes + batch_bytes(features.parse(rows)), np.uint8)
    turns: Turns = {
        "parse": lambda: features.parse(rows),
        "validate": lambda: features.validate(rows),
        "memcpy": block.copy,
    }
    figures: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(repeat):
        for name, call in turns.items():
            figures[name].append(rows.num_rows / _seconds(call, 4))
    return {name: statistics.median(values) for name, values in figures.items()}


def measure(quick: bool) -> list[Figure]:
    """Batches of 4096 rows, each kind on its own."""
    torch.set_num_threads(1)
    given = columns(0)
    with tempfile.TemporaryDirectory() as folder:
        return [_figure(case, feature_set(case, Path(folder)), given, 3 if quick else 15) for case in CASES]


def _figure(case: Case, features: FeatureSet, given: dict[str, pa.Array], repeat: int) -> Figure:
    found = rates(features, pa.record_batch({name: given[name] for name in case.columns}), repeat)
    return Figure(
        name=f"features_{case.name}", value=found["parse"], unit="rows/s", floor_or_peer=found["memcpy"],
        ratio=found["parse"] / found["memcpy"],
        note=f"{ROWS} rows, by processor time of all threads; checking the rows, the step before: "
        f"{found['validate']:.3g}/s; {load()}",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(run_script(sys.argv[1:], __doc__, measure))
