"""Rows survive their file: ids, bytes, deletions, tables of every width."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from publisher.rows import ServingRows, decode_rows, encode_rows
from publisher.versions import Table

IDS = st.integers(0, 2**63 - 2)


@st.composite
def parts(draw: st.DrawFn) -> list[ServingRows]:
    found = []
    for number in range(draw(st.integers(0, 4))):
        ids = sorted(draw(st.sets(IDS, max_size=20)))
        keep = np.array(draw(st.lists(st.booleans(), min_size=len(ids), max_size=len(ids))), np.bool_)
        width = draw(st.sampled_from([4, 8, 20]))
        seed = draw(st.integers(0, 1000))
        rows = np.random.default_rng(seed).integers(0, 256, (int(keep.sum()), width)).astype(np.uint8)
        ids = np.array(ids, np.int64)
        found.append(ServingRows(table=f"t{number}", ids=ids[keep], rows=rows, deleted=ids[~keep]))
    return found


@settings(max_examples=60, deadline=None)
@given(parts())
def test_rows_round_trip(written):
    tables = {part.table: Table(name=part.table, kind="zch", dim=1) for part in written}
    read = {
        part.table: part for payload in encode_rows(written) for part in decode_rows(b"".join(payload), "x", tables)
    }
    assert read.keys() == {part.table for part in written if len(part)}
    for part in written:
        if len(part):
            found = read[part.table]
            assert np.array_equal(found.ids, part.ids)
            assert np.array_equal(found.rows, part.rows)
            assert np.array_equal(found.deleted, part.deleted)


def test_same_rows_have_the_same_bytes():
    part = ServingRows(
        table="t", ids=np.arange(9), rows=np.ones((9, 4), np.uint8), deleted=np.array([100, 200], np.int64)
    )
    assert encode_rows([part]) == encode_rows([part])


def test_tables_of_one_width_share_a_file():
    parts = [
        ServingRows(table=name, ids=np.arange(3), rows=np.zeros((3, width), np.uint8), deleted=np.empty(0, np.int64))
        for name, width in (("a", 4), ("b", 4), ("c", 8))
    ]
    assert len(encode_rows(parts)) == 2
