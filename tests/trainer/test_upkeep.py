"""The log stays small where no publisher tidies it."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from checkpointer import Commit, Draft, Kind, TableRows, Writer, WriterOptions, stage
from checkpointer.bases import newest_base
from checkpointer.due import CompactionDue, DueOptions
from checkpointer.local_store import LocalStore
from checkpointer.lock import acquire
from checkpointer.memory_store import MemoryStore
from protos.pipeline_pb2 import EasyRecConfig
from trainer.upkeep import Upkeep


def started() -> tuple[list[str], Callable[[str], "subprocess.Popen[bytes]"]]:
    calls: list[str] = []

    def start(path: str) -> "subprocess.Popen[bytes]":
        calls.append(path)
        return subprocess.Popen(["true"])

    return calls, start


def append(store: MemoryStore, writer: Writer, step: int) -> Commit:
    ids, nothing = np.arange(100), np.empty(0, np.int64)
    weight = {"weight": np.full((100, 2), step, np.float32)}
    rows = TableRows(table="t", shard=0, kind="direct", ids=ids, slots=ids, columns=weight, deleted=nothing)
    draft = Draft(
        kind=Kind.DELTA if writer.head else Kind.BASE,
        step=step,
        event_time_ms=0,
        broker_time_ms=-1,
        world=1,
        contract="c",
        features="f",
        blobs=stage(store, seq=writer.next_seq, rank=0, rows=[rows]),
    )
    return writer.append(draft)


def upkeep_of(folder: Path, start: Callable[[str], "subprocess.Popen[bytes]"], *, every: int) -> Upkeep:
    due = CompactionDue(MemoryStore(), DueOptions())
    return Upkeep("a.config", str(folder), every=every, start=start, due=due)


def test_child_starts_every_so_many_commits(tmp_path: Path) -> None:
    calls, start = started()
    upkeep = upkeep_of(tmp_path, start, every=3)
    for seq in range(1, 10):
        upkeep.after_commit(seq, 1)
        upkeep.wait()
    assert calls == ["a.config"] * 3


def test_child_starts_when_a_restore_would_read_too_much(tmp_path: Path) -> None:
    """Every commit is as large as the first: with a fifth of it allowed, the second is enough; then it rests."""
    calls, start = started()
    store, clock = MemoryStore(), [0.0]
    options = WriterOptions(token="t", clock_ms=lambda: 0, new_chain=lambda: "c", writer="w")
    writer = Writer.open(store, options)
    due = CompactionDue(store, DueOptions(max_share=0.1, least_bytes=0), clock=lambda: clock[0])
    upkeep = Upkeep("a.config", str(tmp_path), every=1000, start=start, due=due)
    begun = []
    for step in range(1, 30):
        commit = append(store, writer, step)
        upkeep.after_commit(commit.seq, commit.grown_bytes)
        upkeep.wait()
        clock[0] += 1.0
        if len(calls) > len(begun):
            begun.append(commit.seq)
    # Each takes a second until it is seen to have ended, and nine are rested.
    assert begun == [2, 12, 22]


def test_publisher_does_the_upkeep_where_there_is_one(tmp_path: Path) -> None:
    calls, start = started()
    lock = acquire(tmp_path, "publisher.lock", "a publisher")
    upkeep_of(tmp_path, start, every=1).after_commit(1, 1)
    assert calls == []
    lock.release()
    upkeep = upkeep_of(tmp_path, start, every=1)
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


def test_a_child_tells_a_users_mistake_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.config"
    path.write_text('model_dir: "x" misspelt: 1')
    for arguments, words in (([str(path)], "misspelt"), ([], "usage: python -m trainer.upkeep CONFIG")):
        done = subprocess.run(
            [sys.executable, "-m", "trainer.upkeep", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2 and words in done.stderr, done.stderr
        assert done.stderr.startswith("trainer.upkeep: ") and done.stderr.count("\n") == 1, done.stderr
