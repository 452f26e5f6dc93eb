"""Rows for tree models: layout, labels, levels (data_and_samplers.md 4.6 and 10)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from features import Batch, FeatureConfigError, create_features
from features.errors import SamplerError
from features.sampling.draw import Draw
from features.sampling.maker import open_maker
from features.sampling.options import SamplerOptions
from features.sampling.tdm import chosen_levels
from protos.pipeline_pb2 import EasyRecConfig

from .conftest import make_config, write_edges, write_nodes

LEVELS = 6


def _level(code: int) -> int:
    return (int(code) + 1).bit_length() - 1


@pytest.fixture
def tree(tmp_path: Path) -> tuple[str, str]:
    """A binary tree of 6 levels: node = code, 32 leaves 31 … 62; the price says the level."""
    count = 2**LEVELS - 1
    nodes = [(-1, 1.0, "-1,-1,0")] + [(code, 1.0, f"{_level(code)},{code},{_level(code)}.0") for code in range(count)]
    edges = []
    for leaf in range(2 ** (LEVELS - 1) - 1, count):
        parent = (leaf - 1) // 2
        while parent > 0:
            edges.append((leaf, parent, 1.0))
            parent = (parent - 1) // 2
    return write_nodes(tmp_path / "nodes", nodes), write_edges(tmp_path / "edges", edges)


def _config(tree: tuple[str, str], layers: list[int], extra: str = "") -> EasyRecConfig:
    return make_config(
        f'tdm_sampler {{ item_input_path: "{tree[0]}" edge_input_path: "{tree[1]}" predict_edge_input_path: "" '
        f'attr_fields: ["price"] item_id_field: "item_id" layer_num_sample: {layers} attr_delimiter: "," {extra} }}'
    )


def _rows(items: list[int]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "item_id": pa.array(items, pa.int64()),
            "price": pa.array([9.0] * len(items), pa.float32()),
            "user_id": pa.array([100 + i for i in range(len(items))], pa.int64()),
            "y": pa.array([1.0] * len(items), pa.float32()),
        }
    )


def _make(config: EasyRecConfig, items: list[int], draw: Draw | None = None) -> Batch:
    return open_maker(config, create_features(config)).make(_rows(items), draw or Draw())


def _ids(batch: Batch, name: str) -> np.ndarray:
    return batch.sparse_features["__BASE__"][name].values().numpy()


def test_rows_are_originals_then_ancestors_then_negatives(tree: tuple[str, str]) -> None:
    layers = [0, 1, 2, 3, 4, 5]
    batch = _make(_config(tree, layers), [31, 40, 50, 62])
    items, users = _ids(batch, "item_id"), _ids(batch, "user_id")
    assert batch.size == len(items) == 4 + 16 + 60
    assert items[:4].tolist() == [31, 40, 50, 62]
    positives = items[4:20].reshape(4, 4)
    for leaf, path in zip([31, 40, 50, 62], positives.tolist(), strict=True):
        assert [_level(node) for node in path] == [1, 2, 3, 4]
        assert path[3] == (leaf - 1) // 2
        assert all(path[k] == (path[k + 1] - 1) // 2 for k in range(3))
    assert users[4:20].tolist() == np.repeat([100, 101, 102, 103], 4).tolist()
    negatives = items[20:].reshape(4, 15)
    assert users[20:].tolist() == np.repeat([100, 101, 102, 103], 15).tolist()
    want = np.repeat(np.arange(1, 6), layers[1:]).tolist()
    for row, path in zip(negatives.tolist(), np.column_stack((positives, items[:4])).tolist(), strict=True):
        assert [_level(node) for node in row] == want
        for level in range(1, 6):
            of_level = [node for node in row if _level(node) == level]
            assert path[level - 1] not in of_level
            # Level 1 has two nodes, one of which is the positive.
            assert len(set(of_level)) == min(layers[level], 2**level - 1)
    assert batch.labels["y"].tolist() == [1] * 20 + [0] * 60
    assert str(batch.labels["y"].dtype) == "torch.int64"
    prices = batch.dense_features["__BASE__"].values()[:, 0].numpy()
    assert prices[4:].tolist() == [float(_level(node)) for node in items[4:]]


def test_levels_that_remain_shrink_the_batch(tree: tuple[str, str]) -> None:
    batch = _make(_config(tree, [0, 1, 1, 1, 1, 5], "remain_ratio: 0.4"), [31, 40, 50, 62])
    assert batch.size == 4 + 8 + 28
    items = _ids(batch, "item_id")
    levels = [_level(node) for node in items[4:6]]
    assert levels == sorted(levels)
    assert [[_level(node) for node in items[4 + 2 * k : 6 + 2 * k]] for k in range(4)] == [levels] * 4
    assert [_level(node) for node in items[12:14]] == levels


@pytest.mark.parametrize("probability", ["UNIFORM", "ARITHMETIC", "RECIPROCAL"])
def test_levels_are_chosen_by_their_probability(tree: tuple[str, str], probability: str) -> None:
    config = _config(tree, [0, 1, 1, 1, 1, 5], f'remain_ratio: 0.25 probability_type: "{probability}"')
    options = SamplerOptions.from_proto(config)
    assert options is not None
    drawn = [int(chosen_levels(options, Draw(place=str(k)))[0]) for k in range(4000)]
    weights = {"UNIFORM": [1, 1, 1, 1], "ARITHMETIC": [1, 2, 3, 4], "RECIPROCAL": [1 / 4, 1 / 3, 1 / 2, 1]}[probability]
    want = np.array(weights) / sum(weights)
    assert (np.abs(np.bincount(drawn)[1:] / 4000 - want) < 5 * np.sqrt(want / 4000)).all()


def test_draws_depend_on_the_key_alone(tree: tuple[str, str]) -> None:
    config = _config(tree, [0, 1, 1, 2, 3, 5])
    first = _ids(_make(config, [40, 41], Draw(place="a")), "item_id").tolist()
    assert _ids(_make(config, [40, 41], Draw(place="a")), "item_id").tolist() == first
    assert _ids(_make(config, [40, 41], Draw(place="b")), "item_id").tolist() != first


def test_unknown_items_stand_for_their_own_ancestors(tree: tuple[str, str]) -> None:
    config = _config(tree, [0, 1, 1, 1, 1, 1])
    maker = open_maker(config, create_features(config))
    batch = maker.make(_rows([500, 40]), Draw())
    assert _ids(batch, "item_id")[2:6].tolist() == [500] * 4
    assert maker.totals() == {"repeated": 0, "unknown": 1, "reloads": 0, "failed_reloads": 0}


def test_level_with_too_few_nodes_repeats_and_counts(tree: tuple[str, str]) -> None:
    config = _config(tree, [0, 3, 0, 0, 0, 0])
    maker = open_maker(config, create_features(config))
    batch = maker.make(_rows([31]), Draw())
    assert maker.totals()["repeated"] == 2
    assert _ids(batch, "item_id")[-3:].tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("layers", "extra", "message"),
    [
        ([1, 1], "", "must begin with 0"),
        ([0, 1], "remain_ratio: 1.5", "remain_ratio must be in"),
        ([0, 1], 'probability_type: "NORMAL"', "'NORMAL' is none of UNIFORM"),
    ],
)
def test_tdm_refuses_what_has_no_meaning(tree: tuple[str, str], layers: list[int], extra: str, message: str) -> None:
    with pytest.raises(FeatureConfigError, match=message):
        create_features(_config(tree, layers, extra))


def test_tdm_refuses_levels_without_nodes(tree: tuple[str, str]) -> None:
    with pytest.raises(SamplerError, match="level 6 has no usable node"):
        _make(_config(tree, [0, 1, 1, 1, 1, 1, 1]), [31])
