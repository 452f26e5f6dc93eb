"""Group tensors against a plain reading of the rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from features import BASE, WEIGHTED, Batch, ZchSpec
from recmodels.embedding_group import EmbeddingGroup
from recmodels.errors import IdError, LayoutError, ModelConfigError
from recmodels.initializers import draw_rows, parse_init_fn, table_key
from recmodels.layout import create_layout


def pooled(online: Any, table: str, bags: list[list[int]], *, weights: list[list[float]] | None = None) -> np.ndarray:
    """Rows summed or averaged per bag; an id without a row is zero and counts."""
    spec, rows = online.layout.table(table), online.rows()[table]
    out = np.zeros((len(bags), spec.dim))
    for at, bag in enumerate(bags):
        for k, row_id in enumerate(bag):
            if row_id in rows:
                out[at] += rows[row_id][0].astype(np.float64) * (1.0 if weights is None else weights[at][k])
        if spec.pooling == "mean" and bag:
            out[at] /= len(bag)
    return out


BAGS = {"a": [[1, 2], [], [3, 3, 2**60]], "b": [[5], [6, 7], [8]]}


def test_groups_are_the_pooled_rows_in_feature_order(lab: Any) -> None:
    online = lab.online(
        [
            lab.id_feature("a", zch=ZchSpec(size=64), pooling="mean"),
            lab.id_feature("b", dim=8),
            lab.dense_feature("d", 2),
        ],
        ("deep", "DEEP", ["b", "d", "a"]),
        ("wide", "WIDE", ["a", "b"]),
    )
    dense = np.arange(6.0).reshape(3, 2)
    batch = lab.batch_of(BAGS, {"d": dense})
    for step in range(3):
        online.step(batch, step)
    unseen = lab.batch_of({"a": [[1, 99], [98], [3, 3, 2**60]], "b": BAGS["b"]}, {"d": dense})
    groups = online.read(unseen)
    bags = {"a": [[1, 99], [98], [3, 3, 2**60]], "b": BAGS["b"]}
    deep = np.hstack([pooled(online, "b", bags["b"]), dense, pooled(online, "a", bags["a"])])
    wide = np.hstack([pooled(online, "a_wide", bags["a"]), pooled(online, "b_wide", bags["b"])])
    np.testing.assert_allclose(groups["deep"], deep, rtol=1e-6)
    np.testing.assert_allclose(groups["wide"], wide, rtol=1e-6)
    assert online.rows()["a"].keys() == {1, 2, 3, 2**60}


@pytest.mark.parametrize("name", ["items", "keys", "training", "forward", "shop.item"])
def test_a_table_name_that_pytorch_has_for_itself_is_refused(lab: Any, name: str) -> None:
    features = [lab.id_feature(name)]
    layout = create_layout(features, lab.model_config(("g", "DEEP", [name])))
    with pytest.raises(LayoutError, match=f"table '{name}' of feature .* another embedding_name"):
        EmbeddingGroup(features, layout, torch.device("cpu"))


def test_dims_are_told_before_any_batch(lab: Any) -> None:
    features = [lab.id_feature("a"), lab.dense_feature("d", 3)]
    layout = create_layout(features, lab.model_config(("g", "DEEP", ["d", "a"])))
    group = EmbeddingGroup(features, layout, torch.device("cpu"))
    assert (group.group_names(), group.has_group("g"), group.has_group("x")) == (["g"], True, False)
    assert (group.group_dims("g"), group.group_total_dim("g"), group.group_type("g")) == ([3, 4], 7, "DEEP")
    assert group.group_feature_dims("g") == {"d": 3, "a": 4}
    with pytest.raises(KeyError):
        group.group_dims("x")


def test_hashed_tables_are_refused_before_they_are_sharded(lab: Any) -> None:
    features = [lab.id_feature("a", zch=ZchSpec(size=64))]
    layout = create_layout(features, lab.model_config(("g", "DEEP", ["a"])))
    with pytest.raises(ModelConfigError, match="only behind DistributedModelParallel"):
        EmbeddingGroup(features, layout, torch.device("cpu"))(lab.batch_of({"a": [[1]]}))


def test_weights_reach_the_rows_also_of_hashed_tables(lab: Any) -> None:
    features = [
        replace(lab.id_feature("w", zch=ZchSpec(size=64)), data_group=WEIGHTED, is_weighted=True),
        replace(lab.id_feature("v", pooling="mean"), data_group=WEIGHTED, is_weighted=True),
        lab.id_feature("a"),
    ]
    online = lab.online(features)
    bags, factors = {"w": [[7, 9], [7]], "v": [[1, 2], [3]]}, {"w": [[2.0, -1.0], [0.5]], "v": [[3.0, 4.0], [1.0]]}
    weighted = lab.batch_of(bags, data_group=WEIGHTED).sparse_features[WEIGHTED]
    flat = torch.tensor([x for rows in factors.values() for bag in rows for x in bag])
    kjt = type(weighted)(keys=weighted.keys(), values=weighted.values(), lengths=weighted.lengths(), weights=flat)
    plain = lab.batch_of({"a": [[1], [2]]}).sparse_features[BASE]
    batch = Batch(size=2, sparse_features={BASE: plain, WEIGHTED: kjt})
    online.step(batch)
    groups = online.read(batch)
    mean = pooled(online, "v", bags["v"], weights=factors["v"])
    expected = np.hstack([pooled(online, "w", bags["w"], weights=factors["w"]), mean, pooled(online, "a", [[1], [2]])])
    np.testing.assert_allclose(groups["deep"], expected, rtol=1e-5)


def test_frozen_tables_never_change_and_are_in_full_seals(lab: Any) -> None:
    online = lab.online([lab.id_feature("a", trainable=False), lab.id_feature("b")])
    before = online.rows()
    for _ in range(3):
        online.step(lab.batch_of(BAGS | {"a": [[1], [2], [3]]}))
    after = online.rows()
    assert all(np.array_equal(before["a"][key][0], row[0]) for key, row in after["a"].items())
    assert not np.array_equal(before["b"][5][0], after["b"][5][0])
    assert {rows.table: len(rows) for rows in online.tables.seal()} == {"a": 64, "b": 64}


def test_half_precision_tables_train(lab: Any) -> None:
    online = lab.online([lab.id_feature("a", zch=ZchSpec(size=64), data_type="FP16"), lab.id_feature("b")])
    first = online.step(lab.batch_of(BAGS))["deep"]
    second = online.step(lab.batch_of(BAGS))["deep"]
    assert (second - first)[0].abs().min() > 0.05
    assert next(iter(online.rows()["a"].values()))[0].dtype == np.float16
    np.testing.assert_allclose(
        online.read(lab.batch_of(BAGS))["deep"][:, :4], pooled(online, "a", BAGS["a"]), rtol=2e-3
    )


def test_an_empty_batch_goes_through(lab: Any) -> None:
    online = lab.online([lab.id_feature("a", zch=ZchSpec(size=64)), lab.id_feature("b")])
    assert online.step(lab.batch_of({"a": [], "b": []}))["deep"].shape == (0, 8)
    online.step(lab.batch_of({"a": [[], []], "b": [[], []]}))
    assert online.rows()["a"] == {}


def test_the_batch_keeps_its_raw_ids(lab: Any) -> None:
    online = lab.online([lab.id_feature("a", zch=ZchSpec(size=64)), lab.id_feature("b")])
    batch = lab.batch_of(BAGS)
    before = batch.sparse_features[BASE].values().clone()
    online.step(batch)
    assert torch.equal(batch.sparse_features[BASE].values(), before)


def test_an_id_outside_its_table_is_refused_by_name(lab: Any) -> None:
    online = lab.online([lab.id_feature("a", zch=ZchSpec(size=64)), lab.id_feature("b")])
    with pytest.raises(IdError, match="table 'b': id 64 "):
        online.step(lab.batch_of({"a": [[1]], "b": [[64]]}))
    with pytest.raises(IdError, match="table 'a': id -3 "):
        online.read(lab.batch_of({"a": [[-3]], "b": [[6]]}))


def test_first_rows_are_a_function_of_seed_table_and_id(lab: Any) -> None:
    spec = {"init_fn": "nn.init.normal_,std=0.5"}
    features = [lab.id_feature("a", zch=ZchSpec(size=64), **spec), lab.id_feature("b", **spec)]
    batch = lab.batch_of(BAGS)
    first = lab.online(features, seed=3).step(batch)["deep"]
    assert torch.equal(first, lab.online(features, seed=3).step(batch)["deep"])
    assert not torch.equal(first, lab.online(features, seed=4).step(batch)["deep"])
    init = parse_init_fn(spec["init_fn"], rows=64, dim=4)
    drawn = draw_rows(init, table_key(3, "b"), np.array([5]), 4)
    assert np.array_equal(first[0, 4:], drawn[0])


def test_direct_tables_have_the_same_rows_before_and_after_sharding(lab: Any) -> None:
    features = [lab.id_feature("b"), lab.id_feature("c", pooling="mean")]
    layout = create_layout(features, lab.model_config(("deep", "DEEP", ["b", "c"])))
    batch = lab.batch_of({"b": BAGS["b"], "c": BAGS["b"]})
    alone = EmbeddingGroup(features, layout, torch.device("cpu"), seed=9)(batch)["deep"]
    assert alone.any()
    torch.testing.assert_close(alone, lab.online(features, seed=9).read(batch)["deep"])
