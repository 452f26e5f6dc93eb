"""A refusal names the feature and the part of it that changed."""

from __future__ import annotations

import pytest
from google.protobuf import text_format

from checkpointer.memory_store import MemoryStore
from features import FeatureSet, create_features
from features.drift import MOST, changes
from protos import pipeline_pb2
from trainer.feature_record import record_features, what_changed


def build(options: str, more: str = "") -> FeatureSet:
    config = pipeline_pb2.EasyRecConfig()
    one = f'feature_configs {{ id_feature {{ feature_name: "f" expression: "user:f" embedding_dim: 4 {options} }} }}'
    data = "data_config { batch_size: 8 dataset_type: ParquetDataset fg_mode: FG_NORMAL }"
    text_format.Parse(data + one + more, config)
    return create_features(config)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("num_buckets: 10", "num_buckets: 20", "feature 'f': values.bucketizer.num_buckets was 10, now 20"),
        ("num_buckets: 10", 'num_buckets: 10 default_value: "3"', "feature 'f': values.default was [], now [3]"),
        ('vocab_list: "a"', 'vocab_list: ["b"]', "feature 'f': values.bucketizer.vocabulary was"),
    ],
)
def test_what_changed_names_the_feature_and_the_part(before: str, after: str, told: str) -> None:
    store, old = MemoryStore(), build(before)
    record_features(store, old)
    record_features(store, old)
    assert what_changed(store, old.digest(), build(after)).startswith(told)


def test_what_changed_names_features_that_came_and_went() -> None:
    store, old = MemoryStore(), build("num_buckets: 10")
    record_features(store, old)
    other = build("num_buckets: 10", 'feature_configs { raw_feature { feature_name: "g" expression: "user:g" } }')
    assert what_changed(store, old.digest(), other) == "feature 'g' is new"
    record_features(store, other)
    assert what_changed(store, other.digest(), old) == "feature 'g' is gone"


def test_what_changed_is_silent_where_nothing_is_known() -> None:
    assert what_changed(MemoryStore(), "0" * 64, build("num_buckets: 10")) == ""


def test_changes_are_bounded() -> None:
    many = {str(at): {"size": at} for at in range(20)}
    assert changes(many, {name: {"size": -1} for name in many})[MOST:] == ("and 12 more",)
