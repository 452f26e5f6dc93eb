"""The log stays small where no publisher tidies it."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from checkpointer.bases import newest_base
from checkpointer.local_store import LocalStore
from checkpointer.lock import acquire
from protos.pipeline_pb2 import EasyRecConfig
from trainer.upkeep import Upkeep


def started() -> tuple[list[str], Callable[[str], "subprocess.Popen[bytes]"]]:
    calls: list[str] = []

    def start(path: str) -> "subprocess.Popen[bytes]":
        calls.append(path)
        return subprocess.Popen(["true"])

    return calls, start


def test_child_starts_every_so_many_commits(tmp_path: Path) -> None:
    calls, start = started()
    upkeep = Upkeep("a.config", str(tmp_path), every=3, start=start)
    for seq in range(1, 10):
        upkeep.after_commit(seq, 1)
        upkeep.wait()
    assert calls == ["a.config"] * 3


def test_child_starts_when_commits_have_grown_enough(tmp_path: Path) -> None:
    calls, start = started()
    upkeep = Upkeep("a.config", str(tmp_path), every=1000, start=start, enough=lambda: 300)
    begun = []
    for seq in range(1, 100):
        upkeep.after_commit(seq, 10)
        upkeep.wait()
        if len(calls) > len(begun):
            begun.append(seq)
    # Looked at every 16 commits, from the last start on.
    assert begun == [32, 64, 96]


def test_publisher_does_the_upkeep_where_there_is_one(tmp_path: Path) -> None:
    calls, start = started()
    lock = acquire(tmp_path, "publisher.lock", "a publisher")
    Upkeep("a.config", str(tmp_path), every=1, start=start).after_commit(1, 1)
    assert calls == []
    lock.release()
    upkeep = Upkeep("a.config", str(tmp_path), every=1, start=start)
    upkeep.after_commit(1, 1)
    upkeep.wait()
    assert calls == ["a.config"]


def test_trainer_without_publisher_compacts_its_log(configure: Callable[..., EasyRecConfig], tmp_path: Path) -> None:
    configure("model")
    path = tmp_path / "model.config"
    path.write_text(path.read_text().replace("compact_after_commits: 24", "compact_after_commits: 2"))
    command = [sys.executable, "-m", "trainer", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    deadline = time.monotonic() + 60
    while not newest_base(LocalStore(str(tmp_path / "model")), 10**9) and time.monotonic() < deadline:
        time.sleep(0.1)
    base = newest_base(LocalStore(str(tmp_path / "model")), 10**9)
    assert base is not None and base.seq > 0
