"""TorchRec's sorted map: what it admits and evicts is reset, sealed and restored like the rows of a hashed table."""

from typing import Any

import numpy as np
import pytest
import torch

from checkpointer.rows import TableRows, no_ids
from features import ZchSpec

pytestmark = pytest.mark.parametrize(
    "lab", ["host", "device", pytest.param("cuda", marks=pytest.mark.cuda)], indirect=True
)

POLICIES = ("lfu", "lru", "distance_lfu")
Log = dict[tuple[str, str], dict[int, tuple[int, dict[str, Any]]]]


def spec(policy: str, size: int = 16) -> ZchSpec:
    return ZchSpec(size=size, policy=policy, eviction_interval=3, buckets=1)


def online(lab: Any, policy: str, size: int = 16) -> Any:
    return lab.online(
        [lab.id_feature("u", zch=spec(policy, size)), lab.id_feature("v", table="u", zch=spec(policy, size))]
    )


def batch(lab: Any, step: int) -> Any:
    rng = np.random.default_rng(step)
    draw = [np.minimum(rng.zipf(1.3, 3), 60).tolist() for _ in range(12)]
    return lab.batch_of({"u": draw[:6], "v": draw[6:]})


def apply(log: Log, rows: list[TableRows]) -> None:
    for part in rows:
        held = log.setdefault(part.key, {})
        for gone in part.deleted.tolist():
            held.pop(gone, None)
        for at, key in enumerate(part.ids.tolist()):
            held[key] = (int(part.slots[at]), {name: column[at] for name, column in part.columns.items()})


def resolved(log: Log) -> list[TableRows]:
    parts = []
    for (table, kind), held in log.items():
        ids = np.array(sorted(held), np.int64)
        names = next(iter(held.values()))[1] if held else {}
        parts.append(
            TableRows(
                table=table, shard=0, kind=kind, ids=ids, deleted=no_ids(),
                slots=np.array([held[key][0] for key in ids.tolist()], np.int64),
                columns={name: np.stack([held[key][1][name] for key in ids.tolist()]) for name in names},
            )
        )  # fmt: skip
    return parts


def owned(trained: Any) -> dict[int, bytes]:
    """Id → weight, from memory."""
    (lookup,) = trained.tables._lookups
    ids = lookup.sorted[0].ids
    rows = np.flatnonzero(ids >= 0)
    weights = lookup.read_rows(0, rows)["weight"]
    return {int(ids[row]): weight.tobytes() for row, weight in zip(rows, weights, strict=True)}


@pytest.mark.parametrize("policy", POLICIES)
def test_ids_get_rows_after_an_interval_and_read_zero_before(lab: Any, policy: str) -> None:
    trained = online(lab, policy)
    bags = lab.batch_of({"u": [[5], [6]], "v": [[5], []]})
    for _ in range(2):
        assert not trained.step(bags)["deep"].any()
    assert trained.step(bags)["deep"][0].any()
    assert owned(trained).keys() == {5, 6}
    (figures,) = trained.tables.figures()
    assert (figures.size, figures.capacity, figures.inserts, figures.unadmitted, figures.hits) == (2, 15, 2, 6, 3)


@pytest.mark.parametrize("policy", POLICIES)
def test_base_and_deltas_are_the_state_and_restore_it_bit_for_bit(lab: Any, policy: str) -> None:
    straight, again, log = online(lab, policy), online(lab, policy), {}
    for step in range(20):
        straight.step(batch(lab, step))
        sealed = straight.tables.seal()
        if step % 4 == 1:
            straight.tables.restore_touched()
        else:
            apply(log, sealed)
            straight.tables.confirm()
    assert {key: row["weight"].tobytes() for key, (_, row) in log[("u", "zch")].items()} == owned(straight)
    assert straight.tables.figures()[0].evictions > 0
    again.tables.load(resolved(log))
    for step in range(20, 32):
        ours, theirs = straight.step(batch(lab, step)), again.step(batch(lab, step))
        assert torch.equal(ours["deep"], theirs["deep"])
    assert owned(straight) == owned(again)
    sealed = [{(rows.table, rows.kind): rows for rows in trained.tables.seal()} for trained in (straight, again)]
    assert sealed[0].keys() == sealed[1].keys()
    for key, rows in sealed[0].items():
        assert rows.ids.tolist() == sealed[1][key].ids.tolist()
        assert rows.deleted.tolist() == sealed[1][key].deleted.tolist()
        for name, column in rows.columns.items():
            assert np.array_equal(column, sealed[1][key].columns[name]), (key, name)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_smaller_map_keeps_the_highest_scores(lab: Any, policy: str) -> None:
    trained, smaller, log = online(lab, policy), online(lab, policy, size=8), {}
    for step in range(21):
        trained.step(batch(lab, step))
    apply(log, trained.tables.seal())
    smaller.tables.load(resolved(log))
    assert len(owned(smaller)) == 7
    assert owned(smaller).items() <= owned(trained).items()
    gone = {rows.kind: rows for rows in smaller.tables.seal()}["zch"].deleted
    assert set(gone.tolist()) == owned(trained).keys() - owned(smaller).keys()


def test_an_evicting_id_never_inherits(lab: Any) -> None:
    trained = online(lab, "lru", size=3)
    for _ in range(9):
        trained.step(lab.batch_of({"u": [[1], [2]], "v": [[], []]}))
    before = owned(trained)
    for _ in range(3):
        read = trained.step(lab.batch_of({"u": [[8], [9]], "v": [[], []]}))["deep"]
    fresh = online(lab, "lru", size=3)
    for _ in range(3):
        expected = fresh.step(lab.batch_of({"u": [[8], [9]], "v": [[], []]}))["deep"]
    assert torch.equal(read, expected)
    assert (before.keys(), owned(trained).keys()) == ({1, 2}, {8, 9})
    assert owned(trained) == owned(fresh)


def test_a_batch_that_outgrows_the_history_is_counted_whole(lab: Any) -> None:
    trained = online(lab, "lfu", size=64)
    trained.step(lab.batch_of({"u": [[1]], "v": [[]]}))
    trained.step(lab.batch_of({"u": [list(range(50))], "v": [[]]}))
    trained.step(lab.batch_of({"u": [[1]], "v": [[]]}))
    assert owned(trained).keys() == set(range(50))
