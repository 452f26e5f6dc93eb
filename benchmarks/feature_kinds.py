"""Figures features_*: rows of one feature of each kind become its part of a batch, beside a memcpy of its bytes.

One core, both in one run, alternating, in cache. The bytes are those of the input's buffers and the output's tensors.
Inputs are fixed: seeds, lengths and cardinalities stand in `CASES` and `columns`.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch
from google.protobuf import text_format

from benchmarks.figure import Figure, load, run_script
from features import Batch, FeatureSet, create_features
from protos import pipeline_pb2

ROWS = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A feature and the columns that it reads."""

    name: str
    feature: str
    columns: tuple[str, ...]


_ID = 'feature_name: "f" embedding_dim: 4'
CASES = (
    Case(name="id_integer_num_buckets", feature=f'id_feature {{ {_ID} expression: "user:int" num_buckets: 1000000 }}',
         columns=("int",)),
    Case(name="id_integer_hash", feature=f'id_feature {{ {_ID} expression: "user:int" hash_bucket_size: 1000000 }}',
         columns=("int",)),
    Case(name="id_string_hash", feature=f'id_feature {{ {_ID} expression: "user:word" hash_bucket_size: 1000000 }}',
         columns=("word",)),
    Case(name="id_string_vocabulary", feature=f'id_feature {{ {_ID} expression: "user:word" VOCABULARY }}',
         columns=("word",)),
    Case(name="id_float_hash", feature=f'id_feature {{ {_ID} expression: "user:float" hash_bucket_size: 1000 }}',
         columns=("float",)),
    Case(name="raw_zscore",
         feature='raw_feature { feature_name: "f" expression: "user:float" '
                 'normalizer: "method=zscore,mean=0.5,standard_deviation=2" }',
         columns=("float",)),
    Case(name="raw_boundaries",
         feature=f'raw_feature {{ {_ID} expression: "user:float" boundaries: [.1, .2, .3, .5, .7, .8, .9] }}',
         columns=("float",)),
    Case(name="combo",
         feature=f'combo_feature {{ {_ID} expression: ["user:word", "item:words"] hash_bucket_size: 1000000 }}',
         columns=("word", "words")),
    Case(name="combine", feature='combine_feature { feature_name: "f" expression: "user:floats" combiner: "mean" }',
         columns=("floats",)),
    Case(name="combine_text", feature='combine_feature { feature_name: "f" expression: "user:numbers" }',
         columns=("numbers",)),
    Case(name="lookup_map", feature='lookup_feature { feature_name: "f" map: "user:map" key: "item:key" }',
         columns=("map", "key")),
    Case(name="lookup_text", feature='lookup_feature { feature_name: "f" map: "user:pairs" key: "item:key" }',
         columns=("pairs", "key")),
    Case(name="match",
         feature=f'match_feature {{ {_ID} nested_map: "user:nested" pkey: "item:key" skey: "item:key" '
                 'hash_bucket_size: 1000 }',
         columns=("nested", "key")),
    Case(name="overlap_ratio",
         feature='overlap_feature { feature_name: "f" query: "user:words" title: "item:title" '
                 'method: "query_common_ratio" }',
         columns=("words", "title")),
    Case(name="overlap_distance",
         feature='overlap_feature { feature_name: "f" query: "user:words" title: "item:title" '
                 'method: "proximity_avg_dist" }',
         columns=("words", "title")),
    Case(name="kv_dot_product", feature='kv_dot_product { feature_name: "f" query: "user:map" document: "item:pairs" }',
         columns=("map", "pairs")),
    Case(name="bool_mask",
         feature=f'bool_mask_feature {{ {_ID} expression: ["user:words", "user:mask"] hash_bucket_size: 1000000 }}',
         columns=("words", "mask")),
)  # fmt: skip


