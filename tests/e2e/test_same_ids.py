"""The same rows make the same ids in training, offline, and in both forms of a served request, bit for bit."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import tritonclient.http as triton
from tritonclient.utils import np_to_triton_dtype

from features import Batch, Feature
from headrace.__main__ import run as headrace
from protos.load import load_config
from publisher.replica.model import Side
from publisher.replica.options import ServeOptions
from publisher.replica.serving import Predictions
from publisher.replica.switch import Switch
from stream import open_source
from stream.feed import Feed
from stream.feed_options import FeedOptions
from tests.publisher.replica.client import Client
from tests.publisher.replica.running import Model, running

CONFIG = """
model_dir: "unused"
train_config {
  sparse_optimizer { rowwise_adagrad_optimizer { lr: 0.02 } constant_learning_rate {} }
  dense_optimizer { adam_optimizer { lr: 0.001 } constant_learning_rate {} }
}
data_config { batch_size: 5 dataset_type: ParquetDataset fg_mode: FG_DAG label_fields: "clicked" }
feature_configs { id_feature { feature_name: "user" expression: "user:user" embedding_dim: 4 zch { zch_size: 50 } } }
feature_configs { id_feature { feature_name: "item" expression: "item:item" embedding_dim: 4 zch { zch_size: 50 } } }
feature_configs { id_feature { feature_name: "tags" expression: "item:tags" embedding_dim: 4 hash_bucket_size: 100 } }
feature_configs { id_feature { feature_name: "city" expression: "user:city" embedding_dim: 4
  vocab_list: ["bern", "köln"] } }
feature_configs { id_feature { feature_name: "likes" expression: "user:likes" embedding_dim: 4 num_buckets: 20 } }
feature_configs { id_feature { feature_name: "tastes" expression: "user:tastes" embedding_dim: 4 num_buckets: 20
  weighted: true } }
feature_configs { raw_feature { feature_name: "age" expression: "user:age" boundaries: [18, 40, 65] embedding_dim: 4 } }
feature_configs { raw_feature { feature_name: "price" expression: "item:price"
  normalizer: "method=zscore,mean=2,standard_deviation=3" } }
feature_configs { raw_feature { feature_name: "mood" expression: "user:mood" value_dim: 2 } }
feature_configs { combine_feature { feature_name: "spread" expression: "item:scores" combiner: "gap_max" } }
feature_configs { combo_feature { feature_name: "age_tag" expression: "feature:age" expression: "item:tags"
  hash_bucket_size: 1000 embedding_dim: 4 } }
feature_configs { combo_feature { feature_name: "user_tag" expression: "feature:city_word" expression: "feature:word"
  hash_bucket_size: 1000 embedding_dim: 4 } }
feature_configs { id_feature { feature_name: "city_word" expression: "user:city" embedding_dim: 4 stub_type: true } }
feature_configs { id_feature { feature_name: "word" expression: "item:tags" embedding_dim: 4 stub_type: true
  default_value: "none" } }
feature_configs { lookup_feature { feature_name: "rate" map: "user:rates" key: "item:key" } }
feature_configs { lookup_feature { feature_name: "fixed" map: "user:rates" key: "const:k1" } }
feature_configs { match_feature { feature_name: "matched" nested_map: "user:nested" pkey: "item:key" skey: "item:brand"
  hash_bucket_size: 100 embedding_dim: 4 } }
feature_configs { expr_feature { feature_name: "gap" expression: "now - at"
  variables: "user:now" variables: "item:at" } }
feature_configs { expr_feature { feature_name: "rest" expression: "log(gap + 200) * price"
  variables: "feature:gap" variables: "feature:price" } }
feature_configs { overlap_feature { feature_name: "common" query: "user:query" title: "item:title"
  method: "query_common_ratio" } }
feature_configs { kv_dot_product { feature_name: "dot" query: "user:rates" document: "item:weights" } }
feature_configs { bool_mask_feature { feature_name: "shown" expression: "item:tags" expression: "item:mask"
  hash_bucket_size: 100 embedding_dim: 4 } }
feature_configs { custom_feature { feature_name: "near" operator_name: "EditDistance"
  operator_lib_file: "pyfg/lib/libedit_distance.so" expression: "user:user" expression: "item:title" } }
feature_configs { sequence_id_feature { feature_name: "seen" expression: "user:seen" hash_bucket_size: 50
  embedding_dim: 4 sequence_length: 3 } }
feature_configs { sequence_feature { sequence_name: "clicks" sequence_length: 3
  features { id_feature { feature_name: "tag" expression: "item:tag" hash_bucket_size: 100 value_dim: 0
    embedding_dim: 4 } }
  features { raw_feature { feature_name: "paid" expression: "item:paid" } }
  features { lookup_feature { feature_name: "bonus" map: "item:weights" key: "item:key" sequence_fields: "key" } }
  features { expr_feature { feature_name: "ago" expression: "now - at" variables: "user:now" variables: "item:at"
    boundaries: [1, 10, 100] embedding_dim: 4 } } } }
