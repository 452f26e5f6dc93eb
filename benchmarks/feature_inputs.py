"""The realistic mix of issue 4: 40 features and their columns; seeds, lengths and cardinalities are fixed.

20 id, 8 raw, 4 combo, 2 lookup, 1 match, 2 expr and 3 grouped sequences of 50 steps.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
from google.protobuf import text_format

from features import FeatureSet, create_features
from protos import pipeline_pb2

STEPS = 50
BUCKETS = 1_000_000
BOUNDS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9)
SHOPS = 1000
CARDINALITIES = (10, 100, 1000, 10_000, 100_000)

USER_WORDS = tuple(f"user_word_{k}" for k in range(5))
ITEM_WORDS = tuple(f"item_word_{k}" for k in range(3))
USER_TAGS, ITEM_TAGS = "user_tags", "item_tags"
USER_SHOP, ITEM_SHOP = "user_shop", "item_shop"
USER_NUMBERS = tuple(f"user_number_{k}" for k in range(4))
ITEM_NUMBERS = tuple(f"item_number_{k}" for k in range(4))
FLOATS = tuple(f"{side}_float_{k}" for side in ("user", "item") for k in range(4))
COMBOS = (
    ("user_word_0", "item_word_0"), ("user_word_1", "item_word_1"), ("user_number_0", "item_word_2"),
    ("user_word_0", "user_word_2", "item_word_0"),
)  # fmt: skip
EXPRESSIONS = (
    ("item_float_0 / (user_float_0 + 1)", ("item_float_0", "user_float_0")),
    (
        "log(1 + user_float_1) * item_float_1 - abs(item_float_2 - 0.5)",
        ("user_float_1", "item_float_1", "item_float_2"),
    ),
)
SEQUENCES = ("click__item", "click__category", "click__shop")
NESTED = ("user_map", "user_pairs", "user_nested", "item_key")


def _side(column: str) -> str:
    return f"{column.partition('_')[0]}:{column}"


def _id(name: str, column: str, bucketizer: str) -> str:
    return f'id_feature {{ feature_name: "{name}" expression: "{_side(column)}" embedding_dim: 4 {bucketizer} }}'


def _raw(column: str, rest: str) -> str:
    return f'raw_feature {{ feature_name: "raw_{column}" expression: "{_side(column)}" {rest} }}'


def entries() -> dict[str, list[str]]:
    """The entries of `feature_configs` by what they are; those of "nested" neither polars nor DuckDB has words for."""
    hashed, numbered = f"hash_bucket_size: {BUCKETS}", f"num_buckets: {BUCKETS}"
    shops = " ".join(f'vocab_list: "shop{k}"' for k in range(SHOPS))
    bounds = f"embedding_dim: 4 boundaries: [{', '.join(map(str, BOUNDS))}]"
    scaled = 'normalizer: "method=zscore,mean=0.5,standard_deviation=2"'
    treatments = ("", 'normalizer: "method=log10,threshold=0.1"', scaled, bounds)
    return {
        "words": [_id(column, column, hashed) for column in USER_WORDS + ITEM_WORDS],
        "tags": [_id(column, column, hashed) for column in (USER_TAGS, ITEM_TAGS)],
        "shops": [_id(column, column, shops) for column in (USER_SHOP, ITEM_SHOP)],
        "numbers": [_id(f"id_{column}", column, numbered) for column in USER_NUMBERS[:2] + ITEM_NUMBERS[:2]],
        "hashed_numbers": [_id(f"hash_{column}", column, hashed) for column in USER_NUMBERS[2:] + ITEM_NUMBERS[2:]],
        "raw": [_raw(column, treatments[at % 4]) for at, column in enumerate(FLOATS)],
        "combo": [
            f'combo_feature {{ feature_name: "combo_{at}" embedding_dim: 4 {hashed} '
            f"expression: [{', '.join(chr(34) + _side(column) + chr(34) for column in columns)}] }}"
            for at, columns in enumerate(COMBOS)
        ],
        "expr": [
            f'expr_feature {{ feature_name: "expr_{at}" expression: "{text}" '
            f"variables: [{', '.join(chr(34) + _side(column) + chr(34) for column in columns)}] }}"
            for at, (text, columns) in enumerate(EXPRESSIONS)
        ],
        "nested": [
            'lookup_feature { feature_name: "lookup_number" combiner: "mean" '
            'map: "user:user_map" key: "item:item_key" }',
            'lookup_feature { feature_name: "lookup_word" map: "user:user_pairs" key: "item:item_key" need_key: true '
            f"embedding_dim: 4 {hashed} }}",
            'match_feature { feature_name: "match" nested_map: "user:user_nested" pkey: "item:item_key" '
            f'skey: "item:item_key" embedding_dim: 4 {hashed} }}',
        ],
        "sequence": [
            f'sequence_feature {{ sequence_name: "click" sequence_length: {STEPS} sequence_delim: ";" '
            f'features {{ {_id("item", "user_item", hashed).replace("user:user_", "user:")} }} '
            f'features {{ {_id("category", "user_category", numbered).replace("user:user_", "user:")} }} '
            f'features {{ {_id("shop", "user_shop", hashed).replace("user:user_", "user:")} }} }}'
        ],
    }  # fmt: skip


def feature_set(parts: Collection[str] = ()) -> FeatureSet:
    """The features of the named parts, or all 40."""
    chosen = [entry for name, made in entries().items() if not parts or name in parts for entry in made]
    config = pipeline_pb2.EasyRecConfig()
    listed = "\n".join(f"feature_configs {{ {entry} }}" for entry in chosen)
    text_format.Parse(f"data_config {{ fg_mode: FG_NORMAL }}\n{listed}", config)
    return create_features(config)


def words(prefix: str, count: int) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    """Distinct texts of 6 to 13 characters."""
    return np.array([f"{prefix}{k * 7919 % 100_000_007}" for k in range(count)])


def rows(count: int, seed: int = 0) -> pa.RecordBatch:
    """Rows for all 40 features, without nulls.

    Words of 10 to 100 thousand distinct ones, three tags a row, maps of eight out of 32 keys; clicks are two texts
    (words, and shops) and a list of int64, 50 steps in every row.
    """
    rng = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {}
    for at, name in enumerate(USER_WORDS + ITEM_WORDS):
        among = words("word", CARDINALITIES[at % len(CARDINALITIES)])
        columns[name] = pa.array(among[rng.integers(0, len(among), count)])
    for name in (USER_TAGS, ITEM_TAGS):
        columns[name] = _joined(rng, words("tag", 1000), count, 3, "\x1d")
    for name in (USER_SHOP, ITEM_SHOP):
        columns[name] = pa.array(_shops()[rng.integers(0, 2 * SHOPS, count)])
    for name in USER_NUMBERS + ITEM_NUMBERS:
        columns[name] = pa.array(rng.integers(0, BUCKETS, count))
    for name in FLOATS:
        columns[name] = pa.array(rng.random(count, np.float32))
    columns |= _maps(rng, count)
    columns["click__item"] = _joined(rng, words("word", 100_000), count, STEPS, ";")
    offsets = np.arange(0, count * STEPS + 1, STEPS, dtype=np.int32)
    columns["click__category"] = pa.ListArray.from_arrays(offsets, rng.integers(0, 10_000, count * STEPS))
    columns["click__shop"] = _joined(rng, _shops(), count, STEPS, ";")
    return pa.record_batch(columns)


def _shops() -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    """Half of them are in the vocabulary."""
    return np.array([f"shop{k}" for k in range(2 * SHOPS)])


def _joined(
    rng: np.random.Generator, among: np.ndarray[tuple[int], np.dtype[np.str_]], count: int, width: int, separator: str
) -> pa.Array:
    return pa.array([separator.join(row) for row in among[rng.integers(0, len(among), (count, width))]])


def _maps(rng: np.random.Generator, count: int) -> dict[str, pa.Array]:
    keys = [f"key{k}" for k in range(32)]
    picks = np.argsort(rng.random((count, 32)))[:, :8]
    values = rng.random((count, 8)).round(4)
    pairs = [[(keys[k], v) for k, v in zip(*row, strict=True)] for row in zip(picks, values, strict=True)]
    return {
        "user_map": pa.array(pairs, pa.map_(pa.string(), pa.float32())),
        "user_pairs": pa.array(["\x1d".join(f"{key}:{value}" for key, value in row) for row in pairs]),
        "user_nested": pa.array(
            ["|".join(f"{key}^{row[0][0]}:1,{key}:2,{row[1][0]}:3" for key, _ in row[:4]) for row in pairs]
        ),
        "item_key": pa.array([keys[k] for k in rng.integers(0, 32, count)]),
    }
