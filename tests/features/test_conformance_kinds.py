"""Vectors of the reference for kinds of several columns: models_and_features.md 1.10, feature_generation.md 10."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from features import BASE, FeatureSet
from features.generator import Dense, Sparse

Build = Callable[..., FeatureSet]
Cells = list[object] | pa.Array


def make(build: Build, kind: str, options: str, *, data: str = "", **columns: Cells) -> Sparse | Dense:
    """What one feature "f" makes of rows that are all good."""
    features = build(f'feature_configs {{ {kind} {{ feature_name: "f" {options} }} }}', data=data)
    given = {name: cells if isinstance(cells, pa.Array) else pa.array(cells) for name, cells in columns.items()}
    rows = pa.record_batch(given)
    errors = features.validate(rows)
    assert not errors, (errors.rows, errors.reasons, errors.details)
    made = features.made(rows)["f"]
    assert isinstance(made, Sparse | Dense)
    features.parse(rows)
    return made


def ids(made: Sparse | Dense) -> tuple[list[int], list[int]]:
    assert isinstance(made, Sparse)
    lengths = [1] * len(made.values) if made.lengths is None else made.lengths.tolist()
    return made.values.tolist(), lengths


def numbers(made: Sparse | Dense) -> list[object]:
    assert isinstance(made, Dense)
    return made.values.tolist()


def narrow(values: list[object]) -> list[object]:
    return np.array(values, np.float32).tolist()


# combo

COMBO = 'expression: "user:u" expression: "item:i" embedding_dim: 4'
U: Cells = ["ua\x1dub", "uc\x1dud", "uee\x1duf", "ug", "uh", "uj", "", None, ""]
I: Cells = ["ia\x1dib", "ic", "", "id\x1die", "if", None, "ig\x01dih", "ij", ""]  # noqa: E741


def test_combo_hashes_the_product(build: Build) -> None:
    made = make(build, "combo_feature", f"{COMBO} hash_bucket_size: 100", u=U, i=I)
    assert ids(made) == ([37, 90, 5, 97, 60, 56, 40, 57, 55], [4, 2, 0, 2, 1, 0, 0, 0, 0])


def test_combo_gives_the_default_to_rows_that_lack_a_side(build: Build) -> None:
    made = make(build, "combo_feature", f'{COMBO} hash_bucket_size: 100 default_value: "xyz"', u=U, i=I)
    assert ids(made) == ([37, 90, 5, 97, 60, 56, 13, 40, 57, 55, 13, 13, 13, 13], [4, 2, 1, 2, 1, 1, 1, 1, 1])


def test_combo_with_a_vocabulary(build: Build) -> None:
    made = make(
        build, "combo_feature", f'{COMBO} vocab_list: ["ua_ia", "ua_ib", "ub_ia"]',
        u=["ua\x1dub", "ua\x1dub", "ua\x1dub", "ua", "ua", "ua", None, "", ""],
        i=["ia\x1dib", "ia", "", "ia\x1dib", "ib", "", "ia", "ia", None],
    )  # fmt: skip
    assert ids(made) == ([2, 3, 4, 1, 2, 4, 2, 3, 3], [4, 2, 0, 2, 1, 0, 0, 0, 0])


def test_combo_of_integers(build: Build) -> None:
    made = make(build, "combo_feature", f"{COMBO} hash_bucket_size: 100", u=[[10, 11, 12], [13]], i=[1, 2])
    assert ids(made) == ([93, 23, 25, 38], [3, 1])


def test_combo_keeps_the_first_value_dim_values(build: Build) -> None:
    made = make(build, "combo_feature", f"{COMBO} hash_bucket_size: 100 value_dim: 1", u=U[:2], i=I[:2])
    assert ids(made) == ([37, 60], [1, 1])


# combine

COMBINE = 'expression: "user:f"'


@pytest.mark.parametrize(
    ("combiner", "expected"), [("sum", [3, 3, 0, 0]), ("mean", [1.5, 3, 0, 0]), ("avg", [1.5, 3, 0, 0])]
)
def test_combine_is_one_number(build: Build, combiner: str, expected: list[object]) -> None:
    made = make(
        build,
        "combine_feature",
        f'{COMBINE} combiner: "{combiner}" default_value: "0"',
        f=["1.0\x1d2.0", "3.0", "", None],
    )
    assert numbers(made) == expected


@pytest.mark.parametrize(("combiner", "expected"), [("sum", [4, 1, 1, 1]), ("mean", [3, 1, 1, 1])])
def test_combine_with_boundaries(build: Build, combiner: str, expected: list[int]) -> None:
    options = f'{COMBINE} combiner: "{combiner}" default_value: "0" boundaries: [-.5, .5, 1.5, 2.5] embedding_dim: 4'
    assert ids(make(build, "combine_feature", options, f=["1.0\x1d2.0", "0.0", "", None]))[0] == expected


@pytest.mark.parametrize(("combiner", "expected"), [("sum", [3, 3, 0, 0]), ("mean", [1, 3, 0, 0])])
def test_combine_with_num_buckets_truncates(build: Build, combiner: str, expected: list[int]) -> None:
    options = f'{COMBINE} combiner: "{combiner}" default_value: "0" num_buckets: 10 embedding_dim: 4'
    assert ids(make(build, "combine_feature", options, f=["1\x1d2", "3", "", None])) == (expected, [1, 1, 1, 1])


def test_combine_with_num_buckets_and_no_default_has_no_id(build: Build) -> None:
    options = f"{COMBINE} num_buckets: 10 embedding_dim: 4"
    assert ids(make(build, "combine_feature", options, f=["1\x1d2", "3", "", None])) == ([3, 3], [1, 1, 0, 0])


def test_combine_maps_values(build: Build) -> None:
    words = " ".join(f'value_map {{ key: "tag{k}" value: {k} }}' for k in (1, 2, 3))
    made = make(
        build,
        "combine_feature",
        f'{COMBINE} {words} default_value: "0"',
        f=["tag1\x1dtag2", "tag3", "", None, "x\x1dtag2"],
    )
    assert numbers(made) == [3, 3, 0, 0, 2]


# lookup

LOOKUP = 'map: "user:m" key: "item:k"'
MAPS: Cells = ["ca:1\x1dcb:2"] * 5 + ["", ""]
KEYS: Cells = ["ca\x1dcb", "ca", "ca\x1dcd", "cd", "", "ca", ""]


@pytest.mark.parametrize(("combiner", "first"), [("sum", 3), ("mean", 1.5), ("max", 2), ("min", 1), ("count", 2)])
def test_lookup_combines_its_hits(build: Build, combiner: str, first: float) -> None:
    made = make(build, "lookup_feature", f'{LOOKUP} combiner: "{combiner}"', m=MAPS, k=KEYS)
    assert numbers(made) == [first, 1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("default", ["", "0"])
def test_lookup_with_num_buckets(build: Build, default: str) -> None:
    made = make(
        build, "lookup_feature", f'{LOOKUP} num_buckets: 10 embedding_dim: 4 default_value: "{default}"', m=MAPS, k=KEYS
    )
    expected = ([1, 2, 1, 1], [2, 1, 1, 0, 0, 0, 0]) if not default else ([1, 2, 1, 1, 0, 0, 0, 0], [2] + [1] * 6)
    assert ids(made) == expected


@pytest.mark.parametrize("default", ["", "z"])
def test_lookup_hashes_values_without_a_prefix(build: Build, default: str) -> None:
    maps: Cells = ["ca:x\x1dcb:y"] * 5 + ["", ""]
    made = make(
        build, "lookup_feature", f'{LOOKUP} hash_bucket_size: 100 embedding_dim: 4 default_value: "{default}"',
        m=maps, k=KEYS,
    )  # fmt: skip
    assert ids(made)[0] == [35, 30, 35, 35] + ([54] * 4 if default else [])


def test_lookup_with_boundaries_and_no_combiner_has_a_bucket_for_every_hit(build: Build) -> None:
    options = f'{LOOKUP} combiner: "" boundaries: [.5, 1.5] embedding_dim: 4 default_value: ""'
    assert ids(make(build, "lookup_feature", options, m=MAPS, k=KEYS)) == ([1, 2, 1, 1], [2, 1, 1, 0, 0, 0, 0])
    options = options.replace('default_value: ""', 'default_value: "0"')
    assert ids(make(build, "lookup_feature", options, m=MAPS, k=KEYS))[1] == [2, 1, 1, 1, 1, 1, 1]


def test_lookup_of_vectors(build: Build) -> None:
    made = make(
        build, "lookup_feature", f"{LOOKUP} value_dim: 2",
        m=["ca:1,2\x1dcb:3,4"] * 3 + ["", ""], k=["ca", "cd", "", "ca", ""],
    )  # fmt: skip
    assert numbers(made) == [[1, 2], [0, 0], [0, 0], [0, 0], [0, 0]]


def test_lookup_cuts_at_the_first_colon_and_takes_the_last_of_equal_keys(build: Build) -> None:
    options = f'{LOOKUP} hash_bucket_size: 100 embedding_dim: 4 default_value: ""'
    made = make(build, "lookup_feature", options, m=["a:x\x1db\x1da:abc", "a:1:2"], k=["a\x1db\x1da", "a"])
    expected = make(
        build, "id_feature", 'expression: "user:f" embedding_dim: 4 hash_bucket_size: 100', f=["abc\x1dabc", "1:2"]
    )
    assert ids(made) == ids(expected)


@pytest.mark.parametrize(
    "maps",
    [
        pa.array([[("1", 0.1), ("3", 0.2)], None, [("1", 0.1), ("3", 0.2)]], pa.map_(pa.string(), pa.float32())),
        pa.array([[(1, 0.1), (3, 0.2)], [], [(1, 0.1), (3, 0.2)]], pa.map_(pa.int64(), pa.float64())),
        pa.array(["1:0.1\x1d3:0.2", "", "1:0.1\x1d3:0.2"]),
        pa.array([["1:0.1", "3:0.2"], [], ["1:0.1", "3:0.2"]]),
    ],
)
@pytest.mark.parametrize("keys", [[1, 2, 3], ["1", "2", "3"], [[1], [2], [3]]])
def test_lookup_of_every_form(build: Build, maps: pa.Array, keys: list[object]) -> None:
    assert numbers(make(build, "lookup_feature", LOOKUP, m=maps, k=keys)) == narrow([0.1, 0, 0.2])


def test_lookup_need_key_puts_the_key_in_front(build: Build) -> None:
    options = f'{LOOKUP} need_key: true embedding_dim: 4 default_value: "" vocab_list: ["a_x", "b_x"]'
    assert ids(make(build, "lookup_feature", options, m=["a:x\x1db:x"], k=["b\x1da"]))[0] == [3, 2]


# match

MATCH = 'nested_map: "user:m" pkey: "item:c" skey: "item:b"'
NESTED: Cells = ["ca^ba:1,bb:2|cb^ba:3,bb:4"] * 3 + ["", ""]
CATE: Cells = ["ca", "ca", "", "ca", None]
BRAND: Cells = ["ba", "", "", "ba", None]


def match(build: Build, options: str, name: str = "match_feat", nested: Cells = NESTED) -> Sparse | Dense:
    features = build(f'feature_configs {{ match_feature {{ feature_name: "{name}" {MATCH} {options} }} }}')
    rows = pa.record_batch({"m": pa.array(nested), "c": pa.array(CATE), "b": pa.array(BRAND)})
    assert not features.validate(rows)
    made = features.made(rows)[name]
    assert isinstance(made, Sparse | Dense)
    return made


def test_match_is_a_number(build: Build) -> None:
    assert numbers(match(build, "")) == [1, 0, 0, 0, 0]


def test_match_with_boundaries(build: Build) -> None:
    options = "boundaries: [0, 1, 2] embedding_dim: 4"
    assert ids(match(build, options))[0] == [2, 1, 1, 1, 1]
    assert ids(match(build, f'{options} default_value: ""')) == ([2], [1, 0, 0, 0, 0])


def test_match_with_num_buckets_reads_the_bare_value(build: Build) -> None:
    assert ids(match(build, "num_buckets: 10 embedding_dim: 4"))[0] == [1, 0, 0, 0, 0]


def test_match_hashes_its_name_and_value_but_its_default_alone(build: Build) -> None:
    options = "hash_bucket_size: 100 embedding_dim: 4 default_value:"
    assert ids(match(build, f'{options} ""')) == ([71], [1, 0, 0, 0, 0])
    assert ids(match(build, f'{options} "z"'))[0] == [71, 54, 54, 54, 54]


def test_match_with_a_vocabulary_of_bare_values(build: Build) -> None:
    assert ids(match(build, 'vocab_dict { key: "1" value: 2 } embedding_dim: 4'))[0] == [2, 0, 0, 0, 0]


def test_match_reads_arrow_maps(build: Build) -> None:
    nested = pa.array([[("ca", "ba:1,bb:2"), ("cb", "ba:3")]] * 3 + [[], None], pa.map_(pa.string(), pa.string()))
    assert numbers(match(build, "", nested=nested)) == [1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("pkey", "skey", "expected"),
    [("ALL", "item:k", [5, 3]), ("item:k", "ALL", []), ("item:p", "ALL", [2, 3])],
)
def test_match_all_gives_every_entry(build: Build, pkey: str, skey: str, expected: list[int]) -> None:
    options = f'nested_map: "user:m" pkey: "{pkey}" skey: "{skey}" num_buckets: 9 embedding_dim: 4 default_value: ""'
    made = make(build, "match_feature", options, m=["p^a:1,b:2,a:3|q^a:5"], k=["a"], p=["p"])
    assert sorted(ids(made)[0]) == sorted(expected)


def test_match_stops_at_a_malformed_part(build: Build) -> None:
    options = 'nested_map: "user:m" pkey: "item:p" skey: "item:s"'
    made = make(
        build, "match_feature", options, m=["a^x:1| b ^ y : 2 |c^x|d^x:4"] * 3, p=["a", "b", "d"], s=["x", "y", "x"]
    )
    assert numbers(made) == [1, 2, 0]


# overlap


def overlap(build: Build, method: str, q: object, t: object) -> object:
    return numbers(make(build, "overlap_feature", f'query: "user:q" title: "item:t" method: "{method}"', q=[q], t=[t]))[
        0
    ]


@pytest.mark.parametrize(
    ("method", "q", "t", "expected"),
    [
        ("query_common_ratio", "abc\x1defg", "abc\x1dqwe\x1drty\x1duio", 0.5),
        ("title_common_ratio", "abc\x1defg", "abc\x1dqwe\x1drty\x1duio", 0.25),
        ("is_contain", "abc\x1defg", "abc\x1dqwe\x1drty\x1duio", 0),
        ("query_common_ratio", "abc\x1defg", "abc\x1defg\x1drty", 1),
        ("is_contain", "abc\x1defg", "abc\x1defg\x1drty", 1),
        ("is_equal", "abc\x1defg", "abc\x1defg\x1drty", 0),
        ("is_equal", "abc\x1defg", "abc\x1defg", 1),
        ("title_common_ratio", "abc\x1defg", "abc", 1),
        ("query_common_ratio", "abc\x1ddefg", "abc\x1dqwe\x1drty\x1duio", 0.5),
        *[
            (method, "b\x1dc", "a\x1db\x1dc\x1dd", value)
            for method, value in [
                ("is_equal", 0), ("is_contain", 1), ("index_of", 1), ("query_common_ratio", 1),
                ("title_common_ratio", 0.5), ("proximity_min_dist", 1), ("proximity_max_dist", 1),
                ("proximity_avg_dist", 1), ("proximity_min_cover", 2),
            ]
        ],
        ("index_of", "x", "a\x1db", -1),
        ("proximity_min_cover", "a\x1dx", "a\x1db", 0),
        ("proximity_avg_dist", "x", "a\x1db", 3),
        *[(method, q, t, 0) for method in ("is_equal", "index_of") for q, t in [("", ""), ("a", ""), ("", "a")]],
    ],
)  # fmt: skip
def test_overlap_methods(build: Build, method: str, q: str, t: str, expected: float) -> None:
    assert overlap(build, method, q, t) == expected
    assert overlap(build, method, q.split("\x1d") if q else [], t.split("\x1d") if t else []) == expected


def test_overlap_with_boundaries(build: Build) -> None:
    options = 'query: "user:q" title: "item:t" method: "query_common_ratio" boundaries: [.25, .75] embedding_dim: 4'
    made = make(build, "overlap_feature", options, q=["a\x1db", "a", "", None], t=["a", "a", "a", None])
    assert ids(made) == ([1, 2, 0, 0], [1, 1, 1, 1])


# kv dot product

KV = 'query: "user:q" document: "item:d" separator: "|"'
Q: Cells = ["a:0.5|b:0.5", "a|b|c", "", None]
D: Cells = ["a:0.5|b:0.5", "a|b", "a|b", "a|b"]


def test_kv_dot_product(build: Build) -> None:
    assert numbers(make(build, "kv_dot_product", f'{KV} default_value: "0.1"', q=Q, d=D)) == narrow([0.5, 2, 0.1, 0.1])


@pytest.mark.parametrize(("default", "expected"), [("0.1", [2, 3, 1, 1]), ("", [2, 3, 0, 0])])
def test_kv_dot_product_with_boundaries(build: Build, default: str, expected: list[int]) -> None:
    options = f'{KV} default_value: "{default}" boundaries: [.05, .15, 1.0] embedding_dim: 4'
    assert ids(make(build, "kv_dot_product", options, q=Q, d=D)) == (expected, [1, 1, 1, 1])


SIDES = [
    ["a:0.5|b:0.5", "a|b", "", None],
    [["a:0.5", "b:0.5"], ["a", "b"], [], None],
    pa.array([[("a", 0.5), ("b", 0.5)], [("a", 1), ("b", 1)], [], None], pa.map_(pa.string(), pa.float32())),
]


@pytest.mark.parametrize("query", SIDES)
@pytest.mark.parametrize("document", SIDES)
def test_kv_dot_product_of_every_form(build: Build, query: Cells, document: Cells) -> None:
    made = make(build, "kv_dot_product", f'{KV} default_value: "0.1"', q=query, d=document)
    assert numbers(made) == narrow([0.5, 2, 0.1, 0.1])


def test_kv_dot_product_of_the_documents(build: Build) -> None:
    assert numbers(make(build, "kv_dot_product", KV, q=["a:0.5|b:0.5"], d=["d:0.5|b:0.5"])) == [0.25]


def test_kv_dot_product_with_its_own_delimiter_and_a_normalizer(build: Build) -> None:
    options = f'{KV} kv_separator: "=" normalizer: "method=log10,threshold=1e-10,default=-10"'
    assert numbers(make(build, "kv_dot_product", options, q=["a=2|b=3"], d=["a=2|b=2"])) == [1]


# bool mask

MASK = 'expression: "user:v" expression: "user:m" embedding_dim: 4 num_buckets: 100'


@pytest.mark.parametrize(
    "mask",
    [
        ["true\x1dFalse\x1d1", "0", "", None],
        [["TRUE", "false", "2.5"], ["0"], [], None],
        [[1, 0, 1], [0], [], None],
        [[True, False, True], [False], [], None],
        [[1.0, 0.0, -1.0], [0.0], [], None],
    ],
)
def test_bool_mask_keeps_what_is_true(build: Build, mask: Cells) -> None:
    values: Cells = ["7\x1d8\x1d9", "5", "", None]
    assert ids(make(build, "bool_mask_feature", MASK, v=values, m=mask)) == ([7, 9], [2, 0, 0, 0])
    made = make(build, "bool_mask_feature", f'{MASK} default_value: "3"', v=values, m=mask)
    assert ids(made) == ([7, 9, 3, 3], [2, 0, 1, 1])


# hashes and typed values

FARM = "use_farm_hash_to_bucketize: true"
ID = 'expression: "user:f" embedding_dim: 4'


def test_farm_hash_modulo_100(build: Build) -> None:
    words: Cells = ["abc", "efg", "hij", "xyz", "4", "unknown", "Action", "Adventure", "Comedy", "1|2", "1", "2", "3"]
    made = make(build, "id_feature", f"{ID} hash_bucket_size: 100", data=FARM, f=words)
    assert ids(made)[0] == [85, 59, 95, 20, 43, 55, 40, 46, 39, 11, 49, 59, 21]


FARM_63 = {
    "中文": 6104483040626166955, "🙂": 4883054489446160629, "\u00e9": 693143013273849025,
    "e\u0301": 3027947468494914332, "a\0b": 7026922943720236280, "\0": 4494688008148699989,
    "-9223372036854775808": 1493431938208774112, "x": 4719488438812764163, "x" * 3: 3091163115821544028,
    "x" * 4: 6331921437150725295, "x" * 7: 5839026154326413872, "x" * 8: 5028140862496344703,
    "x" * 15: 1773838639343418510, "x" * 16: 3320895591121647644, "x" * 17: 2082709914559524774,
    "x" * 31: 5265493245336272416, "x" * 32: 3678204687145032710, "x" * 33: 3046993373088323128,
    "x" * 63: 3985643400710983581, "x" * 64: 6916188127298655160, "x" * 65: 4935023790501551929,
    "x" * 127: 2902271982432757929, "x" * 128: 5868382771906808855, "x" * 129: 8569775344161521335,
    "x" * 1024: 2262854945609631523,
}  # fmt: skip


def test_farm_hash_of_zero_collision_tables(build: Build) -> None:
    made = make(build, "id_feature", f"{ID} zch {{ zch_size: 9 }}", data=FARM, f=list(FARM_63))
    assert ids(made)[0] == list(FARM_63.values())


def test_farm_hash_takes_defaults_and_lists(build: Build) -> None:
    options = f'{ID} hash_bucket_size: 100 default_value: "xyz"'
    assert ids(make(build, "id_feature", options, data=FARM, f=["abc\x1defg", None, "hij"])) == (
        [85, 59, 20, 95],
        [2, 1, 1],
    )
    options = f'{ID} hash_bucket_size: 100 default_value: "unknown"'
    lists: Cells = [["Action", "Adventure"], [], None, ["Comedy"]]
    assert ids(make(build, "id_feature", options, data=FARM, f=lists)) == ([40, 46, 55, 55, 39], [2, 1, 1, 1])
    options = f'{ID} hash_bucket_size: 100 default_value: "1|2" separator: "|"'
    assert ids(make(build, "id_feature", options, data=FARM, f=["3|4", "", None])) == ([21, 43, 11, 11], [2, 1, 1])


def test_typed_floats_hash_their_bytes(build: Build) -> None:
    options = f'{ID} hash_bucket_size: 100 fg_value_type: "float" default_value: "0"'
    assert ids(make(build, "id_feature", options, f=[10.0, 20.0, 30.0, None]))[0] == [39, 63, 46, 0]
    assert ids(make(build, "id_feature", options, f=["10", "2e1", "30.0", ""]))[0] == [39, 63, 46, 0]
    options = f'{ID} num_buckets: 100 fg_value_type: "float" default_value: "0"'
    assert ids(make(build, "id_feature", options, f=[10.9, 20.0, 130.0, None]))[0] == [10, 20, 0, 0]


def test_float_columns_are_ids_as_c_writes_them(build: Build) -> None:
    options = f"{ID} hash_bucket_size: 1000000"
    texts: Cells = ["5.2", "1", "1e+06", "0.1", "-0.00012", "1e-05"]
    values = [5.2, 1.0, 1e6, 0.1, -0.00012, 1e-5]
    expected = ids(make(build, "id_feature", options, f=texts))
    assert ids(make(build, "id_feature", options, f=pa.array(values))) == expected
    assert ids(make(build, "id_feature", options, f=pa.array(values, pa.float32()))) == expected
    assert ids(make(build, "id_feature", options, f=[values]))[0] == expected[0]


def test_dynamic_embeddings_are_hash_tables_of_their_capacity(build: Build) -> None:
    text = f'feature_configs {{ id_feature {{ feature_name: "f" {ID} dynamicemb {{ max_capacity: 50 }} }} }}'
    features = build(text)
    table = features.features[0].embedding
    assert table is not None and table.zch is not None
    assert (table.num_embeddings, table.zch.size, table.zch.policy) == (50, 50, "hash")
    rows = pa.record_batch({"f": ["42"]})
    assert features.parse(rows).sparse_features[BASE].values().tolist() == [3047981858756364466]


# FG_NONE


@pytest.mark.parametrize(
    "text",
    [
        f"lookup_feature {{ feature_name: 'f' {LOOKUP} num_buckets: 10 embedding_dim: 4 FG }}",
        f"match_feature {{ feature_name: 'f' {MATCH} num_buckets: 10 embedding_dim: 4 FG }}",
        "combine_feature { feature_name: 'f' expression: 'user:x' num_buckets: 10 embedding_dim: 4 FG }",
    ],
)
def test_given_ids_of_every_kind(build: Build, text: str) -> None:
    features = build(
        f"feature_configs {{ {text.replace('FG', 'fg_encoded_default_value: %s0%s' % ((chr(39),) * 2))} }}",
        mode="FG_NONE",
    )
    for cells, values, lengths in [
        (["1\x032", "", "3"], [1, 2, 0, 3], [2, 1, 1]),
        ([1, 2, None, 3], [1, 2, 0, 3], [1] * 4),
    ]:
        rows = pa.record_batch({"f": pa.array(cells)})
        assert not features.validate(rows)
        tensor = features.parse(rows).sparse_features[BASE]
        assert (tensor.values().tolist(), tensor.lengths().tolist()) == (values, lengths)


def test_given_combos_and_vectors(build: Build) -> None:
    features = build(
        f"feature_configs {{ combo_feature {{ feature_name: 'f' {COMBO} hash_bucket_size: 10 }} }}"
        f"feature_configs {{ lookup_feature {{ feature_name: 'g' {LOOKUP} value_dim: 2 "
        "fg_encoded_default_value: '0\x030' } }",
        mode="FG_NONE",
    )
    rows = pa.record_batch({"f": ["1\x032", "", "3"], "g": ["1\x032", "", "3\x034"]})
    assert not features.validate(rows)
    batch = features.parse(rows)
    assert batch.sparse_features[BASE].values().tolist() == [1, 2, 3]
    assert batch.sparse_features[BASE].lengths().tolist() == [2, 0, 1]
    assert batch.dense_features[BASE].values().tolist() == [[1, 2], [0, 0], [3, 4]]
