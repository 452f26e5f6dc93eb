"""A standby that follows takes over from a killed trainer, and what it leaves is what a run without kills leaves."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.faults.harness import Result
from benchmarks.faults.stage import Stage
from checkpointer.lock import TRAINER_LOCK, acquire
from tests.faults.conftest import Bench

PATIENCE_S = 400


@contextmanager
def nobody_trains(bench: Bench, config: Path) -> Iterator[None]:
    """Hold the lock of the model directory, as a trainer does that has nothing to do."""
    lock = acquire(bench.model(config), TRAINER_LOCK, "a test")
    try:
        yield
    finally:
        lock.release()


@pytest.mark.timeout(900)
def test_standby_follows_and_takes_over(bench: Bench, stage: Stage) -> None:
    expected = stage.config(bench.folder / "expected")
    bench.train(expected)
    config = stage.config(bench.folder / "taken")
    bench.train(config, expect=-signal.SIGKILL, HEADRACE_FAULT="train.durable:3")
    with nobody_trains(bench, config):
        standby = bench.start("trainer", config, "--standby")
        bench.until(lambda: "stage=following" in standby.text(), standby, PATIENCE_S)
        # Takes the lock from under the test, and is followed until it is killed.
        active = bench.start("trainer", config, "--take-over", HEADRACE_FAULT="train.rows_updated:12")
        assert active.wait(PATIENCE_S) == -signal.SIGKILL, active.text()
    assert standby.wait(PATIENCE_S) == 0, standby.text()
    said = standby.text()
    assert said.index("stage=following") < said.index("stage=held") < said.index("stage=caught_up")
    assert bench.result(config).same_state(bench.result(expected))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kill", [0, 1])
def test_standby_of_two_ranks_takes_over_when_one_is_killed(
    kill: int, bench: Bench, stage: Stage, expected_of_two: Result
) -> None:
    config = stage.config(bench.folder / "killed")
    for process in bench.start_two(config, kills={kill: "train.durable:3"}):
        process.wait(PATIENCE_S)
    command = [sys.executable, "-m", "headrace", "train", str(config), "--nproc", "2", "--standby"]
    log = bench.folder / "standby.log"
    with nobody_trains(bench, config), log.open("wb") as output:
        standby = subprocess.Popen(command, stderr=output, env={**os.environ, "OMP_NUM_THREADS": "1"})
        try:
            bench.until(lambda: log.read_text().count("stage=following") == 2, seconds=PATIENCE_S)
            assert standby.poll() is None
            active = bench.start_two(config, "--take-over", kills={kill: "train.rows_updated:12"})
            assert active[kill].wait(PATIENCE_S) == -signal.SIGKILL, active[kill].text()
            assert active[1 - kill].wait(PATIENCE_S) == 1, active[1 - kill].text()
            assert standby.wait(PATIENCE_S) == 0, log.read_text()
        finally:
            standby.kill()
    assert log.read_text().count("stage=caught_up") == 2
    assert bench.result(config).same_state(expected_of_two)
