"""The graph of features, FG_BUCKETIZE, tiling: feature_generation.md 5, 7 and 10.6."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
import torch

from features import BASE, Batch, FeatureConfigError, FeatureSet, Side
from features.columnar import as_column, generated
from features.columns import Columns, Integers
from features.generator import Dense, Made
from features.graph import Graph
from features.plain import Plain
from features.spec import Feature
from stream.row_errors import Faults

Build = Callable[..., FeatureSet]


def one(kind: str, name: str, options: str) -> str:
    return f'feature_configs {{ {kind} {{ feature_name: "{name}" {options} }} }}\n'


def identity(name: str, expression: str, options: str) -> str:
    return one("id_feature", name, f'expression: "{expression}" embedding_dim: 4 {options}')


def group(*members: str) -> str:
    inner = " ".join(f"features {{ {member} }}" for member in members)
    return f'feature_configs {{ sequence_feature {{ sequence_name: "click_seq" sequence_length: 50 {inner} }} }}\n'


MODEL = (
    identity("f_cat_a", "item:cat_a", "num_buckets: 100")
    + identity("f_tag_b", "user:tag_b", "num_buckets: 1000")
    + one("raw_feature", "f_int_a", 'expression: "user:int_a"')
    + one("raw_feature", "f_int_b", 'expression: "item:int_b" value_dim: 2')
    + one("lookup_feature", "f_lookup_a", 'map: "user:map_a" key: "item:cat_a"')
    + group(
        'id_feature { feature_name: "f_cat_a" expression: "item:cat_a" num_buckets: 100 embedding_dim: 4 }',
        'raw_feature { feature_name: "f_int_a" expression: "item:int_a" }',
        'id_feature { feature_name: "f_tag_b" expression: "item:tag_b" num_buckets: 100 embedding_dim: 4 value_dim: 0}',
    )
)
ROWS = pa.record_batch(
    {
        "cat_a": [1, 2, 3],
        "tag_b": ["4\x1d5", "", "6"],
        "int_a": [7.0, 8.0, 9.0],
        "int_b": ["27\x1d37", "28\x1d38", "29\x1d39"],
        "map_a": ["1:0.1\x1d3:0.2", "", "1:0.1\x1d3:0.2"],
        "click_seq__cat_a": ["10;11;12", "13", ""],
        "click_seq__int_a": ["14;15;16", "17", ""],
        "click_seq__tag_b": ["17\x1d18;19;20\x1d21", "22", ""],
    }
)


def check_model(batch: Batch) -> None:
    ids = batch.sparse_features[BASE]
    assert ids.keys() == ["f_cat_a", "f_tag_b", "click_seq__f_cat_a", "click_seq__f_tag_b"]
    assert ids.values().tolist() == [1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 0, 17, 18, 19, 20, 21, 22, 0]
    assert ids.lengths().tolist() == [1, 1, 1, 2, 0, 1, 3, 1, 1, 5, 1, 1]
    steps = batch.sequence_mulval_lengths[BASE]
    assert (steps.keys(), steps.values().tolist()) == (["click_seq__f_tag_b"], [2, 1, 2, 1, 1])
    assert steps.lengths().tolist() == [3, 1, 1]
    dense = batch.dense_features[BASE].to_dict()
    assert dense["f_int_a"].reshape(-1).tolist() == [7, 8, 9]
    assert dense["f_int_b"].tolist() == [[27, 37], [28, 38], [29, 39]]
    assert dense["f_lookup_a"].reshape(-1).tolist() == np.array([0.1, 0, 0.2], np.float32).tolist()
    sequence = batch.sequence_dense_features["click_seq__f_int_a"]
    assert (sequence.values().reshape(-1).tolist(), sequence.lengths().tolist()) == ([14, 15, 16, 17, 0], [3, 1, 1])


@pytest.mark.parametrize("mode", ["FG_NORMAL", "FG_DAG"])
def test_a_batch_equals_the_reference(build: Build, mode: str) -> None:
    features = build(MODEL, mode=mode)
    assert sorted(features.input_columns) == sorted(ROWS.schema.names)
    assert not features.validate(ROWS)
    check_model(features.parse(ROWS))


def test_complex_types_give_the_same_batch(build: Build) -> None:
    pairs = pa.map_(pa.string(), pa.float32())
    rows = pa.record_batch(
        {
            "cat_a": pa.array([1, 2, 3], pa.int32()),
            "tag_b": pa.array([[4, 5], None, [6]]),
            "int_a": pa.array([7, 8, 9]),
            "int_b": pa.array([[27.0, 37], [28, 38], [29, 39]]),
            "map_a": pa.array([[("1", 0.1), ("3", 0.2)], None, [("1", 0.1), ("3", 0.2)]], pairs),
            "click_seq__cat_a": pa.array([[10, 11, 12], [13], []]),
            "click_seq__int_a": pa.array([[14.0, 15, 16], [17], None]),
            "click_seq__tag_b": pa.array([[["17", "18"], ["19"], ["20", "21"]], [["22"]], [[]]]),
        }
    )
    features = build(MODEL, mode="FG_DAG")
    errors = features.validate(rows)
    assert not errors, errors.details
    check_model(features.parse(rows))


BUCKETIZE_ROWS = pa.record_batch(
    {
        "f_cat_a": pa.array([["1"], ["2"], ["3"]]),
        "f_tag_b": pa.array([["4", "5"], [], ["6"]]),
        "f_int_a": pa.array([7.0, 8.0, 9.0]),
        "f_int_b": pa.array([[27.0, 37], [28, 38], [29, 39]]),
        "f_lookup_a": pa.array([0.1, 0.0, 0.2]),
        "click_seq__f_cat_a": pa.array([["10", "11", "12"], ["13"], ["0"]]),
        "click_seq__f_int_a": pa.array([[14.0, 15, 16], [17], [0]]),
        "click_seq__f_tag_b": pa.array([[["17", "18"], ["19"], ["20", "21"]], [["22"]], [["0"]]]),
    }
)


def test_bucketize_reads_columns_named_after_features(build: Build) -> None:
    stub = identity("stub", "item:cat_a", "stub_type: true")
    features = build(MODEL + stub, mode="FG_BUCKETIZE")
    assert sorted(features.input_columns) == sorted(BUCKETIZE_ROWS.schema.names)
    errors = features.validate(BUCKETIZE_ROWS)
    assert not errors, errors.details
    check_model(features.parse(BUCKETIZE_ROWS))


def test_bucketize_applies_only_the_bucketizer(build: Build) -> None:
    config = (
        identity("words", "user:x", 'vocab_list: ["a", "b"] default_value: "z"')
        + one(
            "raw_feature", "bins",
            'expression: "user:x" boundaries: [1, 2] embedding_dim: 4 default_value: "9" '
            'normalizer: "method=zscore,mean=5,standard_deviation=2"',
        )
        + one(
            "match_feature", "hit",
            'nested_map: "user:m" pkey: "item:p" skey: "item:s" hash_bucket_size: 100 embedding_dim: 4',
        )
        + one("combine_feature", "total", 'expression: "user:x" num_buckets: 9 embedding_dim: 4')
    )  # fmt: skip
    features = build(config, mode="FG_BUCKETIZE")
    rows = pa.record_batch(
        {
            "words": [["a", "q"], ["z"], None],
            "bins": [1.5, None, 7.0],
            "hit": ["match_feat_1"] * 3,
            "total": [3.7, 1.0, 0.0],
        }
    )
    assert not features.validate(rows)
    made = features.made(rows)
    found = {name: as_column(part).to_pylist() for name, part in made.items()}
    assert found == {
        "words": [[2, 1], [0], []], "bins": [[1], [], [2]], "hit": [[71]] * 3, "total": [[3], [1], [0]],
    }  # fmt: skip


STUB = group('id_feature { feature_name: "f_cat_a_stub" expression: "item:cat_a" embedding_dim: 4 stub_type: true }')


def test_a_stub_hands_on_its_tokens_and_is_in_no_batch(build: Build) -> None:
    combo = one(
        "combo_feature", "f_combo_a",
        'expression: "feature:click_seq__f_cat_a_stub" expression: "item:cat_a" hash_bucket_size: 100 embedding_dim: 4',
    )  # fmt: skip
    features = build(STUB + combo, mode="FG_DAG")
    rows = pa.record_batch({"click_seq__cat_a": ["10;11;12", "13", ""], "cat_a": [1, 2, 3]})
    assert not features.validate(rows)
    ids = features.parse(rows).sparse_features[BASE]
    assert (ids.keys(), ids.values().tolist(), ids.lengths().tolist()) == (
        ["f_combo_a"], [93, 23, 25, 38, 12], [3, 1, 1],
    )  # fmt: skip
    assert features.input_columns == ("click_seq__cat_a", "cat_a")


def test_constants_are_no_columns(build: Build) -> None:
    features = build(one("lookup_feature", "f_lookup_b", 'map: "user:map_a" key: "const:1"'), mode="FG_DAG")
    assert features.input_columns == ("map_a",)
    rows = pa.record_batch({"map_a": ["1:0.1\x1d3:0.2", "", "1:0.1\x1d3:0.2"]})
    assert not features.validate(rows)
    found = features.parse(rows).dense_features[BASE].values().reshape(-1).tolist()
    assert found == np.array([0.1, 0, 0.1], np.float32).tolist()


def test_edges_carry_values_after_the_bucketizer(build: Build) -> None:
    config = one("raw_feature", "bin", 'expression: "user:x" boundaries: [1, 2, 3] embedding_dim: 4') + one(
        "lookup_feature", "looked", 'map: "user:m" key: "feature:bin"'
    )
    features = build(config, mode="FG_DAG")
    rows = pa.record_batch({"x": [0.5, 2.5], "m": ["0:5\x1d2:7"] * 2})
    assert features.parse(rows).dense_features[BASE].values().reshape(-1).tolist() == [5, 7]


def test_a_feature_may_have_the_name_of_a_column(build: Build) -> None:
    config = identity("a", "user:a", "num_buckets: 10") + identity("b", "feature:a", "num_buckets: 10")
    rows = pa.record_batch({"a": ["7", "70"]})
    features = build(config, mode="FG_DAG")
    assert features.input_columns == ("a",)
    assert features.parse(rows).sparse_features[BASE].values().tolist() == [7, 0, 7, 0]


def test_a_sequence_of_a_group_may_read_another_of_it_by_its_bare_name(build: Build) -> None:
    config = group(
        'raw_feature { feature_name: "bin" expression: "item:t" boundaries: [1, 2] embedding_dim: 4 }',
        'id_feature { feature_name: "again" expression: "feature:bin" num_buckets: 5 embedding_dim: 4 }',
    )
    features = build(config, mode="FG_DAG")
    rows = pa.record_batch({"click_seq__t": ["0.5;1.5;2.5", "3"]})
    assert not features.validate(rows)
    ids = features.parse(rows).sparse_features[BASE].to_dict()
    assert ids["click_seq__again"].values().tolist() == ids["click_seq__bin"].values().tolist() == [0, 1, 2, 2]
    assert ids["click_seq__again"].lengths().tolist() == [3, 1]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            identity("a", "feature:b", "num_buckets: 9") + identity("b", "feature:c", "num_buckets: 9")
            + identity("c", "feature:a", "num_buckets: 9"),
            "cycle: a -> b -> c -> a",
        ),
        (identity("a", "feature:a", "num_buckets: 9"), "cycle: a -> a"),
        (
            identity("abc", "user:a", "num_buckets: 9") + identity("b", "feature:abd", "num_buckets: 9"),
            "did you mean 'abc'",
        ),
        (identity("a", "user:a", ""), "one of zch"),
    ],
)  # fmt: skip
def test_graphs_that_cannot_be_built_say_why(build: Build, config: str, message: str) -> None:
    with pytest.raises(FeatureConfigError, match=message):
        build(config, mode="FG_DAG")


def test_stubs_belong_to_the_graph(build: Build) -> None:
    with pytest.raises(FeatureConfigError, match="use fg_mode FG_DAG"):
        build(identity("a", "user:a", "num_buckets: 9 stub_type: true"))


@dataclass
class Counted:
    """A generator that counts its calls."""

    feature: Feature
    calls: list[str] = field(default_factory=list)
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Made:
        self.calls.append(self.feature.name)
        views = [columns[name] for name in self.feature.inputs]
        assert all(not isinstance(view, str) for view in views)
        return Dense(np.zeros(columns.count, np.float32))

    def describe(self) -> dict[str, object]:
        return {}


def test_each_feature_is_computed_once() -> None:
    calls: list[str] = []

    def spec(name: str, *inputs: str, side: Side = Side.FEATURE) -> Feature:
        return Feature(
            name=name, kind="x", inputs=inputs, sides=(side,) * len(inputs), is_sparse=False, value_dim=1, dense_dim=1
        )

    specs = [spec("d", "b", "c"), spec("b", "a"), spec("c", "a"), spec("a", "col", side=Side.USER)]
    graph = Graph(specs, [Counted(item, calls) for item in specs], connected=True)
    graph.run(Columns(pa.record_batch({"col": [1]})), ["d", "b", "c"])
    assert calls == ["a", "b", "c", "d"]


def test_a_feature_sees_no_row_that_its_inputs_refused(build: Build) -> None:
    config = identity("a", "user:a", "num_buckets: 9") + one(
        "expr_feature", "e", 'expression: "10/a" variables: "feature:a"'
    )
    features = build(config, mode="FG_DAG")
    errors = features.validate(pa.record_batch({"a": ["5", "x", "0", "2"]}))
    assert list(zip(errors.rows.tolist(), errors.reasons, strict=True)) == [(1, "not_an_integer"), (2, "not_finite")]
    assert "feature 'e'" in errors.details[1]


def test_user_sides_follow_the_graph(build: Build) -> None:
    config = (
        identity("u", "user:u", "num_buckets: 9")
        + identity("uu", "feature:u", "num_buckets: 9")
        + identity("i", "item:i", "num_buckets: 9")
        + one(
            "combo_feature",
            "both",
            'expression: "feature:u" expression: "feature:i" hash_bucket_size: 9 embedding_dim: 4',
        )
        + group('raw_feature { feature_name: "t" expression: "item:t" }')
    )
    features = build(config, mode="FG_DAG")
    users = {feature.name: feature.is_user for feature in features.features}
    assert users == {"u": True, "uu": True, "i": False, "both": False, "click_seq__t": True}
    assert features.user_columns == {"u", "click_seq__t"}


def test_a_tiled_request_holds_what_its_rows_hold(build: Build) -> None:
    features = build(MODEL, mode="FG_DAG")
    users = ROWS.select(["tag_b", "int_a", "map_a", "click_seq__cat_a", "click_seq__int_a", "click_seq__tag_b"]).slice(
        0, 1
    )
    items = ROWS.select(["cat_a", "int_b"])
    assert not features.validate_tiled(users, items)
    tiled = features.parse_tiled(users, items)
    assert (tiled.size, tiled.tile_size) == (3, 3)
    assert tiled.sparse_features[BASE].keys() == ["f_cat_a"]
    assert tiled.sparse_features[f"{BASE}_user"].keys() == ["f_tag_b", "click_seq__f_cat_a", "click_seq__f_tag_b"]
    assert tiled.dense_features[f"{BASE}_user"].keys() == ["f_int_a"]
    assert tiled.dense_features[BASE].keys() == ["f_int_b", "f_lookup_a"]
    assert list(tiled.sequence_mulval_lengths) == [f"{BASE}_user"]
    repeated = {name: users.column(name).take(pa.array([0, 0, 0])) for name in users.schema.names}
    whole = features.parse(pa.record_batch(repeated | {name: items.column(name) for name in items.schema.names}))
    single = features.parse(pa.record_batch({name: column.slice(0, 1) for name, column in repeated.items()} | {
        name: items.column(name).slice(0, 1) for name in items.schema.names
    }))  # fmt: skip
    for name in ("f_int_b", "f_lookup_a"):
        assert torch.equal(tiled.dense_features[BASE][name], whole.dense_features[BASE][name])
    assert torch.equal(tiled.dense_features[f"{BASE}_user"]["f_int_a"], single.dense_features[BASE]["f_int_a"])
    for name in tiled.sparse_features[f"{BASE}_user"].keys():  # noqa: SIM118 - no mapping
        ours, theirs = tiled.sparse_features[f"{BASE}_user"][name], single.sparse_features[BASE][name]
        assert torch.equal(ours.values(), theirs.values()) and torch.equal(ours.lengths(), theirs.lengths())


def test_a_tiled_request_knows_the_sides_of_stubs_and_of_sequences_seen_by_items(build: Build) -> None:
    config = (
        identity("word", "user:words", "stub_type: true")
        + identity("part", "item:parts", "stub_type: true")
        + one(
            "combo_feature",
            "both",
            'expression: "feature:word" expression: "feature:part" hash_bucket_size: 99 embedding_dim: 4',
        )
        + group('id_feature { feature_name: "t" expression: "item:t" num_buckets: 9 embedding_dim: 4 value_dim: 0 }')
        + identity("seen", "feature:click_seq__t", "num_buckets: 9 value_dim: 0")
        + one(
            "combo_feature",
            "mixed",
            'expression: "feature:click_seq__t" expression: "item:parts" hash_bucket_size: 99 embedding_dim: 4',
        )
    )
    features = build(config, mode="FG_DAG")
    users = pa.record_batch({"words": ["a\x1db", "c"], "click_seq__t": ["1\x1d2;3", "4"]})
    items = pa.record_batch({"parts": ["x", "y\x1dz", "", "x"]})
    assert not features.validate_tiled(users, items)
    tiled = features.parse_tiled(users, items)
    rows = {name: users.column(name).take(pa.array([0, 0, 1, 1])) for name in users.schema.names}
    whole = features.parse(pa.record_batch({**rows, "parts": items.column("parts")}))
    assert tiled.sparse_features[f"{BASE}_user"].keys() == ["click_seq__t", "seen"]
    for name in ("both", "mixed"):
        ours, theirs = tiled.sparse_features[BASE][name], whole.sparse_features[BASE][name]
        assert torch.equal(ours.values(), theirs.values()) and torch.equal(ours.lengths(), theirs.lengths())


def test_a_map_of_the_user_is_judged_for_each_item_as_if_it_stood_there(build: Build) -> None:
    features = build(
        one("lookup_feature", "rate", 'map: "user:rates" key: "item:key"')
        + one("match_feature", "matched", 'nested_map: "user:nested" pkey: "item:key" skey: "ALL"'),
    )
    rates = pa.array([[("a", 1.5), ("b", 2.0)], [("a", None)]], pa.map_(pa.string(), pa.float32()))
    users = pa.record_batch({"rates": rates, "nested": ["a^x:1|b^y:no", "b^y:3"]})
    items = pa.record_batch({"key": ["a", "b", "a", "b"]})
    repeated = {name: users.column(name).take(pa.array([0, 0, 1, 1])) for name in users.schema.names}
    flat = features.validate(pa.record_batch({**repeated, "key": items.column("key")}), serving=True)
    found = features.validate_tiled(users, items)
    assert found.rows.tolist() == flat.rows.tolist() == [1, 2, 3]
    assert found.reasons == flat.reasons == ("not_a_number", "null_element", "null_element")
    assert all(
        mine.split(":")[0] == other.split(":")[0] for mine, other in zip(found.details, flat.details, strict=True)
    )
    assert "'matched'" in found.details[0] and "'rate'" in found.details[1]


def test_a_bad_user_makes_all_its_items_bad(build: Build) -> None:
    features = build(MODEL, mode="FG_DAG")
    users = ROWS.select(["tag_b", "int_a", "map_a", "click_seq__cat_a", "click_seq__int_a", "click_seq__tag_b"]).slice(
        0, 2
    )
    users = users.set_column(0, "tag_b", pa.array(["4", "x"]))
    items = pa.record_batch({"cat_a": ["1", "y", "3", "4"], "int_b": ["1\x1d2"] * 4})
    errors = features.validate_tiled(users, items)
    assert errors.rows.tolist() == [1, 2, 3]
    assert "'f_cat_a'" in errors.details[0] and "'f_tag_b'" in errors.details[1]
    with pytest.raises(ValueError, match="evenly"):
        features.parse_tiled(users, items.slice(0, 3))


def test_generated_columns_are_what_batches_hold(build: Build) -> None:
    features = build(MODEL, mode="FG_DAG")
    bad = ROWS.set_column(1, "tag_b", pa.array(["4\x1d5", "x", "6"]))
    columns, errors = generated(features, bad)
    assert errors.rows.tolist() == [1]
    good = features.parse(ROWS.take(pa.array([0, 2])))
    for feature in features.features:
        held = columns.column(feature.name)
        assert held[1].as_py() is None
        if feature.is_sparse:
            flat = [item for row in held.to_pylist() if row for item in row]
            flat = [item for step in flat for item in (step if isinstance(step, list) else [step])]
            assert flat == good.sparse_features[BASE][feature.name].values().tolist()


def test_digests_tell_graphs_apart(build: Build) -> None:
    leaf = identity("a", "user:a", "num_buckets: 9") + identity("b", "user:b", "num_buckets: 9")
    over = leaf + identity("c", "feature:a", "num_buckets: 9")
    other = leaf + identity("c", "feature:b", "num_buckets: 9")
    assert build(over, mode="FG_DAG").digest() != build(other, mode="FG_DAG").digest()
    assert isinstance(Columns(pa.record_batch({"a": [1]}))["a"], Integers)