model_config {
  feature_groups { group_name: "deep" group_type: DEEP feature_names: ["user", "item", "tags", "city", "likes",
    "tastes", "age", "price", "mood", "spread", "age_tag", "user_tag", "rate", "fixed", "matched", "gap", "rest",
    "common", "dot", "shown", "near"] }
  feature_groups { group_name: "users" group_type: DEEP feature_names: ["mood", "user"] }
  multi_tower { towers { input: "deep" mlp { hidden_units: 8 } } towers { input: "users" mlp { hidden_units: 4 } }
    final { hidden_units: 4 } }
  losses { binary_cross_entropy {} }
}
"""
ITEMS = 5
USERS: dict[str, pa.Array] = {
    "user": pa.array(["ann", "böb"]),
    "city": pa.array(["köln", None]),
    "likes": pa.array([[3, 1, 25], []], pa.list_(pa.int64())),
    "tastes": pa.array([[(1, 0.5), (7, 2.0)], [(3, 1.0)]], pa.map_(pa.int64(), pa.float32())),
    "age": pa.array([33.5, 17.0]),
    "mood": pa.array([[0.25, 1.5], [2.0, -1.0]], pa.list_(pa.float32(), 2)),
    "rates": pa.array([[("k1", 0.5), ("k2", 1.25)], [("k2", 3.0)]], pa.map_(pa.string(), pa.float32())),
    "nested": pa.array(["k1^b1:x,b2:y|k2^b1:z", "k2^b2:w"]),
    "now": pa.array([100, 120]),
    "query": pa.array(["red\x1dshoe", "blue\x1dhat"]),
    "seen": pa.array(["a;b;;d", ""]),
    "clicks__tag": pa.array([[["a", "b"], ["c"], [], ["d"]], [["e"]]], pa.list_(pa.list_(pa.string()))),
    "clicks__paid": pa.array([[1.5, 2.0, 0.0, 9.0], [4.5]], pa.list_(pa.float32())),
    "clicks__key": pa.array(["k1;k2;k1;k3", "k3"]),
    "clicks__at": pa.array(["99;95;1;2", "119"]),
}
_ITEM: dict[str, pa.Array] = {
    "item": pa.array([10, 11, 12, 13, 2**62]),
    "tags": pa.array(["x\x1dyy", "", None, "aé", "x"]),
    "price": pa.array([1.5, None, 2.0, -3.25, 1e30], pa.float32()),
    "scores": pa.array([[1.0, 4.0, 2.0], [], [5.0], [0.5, 0.25], [1.0, 1.0]], pa.list_(pa.float64())),
    "key": pa.array(["k1", "k2", "k3", "", "k1"]),
    "brand": pa.array(["b1", "b1", "b2", "b2", None]),
    "at": pa.array([98, 90, None, 1, 100]),
    "title": pa.array(["red\x1dshoe", "hat", "", "blue\x1dred\x1dhat", "böb"]),
    "weights": pa.array(["k1:2\x1dk2:1", "k2:4", "", "k3:1", "k1:0.1"]),
    "mask": pa.array(["true\x1dfalse", "", "", "1", "0"]),
}
ROWS = pa.record_batch(
    {name: column.take(pa.array(np.repeat([0, 1], ITEMS))) for name, column in USERS.items()}
    | {name: pa.concat_arrays([column, column]) for name, column in _ITEM.items()}
)


class Watched:
    """A version that keeps the batches that its requests became."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self.batches: list[Batch] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._side, name)

    def predict(self, items: pa.RecordBatch, user: pa.RecordBatch | None = None) -> Predictions:
        self.batches.append(self._side.batch(items, user))
        return self._side.predict(items, user)


def tensors(name: str, column: pa.Array) -> Iterator[tuple[str, np.ndarray]]:
    """A column as docs/serving.md says; text as objects."""
    if column.null_count:
        yield f"{name}.nulls", column.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_map(column.type):
        yield f"{name}.keys", flat(column.keys)
        yield f"{name}.values", flat(column.items)
        yield f"{name}.lengths", np.diff(column.offsets.to_numpy())
    elif pa.types.is_fixed_size_list(column.type):
        yield name, flat(column.flatten()).reshape(len(column), -1)
    elif pa.types.is_list(column.type):
        inner = column.flatten()
        yield f"{name}.lengths", np.diff(column.offsets.to_numpy())
        if pa.types.is_list(inner.type):
            yield f"{name}.key_lengths", inner.value_lengths().to_numpy().astype(np.int32)
            inner = inner.flatten()
        yield f"{name}.values", flat(inner)
    else:
        yield name, flat(column)


def flat(column: pa.Array) -> np.ndarray:
    text = pa.types.is_string(column.type)
    filled = column.fill_null("" if text else 0) if column.null_count else column
    return np.array(filled.to_pylist(), object) if text else filled.to_numpy()


