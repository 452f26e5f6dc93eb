"""The map against fbgemm's own read-only operator, against a naive map, and under pressure."""

from typing import Any

import numpy as np
import pytest
import torch

from features import ZchSpec
from recmodels.initializers import RowInit
from recmodels.layout import TableSpec
from recmodels.zch import bitmaps, kernels
from recmodels.zch.arena import Arena, Shard, bucket_count

Ints = np.ndarray


class Map:
    """One hashed table without weights."""

    def __init__(self, **spec: Any) -> None:
        self.spec = ZchSpec(**spec)
        table = TableSpec(
            name="t", num_embeddings=self.spec.size, dim=1, pooling="sum", init=RowInit(kind=3, a=0.0),
            data_type="FP32", trainable=True, zch=self.spec, features=("f",), data_group="g",
        )  # fmt: skip
        self.arena = Arena((Shard(table=table, number=0, first_row=0, rows=self.spec.size),))
        self.evicted: list[int] = []

    def write(self, ids: Ints, now: int = 0) -> Ints:
        """One batch of one step."""
        arena = self.arena
        ids = np.asarray(ids, np.int64)
        rows, new = np.empty(len(ids), np.int64), np.empty((6, len(ids)), np.int64)
        arena.reserve_pins(len(ids))
        starts, tables = np.array([0, len(ids)]), np.array([0])
        kernels.count_sightings(
            ids, starts, tables, arena.params, arena.entries, arena.counters, arena.counter_touched, new[4], new[5]
        )
        fresh, bad = kernels.remap_train(
            ids, starts, tables, arena.params, arena.entries, arena.counters, arena.counter_touched, arena.touched,
            arena.pinned, arena.pinned_words, arena.pinned_count, arena.missed, arena.figures, now, rows, *new[:4],
        )  # fmt: skip
        assert bad == -1
        self.evicted += [old for old in new[3, :fresh].tolist() if old >= 0]
        bitmaps.unpin(arena.pinned, arena.pinned_words, arena.pinned_count)
        return rows

    def read(self, ids: Ints) -> Ints:
        rows = np.empty(len(ids), np.int64)
        starts, tables = np.array([0, len(ids)]), np.array([0])
        assert kernels.remap_read(ids, starts, tables, self.arena.params, self.arena.entries, rows) == -1
        return rows

    def stock(self, ids: Ints) -> Ints:
        """Where fbgemm's read-only operator finds the ids in this map."""
        buckets = bucket_count(self.spec)
        size = self.spec.size // buckets
        found, _ = torch.ops.fbgemm.zero_collision_hash(
            input=torch.from_numpy(ids),
            identities=torch.from_numpy(self.arena.entries[:, :1].copy()),
            max_probe=min(self.spec.max_probe, size - 1),
            circular_probe=True,
            readonly=True,
            local_sizes=torch.full((len(ids),), size),
            offsets=torch.from_numpy(ids % buckets * size),
            opt_in_prob=100,
            num_reserved_slots=1,
        )
        return np.asarray(found.numpy())

    @property
    def held(self) -> set[int]:
        ids = self.arena.entries[:, 0]
        return set(ids[ids >= 0].tolist())


@pytest.mark.parametrize("load", [0.3, 0.9, 1.5])
@pytest.mark.parametrize("buckets", [1, 3, 8])
def test_every_id_is_where_the_stock_operator_finds_it(load: float, buckets: int) -> None:
    table = Map(size=480, buckets=buckets, max_probe=16)
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 2**63 - 1, int(480 * load))
    for now, part in enumerate(np.array_split(ids, 12)):
        placed = table.write(part, now)
        known = np.isin(part, list(table.held))
        assert np.array_equal(table.stock(part)[known], placed[known])
    held = np.array(sorted(table.held))
    assert np.array_equal(table.stock(held), table.read(held))
    assert np.array_equal(table.arena.entries[table.read(held), 0], held)
    never = rng.integers(0, 2**63 - 1, 500)
    size = 480 // buckets
    assert np.array_equal(table.stock(never), table.read(never))
    assert np.array_equal(table.read(never), never % buckets * size + size - 1)


