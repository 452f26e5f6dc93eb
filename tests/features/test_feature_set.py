"""FeatureSet: which rows are bad and why, batches of odd inputs, digests, errors of configuration."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
import torch

from features import BASE, WEIGHTED, Batch, FeatureConfigError, FeatureSet
from features.feature_set import FeatureSet as Set
from features.spec import MAX_RAW_ID

Build = Callable[..., FeatureSet]
Reasons = Callable[..., dict[int, str]]

ID = 'feature_configs { id_feature { feature_name: "f" expression: "user:f" embedding_dim: 4 num_buckets: 100 } }'
ZCH = 'feature_configs { id_feature { feature_name: "f" expression: "user:f" embedding_dim: 4 zch { zch_size: 100 } } }'
RAW = 'feature_configs { raw_feature { feature_name: "f" expression: "user:f" } }'
RAW_2 = 'feature_configs { raw_feature { feature_name: "f" expression: "user:f" value_dim: 2 } }'
WEIGHT = ID.replace("num_buckets: 100", "num_buckets: 100 weighted: true")
LABELS = 'label_fields: "y" sample_weight_fields: "w"'


@pytest.mark.parametrize(
    ("features", "mode", "column", "expected"),
    [
        (ZCH, "FG_NONE", pa.array([0, MAX_RAW_ID, MAX_RAW_ID + 1, -1]), {2: "id_out_of_range", 3: "id_out_of_range"}),
        (ZCH, "FG_NONE", pa.array([0, 2**64 - 1], pa.uint64()), {1: "id_out_of_range"}),
        (ID, "FG_NONE", pa.array([99, 100]), {1: "id_out_of_range"}),
        (
            ID, "FG_NONE", pa.array(["1\x032", "x", "1\x03\x032", "+1", "", None]),
            dict.fromkeys((1, 2, 3), "not_an_integer"),
        ),
        (ID, "FG_NONE", pa.array(["9223372036854775808", "-1"]), {0: "id_out_of_range", 1: "id_out_of_range"}),
        (ID, "FG_NONE", pa.array([[1, None], [2]]), {0: "null_element"}),
        (ID, "FG_NONE", pa.array([1.0]), {0: "wrong_type"}),
        (ID, "FG_NORMAL", pa.array(["1", "1.5", "a"]), {1: "not_an_integer", 2: "not_an_integer"}),
        (ID, "FG_NORMAL", pa.array([[("1", 1.0)]], pa.map_(pa.string(), pa.float32())), {0: "wrong_type"}),
        (WEIGHT, "FG_NORMAL", pa.array(["1:x", "1:nan", "1:0.5", "1"]), {0: "not_a_number", 1: "not_finite"}),
        (
            RAW, "FG_NONE", pa.array([0.5, None, float("nan"), float("inf")]),
            {1: "null_value", 2: "not_finite", 3: "not_finite"},
        ),
        (RAW, "FG_NORMAL", pa.array([0.5, None, 1e300, float("-inf")]), {2: "not_finite", 3: "not_finite"}),
        (
            RAW, "FG_NORMAL", pa.array(["1", "x", "nan", "1e400", ""]),
            {1: "not_a_number", 2: "not_finite", 3: "not_finite"},
        ),
        (RAW_2, "FG_NORMAL", pa.array(["1\x1d2", "1", "1\x1d2\x1d3", None]), {1: "wrong_width", 2: "wrong_width"}),
        (
            RAW_2, "FG_NONE", pa.array([[1.0, 2.0], [1.0], [], None]),
            {1: "wrong_width", 2: "null_value", 3: "null_value"},
        ),
        (RAW_2, "FG_NONE", pa.array([1.0]), {0: "wrong_type"}),
        (RAW, "FG_NORMAL", pa.array([b"1"]), {0: "wrong_type"}),
    ],
)  # fmt: skip
def test_validate_gives_each_bad_row_its_reason(
    reasons: Reasons, features: str, mode: str, column: pa.Array, expected: dict[int, str]
) -> None:
    assert reasons(features, column, mode=mode) == expected


def test_validate_reports_a_missing_column_for_every_row(build: Build) -> None:
    errors = build(ID).validate(pa.record_batch({"g": [1, 2]}))
    assert errors.reasons == ("missing_column", "missing_column")
    assert "'f'" in errors.details[0]


@pytest.mark.parametrize(
    ("label", "weight", "expected"),
    [
        (pa.array([1, None, 0]), pa.array([1.0, 1.0, 1.0]), {1: "null_label"}),
        (
            pa.array([1.0, float("nan"), float("inf")]), pa.array([1.0] * 3),
            {1: "label_not_finite", 2: "label_not_finite"},
        ),
        (pa.array([1, 1, 1]), pa.array([1.0, None, float("inf")]), {1: "null_weight", 2: "weight_not_finite"}),
        (pa.array(["1", "0", "1"]), pa.array([1.0] * 3), dict.fromkeys(range(3), "wrong_type")),
        (pa.array([1, 1, 1]), pa.array([1, 1, 1]), dict.fromkeys(range(3), "wrong_type")),
        (pa.array([[1], [], [None]]), pa.array([1.0] * 3), {2: "null_label"}),
    ],
)  # fmt: skip
def test_validate_judges_labels_and_weights(
    build: Build, label: pa.Array, weight: pa.Array, expected: dict[int, str]
) -> None:
    features = build(ID, data=LABELS)
    rows = pa.record_batch({"f": pa.array([1, 2, 3]), "y": label, "w": weight})
    errors = features.validate(rows)
    assert dict(zip(errors.rows.tolist(), errors.reasons, strict=True)) == expected
    assert not features.validate(rows, serving=True)
    assert not features.validate(rows.select(["f"]), serving=True)


def test_validate_keeps_the_first_reason_and_shortens_what_it_quotes(build: Build) -> None:
    features = build(ID + RAW.replace('"f"', '"r"').replace("user:f", "user:r"), data='label_fields: "y"')
    rows = pa.record_batch({"f": ["x" * 500], "r": [float("nan")], "y": pa.array([None], pa.int64())})
    errors = features.validate(rows)
    assert errors.reasons == ("not_an_integer",)
    assert len(errors.details[0]) < 120


def odd_columns() -> dict[str, tuple[str, str, pa.Array]]:
    """Columns of unusual make, each with the features and mode that read it."""
    words = pa.array(["1", "2\x1d3", None, "", "4", "5"])
    return {
        "sliced text": (ID, "FG_NORMAL", pa.concat_arrays([pa.array(["9"]), words]).slice(1)),
        "large text": (ID, "FG_NORMAL", words.cast(pa.large_string())),
        "dictionary": (ID, "FG_NORMAL", words.dictionary_encode()),
        "list": (ID, "FG_NORMAL", pa.array([["1"], ["2", "3"], None, [], ["4"], ["5"]])),
        "large list": (ID, "FG_NORMAL", pa.array([[1], [2, 3], None, [], [4], [5]], pa.large_list(pa.int16()))),
        "sliced list": (ID, "FG_NORMAL", pa.array([[7, 8], [1], [2, 3], None, [], [4], [5]]).slice(1)),
        "encoded list": (
            ID,
            "FG_NONE",
            pa.array([[7], [1], [2, 3], None, [], [4], [5]], pa.list_(pa.uint8())).slice(1),
        ),
    }


@pytest.mark.parametrize("name", odd_columns())
def test_parse_reads_columns_of_any_make(build: Build, name: str) -> None:
    text, mode, column = odd_columns()[name]
    features = build(text, mode=mode)
    rows = pa.record_batch({"f": column})
    assert not features.validate(rows)
    tensor = features.parse(rows).sparse_features[BASE]
    assert tensor.values().tolist() == [1, 2, 3, 4, 5]
    assert tensor.lengths().tolist() == [1, 2, 0, 0, 1, 1]


def test_parse_reads_null_rows_that_hide_values(build: Build) -> None:
    hidden = pa.ListArray.from_arrays(pa.array([0, 2, 4]), pa.array([1, 2, 3, 4]), mask=pa.array([True, False]))
    tensor = build(ID, mode="FG_NONE").parse(pa.record_batch({"f": hidden})).sparse_features[BASE]
    assert (tensor.values().tolist(), tensor.lengths().tolist()) == ([3, 4], [0, 2])


def test_parse_reads_fixed_size_lists(build: Build) -> None:
    column = pa.array([[9.0, 9.0], [1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)).slice(1)
    batch = build(RAW_2, mode="FG_NONE").parse(pa.record_batch({"f": column}))
    assert batch.dense_features[BASE].values().tolist() == [[1, 2], [3, 4]]


MANY = (
    ID.replace('"f"', '"a"').replace("user:f", "user:a")
    + WEIGHT.replace('"f"', '"b"').replace("user:f", "user:b")
    + RAW.replace('"f"', '"c"').replace("user:f", "user:c")
    + RAW_2.replace('"f"', '"d"').replace("user:f", "user:d")
)


def test_parse_of_no_rows_gives_empty_tensors(build: Build) -> None:
    features = build(MANY, data=LABELS)
    rows = pa.record_batch(
        {"a": pa.array([], pa.int64()), "b": pa.array([], pa.string()), "c": pa.array([], pa.float32()),
         "d": pa.array([], pa.list_(pa.float64())), "y": pa.array([], pa.float64()), "w": pa.array([], pa.float32())}
    )  # fmt: skip
    assert not features.validate(rows)
    batch = features.parse(rows)
    assert batch.size == 0
    assert batch.dense_features[BASE].values().shape == (0, 3)
    assert batch.sparse_features[BASE].stride() == batch.sparse_features[WEIGHTED].stride() == 0
    assert batch.labels["y"].shape == batch.sample_weights["w"].shape == (0,)


@pytest.mark.parametrize(("dims", "width"), [("", 1), ("value_dim: 2", 2)])
def test_parse_of_no_rows_gives_sequences_of_numbers_their_width(build: Build, dims: str, width: int) -> None:
    raw = f'sequence_raw_feature {{ feature_name: "f" expression: "user:f" sequence_length: 4 {dims} }}'
    features = build(f"feature_configs {{ {raw} }}")
    for column in (pa.nulls(0), pa.array([], pa.string()), pa.array([None, None], pa.string())):
        batch = features.parse(pa.record_batch({"f": column}))
        assert batch.sequence_dense_features["f"].values().shape[1] == width


def test_batch_has_the_types_of_the_contract(build: Build) -> None:
    features = build(MANY, data=LABELS)
    rows = pa.record_batch(
        {"a": [1, 2], "b": ["1:.5", "2"], "c": [1.0, 2.0], "d": [[1, 2], [3, 4]], "y": [1, 0], "w": [0.5, 1.0]}
    )
    batch = features.parse(rows, reserve=("y",))
    assert batch.sparse_features[BASE].keys() == ["a"]
    assert batch.sparse_features[BASE].values().dtype == torch.int64
    assert batch.sparse_features[BASE].lengths().dtype == torch.int32
    assert batch.sparse_features[WEIGHTED].weights().tolist() == [0.5, 1.0]
    assert batch.dense_features[BASE].keys() == ["c", "d"]
    assert batch.dense_features[BASE].values().tolist() == [[1, 1, 2], [2, 3, 4]]
    assert (batch.labels["y"].dtype, batch.sample_weights["w"].dtype) == (torch.int64, torch.float32)
    assert batch.reserves == rows.select(["y"])
    assert features.parse(rows, labels=False).labels == {}


def test_batch_moves_and_is_written_without_touching_the_rows(build: Build) -> None:
    rows = pa.record_batch(
        {"a": [1, 2], "b": ["1", "2"], "c": [1.0, 2.0], "d": [[1.0, 2.0]] * 2, "y": [1.0, 0.0], "w": [1.0, 1.0]}
    )
    batch = build(MANY, data=LABELS).parse(rows)
    moved = batch.to(torch.device("cpu"), non_blocking=False)
    assert isinstance(moved, Batch)
    moved.labels["y"].zero_()
    moved.dense_features[BASE].values().zero_()
    assert rows.column("c").to_pylist() == [1.0, 2.0]
    assert rows.column("y").to_pylist() == [1.0, 0.0]


def test_list_labels_are_jagged(build: Build) -> None:
    rows = pa.record_batch({"f": [1, 2], "y": [[1.0, 0.0], []], "w": [1.0, 1.0]})
    label = build(ID, data=LABELS).parse(rows).jagged_labels["y"]
    assert (label.values().tolist(), label.lengths().tolist()) == ([1.0, 0.0], [2, 0])


def test_features_that_share_a_table_with_a_weighted_one_get_weights(build: Build) -> None:
    shared = WEIGHT.replace('"f"', '"w"').replace("weighted: true", 'weighted: true embedding_name: "t"')
    plain = ID.replace("num_buckets: 100", 'num_buckets: 100 embedding_name: "t"')
    features = build(shared + plain)
    assert [feature.data_group for feature in features.features] == [WEIGHTED, WEIGHTED]
    tensor = features.parse(pa.record_batch({"f": ["1:0.5"]})).sparse_features[WEIGHTED]
    assert tensor["w"].weights().tolist() == [0.5]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("num_buckets: 100", "num_buckets: 101"),
        ("num_buckets: 100", "hash_bucket_size: 100"),
        ('num_buckets: 100 default_value: "1"', 'num_buckets: 100 default_value: "2"'),
        ('vocab_list: ["a", "b"]', 'vocab_list: ["b", "a"]'),
        ("num_buckets: 100", 'num_buckets: 100 separator: "|"'),
        ("num_buckets: 100", "num_buckets: 100 value_dim: 1"),
    ],
)
def test_digest_tells_apart_what_computes_differently(build: Build, one: str, other: str) -> None:
    assert build(ID.replace("num_buckets: 100", one)).digest() != build(ID.replace("num_buckets: 100", other)).digest()


def test_digest_ignores_what_the_model_alone_sees(build: Build) -> None:
    assert build(ID).digest() == build(ID.replace("embedding_dim: 4", "embedding_dim: 8")).digest()


def test_digest_of_a_vocabulary_file_is_that_of_its_content(build: Build, tmp_path: object) -> None:
    digests = []
    for content in ("a\nb\n", "a\nc\n", "a\nb\n"):
        (tmp_path / "words").write_text(content)  # type: ignore[operator]
        words = f'vocab_file: "{tmp_path}/words" default_bucketize_value: 0'
        digests.append(build(ID.replace("num_buckets: 100", words)).digest())
    assert digests[0] == digests[2] != digests[1]


SEQUENCE = (
    'feature_configs { sequence_id_feature { feature_name: "f" expression: "user:f" embedding_dim: 4 num_buckets: 9 } }'
)


@pytest.mark.parametrize(
    ("features", "options", "message"),
    [
        ("", {}, "feature_configs is empty"),
        (ID + ID, {}, "'f' occur twice"),
        (ID.replace("user:f", "nobody:f"), {}, "expression 'nobody:f' must be side:column"),
        (ID.replace("num_buckets: 100", ""), {}, "one of zch, hash_bucket_size"),
        (ID.replace("num_buckets: 100", 'num_buckets: 9 vocab_list: "a"'), {}, "a feature has one bucketizer"),
        (ID.replace("num_buckets: 100", 'vocab_file: "/nowhere"'), {}, "needs default_bucketize_value"),
        (
            ID.replace("num_buckets: 100", 'vocab_file: "/nowhere" default_bucketize_value: 0'), {},
            "'/nowhere' cannot be read",
        ),
        (ID.replace("num_buckets: 100", 'vocab_list: ["a", "a"]'), {}, "vocab_list holds 'a' 2 times"),
        (ID.replace("num_buckets: 100", 'num_buckets: 9 separator: "||"'), {}, "one ASCII character"),
        (ID.replace("num_buckets: 100", 'num_buckets: 9 default_value: "x"'), {}, "'x' is not an integer"),
        (ID.replace("embedding_dim: 4", "embedding_dim: 0"), {}, "embedding_dim must be greater"),
        (
            RAW.replace('"user:f"', '"user:f" normalizer: "method=expression,expr=x*y"'), {},
            "'y' is no variable",
        ),
        (RAW.replace('"user:f"', '"user:f" normalizer: "method=minmax,min=1,max=1"'), {}, "min must be less than max"),
        (RAW.replace('"user:f"', '"user:f" boundaries: [2, 1] embedding_dim: 4'), {}, "ascending"),
        (RAW.replace('"user:f"', '"user:f" default_value: "x"'), {}, "must be numbers"),
        (SEQUENCE.replace("num_buckets: 9", "num_buckets: 9 weighted: true"), {}, "a sequence cannot be weighted"),
        (ID.replace("user:f", "feature:g"), {"mode": "FG_DAG"}, "feature:g is no feature"),
        (ID, {"data": "sample_mask_prob: 1.5"}, "sample_mask_prob must be in 0 ... 1"),
        (ID, {"data": 'label_fields: "y" label_fields: "y"'}, "must not name a column twice"),
        (
            ID.replace('"f"', '"a"').replace("num_buckets: 100", 'num_buckets: 9 embedding_name: "f_emb"') + ID, {},
            "describe it differently",
        ),
    ],
)  # fmt: skip
def test_create_refuses_what_it_cannot_build(
    build: Build, features: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(FeatureConfigError, match=message):
        build(features, **options)


def test_features_describe_themselves(build: Build) -> None:
    features = build(ZCH.replace("zch_size: 100", "zch_size: 100 hash { ttl_ms: 5 admission_count: 3 }"))
    assert isinstance(features, Set)
    table = features.features[0].embedding
    assert table is not None and table.zch is not None
    assert (table.name, table.num_embeddings, table.zch.policy) == ("f_emb", 100, "hash")
    assert (table.zch.ttl_ms, table.zch.admission_count) == (5, 3)
    assert features.features[0].is_user
    assert features.columns == ("f",)


def test_validate_of_many_rows_allows_only_the_bad_ones_to_cost(build: Build) -> None:
    values = np.zeros(50_000, np.float32)
    values[123] = np.nan
    assert build(RAW, mode="FG_NONE").validate(pa.record_batch({"f": values})).rows.tolist() == [123]


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="pinned memory needs an accelerator")
def test_batch_is_pinned_whole(build: Build) -> None:
    rows = pa.record_batch({"f": [1, 2], "y": [[1.0, 0.0], []], "w": [1.0, 1.0]})
    batch = build(ID + RAW.replace('"f"', '"r"'), data=LABELS).parse(rows).pin_memory()
    assert batch.dense_features[BASE].values().is_pinned()
    assert batch.sparse_features[BASE].values().is_pinned()
    assert batch.jagged_labels["y"].values().is_pinned()
    assert batch.sample_weights["w"].is_pinned()


@pytest.mark.parametrize("mode", ["FG_NONE", "FG_NORMAL"])
def test_parse_reads_sliced_maps_with_nulls(build: Build, mode: str) -> None:
    column = pa.array([[(9, 9.0)], [(1, 0.5), (2, 0.25)], None, [], [(3, 1.5)]], pa.map_(pa.int32(), pa.float64()))
    features = build(WEIGHT, mode=mode)
    rows = pa.record_batch({"f": column}).slice(1)
    assert not features.validate(rows)
    tensor = features.parse(rows).sparse_features[WEIGHTED]
    assert tensor.values().tolist() == [1, 2, 3]
    assert tensor.weights().tolist() == [0.5, 0.25, 1.5]
    assert tensor.lengths().tolist() == [2, 0, 0, 1]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([7, 8, None], pa.int64()).dictionary_encode(),
        pa.array([7, 8, None], pa.uint8()),
        pa.array([[7], [8], None], pa.list_(pa.int64(), 1)),
        pa.array([["7"], ["8"], None], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        pa.array([["7"], ["8"], []], pa.large_list(pa.large_string())),
    ],
)
def test_parse_reads_rare_types(build: Build, column: pa.Array) -> None:
    rows = pa.record_batch({"f": column})
    features = build(ID)
    assert not features.validate(rows)
    tensor = features.parse(rows).sparse_features[BASE]
    assert (tensor.values().tolist(), tensor.lengths().tolist()) == ([7, 8], [1, 1, 0])


def test_an_all_null_column_is_missing_everywhere(build: Build) -> None:
    rows = pa.record_batch({"f": pa.nulls(2)})
    assert build(ID).parse(rows).sparse_features[BASE].lengths().tolist() == [0, 0]
    assert build(RAW).parse(rows).dense_features[BASE].values().tolist() == [[0.0], [0.0]]


def test_threads_share_a_feature_set(build: Build) -> None:
    features = build(ID + RAW.replace('"f"', '"r"').replace("user:f", "user:r"), mode="FG_NONE")
    kinds = [(pa.int64(), pa.float32()), (pa.int32(), pa.float64())]
    batches = [
        pa.record_batch({"f": pa.array(range(50), one), "r": pa.array(range(50), two)}) for one, two in kinds * 2
    ]
    with ThreadPoolExecutor(4) as pool:
        parsed = list(pool.map(lambda index: features.parse(batches[index % 4]), range(200)))
    for batch in parsed:
        assert batch.sparse_features[BASE].values().tolist() == list(range(50))
        assert batch.dense_features[BASE].values().reshape(-1).tolist() == list(range(50))
