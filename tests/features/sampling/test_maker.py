"""Batches with negatives: sizes, groups, reproducibility (data_and_samplers.md sections 4, 5.2, 7 and 10)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features import Batch, FeatureConfigError, create_features
from features.errors import SamplerError
from features.sampling.catalogue import Catalogue
from features.sampling.draw import Draw
from features.sampling.maker import BatchMaker, open_maker
from features.sampling.options import SamplerOptions
from protos.pipeline_pb2 import EasyRecConfig
from stream.cursor import Cursor
from stream.feed import Feed, FeedOptions
from stream.memory import MemorySource
from stream.odps_table import OdpsOptions
from stream.progress import Progress

from .conftest import ITEMS, id_feature, make_config, negative, write_edges, write_nodes

Configs = Callable[..., EasyRecConfig]


def _rows(items: list[int], users: list[int] | None = None) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "item_id": pa.array(items, pa.int64()),
            "price": pa.array([float(item) for item in items], pa.float32()),
            "user_id": pa.array(users or list(range(len(items))), pa.int64()),
            "y": pa.array([1] * len(items), pa.int64()),
        }
    )


def _make(config: EasyRecConfig, items: list[int], draw: Draw | None = None, users: list[int] | None = None) -> Batch:
    return open_maker(config, create_features(config)).make(_rows(items, users), draw or Draw())


def _ids(batch: Batch, name: str = "item_id", group: str = "__NEG__") -> list[int]:
    return batch.sparse_features[group][name].values().tolist()


def test_negatives_stand_behind_the_rows_of_the_batch(negative_config: Configs) -> None:
    batch = _make(negative_config(8), [3, 4, 5, 6])
    assert batch.size == 4
    assert batch.sparse_features["__BASE__"].keys() == ["user_id"]
    assert batch.sparse_features["__BASE__"].lengths().tolist() == [1] * 4
    assert batch.sparse_features["__NEG__"].keys() == ["item_id"]
    assert _ids(batch)[:4] == [3, 4, 5, 6]
    assert len(_ids(batch)) == 12
    assert batch.dense_features["__NEG__"].values().shape == (12, 1)
    # The attributes of one item stay together.
    assert batch.dense_features["__NEG__"].values()[4:, 0].tolist() == [item / 2 for item in _ids(batch)[4:]]
    assert batch.labels["y"].shape == (4,)
    assert batch.additional_infos == {}


def test_negatives_are_not_there_in_prediction_and_of_another_number_in_evaluation(negative_config: Configs) -> None:
    config = negative_config(8, "num_eval_sample: 3")
    features = create_features(config)
    plain = features.parse(_rows([1, 2, 3, 4]), labels=False)
    assert len(_ids(plain)) == 4
    assert len(_ids(_make(config, [1, 2], Draw(evaluating=True)))) == 5
    assert len(_ids(_make(config, [1, 2]))) == 10
    assert len(_ids(_make(negative_config(8), [1, 2], Draw(evaluating=True)))) == 10


def test_batch_without_rows_has_no_negatives(negative_config: Configs) -> None:
    batch = _make(negative_config(8), [])
    assert batch.size == 0
    assert _ids(batch) == []


@settings(deadline=None, max_examples=30)
@given(items=st.lists(st.integers(0, ITEMS + 5), min_size=1, max_size=20), seed=st.integers(0, 100))
def test_negatives_are_never_items_of_the_batch(items: list[int], seed: int, tmp_path_factory) -> None:
    path = write_nodes(tmp_path_factory.mktemp("n") / "items", [(i, i + 1, f"{i}:{i / 2}") for i in range(ITEMS)])
    sampler = negative(path, 16)
    drawn = _ids(_make(make_config(sampler), items, Draw(seed=seed)))[len(items) :]
    assert len(drawn) == 16
    assert not set(drawn) & set(items)


def test_negatives_follow_the_weights(negative_config: Configs) -> None:
    config = negative_config(2000)
    maker = open_maker(config, create_features(config))
    drawn = np.concatenate([_ids(maker.make(_rows([0]), Draw(place=str(k))))[1:] for k in range(50)])
    want = np.arange(ITEMS) + 1.0
    want[0] = 0
    want /= want.sum()
    found = np.bincount(drawn, minlength=ITEMS) / len(drawn)
    assert (np.abs(found - want) <= 5 * np.sqrt(want / len(drawn))).all()


def test_draws_depend_on_seed_epoch_and_place_alone(negative_config: Configs) -> None:
    config = negative_config(16)
    key = Draw(seed=1, epoch=2, place="0/3/5")
    first = _ids(_make(config, [1, 2], key))
    maker = open_maker(config, create_features(config))
    for place in ("0/1/0", "0/2/0"):
        maker.make(_rows([5, 6]), Draw(seed=1, epoch=2, place=place))
    assert _ids(maker.make(_rows([1, 2]), key)) == first
    others = [
        Draw(seed=2, epoch=2, place="0/3/5"),
        Draw(seed=1, epoch=3, place="0/3/5"),
        Draw(seed=1, epoch=2, place="x"),
    ]
    assert all(_ids(_make(config, [1, 2], other)) != first for other in others)


def test_draw_of_a_cut_ignores_where_the_files_are() -> None:
    here = {("/a/x", 1): Cursor(topic="/a/x", partition=1, topic_id="1", offset=2, row=3)}
    there = {("/b/y", 1): Cursor(topic="/b/y", partition=1, topic_id="2", offset=2, row=3)}
    assert Draw.after(here, seed=1, epoch=0) == Draw.after(there, seed=1, epoch=0)


def _v2(tmp_path: Path, item_file: str, hard: str = "", kind: str = "negative_sampler_v2") -> EasyRecConfig:
    edges = write_edges(tmp_path / "positive", [(u, i, 1.0) for u in range(4) for i in range(u * 5, u * 5 + 5)])
    users = tmp_path / "users"
    users.write_text("id:int64\tweight:float\n0\t1.0\n")
    return make_config(
        f'{kind} {{ user_input_path: "{users}" item_input_path: "{item_file}" pos_edge_input_path: "{edges}" '
        "num_sample: 30 "
        f'attr_fields: ["item_id", "price"] item_id_field: "item_id" user_id_field: "user_id" {hard} }}'
    )


def test_v2_draws_uniformly_from_destinations_without_the_users_own(tmp_path: Path, item_file: str) -> None:
    config = _v2(tmp_path, item_file)
    maker = open_maker(config, create_features(config))
    drawn = [item for k in range(200) for item in _ids(maker.make(_rows([0, 19], [0, 3]), Draw(place=str(k))))[2:]]
    # Users 0 and 3 have items 0 to 4 and 15 to 19.
    assert set(drawn) == set(range(5, 15))
    counts = np.bincount(drawn)[5:]
    assert (np.abs(counts - 600) < 5 * np.sqrt(600)).all()


def test_v2_gives_unknown_destinations_default_attributes(tmp_path: Path) -> None:
    items = write_nodes(tmp_path / "few", [(0, 1.0, "0:0.5")])
    batch = _make(_v2(tmp_path, items), [0], users=[0])
    drawn = batch.sparse_features["__NEG__"]["item_id"]
    assert drawn.lengths().tolist() == [1] + [0] * 30


def _hard(tmp_path: Path, item_file: str, num: int) -> EasyRecConfig:
    edges = write_edges(tmp_path / "hard", [(0, 30, 0.1), (0, 31, 0.9), (0, 32, 0.5), (2, 33, 1.0)])
    users = tmp_path / "users"
    users.write_text("id:int64\tweight:float\n0\t1.0\n")
    return make_config(
        f'hard_negative_sampler {{ user_input_path: "{users}" item_input_path: "{item_file}" '
        f'hard_neg_edge_input_path: "{edges}" num_sample: 4 num_hard_sample: {num} '
        'attr_fields: ["item_id", "price"] item_id_field: "item_id" user_id_field: "user_id" }'
    )


@pytest.mark.parametrize(
    ("num", "items", "indices"),
    [
        (0, [31, 32, 30, 33], [[0, 0], [0, 1], [0, 2], [2, 0]]),
        (2, [31, 32, 33], [[0, 0], [0, 1], [2, 0]]),
    ],
)
def test_hard_negatives_are_the_heaviest_edges_of_each_user(
    tmp_path: Path, item_file: str, num: int, items: list[int], indices: list[list[int]]
) -> None:
    batch = _make(_hard(tmp_path, item_file, num), [1, 2, 3], users=[0, 1, 2])
    assert _ids(batch)[3 + 4 :] == items
    found = batch.additional_infos["hard_neg_indices"]
    assert str(found.dtype) == "torch.int32"
    assert found.tolist() == indices


def test_hard_negatives_are_absent_where_no_user_has_any(tmp_path: Path, item_file: str, caplog) -> None:
    batch = _make(_hard(tmp_path, item_file, 0), [1, 2], users=[7, 8])
    assert batch.additional_infos == {}
    assert len(_ids(batch)) == 6
    assert "no user of a batch has hard negatives" in caplog.text


def test_hard_v2_has_both(tmp_path: Path, item_file: str) -> None:
    edges = write_edges(tmp_path / "hard", [(0, 30, 0.1)])
    config = _v2(
        tmp_path, item_file, f'hard_neg_edge_input_path: "{edges}" num_hard_sample: 1', "hard_negative_sampler_v2"
    )
    batch = _make(config, [0], users=[0])
    assert len(_ids(batch)) == 1 + 30 + 1
    assert _ids(batch)[-1] == 30
    assert batch.additional_infos["hard_neg_indices"].tolist() == [[0, 0]]


CANDIDATES = """
  feature_configs { sequence_feature { sequence_name: "cand_seq" sequence_length: 50 sequence_delim: ";"
    features { id_feature {
      feature_name: "item_id" expression: "item:item_id" num_buckets: 1000 embedding_dim: 4 } } } }
