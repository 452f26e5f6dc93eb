"""Vectors of the reference for id and raw features: models_and_features.md 0 and 1.10, feature_generation.md 10."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from features import Batch
from features.spec import BASE, WEIGHTED
from stream.hashing import hash_bytes

Run = Callable[..., Batch]


def identity(options: str) -> str:
    return f'feature_configs {{ id_feature {{ feature_name: "f" expression: "user:f" embedding_dim: 4 {options} }} }}'


def raw(options: str) -> str:
    return f'feature_configs {{ raw_feature {{ feature_name: "f" expression: "user:f" {options} }} }}'


def ids(batch: Batch) -> tuple[list[int], list[int]]:
    tensor = batch.sparse_features[BASE]["f"]
    return tensor.values().tolist(), tensor.lengths().tolist()


def numbers(batch: Batch) -> list[list[float]]:
    return batch.dense_features[BASE].values().tolist()


def narrow(values: list[float]) -> list[float]:
    return np.array(values, np.float32).tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc", 3663726644998027833),
        ("item_1", 7318647351007264496),
        ("42", 12271353895611140273),
        ("hello world, this is long", 2369277252547399713),
        ("ab", 5498234120169091963),
        ("12345678", 10113836418918046885),
        ("123456789012345", 13184879723193374481),
        ("中文", 9854956157463167294),
        ("0.1", 13505650707917445487),
        ("-1", 5772613860019636650),
    ],
)
def test_hash_equals_the_references_64_bits(text: str, expected: int) -> None:
    assert hash_bytes(text.encode()) == expected


HASH_100 = {
    "abc": 33, "efg": 44, "hij": 66, "xyz": 13, "0": 26, "1": 95, "2": 70, "3": 13, "4": 56, "x": 35, "y": 30, "z": 54,
    "_": 26, "ua_ia": 37, "ua_ib": 90, "ub_ia": 5, "ub_ib": 97, "uc_ic": 60, "ud_ic": 56, "ug_id": 40, "ug_ie": 57,
    "uh_if": 55, "ua_abc": 2, "ua_efg": 42, "ua_hij": 3, "ub_hij": 23, "match_feat_1": 71, "10_1": 93, "11_1": 23,
    "12_1": 25, "13_2": 38, "0_3": 12,
}  # fmt: skip


def test_id_hashes_as_the_reference_modulo_100(run: Run) -> None:
    batch = run(identity("hash_bucket_size: 100"), pa.array(list(HASH_100)))
    assert ids(batch)[0] == list(HASH_100.values())


def test_id_hashes_as_the_reference_modulo_10(run: Run) -> None:
    assert ids(run(identity("hash_bucket_size: 10"), pa.array(["1", "2", "3", "4", "5"])))[0] == [5, 0, 3, 6, 9]


def test_id_of_a_zero_collision_table_is_the_hash_modulo_2_to_63_less_1(run: Run) -> None:
    batch = run(identity("zch { zch_size: 100 }"), pa.array([42]))
    assert ids(batch)[0] == [3047981858756364466]


ID_CASES = [
    ("hash_bucket_size: 100", ["abc\x1defg", None, "hij"], [33, 44, 66], [2, 0, 1]),
    ('hash_bucket_size: 100 default_value: "xyz"', ["abc\x1defg", None, "hij"], [33, 44, 13, 66], [2, 1, 1]),
    ("hash_bucket_size: 100", [1, 2, None, 3], [95, 70, 13], [1, 1, 0, 1]),
    ('hash_bucket_size: 100 default_value: "4"', [1, 2, None, 3], [95, 70, 56, 13], [1, 1, 1, 1]),
    ('vocab_list: ["abc", "efg"]', ["abc\x1defg", "", "hij"], [2, 3, 1], [2, 0, 1]),
    ('vocab_list: ["abc", "efg"] default_value: "xyz"', ["abc\x1defg", "", "hij"], [2, 3, 0, 1], [2, 1, 1]),
    ('vocab_list: ["abc", "efg"] default_value: "abc"', ["abc\x1defg", "", "hij"], [2, 3, 2, 1], [2, 1, 1]),
    (
        'vocab_list: ["xyz", "abc", "efg"] default_bucketize_value: 0',
        ["abc\x1defg", "", "hij"], [1, 2, 0], [2, 0, 1],
    ),
    (
        'vocab_list: ["xyz", "abc", "efg"] default_bucketize_value: 0 default_value: "xyz"',
        ["abc\x1defg", "", "hij"], [1, 2, 0, 0], [2, 1, 1],
    ),
    (
        'vocab_dict { key: "abc" value: 2 } vocab_dict { key: "efg" value: 2 }',
        ["abc\x1defg", "", "hij"], [2, 2, 1], [2, 0, 1],
    ),
    (
        'vocab_dict { key: "abc" value: 2 } vocab_dict { key: "efg" value: 2 } default_value: "xyz"',
        ["abc\x1defg", "", "hij"], [2, 2, 0, 1], [2, 1, 1],
    ),
    (
        'vocab_dict { key: "abc" value: 2 } vocab_dict { key: "efg" value: 2 } default_value: "abc"',
        ["abc\x1defg", "", "hij"], [0, 2, 0, 1], [2, 1, 1],
    ),
    (
        'vocab_dict { key: "abc" value: 1 } vocab_dict { key: "efg" value: 1 } default_bucketize_value: 0',
        ["abc\x1defg", "", "hij"], [1, 1, 0], [2, 0, 1],
    ),
    ("num_buckets: 100", ["0\x1d1", "", "2"], [0, 1, 2], [2, 0, 1]),
    ('num_buckets: 100 default_value: "3"', ["0\x1d1", "", "2"], [0, 1, 3, 2], [2, 1, 1]),
    ('num_buckets: 100 default_value: "99"', [-1, 0, 99, 100, 101, 2**63 - 1, None], [0, 0, 99, 0, 0, 0, 99], [1] * 7),
    (
        'num_buckets: 100 default_value: "99"',
        ["-1", "99", "100", "9223372036854775807", None], [0, 99, 0, 0, 99], [1] * 5,
    ),
    ("num_buckets: 100", ["+01", "00099", "9223372036854775808", "-9223372036854775809"], [1, 99, 0, 0], [1] * 4),
    (
        'num_buckets: 100 default_value: "1"',
        [["0", "1"], [], None, ["99", "100"]], [0, 1, 1, 1, 99, 0], [2, 1, 1, 2],
    ),
    ('num_buckets: 100 separator: "-" default_value: "-1"', ["3-4", None], [3, 4, 0], [2, 1]),
    ("num_buckets: 2147483659", [2**63 - 1, 2147483647], [0, 2147483647], [1, 1]),
]  # fmt: skip


@pytest.mark.parametrize(("options", "column", "values", "lengths"), ID_CASES)
def test_id_equals_the_reference(
    run: Run, options: str, column: list[object], values: list[int], lengths: list[int]
) -> None:
    assert ids(run(identity(options), pa.array(column))) == (values, lengths)


VOCAB_FILES = [
    ("<BLK>\n<OOV>\nabc\nefg\n", "", [2, 3, 1], 4),
    ("xyz\n<OOV>\nabc\nefg\n", "xyz", [2, 3, 0, 1], 4),
    ("  0\n<OOV> 1\nabc 2\nefg 2\n", "", [2, 2, 1], 3),
    ("xyz 0\n<OOV> 1\nabc 2\nefg 2\n", "xyz", [2, 2, 0, 1], 3),
]


@pytest.mark.parametrize(("content", "default", "values", "size"), VOCAB_FILES)
def test_id_reads_vocabulary_files(
    run: Run, build: Callable[..., object], tmp_path: Path, content: str, default: str, values: list[int], size: int
) -> None:
    (tmp_path / "words").write_text(content)
    options = f'vocab_file: "words" asset_dir: "{tmp_path}" default_bucketize_value: 1 default_value: "{default}"'
    assert ids(run(identity(options), pa.array(["abc\x1defg", "", "hij"])))[0] == values
    assert build(identity(options)).features[0].embedding.num_embeddings == size  # type: ignore[attr-defined]


def test_weighted_id_equals_the_reference(run: Run) -> None:
    column = pa.array(["123:0.5", "1391:0.3", None, "12:0.9\x1d123:0.21", ""])
    tensor = run(identity("num_buckets: 100000 weighted: true"), column).sparse_features[WEIGHTED]["f"]
    assert tensor.values().tolist() == [123, 1391, 12, 123]
    assert tensor.lengths().tolist() == [1, 1, 0, 2, 0]
    assert tensor.weights().tolist() == narrow([0.5, 0.3, 0.9, 0.21])


ENCODED = [
    (["1;2;3", "", None, "4"], "", [1, 2, 3, 4], [3, 0, 0, 1]),
    (["1;2;3", "", None, "4"], "0", [1, 2, 3, 0, 0, 4], [3, 1, 1, 1]),
    ([[1, 2, 3], [], None, [4]], "", [1, 2, 3, 4], [3, 0, 0, 1]),
    ([[1, 2, 3], [], None, [4]], "0", [1, 2, 3, 0, 0, 4], [3, 1, 1, 1]),
    ([1, 2, None, 4], "", [1, 2, 4], [1, 1, 0, 1]),
    ([1, 2, None, 4], "0", [1, 2, 0, 4], [1, 1, 1, 1]),
]


@pytest.mark.parametrize(("column", "default", "values", "lengths"), ENCODED)
def test_encoded_ids_equal_the_reference(
    run: Run, column: list[object], default: str, values: list[int], lengths: list[int]
) -> None:
    options = identity(f'num_buckets: 100 fg_encoded_default_value: "{default}"')
    batch = run(options, pa.array(column), mode="FG_NONE", data='fg_encoded_multival_sep: ";"')
    assert ids(batch) == (values, lengths)


@pytest.mark.parametrize(
    ("column", "default", "values", "weights"),
    [
        (
            pa.array(["1:0.1;2:0.2;3:0.3", "", None, "4:0.4"]),
            "0",
            [1, 2, 3, 0, 0, 4],
            [0.1, 0.2, 0.3, 1.0, 1.0, 0.4],
        ),
        (pa.array(["1:0.1;2:0.2;3:0.3", "", None, "4:0.4"]), "", [1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4]),
        (
            pa.array([[(1, 0.1)], [(2, 0.2)], None, [(4, 0.4)]], pa.map_(pa.int64(), pa.float32())),
            "0",
            [1, 2, 0, 4],
            [0.1, 0.2, 1.0, 0.4],
        ),
    ],
)
def test_encoded_weighted_ids_equal_the_reference(
    run: Run, column: pa.Array, default: str, values: list[int], weights: list[float]
) -> None:
    options = identity(f'num_buckets: 100 weighted: true fg_encoded_default_value: "{default}"')
    tensor = run(options, column, mode="FG_NONE", data='fg_encoded_multival_sep: ";"').sparse_features[WEIGHTED]["f"]
    assert tensor.values().tolist() == values
    assert tensor.weights().tolist() == narrow(weights)


def test_encoded_dense_equals_the_reference(run: Run) -> None:
    options = raw('value_dim: 2 fg_encoded_default_value: "0:0"')
    batch = run(options, pa.array(["1:2", "0:0", "3:1", None]), mode="FG_NONE", data='fg_encoded_multival_sep: ":"')
    assert numbers(batch) == [[1, 2], [0, 0], [3, 1], [0, 0]]


def test_encoded_dense_casts_integers_through_float32(run: Run) -> None:
    assert numbers(run(raw(""), pa.array([25304793, 16777217]), mode="FG_NONE")) == [[25304792], [16777216]]


RAW_BUCKETS = [
    ('boundaries: [.1, .2, .3] default_value: ""', [0.05, 0.1, 0.2, 0.3, None], [0, 1, 2, 3, 0], [1] * 5),
    ('boundaries: [.1, .2] default_value: ""', [0, 1, None], [0, 2, 0], [1] * 3),
    ('boundaries: [-2, -1] default_value: ""', [-3.0, -2.0, -1.0, None], [0, 1, 2, 2], [1] * 4),
    ('boundaries: [0] default_value: ""', [-1.0, 0.0, 1.0, None], [0, 1, 1, 1], [1] * 4),
    ('boundaries: [.1, .2] default_value: ""', ["0.05", "0.1", "", None], [0, 1], [1, 1, 0, 0]),
    ('boundaries: [.1, .2] default_value: ""', [[0.2], [], None], [2], [1, 0, 0]),
    ('value_dim: 2 boundaries: [.1, .2] default_value: ""', [[0.1, 0.2], [], None], [1, 2], [2, 0, 0]),
    (
        'value_dim: 2 boundaries: [.1, .2] default_value: ".1\\x1d.3"',
        [[0.1, 0.2], [], None], [1, 2, 1, 2, 1, 2], [2, 2, 2],
    ),
    ('boundaries: [.1, .2] default_value: "0.2"', [0.05, None], [0, 2], [1, 1]),
    (
        'boundaries: [-1, 0, 1] default_value: "" normalizer: "method=zscore,mean=10,standard_deviation=1"',
        [0.0, None], [0, 2], [1, 1],
    ),
    (
        'boundaries: [.01, .1] default_value: "0.1" normalizer: "method=zscore,mean=.1,standard_deviation=10"',
        [0.2, None], [1, 2], [1, 1],
    ),
    ('boundaries: [.05, .15, .25] default_value: ".1"', [0.2, 0.1, 0.3, None], [2, 1, 3, 1], [1] * 4),
    ('boundaries: [.05, .15, .25] default_value: ""', ["0.2", "", "0.3"], [2, 3], [1, 0, 1]),
    (
        'value_dim: 2 boundaries: [.05, .15, .25] default_value: ".1\\x1d.4"',
        ["0.2\x1d0.5", "", "0.3\x1d0.6"], [2, 3, 1, 3, 3, 3], [2, 2, 2],
    ),
    (
        'value_dim: 2 boundaries: [.05, .15, .25] default_value: ".1\\x1d.4"',
        [["0.2", "0.5"], [], ["0.3", "0.6"]], [2, 3, 1, 3, 3, 3], [2, 2, 2],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("options", "column", "values", "lengths"), RAW_BUCKETS)
def test_raw_with_boundaries_equals_the_reference(
    run: Run, options: str, column: list[object], values: list[int], lengths: list[int]
) -> None:
    assert ids(run(raw(f"embedding_dim: 4 {options}"), pa.array(column))) == (values, lengths)


LOG = [0, 0.05, 0.1, 1, 10, None]
RAW_DENSE = [
    ('default_value: "0.1" normalizer: "method=log10"', LOG, [0, 0, 0, 0, 1, 0.1]),
    ('default_value: "0.1" normalizer: "method=log10,threshold=.05"', LOG, [0, 0, -1, 0, 1, 0.1]),
    ('default_value: "0.1" normalizer: "method=log10,default=-5"', LOG, [-5, -5, -5, -5, 1, 0.1]),
    ('default_value: "0.01" normalizer: "method=log10,threshold=.05,default=-5"', ["0.1", "", "10"], [-1, 0.01, 1]),
    ('normalizer: "method=zscore,mean=.1,standard_deviation=10"', [0.2, 0.1, 0.3], [0.01, 0, 0.02]),
    ('default_value: ".1" normalizer: "method=minmax,min=.1,max=.6"', [0.2, 0.3, None], [0.2, 0.4, 0.1]),
    ('default_value: ".1"', ["0.202392938293829442", "", "0.3", None], [0.20239294, 0.1, 0.3, 0.1]),
    ('default_value: ".1"', [0.2, 0.1, 0.3, None], [0.2, 0.1, 0.3, 0.1]),
]


@pytest.mark.parametrize(("options", "column", "expected"), RAW_DENSE)
def test_raw_numbers_equal_the_reference(run: Run, options: str, column: list[object], expected: list[float]) -> None:
    kind = pa.float32() if isinstance(column[0], float | int) else None
    found = [row[0] for row in numbers(run(raw(options), pa.array(column, kind)))]
    assert found == pytest.approx(expected, abs=1e-7)


RAW_VECTORS = [
    (
        'value_dim: 2 default_value: "0.1\\x1d0.4" normalizer: "method=minmax,min=.1,max=.6"',
        ["0.2\x1d0.5", "", "0.3\x1d0.6"], [[0.2, 0.8], [0.1, 0.4], [0.4, 1.0]],
    ),
    (
        'value_dim: 2 default_value: ".1\\x1d.4"',
        [["0.2", "0.5"], None, ["0.3", "0.6"]], [[0.2, 0.5], [0.1, 0.4], [0.3, 0.6]],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("options", "column", "expected"), RAW_VECTORS)
def test_raw_vectors_equal_the_reference(
    run: Run, options: str, column: list[object], expected: list[list[float]]
) -> None:
    assert np.array(numbers(run(raw(options), pa.array(column)))) == pytest.approx(np.array(expected), abs=1e-7)


EIGHT = "0.1|0.2|0.3|0.4|0.5|0.6|0.7|0.8"
EIGHT_OPTIONS = 'value_dim: 8 separator: "|" normalizer: "method=zscore,mean=.1,standard_deviation=.3"'


def test_raw_of_text_normalises_in_double_with_rounded_parameters(run: Run) -> None:
    expected = [-4.967053e-09, 0.3333333, 0.6666666, 0.99999994, 1.3333333, 1.6666666, 1.9999999, 2.3333333]
    assert numbers(run(raw(EIGHT_OPTIONS), pa.array([EIGHT])))[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("column", [[EIGHT], [EIGHT.split("|")]])
def test_raw_of_text_bucketizes_what_double_arithmetic_gives(run: Run, column: list[object]) -> None:
    options = raw(f"embedding_dim: 4 boundaries: [-1, 0, .1, .5, 1] {EIGHT_OPTIONS}")
    assert ids(run(options, pa.array(column)))[0] == [1, 3, 4, 4, 5, 5, 5, 5]


def test_raw_of_float32_normalises_in_float32(run: Run) -> None:
    options = raw('normalizer: "method=zscore,mean=.1,standard_deviation=.3"')
    assert numbers(run(options, pa.array([0.1], pa.float32()))) == [[0.0]]
