"""Sequences of the kinds of several columns: feature_generation.md 10.4 and models_and_features.md 1.10."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from features import FeatureSet
from features.generator import Dense, Sparse, Steps

Build = Callable[..., FeatureSet]


def steps(build: Build, kind: str, options: str, **columns: list[object]) -> tuple[list[object], list[int]]:
    """The numbers, or ids, of all steps, and how many steps each row has."""
    features = build(f'feature_configs {{ {kind} {{ feature_name: "f" sequence_length: 50 {options} }} }}')
    rows = pa.record_batch({name: pa.array(cells) for name, cells in columns.items()})
    errors = features.validate(rows)
    assert not errors, errors.details
    made = features.made(rows)["f"]
    assert isinstance(made, Steps) and isinstance(made.made, Sparse | Dense)
    features.parse(rows)
    return made.made.values.tolist(), made.lengths.tolist()


@pytest.mark.parametrize(("combiner", "expected"), [("sum", [3, 3, 4, 0]), ("mean", [1, 3, 4, 0])])
@pytest.mark.parametrize("default", ["", "0"])
def test_v_seq7_combine_aggregates_a_step(build: Build, combiner: str, expected: list[object], default: str) -> None:
    options = f'expression: "user:v" num_buckets: 10 embedding_dim: 4 combiner: "{combiner}" default_value: "{default}"'
    found = steps(build, "sequence_combine_feature", options, v=["1\x1d2;3", "4", ""])
    assert found == (expected, [2, 1, 1])


def test_combine_maps_the_values_of_steps(build: Build) -> None:
    words = " ".join(f'value_map {{ key: "tag{k}" value: {k} }}' for k in (1, 2, 3))
    for combiner, expected in (("sum", [3, 1, 2, 0]), ("mean", [1.5, 1, 2, 0])):
        options = f'expression: "user:v" {words} combiner: "{combiner}"'
        assert steps(build, "sequence_combine_feature", options, v=["tag1\x1dtag2;tag1", "tag2", ""]) == (
            expected,
            [2, 1, 1],
        )


def test_v_seq14_overlap_of_every_step(build: Build) -> None:
    options = 'query: "user:q" title: "item:t" method: "query_common_ratio"'
    found = steps(build, "sequence_overlap_feature", options, q=["abc\x1defg"] * 2, t=["abc\x1drty;abc\x1defg", "qwe"])
    assert found == ([0.5, 1, 0], [2, 1])


def test_v_seq15_kv_dot_product_of_every_step(build: Build) -> None:
    options = 'query: "user:q" document: "item:d" separator: "|"'
    found = steps(build, "sequence_kv_dot_product", options, q=["a:0.5|b:0.5", "a|b|c"], d=["a:0.5|b:0.5;a|b", "a|b"])
    assert found == ([0.5, 1.0, 2.0], [2, 1])


def test_lookup_looks_up_the_keys_of_every_step(build: Build) -> None:
    options = 'map: "user:m" key: "item:k"'
    found = steps(build, "sequence_lookup_feature", options, m=["1:0.5\x1d3:2", "", "2:1"], k=["1;2;1\x1d3", "1", ""])
    assert found == ([0.5, 0, 2.5, 0, 0], [3, 1, 1])


def test_combo_crosses_the_users_values_with_every_step(build: Build) -> None:
    options = 'expression: ["user:u", "item:i"] hash_bucket_size: 100 embedding_dim: 4 value_dim: 0'
    found = steps(build, "sequence_combo_feature", options, u=["10\x1d11", "13"], i=["1;1", "2"])
    assert found == ([93, 23, 93, 23, 38], [2, 1])


def test_match_and_mask_work_by_step(build: Build) -> None:
    options = 'nested_map: "user:m" pkey: "item:p" skey: "item:s" num_buckets: 9 embedding_dim: 4'
    found = steps(build, "sequence_match_feature", options, m=["a^x:1,y:2"], p=["a;a;b"], s=["x;y;x"])
    assert found == ([1, 2, 0], [3])
    options = 'expression: ["item:v", "item:w"] num_buckets: 9 embedding_dim: 4 value_dim: 0'
    found = steps(build, "sequence_bool_mask_feature", options, v=["1\x1d2;3"], w=["0\x1d1;1"])
    assert found == ([2, 3], [2])


def test_v_dag2_a_constant_is_a_key(build: Build) -> None:
    features = build(
        'feature_configs { lookup_feature { feature_name: "f" map: "user:m" key: "const:1" } }', mode="FG_DAG"
    )
    rows = pa.record_batch({"m": ["1:0.1\x1d3:0.2", "", "1:0.1\x1d3:0.2"]})
    assert features.input_columns == ("m",) and not features.validate(rows)
    made = features.made(rows)["f"]
    assert isinstance(made, Dense)
    assert made.values.tolist() == np.array([0.1, 0, 0.1], np.float32).tolist()


def test_a_lookup_stub_hands_on_its_tokens(build: Build) -> None:
    features = build(
        'feature_configs { lookup_feature { feature_name: "s" map: "user:m" key: "item:k" need_discrete: true '
        "stub_type: true } }"
        'feature_configs { combo_feature { feature_name: "f" expression: ["feature:s", "item:k"] embedding_dim: 4 '
        "hash_bucket_size: 100 } }",
        mode="FG_DAG",
    )
    rows = pa.record_batch({"m": ["k:ua", "k:ub"], "k": ["k", "k"]})
    assert not features.validate(rows)
    identity = 'feature_name: "f" expression: "user:v" embedding_dim: 4 hash_bucket_size: 100'
    plain = build(f"feature_configs {{ id_feature {{ {identity} }} }}")
    expected = plain.made(pa.record_batch({"v": ["ua_k", "ub_k"]}))["f"]
    made = features.made(rows)["f"]
    assert isinstance(made, Sparse) and isinstance(expected, Sparse)
    assert made.values.tolist() == expected.values.tolist()
