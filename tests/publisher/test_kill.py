"""SIGKILL at every step of a publish, then a restart: the same pointer and the same rows as if nothing had happened."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from checkpointer.local_store import LocalStore
from publisher.pointer import read_pin, resume, rollback
from publisher.versions import list_versions, read_pointer

STEPS = ("written", "synced", "linked", "dirsynced")
FRESH = ("config", "layout", "features", "asset", "base", "base_listing", "dense", "manifest", "pointer")
RUNNING = ("delta", "dense", "manifest", "refusal", "pointer")
LAST = 5


class Kill:
    """Ends the process, as a power cut would, the n-th time a point is reached; also counts."""

    def __init__(self, point: str = "", nth: int = 0) -> None:
        self.point, self.nth = point, nth
        self.counts: Counter[str] = Counter()

    def reached(self, point: str) -> None:
        self.counts[point] += 1
        if point == self.point and self.counts[point] == self.nth:
            os.kill(os.getpid(), signal.SIGKILL)


def train(bench) -> None:
    """A delta, a refused one, the one that mends it, and one more."""
    bench.trainer.commit({"user": [1, 12], "item": [2]}, delete=[9])
    bench.trainer.commit({"user": [5]}, weights=np.full((1, 4), np.nan, np.float32))
    bench.trainer.commit({"user": [5]})
    bench.trainer.commit({"user": [30]}, delete=[1])


def follow(bench, faults: Kill) -> None:
    bench.publish(store=LocalStore(bench.store.root, faults), max_commits_at_once=1)


def killed(action: Callable[[], None]) -> bool:
    """Run an action in a process of its own; say whether it was killed."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        finally:
            os._exit(0)
    return os.waitpid(pid, 0)[1] == signal.SIGKILL


def assert_converged(bench) -> None:
    assert read_pointer(bench.store).version == LAST
    assert bench.current().commit == bench.trainer.writer.head.digest
    assert bench.same(bench.held(bench.current()), bench.trainer.rows)
    for seq in list_versions(bench.store):
        assert seq != 3


@pytest.fixture
def make(make_bench, tmp_path: Path):
    return lambda name: make_bench(LocalStore(tmp_path / name))


@pytest.mark.parametrize("point", [f"publish.{write}_{step}" for write in FRESH for step in STEPS])
def test_kill_while_the_first_version_is_written(make, point):
    bench = make("model")
    bench.trainer.base()
    train(bench)
    assert killed(lambda: follow(bench, Kill(point, 1)))
    assert read_pointer(bench.store) is None or point.startswith("publish.pointer")
    bench.publish()
    assert_converged(bench)


@pytest.mark.parametrize("point", [f"publish.{write}_{step}" for write in RUNNING for step in STEPS])
def test_kill_while_following(make, point):
    counting = make("count")
    counting.trainer.base()
    counting.publish()
    train(counting)
    kill = Kill()
    follow(counting, kill)
    assert kill.counts[point] > 0
    for nth in {1, kill.counts[point]}:
        bench = make(f"model-{nth}")
        bench.trainer.base()
        bench.publish()
        train(bench)
        assert killed(lambda bench=bench, nth=nth: follow(bench, Kill(point, nth)))
        assert bench.current().version >= 1
        bench.publish(max_commits_at_once=1)
        assert_converged(bench)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("write", ["rollback.pin", "publish.pointer"])
def test_kill_while_rolling_back_then_again_ends_pinned(make, write, step):
    bench = make("model")
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [1]})
    follower.step()
    store = LocalStore(bench.store.root, Kill(f"{write}_{step}", 1))
    assert killed(lambda: rollback(store, 1, lambda: 9))
    assert read_pointer(bench.store).version in (1, 2)
    rollback(bench.store, 1, lambda: 9)
    bench.trainer.commit({"user": [1]})
    bench.publish()
    assert (read_pointer(bench.store).version, read_pin(bench.store).version) == (1, 1)
    resume(bench.store)
    bench.publish()
    assert read_pointer(bench.store).version == 3
