"""Matches of many items in the map of one user: what the first item found out of the map is not found out again."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa

from features import BASE, FeatureSet

Build = Callable[..., FeatureSet]
MATCH = (
    'feature_configs { match_feature { feature_name: "f" nested_map: "user:map" pkey: "item:key" skey: "ALL" '
    'hash_bucket_size: 1000 embedding_dim: 4 value_dim: 0 default_value: "" } }'
)


def parsed(features: FeatureSet, text: str, keys: list[str]) -> tuple[list[int], list[int], float]:
    """Ids, lengths, and the processor's time, of one user and an item for each key."""
    begun = time.thread_time()
    batch = features.parse_tiled(pa.record_batch({"map": [text]}), pa.record_batch({"key": keys}))
    tensor = batch.sparse_features[BASE]
    return tensor.values().tolist(), tensor.lengths().tolist(), time.thread_time() - begun


def test_repeated_entries_count_once_for_every_item(build: Build) -> None:
    features = build(MATCH)
    text = "a^x:1,y:2,x:3|b^x:4|a^y:5"
    ids, lengths, _ = parsed(features, text, ["a", "b", "c", "a"])
    rows = pa.record_batch({"map": [text] * 4, "key": ["a", "b", "c", "a"]})
    whole = features.parse(rows).sparse_features[BASE]
    assert (ids, lengths) == (whole.values().tolist(), whole.lengths().tolist())
    assert lengths == [2, 1, 0, 2] and ids[:2] == ids[3:]


def test_items_share_the_work_that_repeated_entries_of_their_user_take(build: Build) -> None:
    features = build(MATCH)
    text = "a^" + ",".join(f"k{number}:1" for number in range(4000))
    parsed(features, text, ["a"])
    one, many = parsed(features, text, ["a"])[2], parsed(features, text, ["a"] * 100)[2]
    assert many < 30 * one
