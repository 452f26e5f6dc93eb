"""Serving tables against dictionaries, pooling against the plainest loop."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpointer.encoding import Encoding, decode, encode
from publisher.errors import VersionError
from publisher.replica.tables import Ids, Patch, PlanEntry, ServingTable, ServingTables, TableShape

IDS = st.integers(0, 2**63 - 2) | st.integers(0, 40)
DIM = 4


def patch(put: dict[int, float], deleted: Iterable[int] = (), *, table: str = "t", reset: bool = False) -> Patch:
    ids = sorted(put)
    weights = np.repeat(np.array([put[i] for i in ids], np.float32)[:, None], DIM, axis=1)
    rows = encode(weights, Encoding.FP32) if ids else np.empty((0, 4 * DIM), np.uint8)
    return Patch(
        table=table, ids=np.array(ids, np.int64), rows=rows, deleted=np.array(sorted(deleted), np.int64), reset=reset
    )


def values(table: ServingTable) -> dict[int, float]:
    return {key: float(np.frombuffer(row, np.float32)[0]) for key, row in table.items().items()}


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
    table = ServingTable(TableShape(name="t", dim=DIM, encoding=Encoding.FP32))
    expected: dict[int, float] = {}
    for put, deleted, reset in steps:
        table.apply(patch(put, deleted, reset=reset))
        expected = {i: v for i, v in ({} if reset else expected).items() if i not in set(deleted)} | put
        assert values(table) == expected
        assert len(table) == len(expected)
    assert values(table.copy()) == expected


@given(changes(), changes(), st.integers(1, 200))
@settings(max_examples=60, deadline=None)
def test_slices_of_a_patch_do_what_the_patch_does(
    before: tuple[dict[int, float], list[int], bool], step: tuple[dict[int, float], list[int], bool], max_bytes: int
) -> None:
    whole, sliced = (ServingTable(TableShape(name="t", dim=DIM, encoding=Encoding.FP32)) for _ in range(2))
    put, deleted, reset = step
    for table in (whole, sliced):
        table.apply(patch(before[0], []))
    slices = list(patch(put, deleted, reset=reset).slices(max_bytes))
    for part in slices:
        sliced.apply(part)
    whole.apply(patch(put, deleted, reset=reset))
    assert values(sliced) == values(whole)
    assert all(len(part.ids) <= max(1, max_bytes // (8 + 4 * DIM)) for part in slices)


def test_table_closes_probe_chains_when_it_shrinks() -> None:
    table = ServingTable(TableShape(name="t", dim=DIM, encoding=Encoding.FP32))
    rng = np.random.default_rng(3)
    alive: dict[int, float] = {}
    for _ in range(20):
        fresh = {int(i): float(i % 97) for i in rng.integers(0, 1 << 62, 700)}
        gone = list(rng.choice(np.array(list(alive), np.int64), len(alive) // 2)) if alive else []
        fresh = {i: v for i, v in fresh.items() if i not in set(gone)}
        table.apply(patch(fresh, set(gone)))
        alive = {i: v for i, v in alive.items() if i not in set(gone)} | fresh
    assert values(table) == alive


def test_copy_does_not_share_rows() -> None:
    table = ServingTable(TableShape(name="t", dim=DIM, encoding=Encoding.FP32))
    table.apply(patch({1: 1.0, 2: 2.0}))
    twin = table.copy()
    table.apply(patch({1: 5.0}, [2]))
    assert values(twin) == {1: 1.0, 2: 2.0}


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("dim", [1, 5, 16])
def test_pool_decodes_the_same_bits_as_the_encoding(encoding: Encoding, dim: int) -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(50, dim)).astype(np.float32)
    weights[7] = 0.0
    ids = np.unique(rng.integers(0, 1 << 62, 50))
    tables = ServingTables([TableShape(name="t", dim=dim, encoding=encoding)], (dim,))
    rows = encode(weights, encoding)
    tables.apply([Patch(table="t", ids=ids, rows=rows)])
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
            Patch(
                table=name,
                ids=np.array(sorted(table), np.int64),
                rows=encode(np.stack([table[i] for i in sorted(table)]), Encoding.FP32),
            )
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
    tables = ServingTables([TableShape(name="t", dim=DIM, encoding=Encoding.FP32, rows=5)], (DIM,))
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
        (
            Patch(table="t", ids=np.array([1]), rows=np.zeros((1, 3), np.uint8)),
            r"rows of shape \(1, 3\), expected \(1, 16\)",
        ),
        (Patch(table="t", ids=np.array([-1]), rows=np.zeros((1, 16), np.uint8)), "negative id -1"),
    ],
)
def test_tables_refuse_patches_that_break_the_contract(wrong: Patch, message: str) -> None:
    tables = ServingTables([TableShape(name="t", dim=DIM, encoding=Encoding.FP32, rows=5)], (DIM,))
    with pytest.raises(VersionError, match=message):
        tables.apply([wrong])
