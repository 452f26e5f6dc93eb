"""Killed between any two steps, by an exception or by SIGKILL, a writer leaves the old state or the new one."""

import errno
import multiprocessing
import os
import resource
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from checkpointer import CommitLog, Kind, RetentionOptions, Writer, collect_garbage, compact, verify
from checkpointer.errors import (
    ChainError,
    CommitError,
    CommitUnknownError,
    NotCommittedError,
    NotStoredError,
    OutcomeUnknownError,
    StoreError,
)
from checkpointer.faults import POINTS
from checkpointer.local_store import LocalStore
from checkpointer.memory_store import MemoryStore

COMMIT_POINTS = [point for point in POINTS if point.startswith("commit.")]
COMPACT_POINTS = [point for point in POINTS if point.startswith("compact.")]
COLLECT_POINTS = [point for point in POINTS if point.startswith("collect.")]
OPEN_POINTS = [point for point in POINTS if point.startswith(("epoch.claim", "epoch.seal"))]


class Killed(BaseException):
    """Stands for the end of the process."""


class StopAt:
    """Ends the process at the nth time a point is reached."""

    def __init__(self, point: str, end: Callable[[], None], nth: int = 1) -> None:
        self.point, self.end, self.left = point, end, nth

    def reached(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                self.end()


def die() -> None:
    raise Killed


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("point", COMMIT_POINTS)
def test_a_commit_cut_at_any_step_is_whole_or_absent(tmp_path, kit, point):
    store = LocalStore(tmp_path)
    trainer = kit.filled(store)
    faulty = LocalStore(tmp_path, StopAt(point, die))
    trainer.store = faulty
    trainer.writer = Writer.open(faulty, kit.options("cut", faults=StopAt(point, die)))
    with pytest.raises(Killed):
        trainer.commit([kit.rows([1, 2], 9, deleted=[3])])
    trainer.apply([kit.rows([1, 2], 9, deleted=[3])], Kind.DELTA)
    trainer.history[7] = trainer.state
    restored = CommitLog(LocalStore(tmp_path)).restore()
    visible = point.startswith("commit.manifest") and point not in ("commit.manifest_written", "commit.manifest_synced")
    assert restored.commit.seq == (7 if visible else 6)
    trainer.check(restored)
    assert verify(LocalStore(tmp_path)).sound
    go_on(kit, tmp_path)


def go_on(kit, root: Path) -> None:
    """Another process opens the log and commits on top of what is there."""
    store = LocalStore(root)
    before = CommitLog(store).restore()
    later = kit.toy(store, kit.options("later"))
    later.state = kit.as_state(before.tables)
    later.step = before.commit.step
    later.commit([kit.rows([1, 40], 77, deleted=[2])])
    later.check(CommitLog(store).restore())
    assert verify(store).sound


def commit_in_child(root: Path, point: str) -> None:
    faults = StopAt(point, kill)
    store = LocalStore(root, faults)
    kit = CHILD_KIT
    trainer = kit.toy(store, kit.options("child", faults=faults))
    trainer.step = 6
    for step in range(3):
        trainer.commit([kit.rows([1, 2], 50 + step, deleted=[3])])


def compact_in_child(root: Path, point: str) -> None:
    compact(LocalStore(root, StopAt(point, kill)), 5)


def collect_in_child(root: Path, point: str) -> None:
    faults = StopAt(point, kill)
    store = LocalStore(root, faults)
    compact(store, 5)
    collect_garbage(store, RetentionOptions(keep_bases=1, keep_log_ms=0), now_ms=1 << 50, faults=faults)


CHILD_KIT = None


@pytest.mark.parametrize(
    ("action", "point"),
    [(commit_in_child, point) for point in (*OPEN_POINTS, *COMMIT_POINTS)]
    + [(compact_in_child, point) for point in COMPACT_POINTS]
    + [(collect_in_child, point) for point in COLLECT_POINTS],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_sigkill_at_any_point_leaves_a_sound_log(tmp_path, kit, action, point):
    global CHILD_KIT
    CHILD_KIT = kit
    trainer = kit.filled(LocalStore(tmp_path))
    process = multiprocessing.get_context("fork").Process(target=action, args=(tmp_path, point))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, "the point was never reached"
    restored = CommitLog(LocalStore(tmp_path)).restore()
    if restored.commit.seq == 6:
        trainer.check(restored)
    else:
        assert action is commit_in_child and restored.commit.seq == 7
    assert verify(LocalStore(tmp_path)).sound
    go_on(kit, tmp_path)
    store = LocalStore(tmp_path)
    compact(store)
    collect_garbage(store, RetentionOptions(keep_bases=1, keep_log_ms=0), now_ms=1 << 50)
    assert verify(store).sound
    for prefix in ("log", "log/blobs", "bases", "bases/blobs"):
        store.tidy(prefix, older_ms=-1_000_000)
    assert not list(tmp_path.rglob(".tmp-*"))


class FailingStore(MemoryStore):
    """A store whose nth write fails, for certain or perhaps."""

    def __init__(self) -> None:
        super().__init__()
        self.fail: Callable[[str], None] = lambda path: None

    def put_if_absent(self, path: str, data: bytes, *, point: str = "") -> None:
        self.fail(path)
        super().put_if_absent(path, data, point=point)
        self.after(path)

    after: Callable[[str], None] = staticmethod(lambda path: None)


def failing(error: StoreError, prefix: str) -> Callable[[str], None]:
    """Raise for paths below a prefix."""

    def fail(path: str) -> None:
        if path.startswith(prefix) and path.endswith((".json", ".blob")):
            raise error

    return fail


@pytest.mark.parametrize("prefix", ["log/blobs", "log/0"])
def test_a_full_disk_is_not_committed_and_the_next_try_succeeds(kit, prefix):
    store = FailingStore()
    trainer = kit.filled(store)
    store.fail = failing(NotStoredError("no space left on device (errno 28)"), prefix)
    with pytest.raises(NotCommittedError, match="no space left"):
        trainer.commit([kit.rows([1], 9)])
    assert CommitLog(store).restore().commit.seq == 6
    store.fail = lambda path: None
    assert trainer.commit([kit.rows([1], 9)]).seq == 7
    trainer.check(CommitLog(store).restore())


@pytest.mark.parametrize("happened", [True, False])
def test_an_unknown_outcome_is_settled_by_the_next_append(kit, happened):
    store = FailingStore()
    trainer = kit.filled(store)
    lost = failing(OutcomeUnknownError("connection lost"), "log/0")
    if happened:
        store.after = lost
    else:
        store.fail = lost
    with pytest.raises(CommitUnknownError, match="may or may not"):
        trainer.commit([kit.rows([1], 9)])
    store.after = store.fail = lambda path: None
    trainer.apply([kit.rows([1], 9)], Kind.DELTA)  # the rows count as touched: they are in the next commit too
    commit = trainer.commit([kit.rows([1, 2], 9)])
    assert commit.seq == (8 if happened else 7)
    trainer.check(CommitLog(store).restore())
    assert verify(store).sound


def test_a_file_size_limit_is_a_clear_error_and_nothing_is_stored(tmp_path, kit):
    """EFBIG from the kernel itself, in a child: what ENOSPC looks like in the middle of a write."""
    trainer = kit.filled(LocalStore(tmp_path))
    parent, child = multiprocessing.Pipe()

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            LocalStore(tmp_path).put_if_absent("log/blobs/x/big.blob", b"x" * 100_000)
        except StoreError as error:
            child.send((type(error).__name__, str(error)))

    process = multiprocessing.get_context("fork").Process(target=limited)
    process.start()
    process.join()
    name, message = parent.recv()
    assert name == "NotStoredError" and "nothing was stored" in message and "File too large" in message
    assert [path for path in (tmp_path / "log/blobs/x").iterdir()] == []
    trainer.check(CommitLog(LocalStore(tmp_path)).restore())


def test_a_full_file_system_is_a_clear_error(tmp_path, kit, tmpfs):
    store = LocalStore(tmpfs / "model")
    trainer = kit.filled(store)
    with pytest.raises(NotCommittedError, match="No space left on device"):
        trainer.commit([kit.rows(range(100_000), 1)])
    trainer.check(CommitLog(store).restore())
    assert verify(store).sound
    trainer.commit([kit.rows(range(10), 2)])
    trainer.check(CommitLog(store).restore())


@pytest.fixture
def tmpfs(tmp_path):
    """A file system of 1 MB; skipped where this process may not mount one."""
    point = tmp_path / "small"
    point.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(point)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield point
    subprocess.run(["umount", str(point)], check=True)


def test_a_read_only_directory_is_a_clear_error(tmpfs, kit):
    store = LocalStore(tmpfs / "model")
    trainer = kit.filled(store)
    subprocess.run(["mount", "-o", "remount,ro", str(tmpfs)], check=True)
    with pytest.raises(NotCommittedError, match="Read-only file system"):
        trainer.commit([kit.rows([1], 1)])
    with pytest.raises(NotStoredError, match="Read-only file system"):
        Writer.open(store, kit.options("later"))
    assert CommitLog(store).restore().commit.seq == 6 and verify(store).sound


@pytest.mark.parametrize("write", ["commit.blob", "commit.manifest"])
def test_an_io_error_before_the_link_is_not_committed(tmp_path, kit, write):
    def fail() -> None:
        raise OSError(errno.EIO, "Input/output error")

    trainer = kit.filled(LocalStore(tmp_path))
    trainer.store = LocalStore(tmp_path, StopAt(f"{write}_written", fail))
    trainer.writer = Writer.open(trainer.store, kit.options("later"))
    with pytest.raises(NotCommittedError, match="Input/output error"):
        trainer.commit([kit.rows([1], 9)])
    assert CommitLog(trainer.store).restore().commit.seq == 6
    trainer.commit([kit.rows([1, 2], 9)])
    trainer.check(CommitLog(trainer.store).restore())
    assert not [path for path in tmp_path.rglob(".tmp-*")]


def test_a_missing_parent_directory_is_a_clear_error(tmp_path):
    with pytest.raises(NotStoredError, match="creating"):
        LocalStore(tmp_path / "no" / "such" / "parent").put_if_absent("a", b"1")


def test_every_error_of_a_commit_is_one_of_three(kit):
    assert {error.__name__ for error in CommitError.__subclasses__()} == {
        "NotCommittedError",
        "CommitUnknownError",
        "FencedError",
    }
    assert not issubclass(ChainError, CommitError)
