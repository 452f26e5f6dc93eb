"""Vectors of the reference for sequences: models_and_features.md 1.9 and 1.10, feature_generation.md 4 and 10.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pytest

from features import BASE, FeatureConfigError, FeatureSet
from features.generator import Dense, Sparse, Steps

Build = Callable[..., FeatureSet]
Cells: TypeAlias = object


def make(build: Build, config: str, columns: dict[str, Cells], *, mode: str = "FG_NORMAL", data: str = "") -> Steps:
    """What the first feature makes of rows that are all good."""
    features = build(f"feature_configs {{ {config} }}", mode=mode, data=data)
    given = {name: cells if isinstance(cells, pa.Array) else pa.array(cells) for name, cells in columns.items()}
    rows = pa.record_batch(given)
    errors = features.validate(rows)
    assert not errors, (errors.rows, errors.reasons, errors.details)
    made = features.made(rows)[features.features[0].name]
    assert isinstance(made, Steps)
    features.parse(rows)
    return made


def ids(made: Steps) -> tuple[list[int], list[int], list[int]]:
    """Values, ids per step, steps per row."""
    assert isinstance(made.made, Sparse)
    per_step = np.ones(len(made.made.values), np.int32) if made.made.lengths is None else made.made.lengths
    return made.made.values.tolist(), per_step.tolist(), made.lengths.tolist()


def numbers(made: Steps) -> tuple[list[float], list[int]]:
    assert isinstance(made.made, Dense)
    return made.made.values.reshape(-1).tolist(), made.lengths.tolist()


def narrow(values: list[float]) -> list[float]:
    found: list[float] = np.array(values, np.float32).tolist()
    return found


def simple(kind: str, options: str, expression: str = 'expression: "item:f"') -> str:
    return f'sequence_{kind} {{ feature_name: "f" {expression} {options} }}'


def identity(options: str) -> str:
    return simple("id_feature", f"embedding_dim: 4 {options}")


ID_CASES = [
    (
        "hash_bucket_size: 100 value_dim: 0", ["abc\x1defg;hij", "", "hij"],
        [33, 44, 66, 26, 66], [2, 1, 1, 1], [2, 1, 1],
    ),
    ("hash_bucket_size: 100 value_dim: 1", ["abc\x1defg;hij", "", "hij"], [33, 66, 26, 66], [1] * 4, [2, 1, 1]),
    ("hash_bucket_size: 100", ["abc\x1defg;hij", "", "hij"], [33, 66, 26, 66], [1] * 4, [2, 1, 1]),
    (
        'hash_bucket_size: 100 value_dim: 0 default_value: "xyz"', ["abc\x1defg;hij", "", "hij"],
        [33, 44, 66, 13, 66], [2, 1, 1, 1], [2, 1, 1],
    ),
    (
        "num_buckets: 10 value_dim: 0", ["1;2", "", "3", "4\x1d5;6"],
        [1, 2, 0, 3, 4, 5, 6], [1, 1, 1, 1, 2, 1], [2, 1, 1, 2],
    ),
    ("num_buckets: 10 value_dim: 1", ["1;2", "", "3", "4\x1d5;6"], [1, 2, 0, 3, 4, 6], [1] * 6, [2, 1, 1, 2]),
    (
        'vocab_list: ["a", "b", "c"] default_value: "0" sequence_delim: "|"', ["c||a|b|b|", "", "a|b||c"],
        [4, 0, 2, 3, 3, 0, 0, 2, 3, 0, 4], [1] * 11, [6, 1, 4],
    ),
    (
        "num_buckets: 10 value_dim: 0", [["1", "2"], None, ["3"], ["4\x1d5", "6"]],
        [1, 2, 0, 3, 4, 5, 6], [1, 1, 1, 1, 2, 1], [2, 1, 1, 2],
    ),
    ("num_buckets: 10 value_dim: 0", [[1, 2], [], [3], [4, 6]], [1, 2, 0, 3, 4, 6], [1] * 6, [2, 1, 1, 2]),
    ("num_buckets: 99 value_dim: 0", [[["17", "18"], ["19"]], [[]]], [17, 18, 19, 0], [2, 1, 1], [2, 1]),
    ("num_buckets: 10", [7, None, 3], [7, 0, 3], [1] * 3, [1, 1, 1]),
    ("num_buckets: 10 sequence_length: 2", ["1;2;3;4", "5", [None][0]], [1, 2, 5, 0], [1] * 4, [2, 1, 1]),
    ("num_buckets: 10 sequence_length: 2", [[1, 2, 3], [4]], [1, 2, 4], [1] * 3, [2, 1]),
]  # fmt: skip


@pytest.mark.parametrize(("options", "column", "values", "keys", "lengths"), ID_CASES)
def test_sequence_ids_equal_the_reference(
    build: Build, options: str, column: Cells, values: list[int], keys: list[int], lengths: list[int]
) -> None:
    assert ids(make(build, identity(options), {"f": column})) == (values, keys, lengths)


RAW_CASES = [
    ("", ["0.1;0.2", "", "0.3"], [0.1, 0.2, 0.0, 0.3], [2, 1, 1]),
    ("", [["0.1", "0.2"], [], ["0.3"]], [0.1, 0.2, 0.0, 0.3], [2, 1, 1]),
    ("", [[0.1, 0.2], None, [0.3]], [0.1, 0.2, 0.0, 0.3], [2, 1, 1]),
    (
        'value_dim: 2 default_value: ""', ["0.1\x1d1.1;0.2\x1d1.2", "", "0.3\x1d1.3"],
        [0.1, 1.1, 0.2, 1.2, 0.0, 0.0, 0.3, 1.3], [2, 1, 1],
    ),
    (
        'value_dim: 2 default_value: "0.0\\x1d0.0"', [["0.1\x1d1.1", "0.2\x1d1.2"], None, ["0.3\x1d1.3"]],
        [0.1, 1.1, 0.2, 1.2, 0.0, 0.0, 0.3, 1.3], [2, 1, 1],
    ),
    ("value_dim: 2", [[[0.1, 1.1], [0.2, 1.2]], [], [[0.3, 1.3]]], [0.1, 1.1, 0.2, 1.2, 0, 0, 0.3, 1.3], [2, 1, 1]),
]  # fmt: skip


@pytest.mark.parametrize(("options", "column", "values", "lengths"), RAW_CASES)
def test_sequence_numbers_equal_the_reference(
    build: Build, options: str, column: Cells, values: list[float], lengths: list[int]
) -> None:
    assert numbers(make(build, simple("raw_feature", options), {"f": column})) == (narrow(values), lengths)


def test_sequence_buckets_equal_the_reference(build: Build) -> None:
    bounds = "boundaries: [0.05, 0.15, 0.25] embedding_dim: 4"
    one = make(build, simple("raw_feature", bounds), {"f": ["0.1;0.2", "", "0.3"]})
    assert ids(one) == ([1, 2, 0, 3], [1] * 4, [2, 1, 1])
    column: Cells = ["0.1\x1d1.1;0.2\x1d1.2", "", "0.3\x1d1.3"]
    two = make(build, simple("raw_feature", f'value_dim: 2 default_value: "" {bounds}'), {"f": column})
    assert ids(two) == ([1, 3, 2, 3, 0, 0, 3, 3], [2] * 4, [2, 1, 1])


@pytest.mark.parametrize(("combiner", "values"), [("sum", [3, 3, 4, 0]), ("mean", [1, 3, 4, 0])])
@pytest.mark.parametrize("default", ["", "0"])
def test_sequence_combine_equals_the_reference(build: Build, combiner: str, values: list[int], default: str) -> None:
    options = f'num_buckets: 10 embedding_dim: 4 combiner: "{combiner}" default_value: "{default}"'
    made = make(build, simple("combine_feature", options), {"f": ["1\x1d2;3", "4", ""]})
    assert ids(made) == (values, [1] * 4, [2, 1, 1])


def test_sequence_combine_of_words_equals_the_reference(build: Build) -> None:
    words = " ".join(f'value_map {{ key: "tag{at}" value: {at} }}' for at in (1, 2, 3))
    column: Cells = ["tag1\x1dtag2;tag1", "tag2", ""]
    assert numbers(make(build, simple("combine_feature", words), {"f": column})) == ([3, 1, 2, 0], [2, 1, 1])
    mean = make(build, simple("combine_feature", f'{words} combiner: "mean"'), {"f": column})
    assert numbers(mean) == ([1.5, 1, 2, 0], [2, 1, 1])


TIMES = simple(
    "expr_feature",
    'sequence_fields: "event_time" sequence_delim: "|" variables: ["user:request_time", "user:event_time"]',
    'expression: "request_time - event_time"',
)


@pytest.mark.parametrize("request_times", [[10, 20], ["10", "20"]])
def test_sequence_expr_equals_the_reference(build: Build, request_times: Cells) -> None:
    made = make(build, TIMES, {"request_time": request_times, "event_time": ["2|3", "4"]})
    assert numbers(made) == ([8, 7, 16], [2, 1])


def test_sequence_expr_with_missing_inputs_equals_the_reference(build: Build) -> None:
    made = make(build, TIMES, {"request_time": [10, None, 5], "event_time": ["2|3", "4", None]})
    assert numbers(made) == ([8, 7, 0, 0], [2, 1, 1])
    bounds = TIMES.replace("sequence_delim", "boundaries: [5, 10, 15] embedding_dim: 4 sequence_delim")
    made = make(build, bounds, {"request_time": [10, 20, None], "event_time": ["2|3", "4", "1"]})
    assert ids(made) == ([1, 1, 3, 0], [1] * 4, [2, 1, 1])


def test_sequence_overlap_equals_the_reference(build: Build) -> None:
    options = 'sequence_fields: "title" method: "query_common_ratio"'
    config = simple("overlap_feature", options, 'query: "user:q" title: "item:title"')
    columns: dict[str, Cells] = {"q": ["abc\x1defg", "abc\x1defg"], "title": ["abc\x1drty;abc\x1defg", "qwe"]}
    assert numbers(make(build, config, columns)) == ([0.5, 1, 0], [2, 1])


def test_sequence_kv_dot_equals_the_reference(build: Build) -> None:
    config = simple("kv_dot_product", 'separator: "|"', 'query: "user:q" document: "item:d"')
    columns: dict[str, Cells] = {"q": ["a:0.5|b:0.5", "a|b|c"], "d": ["a:0.5|b:0.5;a|b", "a|b"]}
    assert numbers(make(build, config, columns)) == ([0.5, 1.0, 2.0], [2, 1])


def test_sequence_combo_multiplies_a_scalar_with_each_step(build: Build) -> None:
    options = "hash_bucket_size: 100 embedding_dim: 4 value_dim: 0"
    config = simple("combo_feature", options, 'expression: "user:u" expression: "item:i"')
    columns: dict[str, Cells] = {"u": ["ua\x1dub", None], "i": ["ia;ib", "ia"]}
    assert ids(make(build, config, columns)) == ([37, 5, 90, 97, 26], [2, 2, 1], [2, 1])


def test_sequence_lookup_looks_up_the_keys_of_each_step(build: Build) -> None:
    config = simple("lookup_feature", 'sequence_fields: "k"', 'map: "item:m" key: "item:k"')
    columns: dict[str, Cells] = {"m": ["a:1\x1db:2", "a:1"], "k": ["a\x1db;b;c", ""]}
    assert numbers(make(build, config, columns)) == ([3, 2, 0, 0], [3, 1])


GROUP = """sequence_feature {{ sequence_name: "click_seq" sequence_length: 50 features {{ {0} }} }}"""


def test_group_members_read_the_groups_columns(build: Build) -> None:
    inner = 'lookup_feature { feature_name: "l" map: "item:cat_map" key: "item:cat_key" sequence_fields: "cat_key" }'
    features = build(f"feature_configs {{ {GROUP.format(inner)} }}")
    assert features.input_columns == ("cat_map", "click_seq__cat_key")
    assert features.features[0].name == "click_seq__l"
    assert features.features[0].is_user


CLICKS = 'num_buckets: 100 embedding_dim: 4 fg_encoded_default_value: "{}"'
CLICK_COLUMN = ["1;2", "", "3", "4\x035;6", None]


@pytest.mark.parametrize(
    ("default", "values", "keys", "lengths"),
    [
        ("", [1, 2, 3, 4, 5, 6], [1, 1, 1, 2, 1], [2, 0, 1, 2, 0]),
        ("0", [1, 2, 0, 3, 4, 5, 6, 0], [1, 1, 1, 1, 2, 1, 1], [2, 1, 1, 2, 1]),
    ],
)
def test_encoded_sequence_ids_equal_the_reference(
    build: Build, default: str, values: list[int], keys: list[int], lengths: list[int]
) -> None:
    config = simple("id_feature", CLICKS.format(default))
    assert ids(make(build, config, {"f": CLICK_COLUMN}, mode="FG_NONE")) == (values, keys, lengths)


@pytest.mark.parametrize(
    "column",
    [["0.1\x031.1;0.2\x031.2", "", "0.3\x031.3"], [[[0.1, 1.1], [0.2, 1.2]], [], [[0.3, 1.3]]]],
)
def test_encoded_sequence_numbers_equal_the_reference(build: Build, column: Cells) -> None:
    config = simple("raw_feature", 'value_dim: 2 fg_encoded_default_value: "0\\x030"')
    made = make(build, config, {"f": column}, mode="FG_NONE")
    assert numbers(made) == (narrow([0.1, 1.1, 0.2, 1.2, 0, 0, 0.3, 1.3]), [2, 1, 1])


@pytest.mark.parametrize(
    ("kind", "column", "reason"),
    [
        ("id_feature { num_buckets: 9 embedding_dim: 4", "1;;2", "empty_step"),
        ("id_feature { num_buckets: 9 embedding_dim: 4", "1;9", "id_out_of_range"),
        ("raw_feature { value_dim: 2", "1\x032;3", "wrong_width"),
        ("raw_feature { value_dim: 1", "", "null_value"),
    ],
)
def test_encoded_sequences_refuse_what_is_no_value(build: Build, kind: str, column: str, reason: str) -> None:
    config = f'feature_configs {{ sequence_{kind} feature_name: "f" expression: "item:f" }} }}'
    errors = build(config, mode="FG_NONE").validate(
        pa.record_batch({"f": [column, "1\x031" if "raw" in kind else "1"]})
    )
    found = dict(zip(errors.rows.tolist(), errors.reasons, strict=True))
    assert found[0] == reason


@pytest.mark.parametrize(
    ("column", "steps"),
    [
        (pa.array(["1;2", "", None]), [1, 1, 2, 2]),
        (pa.array([[[1], [2]], [], None]), [1, 1, 2, 2]),
        (pa.array([[1, 2], [], None]), [1, 1, 1, 1, 1, 1]),
    ],
)
def test_encoded_default_of_several_ids_is_one_step_but_in_a_list_of_ids(
    build: Build, column: pa.Array, steps: list[int]
) -> None:
    config = identity('num_buckets: 10 value_dim: 0 fg_encoded_default_value: "7\\x038"')
    batch = build(f"feature_configs {{ {config} }}", mode="FG_NONE").parse(pa.record_batch({"f": column}))
    assert batch.sparse_features[BASE].values().tolist() == [1, 2, 7, 8, 7, 8]
    assert batch.sequence_mulval_lengths[BASE].values().tolist() == steps


def test_encoded_list_of_numbers_holds_steps_of_value_dim(build: Build) -> None:
    config = (
        'feature_configs { sequence_raw_feature { feature_name: "f" expression: "user:f" value_dim: 2 '
        'sequence_length: 5 fg_encoded_default_value: "7\\x038" } }'
    )
    features = build(config, mode="FG_NONE")
    rows = pa.record_batch({"f": pa.array([[0.0, 9.0, 9.0], [1.0, 2.0, 3.0, 4.0], [], None, [5.0, 6.0]])})
    errors = features.validate(rows)
    assert (errors.rows.tolist(), errors.reasons) == ([0], ("wrong_width",))
    assert "'f'" in errors.details[0] and "9.0" in errors.details[0]
    made = features.parse(rows.slice(1)).sequence_dense_features["f"]
    assert made.values().tolist() == [[1, 2], [3, 4], [7, 8], [7, 8], [5, 6]]
    assert made.lengths().tolist() == [2, 1, 1, 1]


def test_sequences_of_unequal_length_reject_the_row(build: Build) -> None:
    config = simple(
        "combo_feature", "hash_bucket_size: 9 embedding_dim: 4", 'expression: "item:a" expression: "item:b"'
    )
    features = build(f"feature_configs {{ {config} }}")
    rows = pa.record_batch({"a": ["1;2", "1;2", "3"], "b": ["1;2;3", "1;2", "4"]})
    errors = features.validate(rows)
    assert (errors.rows.tolist(), errors.reasons) == ([0], ("unequal_steps",))
    assert "'a' has 2" in errors.details[0] and "'b' has 3" in errors.details[0]
    kept = features.parse(rows.slice(1))
    assert kept.sparse_features[BASE].lengths().tolist() == [2, 1]


PAIR = """sequence_feature {{ sequence_name: "click" sequence_length: {0}
  features {{ id_feature {{ feature_name: "item" expression: "user:id" hash_bucket_size: 9 embedding_dim: 4 }} }}
  features {{ raw_feature {{ feature_name: "paid" expression: "user:price" }} }} }}"""


def test_sequences_of_a_group_that_differ_in_steps_reject_the_row(build: Build) -> None:
    features = build(f"feature_configs {{ {PAIR.format(50)} }}")
    rows = pa.record_batch({
        "click__id": ["a;b", "a", None, "a;b;c", ""],
        "click__price": pa.array([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [], None]),
    })  # fmt: skip
    errors = features.validate(rows)
    assert (errors.rows.tolist(), errors.reasons) == ([1], ("unequal_steps",))
    assert "'click__item' has 1" in errors.details[0] and "'click__paid' has 2" in errors.details[0]


def test_steps_past_the_length_of_the_sequence_do_not_count(build: Build) -> None:
    features = build(f"feature_configs {{ {PAIR.format(2)} }}")
    prices = pa.array([[1.0, 2.0, 3.0], [1.0]])
    errors = features.validate(pa.record_batch({"click__id": ["a;b", "a;b;c"], "click__price": prices}))
    assert errors.rows.tolist() == [1]


def test_a_user_whose_sequences_differ_in_steps_rejects_all_items(build: Build) -> None:
    price = 'raw_feature { feature_name: "price" expression: "item:price" }'
    features = build(f"feature_configs {{ {PAIR.format(50)} }} feature_configs {{ {price} }}")
    user = pa.record_batch({"click__id": ["a;b"], "click__price": ["1"]})
    errors = features.validate_tiled(user, pa.record_batch({"price": [1.0, 2.0]}))
    assert (errors.rows.tolist(), errors.reasons) == ([0, 1], ("unequal_steps",) * 2)


def test_a_bad_step_names_the_feature_the_step_and_the_value(build: Build) -> None:
    features = build(f"feature_configs {{ {identity('num_buckets: 9')} }}")
    errors = features.validate(pa.record_batch({"f": ["1;2", "1;x;3"]}))
    assert (errors.rows.tolist(), errors.reasons) == ([1], ("not_an_integer",))
    assert "feature 'f', step 1" in errors.details[0] and "'x'" in errors.details[0]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (simple("id_feature", "embedding_dim: 4 num_buckets: 9 weighted: true"), "cannot be weighted"),
        (simple("id_feature", 'embedding_dim: 4 num_buckets: 9 sequence_delim: "ab"'), "one ASCII character"),
        (simple("id_feature", 'embedding_dim: 4 num_buckets: 9 sequence_fields: "g"'), "none of its inputs"),
        (
            simple(
                "combo_feature", "hash_bucket_size: 9 embedding_dim: 4", 'expression: "user:a" expression: "user:b"'
            ),
            "none of its inputs is a sequence",
        ),
        (GROUP.format(""), "must hold one feature"),
    ],
)
def test_sequences_that_cannot_be_built_say_why(build: Build, config: str, message: str) -> None:
    with pytest.raises(FeatureConfigError, match=message):
        build(f"feature_configs {{ {config} }}")


def test_a_batch_holds_the_lengths_of_steps(build: Build) -> None:
    config = identity("num_buckets: 10 value_dim: 0")
    rows = pa.record_batch({"f": pa.array([[[3, 4], [5]], [[6], [7, 8]]])})
    batch = build(f"feature_configs {{ {config} }}").parse(rows)
    ids_of, steps = batch.sparse_features[BASE], batch.sequence_mulval_lengths[BASE]
    assert ids_of.values().tolist() == [3, 4, 5, 6, 7, 8]
    assert ids_of.lengths().tolist() == [3, 3]
    assert (steps.keys(), steps.values().tolist(), steps.lengths().tolist()) == (["f"], [2, 1, 1, 2], [2, 2])
