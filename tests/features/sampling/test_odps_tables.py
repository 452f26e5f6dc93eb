"""Samplers that read tables of MaxCompute, from the stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from features import create_features
from features.errors import SamplerError
from features.sampling.draw import Draw
from features.sampling.maker import open_maker
from protos.pipeline_pb2 import EasyRecConfig
from tests.stream.odps_stand_in import StandIn, Table, running

from .conftest import make_config, negative

ROWS = pa.record_batch({"item_id": [5], "price": pa.array([1.0], pa.float32()), "user_id": [1], "y": [1]})


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with running() as service:
        yield service


def _nodes(first: int, count: int) -> pa.Table:
    ids = list(range(first, first + count))
    return pa.table({"id": ids, "weight": [1.0] * count, "attrs": [f"{i}:{i / 2}" for i in ids]})


def _config(stand_in: StandIn, tmp_path: Path, sampler: str) -> EasyRecConfig:
    account = f'odps_config_file: "{stand_in.account_file(tmp_path)}" odps_data_compression: "UNCOMPRESSED"'
    return make_config(f"{account} {sampler}")


def test_items_of_a_table_are_drawn_and_read_again_when_it_changes(stand_in: StandIn, tmp_path: Path) -> None:
    columns = {"id": "bigint", "weight": "double", "attrs": "string"}
    table = stand_in.tables["items"] = Table(columns, ["dt"], {"dt=1": _nodes(10, 3), "dt=2": _nodes(13, 3)})
    now = [0.0]
    config = _config(stand_in, tmp_path, negative("odps://p/tables/items", 50))
    maker = open_maker(config, create_features(config), clock=lambda: now[0])

    def drawn() -> set[int]:
        return set(maker.make(ROWS, Draw()).sparse_features["__NEG__"]["item_id"].values().tolist()[1:])

    assert drawn() == set(range(10, 16))
    now[0] += 60
    read = len(stand_in.requests)
    assert drawn() == set(range(10, 16))
    assert not [request for request in stand_in.requests[read:] if "downloads" in request]
    table.rows["dt=2"], table.modified = _nodes(20, 2), table.modified + 1
    now[0] += 60
    assert drawn() == {10, 11, 12, 20, 21}


def test_edges_of_a_partition_with_text_ids(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.tables["items"] = Table(
        {"id": "string", "weight": "double", "attrs": "string"},
        rows={"": pa.table({"id": ["5", "6", "7"], "weight": [1.0, 1.0, 1.0], "attrs": ["5:1", "6:1", "7:1"]})},
    )
    edges = pa.table({"user": [1, 1], "item": ["5", "6"], "weight": [1.0, 1.0]})
    stand_in.tables["edges"] = Table(
        {"user": "bigint", "item": "string", "weight": "double"},
        ["dt"],
        {"dt=1": edges, "dt=2": pa.table({"user": [2], "item": ["7"], "weight": [1.0]})},
    )
    sampler = """negative_sampler_v2 { item_input_path: "odps://p/tables/items" num_sample: 20 user_input_path: ""
        pos_edge_input_path: "odps://p/tables/edges/dt=1&dt=2" attr_fields: ["item_id", "price"]
        item_id_field: "item_id" user_id_field: "user_id" }"""
    config = _config(stand_in, tmp_path, sampler)
    batch = open_maker(config, create_features(config)).make(ROWS, Draw())
    # The user has 5 and 6 already.
    assert set(batch.sparse_features["__NEG__"]["item_id"].values().tolist()) == {5, 7}


def test_what_is_no_table_of_nodes_is_named(stand_in: StandIn, tmp_path: Path) -> None:
    config = _config(stand_in, tmp_path, negative("odps://p/tables/items", 5))
    features = create_features(config)
    with pytest.raises(SamplerError, match="odps://p/tables/items.*no such table"):
        open_maker(config, features)
    stand_in.tables["items"] = Table(
        {"id": "bigint", "attrs": "string"}, rows={"": pa.table({"id": [1], "attrs": ["1:1"]})}
    )
    with pytest.raises(SamplerError, match="3 columns are needed, and there are id int64"):
        open_maker(config, features)
    columns = {"id": "bigint", "weight": "string", "attrs": "string"}
    stand_in.tables["items"] = Table(columns, rows={"": pa.table({"id": [], "weight": [], "attrs": []})})
    with pytest.raises(SamplerError, match="holds no row"):
        open_maker(config, features)
    rows = pa.table({"id": [1], "weight": ["1"], "attrs": ["1:1"]})
    stand_in.tables["items"] = Table(columns, rows={"": rows})
    with pytest.raises(SamplerError, match="column 2 must be the weight, of type double or float"):
        open_maker(config, features)
