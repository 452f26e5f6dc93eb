"""Figure arrow_to_batch: rows of 26 int64 ids, 13 floats and a label become a batch, beside a memcpy of their bytes.

One core, both in one run, alternating.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import torch
from google.protobuf import text_format

from benchmarks.figure import Figure, load, run_script
from features import FeatureSet, create_features
from protos import pipeline_pb2

SPARSE, DENSE = 26, 13
BYTES_PER_ROW = 8 * SPARSE + 4 * DENSE + 8
WORKING_SET = 400_000_000
GOAL = 0.3


def feature_set() -> FeatureSet:
    """26 zero-collision ids and 13 numbers, given as such."""
    ids = "".join(
        f'feature_configs {{ id_feature {{ feature_name: "c{i}" embedding_dim: 16 zch {{ zch_size: 100000 }} }} }}\n'
        for i in range(SPARSE)
    )
    numbers = "".join(f'feature_configs {{ raw_feature {{ feature_name: "d{i}" }} }}\n' for i in range(DENSE))
    config = pipeline_pb2.EasyRecConfig()
    text_format.Parse(f'data_config {{ label_fields: "label" fg_mode: FG_NONE }}\n{ids}{numbers}', config)
    return create_features(config)


def make_rows(count: int, seed: int = 0) -> pa.RecordBatch:
    """Random rows without nulls."""
    rng = np.random.default_rng(seed)
    columns: dict[str, np.ndarray] = {f"c{i}": rng.integers(0, 2**62, count) for i in range(SPARSE)}
    columns |= {f"d{i}": rng.random(count, np.float32) for i in range(DENSE)}
    columns["label"] = rng.integers(0, 2, count)
    return pa.record_batch({name: pa.array(values) for name, values in columns.items()})


def _seconds(call: Callable[[int], object], turns: int) -> float:
    """Seconds of the core for one call, the mean of one round: other processes take none of it."""
    begin = time.thread_time()
    for turn in range(turns):
        call(turn)
    return (time.thread_time() - begin) / turns


def compare(rows: int, repeat: int) -> dict[str, float]:
    """Examples per second of parse, validate and memcpy, each the median of `repeat` rounds.

    Batches take turns, more of them than caches hold: a batch that was just decoded is read once.
    """
    features = feature_set()
    batches = [make_rows(rows, seed) for seed in range(max(2, WORKING_SET // (rows * BYTES_PER_ROW)))]
    blocks = [
        np.concatenate([np.asarray(batch.column(name)).view(np.uint8) for name in batch.schema.names])
        for batch in batches
    ]
    turns: dict[str, Callable[[int], object]] = {
        "parse": lambda turn: features.parse(batches[turn]),
        "validate": lambda turn: features.validate(batches[turn]),
        "memcpy": lambda turn: blocks[turn].copy(),
    }
    figures: dict[str, list[float]] = {name: [] for name in turns}
    for call in turns.values():
        _seconds(call, len(batches))
    for _ in range(repeat):
        for name, call in turns.items():
            figures[name].append(rows / _seconds(call, len(batches)))
    return {name: statistics.median(values) for name, values in figures.items()}


def measure(quick: bool) -> list[Figure]:
    """Batches of 4096 rows."""
    torch.set_num_threads(1)
    rates = compare(4096, 2 if quick else 15)
    ratio = rates["parse"] / rates["memcpy"]
    return [
        Figure(
            name="arrow_to_batch",
            value=rates["parse"],
            unit="examples/s",
            floor_or_peer=rates["memcpy"],
            ratio=ratio,
            goal=f"ratio >= {GOAL}",
            meets=ratio >= GOAL,
            note=f"by the core's own time; checking the rows, the step before: {rates['validate']:.3g}/s; {load()}",
        )
    ]


if __name__ == "__main__":
    sys.exit(run_script(sys.argv[1:], __doc__, measure))
