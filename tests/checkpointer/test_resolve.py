"""Base and deltas together are the full state, whatever they are and however they are cut."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpointer import CommitLog, Kind, compact, logical_digest, verify
from checkpointer.memory_store import MemoryStore
from checkpointer.resolve import merge, overlay

IDS = st.integers(0, 30)
SOME = st.sets(st.integers(0, 200), max_size=30)


@st.composite
def changes(draw):
    """What one commit does to one shard of one table."""
    touched = draw(st.dictionaries(IDS, st.booleans(), max_size=12))
    return {
        "table": draw(st.sampled_from(["user", "item"])),
        "kind": draw(st.sampled_from(["zch", "admission"])),
        "put": [key for key, put in touched.items() if put],
        "deleted": [key for key, put in touched.items() if not put],
        "reset": draw(st.sampled_from([False, False, False, True])),
    }


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(changes(), st.booleans(), st.integers(0, 9)), min_size=1, max_size=20))
def test_base_and_deltas_are_the_full_state(kit, steps):
    store = MemoryStore()
    trainer = kit.toy(store)
    for index, (change, full, dice) in enumerate(steps):
        part = kit.rows(
            change["put"],
            index,
            deleted=change["deleted"],
            reset=change["reset"],
            table=change["table"],
            kind=change["kind"],
        )
        trainer.commit([part], kind=Kind.BASE if full and dice > 7 else None)
        if dice == 0:
            compact(store)
    log = CommitLog(store)
    for seq in trainer.history:
        trainer.check(log.restore(seq))
    full = kit.toy(MemoryStore())
    full.step = trainer.step - 1
    full.state = trainer.state
    state = log.restore()
    parts = list(state.tables)
    before = logical_digest(parts, state.dense, state.stream, state.commit.step)
    full.commit(parts)
    snapshot = CommitLog(full.store).restore()
    assert logical_digest(snapshot.tables, snapshot.dense, snapshot.stream, snapshot.commit.step) == before
    assert verify(store).sound


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sets(st.integers(0, 200), max_size=80),
    st.lists(
        st.tuples(st.sets(st.integers(0, 200), max_size=30), st.sets(st.integers(0, 200), max_size=30)), max_size=5
    ),
    st.integers(1, 40),
    st.integers(1, 50),
)
def test_merge_streams_any_cut_of_a_base(kit, base, deltas, cut, at_once):
    ids = sorted(base)
    parts = [kit.rows(ids[start : start + cut], 0) for start in range(0, len(ids), cut)]
    steps = [[kit.rows(put, 1 + index, deleted=gone - put)] for index, (put, gone) in enumerate(deltas)]
    over = overlay(reversed(steps))
    merged = list(merge(iter(parts), over, at_once))
    expected = dict.fromkeys(ids, 0)
    for index, (put, gone) in enumerate(deltas):
        for key in gone - put:
            expected.pop(key, None)
        expected |= dict.fromkeys(put, 1 + index)
    found = np.concatenate([part.ids for part in merged]) if merged else np.empty(0)
    assert found.tolist() == sorted(expected)
    values = [kit.as_state([kit.rows([key], value)])[("user", "zch")][key] for key, value in sorted(expected.items())]
    assert [row for part in merged for row in kit.as_state([part])[("user", "zch")].values()] == values


def test_a_thousand_deltas_are_one_snapshot(kit):
    """Goal X3: a base and a thousand deltas against what the toy trainer holds."""
    trainer = kit.toy(MemoryStore())
    random = np.random.default_rng(3)
    for step in range(1001):
        touched = random.choice(400, 8, replace=False)
        trainer.commit([kit.rows(touched[:6], step, deleted=touched[6:])])
    trainer.check(CommitLog(trainer.store).restore())
    base = compact(trainer.store)
    state = CommitLog(trainer.store).restore()
    assert logical_digest(state.tables, state.dense, state.stream, state.commit.step) == base.logical