def columns(seed: int) -> dict[str, pa.Array]:
    """Words of 6 to 12 letters out of 100 thousand, three a row where there are several; maps of eight keys."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{k * 7919 % 100_000_007}" for k in range(100_000)])
    keys = [f"key{k}" for k in range(32)]

    def joined(width: int, among: np.ndarray) -> pa.Array:
        return pa.array(["\x1d".join(row) for row in among[rng.integers(0, len(among), (ROWS, width))]])

    picks = np.argsort(rng.random((ROWS, 32)))[:, :8]
    values = rng.random((ROWS, 8)).round(4)
    pairs = [[(keys[k], v) for k, v in zip(*row, strict=True)] for row in zip(picks, values, strict=True)]
    return {
        "int": pa.array(rng.integers(0, 1_000_000, ROWS)),
        "float": pa.array(rng.random(ROWS, np.float32)),
        "word": pa.array(words[rng.integers(0, len(words), ROWS)]),
        "words": joined(3, words[:50]),
        "title": joined(10, words[:50]),
        "numbers": joined(3, rng.random(1000).round(4).astype(str)),
        "mask": joined(3, np.array(["true", "false"])),
        "floats": pa.array(list(rng.random((ROWS, 3))), pa.list_(pa.float64())),
        "key": pa.array([keys[k] for k in rng.integers(0, 32, ROWS)]),
        "map": pa.array(pairs, pa.map_(pa.string(), pa.float32())),
        "pairs": pa.array(["\x1d".join(f"{key}:{value}" for key, value in row) for row in pairs]),
        "nested": pa.array(
            ["|".join(f"{key}^{row[0][0]}:1,{key}:2,{row[1][0]}:3" for key, _ in row[:4]) for row in pairs]
        ),
    }


def feature_set(case: Case) -> FeatureSet:
    """The one feature of a case."""
    words = " ".join(f'vocab_list: "word{k * 7919 % 100_000_007}"' for k in range(0, 100_000, 2))
    config = pipeline_pb2.EasyRecConfig()
    text = case.feature.replace("VOCABULARY", words)
    text_format.Parse(f"data_config {{ fg_mode: FG_NORMAL }} feature_configs {{ {text} }}", config)
    return create_features(config)


def _bytes(batch: Batch) -> int:
    found = 0
    for tensor in batch.sparse_features.values():
        found += tensor.values().nbytes + tensor.lengths().nbytes
    return found + sum(tensor.values().nbytes for tensor in batch.dense_features.values())


def _seconds(call: Callable[[], object], turns: int) -> float:
    """Seconds of the core for one call: other processes take none of it."""
    begin = time.thread_time()
    for _ in range(turns):
        call()
    return (time.thread_time() - begin) / turns


def compare(case: Case, given: dict[str, pa.Array], repeat: int) -> dict[str, float]:
    """Rows per second of parse, validate and memcpy, each the median of `repeat` rounds."""
    features = feature_set(case)
    rows = pa.record_batch({name: given[name] for name in case.columns})
    errors = features.validate(rows)
    if errors:
        raise RuntimeError(f"case {case.name} has bad rows: {errors.details[0]}")
    block = np.zeros(rows.nbytes + _bytes(features.parse(rows)), np.uint8)
    turns: dict[str, Callable[[], object]] = {
        "parse": lambda: features.parse(rows),
        "validate": lambda: features.validate(rows),
        "memcpy": block.copy,
    }
    figures: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(repeat):
        for name, call in turns.items():
            figures[name].append(ROWS / _seconds(call, 4))
    return {name: statistics.median(values) for name, values in figures.items()}


def measure(quick: bool) -> list[Figure]:
    """Batches of 4096 rows, each kind on its own."""
    torch.set_num_threads(1)
    given = columns(0)
    figures = []
    for case in CASES:
        rates = compare(case, given, 3 if quick else 15)
        figures.append(
            Figure(
                name=f"features_{case.name}", value=rates["parse"], unit="rows/s", floor_or_peer=rates["memcpy"],
                ratio=rates["parse"] / rates["memcpy"],
                note=f"by the core's own time; checking the rows, the step before: {rates['validate']:.3g}/s; {load()}",
            )
        )  # fmt: skip
    return figures


if __name__ == "__main__":
    sys.exit(run_script(sys.argv[1:], __doc__, measure))
