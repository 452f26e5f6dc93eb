"""Bad input in a request over HTTP: a 400 that names the feature, and the next request is answered."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from features import create_features
from protos.load import parse_config
from publisher.replica.inputs import input_columns, input_tensors, sample
from publisher.replica.options import ServeOptions
from tests.publisher.replica.client import Client
from tests.publisher.replica.running import Model, Running, running

CONFIG = """
model_dir: "unused"
data_config { label_fields: "label" fg_mode: FG_NORMAL
  input_fields { input_name: "user" input_type: INT64 }
  input_fields { input_name: "tags" input_type: ARRAY_STRING }
  input_fields { input_name: "rates" input_type: MAP_STRING_FLOAT }
  input_fields { input_name: "price" input_type: FLOAT }
  input_fields { input_name: "rank" input_type: INT32 }
  input_fields { input_name: "clicks__steps" input_type: ARRAY_ARRAY_INT64 }
}
feature_configs { id_feature { feature_name: "the_user" expression: "user:user" embedding_dim: 4
  zch { zch_size: 100 hash {} } } }
feature_configs { id_feature { feature_name: "the_tags" expression: "item:tags" embedding_dim: 4
  hash_bucket_size: 50 } }
feature_configs { lookup_feature { feature_name: "the_rate" map: "user:rates" key: "item:key" } }
feature_configs { raw_feature { feature_name: "the_price" expression: "item:price" } }
feature_configs { id_feature { feature_name: "the_rank" expression: "item:rank" embedding_dim: 4 num_buckets: 50 } }
feature_configs { raw_feature { feature_name: "the_size" expression: "item:size" value_dim: 2 } }
feature_configs { expr_feature { feature_name: "the_ratio" expression: "price / weight"
  variables: "item:price" variables: "item:weight" } }
feature_configs { combo_feature { feature_name: "the_cross" expression: "user:factor" expression: "item:key"
  embedding_dim: 4 hash_bucket_size: 9 } }
feature_configs { sequence_feature { sequence_name: "clicks" sequence_length: 9
  features { id_feature { feature_name: "the_steps" expression: "item:steps" embedding_dim: 4 num_buckets: 9
    value_dim: 0 } }
  features { combo_feature { feature_name: "the_pair" expression: "item:a" expression: "item:b" embedding_dim: 4
    hash_bucket_size: 9 } } } }