def test_no_chain_has_a_hole_after_evictions() -> None:
    table = Map(size=64, buckets=1, max_probe=8, ttl_ms=5)
    rng = np.random.default_rng(1)
    for now in range(300):
        table.write(rng.integers(0, 200, 8), now)
        held = np.array(sorted(table.held))
        assert np.array_equal(table.stock(held), table.read(held))
        assert np.array_equal(table.arena.entries[table.read(held), 0], held)


def test_a_full_window_evicts_the_least_recent(lab: Any) -> None:
    table = Map(size=9, buckets=1, max_probe=8)
    for now in range(8):
        table.write([now], now)
    table.write([0], 8)
    table.write([100], 9)
    assert table.evicted == [1]
    assert table.held == {0, 2, 3, 4, 5, 6, 7, 100}


def test_an_expired_row_gives_way_before_the_window_is_full() -> None:
    table = Map(size=3, buckets=1, max_probe=2, ttl_ms=10)
    table.write([1], 0)
    first = table.read(np.array([1]))[0]
    other = next(i for i in range(2, 100) if Map(size=3, buckets=1, max_probe=2).write([i])[0] == first)
    table.write([other], 10)
    assert table.evicted == []
    table.write([other], 25)
    table = Map(size=3, buckets=1, max_probe=2, ttl_ms=10)
    table.write([1], 0)
    table.write([other], 11)
    assert table.evicted == [1]
    assert table.held == {other}


def test_rows_of_the_step_are_never_evicted() -> None:
    table = Map(size=5, buckets=1, max_probe=4)
    rows = table.write(np.arange(10), 0)
    assert sorted(rows[rows != 4].tolist()) == [0, 1, 2, 3]
    assert (rows == 4).sum() == 6
    assert table.arena.missed.tolist() == [1]
    known = np.array(sorted(table.held))
    rows = table.write(np.concatenate([[50, 51], known]), 1)
    assert rows[:2].tolist() == [4, 4]
    assert np.array_equal(rows[2:], table.read(known))


def test_repeated_ids_of_a_batch_share_one_row() -> None:
    table = Map(size=4096, buckets=4)
    rng = np.random.default_rng(2)
    ids = rng.integers(0, 3000, 20_000)
    rows = table.write(ids)
    naive: dict[int, int] = {}
    for row_id, row in zip(ids.tolist(), rows.tolist(), strict=True):
        if (row + 1) % 1024:
            assert naive.setdefault(row_id, row) == row
    assert len(set(naive.values())) == len(naive)
    figures = table.arena.figures[0]
    assert figures[0] == len(naive) == figures[2]
    assert figures[1] + figures[2] + figures[5] == len(ids)


def test_admission_counts_every_sighting_before_an_id_gets_a_row() -> None:
    table = Map(size=64, buckets=2, admission_count=3)
    assert table.write([7, 7, 8]).tolist() == [63, 63, 31]
    assert table.held == set()
    rows = table.write([7, 8])
    assert table.held == {7}
    assert rows[0] == table.stock(np.array([7]))[0]
    assert rows[1] == 31
    table.write([8])
    assert table.held == {7, 8}
    assert (table.arena.counters[:, 0] == -1).all()


def test_admission_is_the_same_for_every_sighting_of_a_batch() -> None:
    table = Map(size=64, buckets=1, admission_count=3)
    rows = table.write([7, 5, 7, 7])
    assert len({rows[0], rows[2], rows[3]}) == 1
    assert table.held == {7}


def test_admission_counters_are_bounded_and_give_up_the_lowest_count() -> None:
    table = Map(size=64, buckets=1, admission_count=1000, admission_capacity=8)
    assert len(table.arena.counters) == 8
    table.write(np.repeat(np.arange(8), np.arange(2, 10)))
    table.write([100])
    assert set(table.arena.counters[:, 0].tolist()) == {1, 2, 3, 4, 5, 6, 7, 100}
    assert dict(table.arena.counters.tolist())[7] == 9