def inputs(columns: dict[str, pa.Array]) -> list[triton.InferInput]:
    found = []
    for name, array in (pair for item in columns.items() for pair in tensors(*item)):
        tensor = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        tensor.set_data_from_numpy(array)
        found.append(tensor)
    return found


def trained(config: Path, data: Path, model: Model) -> list[Batch]:
    """The batches that a trainer gets of the file."""
    loaded, features = load_config(config), model.features
    source = open_source(loaded, path=str(data), columns=features.columns)
    options = FeedOptions.from_proto(loaded, columns=features.columns)
    feed = Feed(source, options, validate=features.validate)
    batches = []
    try:
        while not feed.finished:
            cut = feed.next(5.0)
            if cut is not None:
                assert not cut.dead, cut.dead[0].detail
                batches.append(features.parse(cut.rows))
    finally:
        feed.close()
    return batches


def made_once(feature: Feature) -> bool:
    """Whether a request makes it for the user; a step of a grouped sequence may look into a column of items."""
    return feature.is_user and feature.name != "clicks__bonus"


def held(batch: Batch, feature: Feature) -> dict[str, np.ndarray]:
    """All that a batch holds of one feature."""
    group = feature.data_group + ("_user" if batch.tile_size > 0 and made_once(feature) else "")
    found: dict[str, torch.Tensor | None] = {}
    if not feature.is_sparse and feature.is_sequence:
        steps = batch.sequence_dense_features[feature.name]
        found = {"values": steps.values(), "lengths": steps.lengths()}
    elif not feature.is_sparse:
        found = {"values": batch.dense_features[group][feature.name]}
    else:
        ids = batch.sparse_features[group][feature.name]
        found = {"values": ids.values(), "lengths": ids.lengths(), "weights": ids.weights_or_none()}
        several = batch.sequence_mulval_lengths.get(group)
        if several is not None and feature.name in several.keys():  # noqa: SIM118 - no mapping
            found |= {"steps": several[feature.name].values(), "step_lengths": several[feature.name].lengths()}
    return {name: tensor.numpy() for name, tensor in found.items() if tensor is not None}


def first_row(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Of what a batch holds of a feature, the first row."""
    if "lengths" not in values:
        return {"values": values["values"][:1]}
    count, steps = int(values["lengths"][0]), int(values["step_lengths"][0]) if "step_lengths" in values else 0
    ends = {"lengths": 1, "step_lengths": 1, "steps": steps}
    return {name: array[: ends.get(name, count)] for name, array in values.items()}


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    """Equal in type and in every bit."""
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and one[name].tobytes() == other[name].tobytes() for name in one
    )


def written(column: pa.Array) -> list[object]:
    """All values of a column of `headrace features --out`, one after the other."""
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    while pa.types.is_nested(values.type):
        values = values.flatten() if not pa.types.is_map(values.type) else values.keys
    return values.to_pylist()


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(CONFIG, ROWS)


def test_training_and_both_forms_of_a_request_make_the_same_ids(model: Model, tmp_path: Path) -> None:
    config, data, out = (tmp_path / name for name in ("pipeline.config", "rows.parquet", "out.parquet"))
    config.write_text(CONFIG)
    pq.write_table(pa.table(ROWS).append_column("clicked", pa.array([1.0, 0.0] * ITEMS)), data)
    batches = trained(config, data, model)
    offline_run = ["features", str(config), "--data", str(data), "--out", str(out)]
    assert headrace(offline_run, out=io.StringIO(), errors=io.StringIO(), environment={}) == 0
    offline = pq.read_table(out)

    switch: Switch[Watched] = Switch()
    side = model.served("torch_script")[0].current
    assert side is not None
    watched = Watched(side)
    switch.flip(watched)
    answers = []
    with running(switch, ServeOptions()) as server, Client(server.port) as client:
        for user in range(len(batches)):
            rows = ROWS.slice(user * ITEMS, ITEMS)
            columns = {name: pa.concat_arrays([rows.column(name)]) for name in rows.schema.names}
            once = {name: pa.concat_arrays([column.slice(0, 1)]) for name, column in columns.items() if name in USERS}
            answers.append([client.infer("headrace", inputs(given)) for given in (columns, columns | once)])

    for (whole, tiled), (flat_batch, tiled_batch), batch in zip(
        answers, zip(watched.batches[::2], watched.batches[1::2], strict=True), batches, strict=True
    ):
        assert (flat_batch.tile_size, tiled_batch.tile_size) == (-1, ITEMS)
        for feature in model.features.features:
            learned = held(batch, feature)
            assert same(learned, held(flat_batch, feature)), feature.name
            assert same(first_row(learned) if made_once(feature) else learned, held(tiled_batch, feature)), feature.name
        assert whole.as_numpy("probs").shape == (ITEMS,)
        assert np.array_equal(whole.as_numpy("probs"), tiled.as_numpy("probs"))
    for feature in model.features.features:
        values = [value for batch in batches for value in held(batch, feature)["values"].reshape(-1).tolist()]
        assert written(offline.column(feature.name)) == values, feature.name
