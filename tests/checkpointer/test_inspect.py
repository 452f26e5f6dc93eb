"""What people see of a log."""

from checkpointer import compact
from checkpointer.commit import log_path
from checkpointer.inspect import list_log, show, status
from checkpointer.local_store import LocalStore


def test_list_log_has_a_line_for_each_entry(store, kit):
    kit.filled(store)
    compact(store, 4)
    lines = list(list_log(store))
    assert [(line.seq, line.kind, line.base, line.standing) for line in lines] == [
        (1, "base", False, "counts"),
        (2, "delta", False, "counts"),
        (3, "delta", False, "counts"),
        (4, "delta", True, "counts"),
        (5, "delta", False, "counts"),
        (6, "delta", False, "counts"),
    ]
    assert (lines[1].put, lines[1].deleted, lines[1].flaw) == (11, 4, "")
    assert [line.seq for line in list_log(store, newest=2)] == [5, 6]


def test_list_log_shows_a_damaged_entry_and_goes_on(tmp_path, kit):
    store = LocalStore(tmp_path)
    kit.filled(store)
    (tmp_path / log_path(3)).write_bytes(b"torn")
    lines = list(list_log(store))
    assert [line.standing for line in lines] == ["counts"] * 2 + ["refused"] + ["counts"] * 3
    assert "truncated" in lines[2].flaw


def test_show_has_the_rows_the_arrays_and_the_stream(store, kit):
    kit.filled(store)
    detail = show(store, 2)
    assert detail.tables["user/zch"].put == 8 and detail.standing == "counts"
    assert detail.dense == {"parameter/w0": ("float32", (3,))}
    assert detail.stream[0]["cursors"][0]["topic"] == "events"


def test_status_says_where_the_log_stands(store, kit):
    assert status(store) is None
    trainer = kit.filled(store)
    compact(store, 4)
    found = status(store)
    assert (found.head, found.newest_base, found.deltas_since_base, found.epoch) == (6, 4, 2, 1)
    assert (found.log_from, found.commits, found.step, found.producer) == (1, 6, 6, "trainer")
    assert found.counters["accounting"] == [["events", 7, 6, 1, 0, 0, 0, 0]]
    assert found.restore_bytes > trainer.writer.head.bytes
