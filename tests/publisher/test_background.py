"""Bases, artefacts and compaction are made beside publishing; whatever becomes of them, versions go on."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from checkpointer import CommitLog
from checkpointer.bases import list_bases
from checkpointer.due import DueOptions
from publisher.artefacts import compiled_already, store_artefact
from publisher.background import Children, Ended
from publisher.bases import build_base
from publisher.blobs import put_once
from publisher.export.host import this_host
from publisher.versions import read_blob, read_version


class Inline:
    """Runs tasks when it is told to, in this process."""

    def __init__(self, run: Callable[[str, tuple[str, ...]], bool]) -> None:
        self.run = run
        self.waiting: dict[str, tuple[str, ...]] = {}
        self.done: list[Ended] = []

    def start(self, task: str, *arguments: str) -> bool:
        if task in self.waiting:
            return False
        self.waiting[task] = arguments
        return True

    def work(self) -> None:
        for task, arguments in self.waiting.items():
            self.done.append(Ended(task=task, ok=self.run(task, arguments)))
        self.waiting = {}

    def ended(self) -> list[Ended]:
        done, self.done = self.done, []
        return done

    def close(self) -> None:
        pass


def rebasing(bench) -> Inline:
    def run(task: str, arguments: tuple[str, ...]) -> bool:
        if task == "base":
            build_base(CommitLog(bench.store), bench.store, int(arguments[0]), bench.contract.tables, "fp32")
        return True

    return Inline(run)


def follow(bench, follower, count: int) -> None:
    for number in range(count):
        bench.trainer.commit({"user": [number % 5]}, delete=[5 + number % 3])
        follower.step()


def test_version_lists_a_new_base_once_it_is_written(bench):
    background = rebasing(bench)
    bench.trainer.base()
    follower = bench.publisher(background=background, rebase_after_deltas=4)
    follower.step()
    follow(bench, follower, 4)
    assert background.waiting == {"base": ("5",)}
    follow(bench, follower, 2)
    assert bench.current().base.seq == 1
    background.work()
    follow(bench, follower, 1)
    version = bench.current()
    assert version.base.seq == 5
    assert [delta.seq for delta in version.plan(None).deltas] == [6, 7, 8]
    assert bench.same(bench.held(version), bench.trainer.rows)


def test_warm_replica_passes_a_rebase_without_the_base(bench):
    background = rebasing(bench)
    bench.trainer.base()
    follower = bench.publisher(background=background, rebase_after_deltas=4)
    follower.step()
    follow(bench, follower, 3)
    warm, rows = bench.current(), {name: dict(table) for name, table in bench.trainer.rows.items()}
    follow(bench, follower, 1)
    background.work()
    follow(bench, follower, 2)
    version = bench.current()
    assert version.base.seq == 5 and version.series == warm.series
    assert version.plan(warm).base is None
    assert bench.same(bench.held(version, warm, rows), bench.trainer.rows)


def test_lists_of_deltas_stay_short_over_many_rebases(bench):
    background = rebasing(bench)
    bench.trainer.base()
    follower = bench.publisher(background=background, rebase_after_deltas=4)
    follower.step()
    for _ in range(40):
        follow(bench, follower, 1)
        background.work()
        assert len(bench.current().plan(None).deltas) <= 5
        assert len(bench.current().deltas) <= 9
    assert bench.same(bench.held(bench.current()), bench.trainer.rows)


def test_base_task_that_fails_is_tried_again(bench):
    outcomes = iter([False, True])

    def run(task: str, arguments: tuple[str, ...]) -> bool:
        ok = next(outcomes)
        if ok:
            build_base(CommitLog(bench.store), bench.store, int(arguments[0]), bench.contract.tables, "fp32")
        return ok

    background = Inline(run)
    bench.trainer.base()
    follower = bench.publisher(background=background, rebase_after_deltas=2)
    follower.step()
    follow(bench, follower, 2)
    background.work()
    follow(bench, follower, 1)
    background.work()
    follow(bench, follower, 1)
    assert bench.current().base.seq == 4


def test_quick_runtime_is_compiled_first_and_each_is_asked_for_once(bench):
    asked = []
    background = Inline(lambda task, arguments: asked.append(arguments) or True)
    bench.trainer.base()
    follower = bench.publisher(background=background, runtime="aot_inductor")
    follower.step()
    for _ in range(5):
        background.work()
        follow(bench, follower, 1)
    assert asked == [("torch_script",), ("aot_inductor",)]
    assert bench.current().artefacts == ()


def test_artefact_is_named_once_this_publisher_has_had_it_checked(bench):
    host = this_host()
    stale = store_artefact(bench.store, bench.contract.digest, "torch_script", b"old code", "", host)

    def compile_again(task: str, arguments: tuple[str, ...]) -> bool:
        store_artefact(bench.store, bench.contract.digest, arguments[0], b"new code", "", host)
        return True

    background = Inline(compile_again)
    bench.trainer.base()
    follower = bench.publisher(background=background, runtime="torch_script")
    follower.step()
    assert bench.current().artefacts == ()
    background.work()
    follow(bench, follower, 1)
    (artefact,) = bench.current().artefacts
    assert artefact.blob != stale.blob
    assert read_blob(bench.store, artefact.blob) == b"new code"


def test_artefact_is_compiled_again_for_another_program_or_when_it_is_damaged(bench):
    host = this_host()
    artefact = store_artefact(bench.store, "c", "aot_inductor", b"code", "program-1", host)
    assert compiled_already(bench.store, "c", "aot_inductor", "program-1", host)
    assert not compiled_already(bench.store, "c", "aot_inductor", "program-2", host)
    bench.store.compare_and_swap(artefact.blob.path, b"code", b"cold")
    assert not compiled_already(bench.store, "c", "aot_inductor", "program-1", host)


def test_base_that_another_process_wrote_is_used(bench):
    bench.trainer.base()
    build_base(CommitLog(bench.store), bench.store, 1, bench.contract.tables, "fp32")
    assert not put_once(bench.store, "serving_bases/00000000000000000001/fp32.json", b"", point="")
    bench.publish()
    assert bench.same(bench.held(read_version(bench.store, 1)), bench.trainer.rows)


def test_log_is_compacted_when_it_is_due(bench):
    tasks = []
    background = Inline(lambda task, arguments: tasks.append(task) or True)
    bench.trainer.base()
    follower = bench.publisher(background=background, compaction=DueOptions(after_commits=20, after_ratio=1e9))
    follower.step()
    follow(bench, follower, 31)
    assert "maintain" in background.waiting
    assert list_bases(bench.store) == []


@pytest.mark.parametrize(("code", "ok"), [("pass", True), ("raise SystemExit(3)", False)])
def test_children_report_how_they_ended(code, ok):
    children = Children([sys.executable, "-c", f"import sys; {code}"])
    assert children.start("work", "1") and not children.start("work", "1")
    deadline = time.monotonic() + 30
    while not (ended := children.ended()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ended == [Ended(task="work", ok=ok)]
    assert children.start("work")
    children.close()


def test_close_ends_a_child_that_is_still_at_work():
    children = Children([sys.executable, "-c", "import time; time.sleep(600)"])
    children.start("work")
    started = time.monotonic()
    children.close()
    assert time.monotonic() - started < 10


CHILD = "import time; from publisher.background import end_with; end_with(0); time.sleep(600)"
PARENT = f"""
import sys, time
from publisher.background import Children
children = Children([sys.executable, "-c", {CHILD!r}])
children.start("work")
print(children._running["work"].pid, flush=True)
time.sleep(600)
"""


def test_tasks_end_when_their_publisher_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(0.5)
        os.kill(child, 0)
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while _runs(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        # An orphan that nobody reaps is a zombie: state Z.
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
