"""Tables on a device against those on the host: the same content where the rules coincide, and logs that fit both.

The device is a CPU here, and fbgemm's writing operator is emulated (writer.py). Rules that do not coincide, and what
the tests therefore do not ask for:

- Who comes first. The host lets ids in feature by feature as they occur; a device all of a table at once, ascending
  here and in no order at all on a GPU, and so it counts sightings. It tells only where windows, or sets of admission
  counters, are full, or in which row of a window an id lies.
- What is pinned. The host never evicts a row that the step has used; a device no row seen in the present millisecond
  of event time or later, which other steps may have used too.
- How fine ages are. A device expires rows of tables with a TTL beyond 2^28 ms up to (TTL / 2^28) ms late, and for it
  all rows that were seen 2^30 ms ago (12 days) or longer are equally old.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.optim import SGD, Adagrad
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad

from checkpointer.rows import TableRows, no_ids
from features import ZchSpec
from recmodels.errors import IdError
from recmodels.zch.device_lookup import DeviceLookup
from recmodels.zch.event_scores import EventClock

NOON = 1_790_000_000_000
SPECS = {
    "lru": ZchSpec(size=32, buckets=2, max_probe=6),
    "ttl": ZchSpec(size=32, buckets=2, max_probe=6, ttl_ms=40),
    "admission": ZchSpec(size=32, buckets=2, max_probe=6, admission_count=2),
    "all": ZchSpec(size=48, buckets=3, max_probe=5, ttl_ms=40, admission_count=2, admission_capacity=48),
    "roomy": ZchSpec(size=4096, buckets=2),
}
Steps = list[tuple[int, list[int]]]
steps = st.lists(
    st.tuples(st.integers(1, 30), st.lists(st.integers(0, 120), max_size=16).map(sorted)), min_size=4, max_size=10
)
quick = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def tables(lab: Any, kind: str, spec: ZchSpec, data_type: str = "FP32", **more: Any) -> Any:
    features = [lab.id_feature("u", zch=spec, data_type=data_type), lab.id_feature("i")]
    return lab.of(kind).online(features, **more)


def batch(lab: Any, ids: list[int]) -> Any:
    return lab.batch_of({"u": [ids, []], "i": [[k % 64 for k in ids], []]})


def content(online: Any) -> dict[str, dict[int, tuple[bytes, ...]]]:
    return {
        table: {key: tuple(np.asarray(column).tobytes() for column in row) for key, row in held.items()}
        for table, held in online.rows().items()
    }


def plain(rows: TableRows) -> tuple[Any, ...]:
    columns = {name: column.tobytes() for name, column in rows.columns.items()}
    return rows.key, rows.ids.tolist(), rows.slots.tolist(), rows.deleted.tolist(), columns, rows.reset


def sealed(online: Any) -> list[TableRows]:
    rows: list[TableRows] = online.tables.seal()
    online.tables.confirm()
    return rows


def resolved(rows: list[TableRows]) -> list[TableRows]:
    """A first commit as a restore yields it."""
    return [replace(part, deleted=no_ids()) for part in rows]


@pytest.mark.parametrize("policy", ["lru", "ttl", "admission", "all"])
@quick
@given(taken=steps)
def test_both_hold_and_seal_the_same_when_ids_come_one_way(lab: Any, policy: str, taken: Steps) -> None:
    host, device = (tables(lab, kind, SPECS[policy]) for kind in ("host", "device"))
    now = NOON
    for gap, ids in taken:
        now += gap
        ours, theirs = (trained.step(batch(lab, ids), ms=now)["deep"] for trained in (host, device))
        assert torch.equal(ours, theirs)
        assert host.tables.figures() == device.tables.figures()
        if gap % 3 == 0:
            assert [plain(rows) for rows in sealed(host)] == [plain(rows) for rows in sealed(device)]
    assert content(host) == content(device)


@quick
@given(taken=st.lists(st.lists(st.integers(0, 2**62), max_size=12), max_size=6))
def test_both_hold_the_same_in_whatever_order_where_there_is_room(lab: Any, taken: list[list[int]]) -> None:
    host = tables(lab, "host", SPECS["roomy"])
    operator = lab.writer(np.random.default_rng(0))
    device = tables(lab, "device", SPECS["roomy"], lookup_of=partial(DeviceLookup, operator=operator))
    for now, ids in enumerate(taken):
        for trained in (host, device):
            trained.step(batch(lab, ids), ms=now)
    assert content(host) == content(device)
    assert host.tables.figures()[0].size == device.tables.figures()[0].size


@pytest.mark.parametrize("policy", ["lru", "ttl"])
def test_in_any_order_every_id_is_where_the_read_only_operator_finds_it(lab: Any, policy: str) -> None:
    rng = np.random.default_rng(3)
    made = partial(DeviceLookup, operator=lab.writer(rng))
    online = lab.of("device").online([lab.id_feature("u", zch=SPECS[policy])], lookup_of=made)
    (lookup,) = online.tables._lookups
    rows, log = np.arange(SPECS[policy].size), {}
    for step in range(60):
        online.step(lab.batch_of({"u": [rng.integers(0, 100, 9).tolist()]}), ms=NOON + 5 * step)
        ids, _ = lookup.held(0, rows)
        held = ids[ids >= 0]
        assert len(set(held.tolist())) == len(held)
        assert np.array_equal(lookup.rows_of(0, held), rows[ids >= 0])
        for part in sealed(online):
            for gone in part.deleted.tolist():
                log.pop(gone)
            log |= {
                key: weight.tobytes() for key, weight in zip(part.ids.tolist(), part.columns["weight"], strict=True)
            }
    assert log == {key: row[0] for key, row in content(online)["u"].items()}
    figures = online.tables.figures()[0]
    assert figures.evictions > 20
    assert (figures.size, figures.hits + figures.inserts + figures.unadmitted) == (len(log), 60 * 9)


@pytest.mark.parametrize(
    ("optimizer", "data_type"), [(RowWiseAdagrad, "FP32"), (RowWiseAdagrad, "FP16"), (Adagrad, "FP32"), (SGD, "FP32")]
)
@pytest.mark.parametrize(("before", "after"), [("host", "device"), ("device", "host")])
def test_what_one_sealed_the_other_restores_and_trains_on(
    lab: Any, before: str, after: str, optimizer: type, data_type: str
) -> None:
    first, second = (tables(lab, kind, SPECS["all"], data_type, optimizer=optimizer) for kind in (before, after))
    rng = np.random.default_rng(4)
    batches = [batch(lab, sorted(rng.integers(0, 90, 12).tolist())) for _ in range(40)]
    for step in range(20):
        first.step(batches[step], ms=NOON + 10 * step)
    second.tables.load(resolved(sealed(first)))
    assert second.tables.in_place
    assert second.tables.seal() == []
    second.tables.confirm()
    assert content(first) == content(second)
    for step in range(20, 40):
        ours, theirs = (trained.step(batches[step], ms=NOON + 10 * step)["deep"] for trained in (first, second))
        assert torch.equal(ours, theirs)
    assert [plain(rows) for rows in sealed(first)] == [plain(rows) for rows in sealed(second)]


def test_a_device_follows_what_a_host_commits(lab: Any) -> None:
    host, device = (tables(lab, kind, SPECS["all"]) for kind in ("host", "device"))
    rng = np.random.default_rng(5)
    host.step(batch(lab, sorted(rng.integers(0, 60, 12).tolist())), ms=NOON)
    device.tables.load(resolved(sealed(host)))
    for step in range(1, 30):
        host.step(batch(lab, sorted(rng.integers(0, 60, 12).tolist())), ms=NOON + 3 * step)
        assert device.tables.follow(sealed(host))
    assert content(device) == content(host)
    assert host.tables.figures()[0].evictions > 0
    last = batch(lab, list(range(70, 80)))
    assert torch.equal(host.step(last, ms=NOON + 100)["deep"], device.step(last, ms=NOON + 100)["deep"])


def test_rows_of_a_large_table_travel_some_at_a_time(lab: Any) -> None:
    rows = 2**18 + 9
    host, device = (lab.of(kind).online([lab.id_feature("i", num_embeddings=rows)]) for kind in ("host", "device"))
    (ours,), (theirs,) = (sealed(trained) for trained in (host, device))
    assert plain(ours) == plain(theirs)
    changed = {name: column + 1 for name, column in ours.columns.items()}
    device.tables.load([replace(ours, columns=changed)])
    device.tables.touch_all()
    (back,) = sealed(device)
    assert all(np.array_equal(back.columns[name], column) for name, column in changed.items())


def test_rows_seen_in_the_same_millisecond_stay(lab: Any) -> None:
    online = lab.of("device").online([lab.id_feature("u", zch=ZchSpec(size=5, buckets=1, max_probe=4))])
    for ids in ([1, 2], [3, 4], [5]):
        online.step(lab.batch_of({"u": [ids]}), ms=7)
    assert set(online.rows()["u"]) == {1, 2, 3, 4}
    online.step(lab.batch_of({"u": [[5]]}), ms=8)
    assert 5 in online.rows()["u"]


def test_an_id_whose_row_another_got_in_the_same_call_has_none(lab: Any) -> None:
    writer = lab.writer()

    def race(**given: Any) -> tuple[torch.Tensor, torch.Tensor]:
        rows, gone = writer(**given)
        if not given["readonly"] and len(rows) == 2:
            given["identities"][rows[1]] = given["metadata"][rows[1]] = -1
            rows[1] = rows[0]
        return rows, gone

    made = partial(DeviceLookup, operator=race)
    online = lab.of("device").online([lab.id_feature("u", zch=SPECS["lru"])], lookup_of=made)
    read = online.step(lab.batch_of({"u": [[3], [5]]}), ms=NOON)["deep"]
    assert read[0].any() and not read[1].any()
    assert set(online.rows()["u"]) == {3}
    assert online.tables.figures()[0].unadmitted == 1
    online.step(lab.batch_of({"u": [[5]]}), ms=NOON + 1)
    assert set(online.rows()["u"]) == {3, 5}


def test_an_id_outside_its_table_is_refused_before_anything_changes(lab: Any) -> None:
    online = tables(lab, "device", SPECS["lru"])
    sealed(online)
    for bags, message in (
        ({"u": [[3, -1]], "i": [[]]}, "table 'u': id -1 is outside"),
        ({"u": [[3]], "i": [[64]]}, "table 'i': id 64 is outside rows 0 to 63"),
    ):
        with pytest.raises(IdError, match=message):
            online.step(lab.batch_of(bags))
    assert online.rows()["u"] == {}
    assert sealed(online) == []


def test_a_call_of_the_operator_has_no_more_ids_than_one_pass_of_its_kernel(lab: Any) -> None:
    operator = lab.writer()
    made = partial(DeviceLookup, operator=operator)
    online = lab.of("device").online([lab.id_feature("u", zch=ZchSpec(size=2**17))], lookup_of=made)
    ids = np.random.default_rng(6).permutation(2**17)[: 2**15 + 9]
    online.step(lab.batch_of({"u": [ids.tolist()]}), ms=NOON)
    assert len(online.rows()["u"]) == len(ids)
    assert max(operator.calls) == 2**15


@pytest.mark.parametrize("ttl_ms", [0, 1000, 45 * 86_400_000])
def test_scores_keep_the_order_of_times_wherever_the_clock_moves(ttl_ms: int) -> None:
    clock = EventClock(ttl_ms)
    rng = np.random.default_rng(7)
    now = NOON
    assert clock.move(now)
    for _ in range(200):
        now += int(rng.integers(0, 2**28)) * clock.unit
        clock.move(now)
        ages = np.sort(rng.integers(0, 2**28, 20)) * clock.unit
        scores = [clock.score(now - int(age)) for age in ages]
        assert scores == clock.scores(torch.from_numpy(now - ages)).tolist()
        assert all((a > b) == (x < y) for a, b, x, y in zip(scores, scores[1:], ages, ages[1:], strict=False))
        assert clock.score(now) < 2**31 - 1
        expired = now - ttl_ms - clock.unit
        assert 1 <= clock.score(expired) < clock.score(now - ttl_ms)
    assert clock.move(NOON - 2**33 * clock.unit)
    assert not clock.move(NOON - 2**33 * clock.unit)


def test_the_least_recent_goes_first_while_the_clock_moves(lab: Any) -> None:
    online = lab.of("device").online([lab.id_feature("u", zch=ZchSpec(size=5, buckets=1, max_probe=4))])
    for number in range(30):
        online.step(lab.batch_of({"u": [[number]]}), ms=NOON + number * 4 * 86_400_000)
        assert set(online.rows()["u"]) == set(range(max(0, number - 3), number + 1))
