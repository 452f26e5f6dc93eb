"""Serving tables against dictionaries, pooling against the plainest loop."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpointer.encoding import Encoding, decode, encode
from publisher.errors import VersionError
from publisher.replica.tables import Ids, Patch, PlanEntry, ServingTables, TableShape
from publisher.rows import RowBlock, Run

IDS = st.integers(0, 2**63 - 2) | st.integers(0, 40)
DIM = 4


def block(table: str, ids: Iterable[int], rows: np.ndarray, deleted: Iterable[int] = ()) -> RowBlock:
    """As a file holds them: puts and deletions of one table by id."""
    put, gone = np.array(list(ids), np.int64), np.array(list(deleted), np.int64)
    both = np.concatenate([put, gone])
    order = np.argsort(both, kind="stable")
    every = np.concatenate([rows, np.full((len(gone), rows.shape[1]), 99, np.uint8)])[order]
    runs = (Run(table=table, start=0, end=len(both)),)
    return RowBlock(runs=runs, ids=both[order], rows=every, kept=order < len(put))


def patch(put: dict[int, float], deleted: Iterable[int] = (), *, table: str = "t", reset: bool = False) -> Patch:
    weights = np.repeat(np.array(list(put.values()), np.float32)[:, None], DIM, axis=1)
    rows = encode(weights, Encoding.FP32) if put else np.empty((0, 4 * DIM), np.uint8)
    return Patch(block=block(table, put, rows, deleted), resets=(table,) if reset else ())


def one_table(*, dim: int = DIM, encoding: Encoding = Encoding.FP32, rows: int | None = None) -> ServingTables:
    return ServingTables([TableShape(name="t", dim=dim, encoding=encoding, rows=rows)], (dim,))


def values(tables: ServingTables) -> dict[int, float]:
    return {key: float(np.frombuffer(row, np.float32)[0]) for key, row in tables.items("t").items()}


@st.composite
def changes(draw: st.DrawFn) -> tuple[dict[int, float], list[int], bool]:
    put = draw(st.dictionaries(IDS, st.floats(-9, 9, width=32), max_size=30))
    deleted = draw(st.lists(IDS.filter(lambda i: i not in put), unique=True, max_size=30))
    return put, deleted, draw(st.integers(0, 9)) == 0


@given(st.lists(changes(), max_size=12))
@settings(max_examples=80, deadline=None)
def test_table_equals_a_dictionary_after_puts_deletions_and_resets(
    steps: list[tuple[dict[int, float], list[int], bool]],
) -> None:
    tables = one_table()
    expected: dict[int, float] = {}
    for put, deleted, reset in steps:
        tables.apply([patch(put, deleted, reset=reset)])
        expected = {i: v for i, v in ({} if reset else expected).items() if i not in set(deleted)} | put
        assert values(tables) == expected
        assert tables.sizes()["t"][0] == len(expected)
    assert values(tables.copy()) == expected


@given(st.lists(changes(), max_size=6), st.lists(changes(), min_size=1, max_size=4))
@settings(max_examples=80, deadline=None)
def test_what_is_exchanged_equals_what_is_applied_and_leads_back(
    before: list[tuple[dict[int, float], list[int], bool]], steps: list[tuple[dict[int, float], list[int], bool]]
) -> None:
    applied, exchanged = one_table(), one_table()
    for tables in (applied, exchanged):
        tables.apply([patch(put, deleted, reset=reset) for put, deleted, reset in before])
    was = values(exchanged)
    patches = [patch(put, deleted, reset=reset) for put, deleted, reset in steps]
    applied.apply(patches)
    undo = exchanged.exchange(patches)
    assert values(exchanged) == values(applied)
    assert (undo is None) == any(reset for _, _, reset in steps)
    if undo is not None:
        exchanged.apply(undo)
        assert values(exchanged) == was


def test_rows_of_several_tables_that_fill_while_they_are_changed() -> None:
    rng = np.random.default_rng(2)
    shapes = [TableShape(name=n, dim=DIM, encoding=Encoding.FP32, rows=2_000 if n == "d" else None) for n in "abd"]
    applied, exchanged = ServingTables(shapes, (DIM,)), ServingTables(shapes, (DIM,))
    expected: dict[str, dict[int, bytes]] = {name: {} for name in "abd"}
    for step in range(6):
        # A table that is keyed by row number comes whole in a base, and loses no row.
        whole = np.arange(2_000) if step == 0 else np.arange(0, 2_000, 3)
        ids = [*(np.unique(rng.integers(0, 30_000, 6_000)) for _ in "ab"), whole]
        ends = np.cumsum([len(part) for part in ids]).tolist()
        runs = tuple(
            Run(table=name, start=end - len(part), end=end) for name, part, end in zip("abd", ids, ends, strict=True)
        )
        rows = rng.integers(0, 255, (ends[-1], 4 * DIM), np.uint8)
        kept = (rng.random(len(rows)) < 0.7) | (np.arange(len(rows)) >= ends[1])
        patches = [Patch(block=RowBlock(runs=runs, ids=np.concatenate(ids), rows=rows, kept=kept))]
        was = {name: dict(table) for name, table in expected.items()}
        for run in runs:
            for at in range(run.start, run.end):
                key = int(patches[0].block.ids[at])
                expected[run.table].pop(key, None)
                if kept[at]:
                    expected[run.table][key] = rows[at].tobytes()
        applied.apply(patches)
        undo = exchanged.exchange(patches)
        for tables in (applied, exchanged):
            assert {name: tables.items(name) for name in "abd"} == expected
        if step:
            exchanged.apply(undo or ())
            assert {name: exchanged.items(name) for name in "abd"} == was
            exchanged.apply(patches)


def test_table_closes_probe_chains_when_it_shrinks() -> None:
    tables = one_table()
    rng = np.random.default_rng(3)
    alive: dict[int, float] = {}
    for _ in range(20):
        fresh = {int(i): float(i % 97) for i in rng.integers(0, 1 << 62, 700)}
        gone = list(rng.choice(np.array(list(alive), np.int64), len(alive) // 2)) if alive else []
        fresh = {i: v for i, v in fresh.items() if i not in set(gone)}
        tables.apply([patch(fresh, set(gone))])
        alive = {i: v for i, v in alive.items() if i not in set(gone)} | fresh
    assert values(tables) == alive


def test_copy_does_not_share_rows() -> None:
    tables = one_table()
    tables.apply([patch({1: 1.0, 2: 2.0})])
    twin = tables.copy()
    tables.apply([patch({1: 5.0}, [2])])
    assert values(twin) == {1: 1.0, 2: 2.0}


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("dim", [1, 5, 16])
def test_pool_decodes_the_same_bits_as_the_encoding(encoding: Encoding, dim: int) -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(50, dim)).astype(np.float32)
    weights[7] = 0.0
    ids = np.unique(rng.integers(0, 1 << 62, 50))
    tables = one_table(dim=dim, encoding=encoding)
    rows = encode(weights, encoding)
    tables.apply([Patch(block=block("t", ids, rows))])
    plan = tables.plan([PlanEntry(key=0, table="t", group=0, column=0, mean=False)])
    buffer = tables.outputs(50)
    tables.pool(plan, Ids(values=ids, lengths=np.ones(50, np.int32)), 50, buffer)
    assert np.array_equal(tables.group(buffer, 50, 0), decode(rows, encoding, dim))


def test_pool_equals_the_plainest_loop_over_groups_keys_weights_and_misses() -> None:
    rng = np.random.default_rng(1)
    shapes = [
        TableShape(name="a", dim=3, encoding=Encoding.FP32),
        TableShape(name="b", dim=2, encoding=Encoding.FP32, rows=20),
    ]
    tables = ServingTables(shapes, (5, 3))
    rows = {
        "a": {int(i): rng.normal(size=3).astype(np.float32) for i in range(0, 40, 2)},
        "b": {i: rng.normal(size=2).astype(np.float32) for i in range(20)},
    }
    tables.apply(
        [
            Patch(block=block(name, table, encode(np.stack(list(table.values())), Encoding.FP32)))
            for name, table in rows.items()
        ],
    )
    entries = [
        PlanEntry(key=0, table="a", group=0, column=0, mean=False),
        PlanEntry(key=1, table="b", group=0, column=3, mean=True),
        PlanEntry(key=0, table="a", group=1, column=0, mean=True),
    ]
    batch = 6
    lengths = rng.integers(0, 5, 2 * batch).astype(np.int32)
    total = int(lengths[:batch].sum())
    ids = np.concatenate([rng.integers(0, 40, total), rng.integers(0, 20, int(lengths[batch:].sum()))]).astype(np.int64)
    weights = rng.random(len(ids)).astype(np.float32)
    buffer = tables.outputs(batch)
    tables.pool(tables.plan(entries), Ids(values=ids, lengths=lengths, weights=weights), batch, buffer)

    starts = np.concatenate([[0], np.cumsum(lengths)])
    expected = [np.zeros((batch, 5), np.float32), np.zeros((batch, 3), np.float32)]
    for entry in entries:
        dim = 3 if entry.table == "a" else 2
        for row in range(batch):
            begin, end = starts[entry.key * batch + row], starts[entry.key * batch + row + 1]
            zero = np.zeros(dim, np.float32)
            found = sum((weights[i] * rows[entry.table].get(int(ids[i]), zero) for i in range(begin, end)), start=zero)
            scale = max(end - begin, 1) if entry.mean else 1
            expected[entry.group][row, entry.column : entry.column + dim] = found / scale
    for group in range(2):
        np.testing.assert_allclose(tables.group(buffer, batch, group), expected[group], rtol=1e-6)
    assert tables.lookups()["b"] == (int(lengths[batch:].sum()),) * 2
    assert tables.lookups()["a"][1] < tables.lookups()["a"][0]


def test_direct_table_refuses_to_be_incomplete() -> None:
    tables = one_table(rows=5)
    tables.apply([patch({0: 1.0, 1: 1.0, 3: 1.0, 4: 1.0})])
    with pytest.raises(VersionError, match="table t holds 4 of 5 rows, row 2 is missing"):
        tables.check_complete()
    tables.apply([patch({2: 1.0})])
    tables.check_complete()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (patch({5: 1.0}), "row 5 of a table of 5 rows"),
        (patch({}, [1]), "cannot lose rows"),
        (patch({1: 1.0}, table="other"), "rows of table other"),
        (Patch(block=block("t", [1], np.zeros((1, 3), np.uint8))), r"rows of shape \(1, 3\), not \(1, 16\)"),
        (Patch(block=block("t", [-1], np.zeros((1, 16), np.uint8))), "negative id -1"),
        (Patch(resets=("other",)), "rows of table other"),
    ],
)
def test_tables_refuse_patches_that_break_the_contract(wrong: Patch, message: str) -> None:
    tables = one_table(rows=5)
    with pytest.raises(VersionError, match=message):
        tables.apply([wrong])
