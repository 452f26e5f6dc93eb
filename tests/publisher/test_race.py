"""Two publisher processes on one directory at once, which only a lock elsewhere would keep apart, still agree."""

import os
from pathlib import Path

import pytest

from checkpointer.local_store import LocalStore
from publisher.pointer import read_pin, rollback
from publisher.versions import list_versions, read_blob, read_pointer, read_version

COMMITS = 25


def spawn(action) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    return pid


def until(bench, last: int) -> None:
    """Follow until commit `last` is in a version."""
    bench.store = LocalStore(bench.store.root)
    follower = bench.publisher(encoding="int8", max_commits_at_once=2)
    while True:
        follower.step()
        if (versions := list_versions(bench.store)) and versions[-1] >= last:
            return


@pytest.mark.parametrize("publishers", [2, 3])
def test_publishers_at_once_agree_on_every_version(make_bench, tmp_path: Path, publishers):
    bench = make_bench(LocalStore(tmp_path / "model"))
    bench.trainer.base()
    children = [spawn(lambda: until(bench, 1 + COMMITS)) for _ in range(publishers)]
    for number in range(COMMITS):
        bench.trainer.commit({"user": [number % 7, 40 + number]}, delete=[41 + number])
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    bench.publish(encoding="int8")
    assert read_pointer(bench.store).version == 1 + COMMITS
    for number in list_versions(bench.store):
        version = read_version(bench.store, number)
        for blob in (version.dense, *(blob for delta in version.deltas for blob in delta.blobs)):
            read_blob(bench.store, blob)
    held = bench.held(bench.current())
    assert {name: set(rows) for name, rows in held.items()} == {
        name: set(rows) for name, rows in bench.trainer.rows.items()
    }


def test_rollback_while_publishers_are_at_work_stays(make_bench, tmp_path: Path):
    bench = make_bench(LocalStore(tmp_path / "model"))
    bench.trainer.base()
    bench.publish(encoding="int8")
    children = [spawn(lambda: until(bench, 1 + COMMITS)) for _ in range(2)]
    for number in range(COMMITS):
        bench.trainer.commit({"user": [number % 7]})
        if number == COMMITS // 2:
            rollback(bench.store, 1, lambda: 9)
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (read_pointer(bench.store).version, read_pin(bench.store).version) == (1, 1)
    assert list_versions(bench.store)[-1] == 1 + COMMITS