""" + id_feature("user_id", "user:user_id")


def test_candidates_are_extended_in_the_last_row(item_file: str) -> None:
    config = make_config(
        f'negative_sampler {{ input_path: "{item_file}" num_sample: 5 attr_fields: ["item_id", "price"] '
        'item_id_field: "cand_seq__item_id" }',
        CANDIDATES,
    )
    rows = pa.record_batch({"cand_seq__item_id": ["1;2", "3;4;5"], "user_id": [7, 8], "y": [1, 1]})
    features = create_features(config)
    assert not features.validate(rows)
    batch = open_maker(config, features).make(rows, Draw())
    sequence = batch.sparse_features["__BASE__"]["cand_seq__item_id"]
    assert sequence.lengths().tolist() == [2, 8]
    assert sequence.values().tolist()[:5] == [1, 2, 3, 4, 5]
    assert not set(sequence.values().tolist()[5:]) & {1, 2, 3, 4, 5}
    assert batch.additional_infos["cand_pos_lengths"].tolist() == [2, 3]


def test_candidates_outside_a_group_are_refused(item_file: str) -> None:
    sequence = id_feature("s", "item:items", 'sequence_length: 5 sequence_delim: ";"').replace("id_f", "sequence_id_f")
    with pytest.raises(FeatureConfigError, match="is a sequence outside a group"):
        SamplerOptions.from_proto(make_config(negative(item_file, 5, item="items"), sequence))


def test_force_base_data_group_pads(negative_config: Configs) -> None:
    config = negative_config(8, more=" force_base_data_group: true")
    features = create_features(config)
    batch = open_maker(config, features).make(_rows([3, 4, 5, 6]), Draw())
    assert set(batch.sparse_features) == set(batch.dense_features) == {"__BASE__"}
    sparse = batch.sparse_features["__BASE__"]
    assert sparse.keys() == ["item_id", "user_id"]
    assert sparse["user_id"].lengths().tolist() == [1] * 4 + [0] * 8
    assert len(sparse.values()) == 12 + 4
    assert batch.dense_features["__BASE__"].values().shape == (12, 1)
    assert {feature.data_group for feature in features.features} == {"__BASE__"}
    assert features.parse(_rows([1, 2]), labels=False).sparse_features["__BASE__"].lengths().tolist() == [1] * 4


def test_force_base_data_group_has_the_sizes_of_the_reference(negative_config: Configs) -> None:
    """B 4, 8 negatives, 2 item ids and 1 user id, 2 numbers: dense (12, 2), 36 lengths, 28 values."""
    ids = "".join(
        id_feature(name, side) for name, side in [("a", "item:item_id"), ("b", "item:item_id"), ("u", "user:user_id")]
    )
    numbers = "".join(
        f'feature_configs {{ raw_feature {{ feature_name: "{name}" expression: "item:price" default_value: "0" }} }}'
        for name in ("p", "q")
    )
    batch = _make(negative_config(8, features=ids + numbers, more=" force_base_data_group: true"), [1, 2, 3, 4])
    assert batch.dense_features["__BASE__"].values().shape == (12, 2)
    assert len(batch.sparse_features["__BASE__"].lengths()) == 36
    assert len(batch.sparse_features["__BASE__"].values()) == 28


def test_features_of_sampled_and_other_columns_are_refused(negative_config: Configs) -> None:
    combo = """feature_configs { combo_feature { feature_name: "c" expression: ["item:item_id", "user:user_id"]
      hash_bucket_size: 100 embedding_dim: 4 } }"""
    with pytest.raises(FeatureConfigError, match="feature 'c' reads item_id.*and user_id"):
        create_features(negative_config(8, features=combo))


def test_features_of_several_sampled_columns_have_a_group_of_their_own(negative_config: Configs) -> None:
    combo = """feature_configs { combo_feature { feature_name: "c" expression: ["item:item_id", "item:price"]
      hash_bucket_size: 100 embedding_dim: 4 } }"""
    batch = _make(negative_config(8, features=combo), [1, 2])
    assert batch.sparse_features["__CNEG__"].lengths().tolist() == [1] * 10


def test_items_that_no_feature_accepts_are_never_drawn(tmp_path: Path, caplog) -> None:
    items = [(i, 1.0, f"{i}:{i / 2}") for i in range(30)] + [(99, 1e6, "99:dear")]
    path = write_nodes(tmp_path / "items", items)
    sampler = negative(path, 50)
    maker = open_maker(config := make_config(sampler), create_features(config))
    assert 99 not in _ids(maker.make(_rows([1]), Draw()))
    assert "unusable_items=1 first=99" in caplog.text


def test_attributes_that_are_no_columns_are_told_once(item_file: str, caplog) -> None:
    sampler = negative(item_file, 5, "nobody")
    config = make_config(sampler)
    maker = open_maker(config, create_features(config))
    for _ in range(3):
        maker.make(_rows([1]), Draw())
    assert caplog.text.count("nobody is no column") == 1


def test_sampler_needs_its_files_only_when_it_starts() -> None:
    config = make_config('negative_sampler { input_path: "" num_sample: 5 item_id_field: "item_id" }')
    features = create_features(config)
    with pytest.raises(SamplerError, match="the path of its item file is empty"):
        open_maker(config, features)
    config.data_config.negative_sampler.input_path = "/nowhere/items"
    with pytest.raises(SamplerError, match="/nowhere/items"):
        open_maker(config, features)


def _no_account() -> OdpsOptions:
    raise AssertionError("a file needs no account")


def test_catalogue_reads_files_again_when_they_change(tmp_path: Path) -> None:
    path = tmp_path / "items"
    write_nodes(path, [(1, 1.0, "1:1")])
    options = SamplerOptions.from_proto(make_config(negative(path, 1)))
    assert options is not None
    now = [0.0]
    catalogue = Catalogue(options, odps=_no_account, clock=lambda: now[0], every_s=10)
    first = catalogue.tables()
    write_nodes(path, [(1, 1.0, "1:1"), (2, 1.0, "2:2")])
    os.utime(path, (1, 1))
    assert catalogue.tables() is first
    now[0] = 11
    assert catalogue.tables().items.ids.tolist() == [1, 2]
    assert catalogue.totals() == {"reloads": 1, "failed_reloads": 0}
    path.write_text("half a li")
    now[0] = 22
    assert catalogue.tables().items.ids.tolist() == [1, 2]
    assert catalogue.totals() == {"reloads": 1, "failed_reloads": 1}


def test_catalogue_reads_all_files_of_a_folder(tmp_path: Path) -> None:
    for k in range(3):
        write_nodes(tmp_path / f"part-{k}", [(k, 1.0, f"{k}:1")])
    options = SamplerOptions.from_proto(make_config(negative(f"{tmp_path}/", 1)))
    assert options is not None
    assert Catalogue(options, odps=_no_account).tables().items.ids.tolist() == [0, 1, 2]


MASKED = id_feature("item_id", "item:item_id", "use_mask: true") + id_feature("user_id", "user:user_id")


def test_masks_hide_the_values_of_features_that_use_them() -> None:
    config = make_config("sample_mask_prob: 0.4", MASKED)
    maker = open_maker(config, create_features(config))
    batch = maker.make(_rows(list(range(500))), Draw(seed=3))
    values = batch.sparse_features["__BASE__"]
    assert 500 * 0.45 < len(values["item_id"].values()) < 500 * 0.75
    assert len(values["user_id"].values()) == 500
    again = maker.make(_rows(list(range(500))), Draw(seed=3))
    assert again.sparse_features["__BASE__"]["item_id"].lengths().equal(values["item_id"].lengths())
    whole = maker.make(_rows(list(range(500))), Draw(evaluating=True))
    assert len(whole.sparse_features["__BASE__"]["item_id"].values()) == 500


def test_masks_of_negatives_hide_sampled_rows_only(item_file: str) -> None:
    sampler = negative(item_file, 32)
    config = make_config(sampler + " negative_sample_mask_prob: 0.4", MASKED)
    batch = open_maker(config, create_features(config)).make(_rows(list(range(32))), Draw())
    lengths = batch.sparse_features["__NEG__"]["item_id"].lengths()
    assert lengths[:32].tolist() == [1] * 32
    assert 33 <= int(lengths.sum()) <= 63


def test_mask_needs_a_feature_that_can_do_without_a_value() -> None:
    raw = 'feature_configs { raw_feature { feature_name: "price" expression: "item:price" use_mask: true } }'
    with pytest.raises(FeatureConfigError, match="use_mask needs a default value"):
        create_features(make_config("sample_mask_prob: 0.4", raw, mode="FG_NONE"))


def test_maker_is_plain_without_sampler_and_masks() -> None:
    config = make_config("")
    maker = open_maker(config, create_features(config))
    assert isinstance(maker, BatchMaker)
    assert maker.totals() == {}
    assert maker.make(_rows([1, 2]), Draw()).size == 2


@settings(deadline=None, max_examples=20)
@given(
    sizes=st.lists(st.integers(0, 20), min_size=1, max_size=3),
    batch_size=st.integers(1, 9),
    seed=st.integers(0, 5),
)
def test_resume_at_any_cut_draws_the_same(tmp_path_factory, sizes: list[int], batch_size: int, seed: int) -> None:
    path = write_nodes(tmp_path_factory.mktemp("n") / "items", [(i, i + 1, f"{i}:{i / 2}") for i in range(ITEMS)])
    config = make_config(negative(path, 6) + " sample_mask_prob: 0.3", MASKED)
    features = create_features(config)
    messages = {("m", k): [_rows([(7 * k + i) % ITEMS for i in range(size)])] for k, size in enumerate(sizes) if size}

    def drawn(progress: Progress | None, stop: int | None = None) -> list[list[int]]:
        maker = open_maker(config, features)
        options = FeedOptions(batch_size=batch_size, columns=features.columns)
        feed = Feed(MemorySource(messages), options, validate=features.validate, progress=progress)
        found = []
        while not feed.finished and len(found) != stop:
            cut = feed.next(5.0)
            if cut is None:
                continue
            if progress is not None:
                progress.advance(cut)
            batch = maker.make(cut.rows, Draw.after(cut.cursors, seed=seed, epoch=1))
            found.append(batch.sparse_features["__NEG__"]["item_id"].values().tolist())
        feed.close()
        return found

    whole = drawn(None)
    for stop in range(len(whole)):
        progress = Progress()
        assert drawn(progress, stop) == whole[:stop]
        assert drawn(Progress.from_proto([progress.to_proto()])) == whole[stop:]
