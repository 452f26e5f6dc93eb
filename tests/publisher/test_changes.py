"""Merging commits gives what applying them one after the other gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpointer import TableRows
from publisher.changes import Changes
from publisher.errors import ContractError
from publisher.versions import Table

TABLES = (Table(name="user", kind="zch", dim=2), Table(name="item", kind="direct", dim=2))
NONE = np.empty(0, np.int64)


def rows(table: str, ids, weights, deleted=(), *, reset=False, kind=None, shard=0) -> TableRows:
    ids = np.array(ids, np.int64)
    kind = kind or {"user": "zch", "item": "direct"}[table]
    columns = {"weight": np.asarray(weights, np.float32).reshape(len(ids), -1) if len(ids) else np.empty((0, 2))}
    return TableRows(
        table=table,
        shard=shard,
        kind=kind,
        ids=ids,
        slots=ids,
        columns=columns,
        deleted=np.array(deleted, np.int64),
        reset=reset,
    )


@st.composite
def commits(draw: st.DrawFn) -> list[list[TableRows]]:
    """Commits of up to two shards per table: ids come, change, go and move between shards."""
    found = []
    for number in range(draw(st.integers(1, 6))):
        parts = []
        for table in ("user", "item"):
            ids = draw(st.lists(st.integers(0, 9), unique=True, max_size=6))
            for shard in (0, 1):
                put = sorted(ids[shard::2])
                gone = sorted(set(draw(st.lists(st.integers(0, 9), max_size=3))) - set(put))
                weights = [[number, shard] for _ in put]
                reset = draw(st.integers(0, 9)) == 0
                parts.append(rows(table, put, weights, gone, reset=reset, shard=shard))
        found.append(parts)
    return found


def naive(state: dict[str, dict[int, list[float]]], parts: list[TableRows]) -> None:
    for part in parts:
        if part.reset:
            state[part.table] = {}
    for part in parts:
        for key in part.deleted.tolist():
            state[part.table].pop(key, None)
    for part in parts:
        state[part.table].update(zip(part.ids.tolist(), part.columns["weight"].tolist(), strict=True))


@settings(max_examples=150, deadline=None)
@given(commits())
def test_net_rows_equal_one_commit_after_the_other(history):
    before = {name: {key: [-1.0, -1.0] for key in range(0, 10, 2)} for name in ("user", "item")}
    expected = {name: dict(table) for name, table in before.items()}
    changes = Changes(TABLES)
    for parts in history:
        naive(expected, parts)
        changes.add(parts)
    for net in changes.net():
        if net.reset:
            before[net.table] = {}
        assert (np.diff(net.ids) > 0).all() and (np.diff(net.deleted) > 0).all()
        assert not set(net.ids.tolist()) & set(net.deleted.tolist())
        for key in net.deleted.tolist():
            before[net.table].pop(key, None)
        before[net.table].update(zip(net.ids.tolist(), net.weights.tolist(), strict=True))
    assert before == expected


def test_admission_counters_are_stripped():
    changes = Changes(TABLES)
    changes.add([rows("user", [1], [[1.0, 1.0]], kind="admission")])
    assert list(changes.net()) == [] and changes.bytes == 0


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (rows("user", [1], [[1.0, 2.0]], kind="direct"), "keyed as 'direct'"),
        (rows("user", [1], [[1.0, 2.0, 3.0]]), "rows of shape"),
    ],
)
def test_rows_that_break_the_contract_change_nothing(part, message):
    changes = Changes(TABLES)
    changes.add([rows("user", [7], [[1.0, 2.0]])])
    with pytest.raises(ContractError, match=message):
        changes.add([part])
    (net,) = changes.net()
    assert net.ids.tolist() == [7]


def test_rows_of_a_table_that_is_not_served_are_refused():
    with pytest.raises(ContractError, match="intruder"):
        Changes(TABLES).add([rows("intruder", [], [], [1], kind="zch")])
