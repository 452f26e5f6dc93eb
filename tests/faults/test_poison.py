"""A run that diverged: nothing of it is served, and an older commit is there to go on from."""

import signal
from pathlib import Path

import numpy as np

from benchmarks.faults.stage import Stage
from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from publisher.versions import read_pointer
from tests.faults.conftest import Bench

WILD = ("adam_optimizer { lr: 0.001 }", "adam_optimizer { lr: 1e30 }")


def published(bench: Bench, config: Path) -> int:
    process = bench.start("publisher", config, "--once")
    assert process.wait(60) == 0, process.text()
    return read_pointer(LocalStore(str(bench.model(config)))).version


def test_run_that_diverges_stops_and_an_older_commit_goes_on(bench: Bench, stage: Stage) -> None:
    config = stage.config(bench.folder / "expected")
    bench.train(config)
    published(bench, config)
    expected = bench.result(config)

    config = stage.config(bench.folder / "model")
    assert bench.start("trainer", config, HEADRACE_FAULT="train.durable:4").wait(60) == -signal.SIGKILL
    good = published(bench, config)
    stage.config(bench.folder / "model", WILD)
    stopped = bench.train(config, expect=1)
    assert stopped.verdict().startswith("trainer: the loss is nan")
    restarted = bench.train(config, expect=1)
    assert "headrace log revert" in restarted.verdict()
    served = published(bench, config)
    assert all(
        np.isfinite(value).all()
        for value in CommitLog(LocalStore(str(bench.model(config)))).restore(served).dense.values()
    )

    revert = bench.start("headrace", "log", "revert", bench.model(config), good)
    assert revert.wait(60) == 0, revert.text()
    stage.config(bench.folder / "model")
    bench.train(config)
    assert published(bench, config) > good
    assert bench.result(config).same_state(expected)