model_config {
  feature_groups { group_name: "all" group_type: DEEP feature_names: ["the_user", "the_tags", "the_rate", "the_price",
    "the_rank", "the_size", "the_ratio", "the_cross"] }
  multi_tower { towers { input: "all" mlp { hidden_units: 4 } } final { hidden_units: 4 } }
  losses { binary_cross_entropy {} }
}
"""
TEXT = object
GOOD: dict[str, np.ndarray] = {
    "user": np.array([7]),
    "tags.values": np.array(["x", "y", "z"], TEXT),
    "tags.lengths": np.array([2, 0, 1], np.int32),
    "rates.keys": np.array(["a", "b"], TEXT),
    "rates.values": np.array([0.5, 1.5], np.float32),
    "rates.lengths": np.array([2], np.int32),
    "key": np.array(["a", "b", "c"], TEXT),
    "factor": np.array(["f"], TEXT),
    "price": np.array([1.0, 2.0, 3.0], np.float32),
    "rank": np.array([1, 2, 3], np.int32),
    "size": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32),
    "weight": np.array([1.0, 2.0, 4.0], np.float32),
    "clicks__steps.values": np.array([1, 2, 3]),
    "clicks__steps.key_lengths": np.array([1, 2], np.int32),
    "clicks__steps.lengths": np.array([2], np.int32),
    "clicks__a": np.array(["1;2"], TEXT),
    "clicks__b": np.array(["3;4"], TEXT),
}
ROWS = pa.record_batch(
    {
        "user": [7],
        "tags": [["x"]],
        "rates": pa.array([[("a", 0.5)]], pa.map_(pa.string(), pa.float32())),
        "key": ["a"],
        "factor": ["f"],
        "price": [1.0],
        "rank": [1],
        "size": [[1.0, 2.0]],
        "weight": [1.0],
        "clicks__steps": [[[1]]],
        "clicks__a": ["1"],
        "clicks__b": ["2"],
    }
)


@pytest.fixture(scope="module")
def served() -> Iterator[Running]:
    with running(Model(CONFIG, ROWS).served("torch_script")[0], ServeOptions()) as server:
        yield server


def ask(server: Running, columns: dict[str, np.ndarray], *, binary: bool = True) -> np.ndarray:
    tensors = []
    for name, array in columns.items():
        tensor = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        tensor.set_data_from_numpy(array, binary_data=binary)
        tensors.append(tensor)
    with Client(server.port) as client:
        return client.infer("headrace", tensors).as_numpy("probs")


@dataclass(frozen=True, kw_only=True)
class Case:
    feature: str
    says: str
    change: dict[str, np.ndarray | None]


def text(*values: str | bytes) -> np.ndarray:
    return np.array(values, TEXT)


CASES = {
    "missing": Case(feature="the_price", says="'price' is missing", change={"price": None}),
    "missing, of the user": Case(feature="the_user", says="'user' is missing", change={"user": None}),
    "empty": Case(feature="the_rank", says="'rank' is empty", change={"rank": np.array([], np.int32)}),
    "rows": Case(feature="the_rank", says="has 2 rows", change={"rank": np.array([1, 2], np.int32)}),
    "one row of items": Case(feature="the_rank", says="has 1 rows", change={"rank": np.array([1], np.int32)}),
    "text as a number": Case(feature="the_price", says="holds string", change={"price": text("1", "2", "3")}),
    "number as a float": Case(feature="the_rank", says="holds double", change={"rank": np.array([1.0, 2.0, 3.0])}),
    "out of range": Case(feature="the_rank", says="at row 2: ", change={"rank": np.array([1, 2, 2**40])}),
    "no number": Case(feature="the_ratio", says="not_a_number", change={"weight": text("1", "two", "3")}),
    "nan": Case(feature="the_price", says="not_finite", change={"price": np.array([1, np.nan, 3], np.float32)}),
    "infinite": Case(feature="the_size", says="not_finite", change={"size": np.array([[1.0, np.inf]] * 3)}),
    "division by zero": Case(feature="the_ratio", says="not_finite", change={"weight": np.array([1.0, 0.0, 4.0])}),
    "width": Case(feature="the_size", says="wrong_width", change={"size": np.ones((3, 3), np.float32)}),
    "unequal steps": Case(feature="clicks__the_pair", says="unequal_steps", change={"clicks__b": text("3;4;5")}),
    "text in a sequence": Case(feature="clicks__the_steps", says="does not go into", change={
        "clicks__steps.values": text("1", "2", "3")}),
    "utf-8": Case(feature="the_rate", says="not UTF-8", change={"key": text(b"a", b"\xff\xfe", b"c")}),
    "utf-8 in a list": Case(feature="the_tags", says="not UTF-8", change={"tags.values": text(b"\xff", b"b", b"c")}),
    "utf-8 in a sequence": Case(feature="clicks__the_pair", says="not UTF-8", change={"clicks__a": text(b"\xc3")}),
    "lengths": Case(feature="the_tags", says="adds up to 4", change={"tags.lengths": np.array([2, 0, 2], np.int32)}),
    "negative length": Case(feature="the_tags", says="negative length", change={
        "tags.lengths": np.array([4, -2, 1], np.int32)}),
    "lengths of steps": Case(feature="clicks__the_steps", says="adds up to", change={
        "clicks__steps.key_lengths": np.array([1, 3], np.int32)}),
    "no lengths": Case(feature="the_tags", says="is given as tags.values", change={"tags.lengths": None}),
    "keys": Case(feature="the_rate", says="holds 1 entries", change={"rates.keys": text("a")}),
    "a list as a map": Case(feature="the_rate", says="does not go into", change={"rates.keys": None}),
    "dimensions": Case(feature="the_size", says="has shape", change={"size": np.ones((3, 2, 1), np.float32)}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_a_400_that_names_the_feature(served: Running, name: str) -> None:
    case = CASES[name]
    bad = {key: array for key, array in (GOOD | case.change).items() if array is not None}
    with pytest.raises(InferenceServerException) as caught:
        ask(served, bad)
    assert caught.value.status() == "400"
    assert case.says in caught.value.message() and f"feature '{case.feature}'" in caught.value.message()
    assert ask(served, GOOD).shape == (3,)


LONG = "a" * 100_000
MANY: dict[str, np.ndarray] = GOOD | {
    "tags.values": np.array(["x"] * 9_000, TEXT),
    "tags.lengths": np.ones(9_000, np.int32),
    "key": np.array(["a"] * 9_000, TEXT),
    **{name: np.ones(9_000, np.float32) for name in ("price", "weight")},
    "rank": np.ones(9_000, np.int32),
    "size": np.ones((9_000, 2), np.float32),
}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("clicks__a", {"clicks__a": text(LONG), "user": np.ones(9_000, np.int64)}),
        ("factor", {"factor": text(LONG)}),
    ],
    ids=["repeated, since another column of the user has all rows", "beside each item"],
)
def test_user_too_large_to_lie_beside_every_item_is_refused(
    served: Running, name: str, change: dict[str, np.ndarray]
) -> None:
    with pytest.raises(InferenceServerException, match=f"'{name}' takes 1000.. bytes in one row") as caught:
        ask(served, MANY | change)
    assert caught.value.status() == "413"
    assert ask(served, MANY).shape == (9_000,)


def test_map_of_a_user_that_is_too_much_work_for_its_items_is_refused(served: Running) -> None:
    large = {
        "rates.keys": np.array(["x"] * 300_000, TEXT),
        "rates.values": np.ones(300_000, np.float32),
        "rates.lengths": np.array([300_000], np.int32),
    }
    with pytest.raises(InferenceServerException, match="'rates' takes 2700000000 comparisons") as caught:
        ask(served, MANY | large)
    assert caught.value.status() == "413"
    assert ask(served, GOOD | large).shape == (3,)


def test_rows_that_are_too_much_work_together_are_refused(served: Running) -> None:
    # Each row is within its own limits: 100 x 100 products, and so many in each step.
    rows = 1_000
    many = {name: array[:rows] for name, array in MANY.items() if not name.startswith(("tags", "rates", "user"))}
    crossed = many | {
        "user": GOOD["user"], "tags.values": np.array([], TEXT), "tags.lengths": np.zeros(rows, np.int32),
        "rates.keys": GOOD["rates.keys"], "rates.values": GOOD["rates.values"], "rates.lengths": GOOD["rates.lengths"],
        "factor": text("\x1d".join(map(str, range(100)))),
        "key": np.array(["\x1d".join(map(str, range(100)))] * rows, TEXT),
    }  # fmt: skip
    with pytest.raises(
        InferenceServerException, match="'factor' takes .* comparisons, .* for all of 1000 rows"
    ) as told:
        ask(served, crossed)
    assert told.value.status() == "413"
    # As many rows of the user's as of items are no less work.
    with pytest.raises(
        InferenceServerException, match="'factor' takes .* comparisons, .* for all of 1000 rows"
    ) as told:
        ask(served, crossed | {"user": np.ones(rows, np.int64)})
    assert told.value.status() == "413"
    assert ask(served, crossed | {"key": np.array(["a"] * rows, TEXT)}).shape == (rows,)


def test_good_input_is_answered_alike_in_every_form(served: Running) -> None:
    once = ask(served, GOOD)
    assert np.array_equal(ask(served, GOOD, binary=False), once)
    repeated = {
        "user": np.repeat(GOOD["user"], 3), "clicks__a": text(*["1;2"] * 3), "clicks__b": text(*["3;4"] * 3),
        "rates.keys": text(*["a", "b"] * 3), "rates.values": np.tile(GOOD["rates.values"], 3),
        "rates.lengths": np.array([2, 2, 2]), "clicks__steps.values": np.tile([1, 2, 3], 3),
        "clicks__steps.key_lengths": np.tile([1, 2], 3), "clicks__steps.lengths": np.array([2, 2, 2]),
    }  # fmt: skip
    assert np.array_equal(ask(served, GOOD | repeated), once)
    # Numbers of a narrower type are what training would make of them.
    assert np.array_equal(ask(served, GOOD | {"rank": np.array([1, 2, 3], np.int8)}), once)


def test_rows_to_warm_up_with_are_good_ones_of_the_types_that_clients_send() -> None:
    config = parse_config(CONFIG, json=False)
    features = create_features(config)
    columns = input_columns(config, features)
    rows = sample(columns, input_tensors(config, features, columns), 2)
    assert not features.validate(rows, serving=True)
    assert rows.schema.field("rates").type == pa.map_(pa.string(), pa.float32())
    assert rows.schema.field("size").type == pa.list_(pa.float32(), 2)


def test_metadata_lists_the_tensors_of_ragged_columns_and_the_users(served: Running) -> None:
    with Client(served.port) as client:
        listed = {entry["name"]: entry for entry in client.get_model_metadata("headrace")["inputs"]}
        configured = client.get_model_config("headrace")["input"]
    assert listed.keys() == GOOD.keys()
    assert [entry["name"] for entry in configured] == list(listed)
    for name, array in GOOD.items():
        if name not in ("key", "size", "weight"):
            assert listed[name]["datatype"] == np_to_triton_dtype(array.dtype), name
        assert listed[name]["shape"] == ([-1, 2] if name == "size" else [-1])
    assert listed["rates.values"]["parameters"] == {"user": True, "column": "rates"}
    assert listed["price"]["parameters"] == {"user": False}
    users = {entry["parameters"].get("column", name) for name, entry in listed.items() if entry["parameters"]["user"]}
    assert users == {"user", "rates", "factor", "clicks__steps", "clicks__a", "clicks__b"}
