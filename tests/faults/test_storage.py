"""Storage that is full, read-only or taken away: one clear line, and nothing lost once it is back."""

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from benchmarks.faults.stage import Stage
from tests.faults.conftest import Bench

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")


def expected(bench: Bench, stage: Stage) -> object:
    config = stage.config(bench.folder / "expected")
    bench.train(config)
    bench.start("publisher", config, "--once").wait(60)
    return bench.result(config)


def fill(disk: Path, left: int) -> Path:
    """Use up the space but for `left` bytes."""
    space = os.statvfs(disk)
    ballast = disk / "ballast"
    ballast.write_bytes(b"x" * max(0, space.f_bavail * space.f_frsize - left))
    return ballast


@pytest.mark.timeout(200)
def test_trainer_on_a_full_disk_says_so_and_goes_on_when_there_is_space(
    bench: Bench, stage: Stage, small_disk: Path
) -> None:
    config = stage.config(small_disk / "model")
    ballast = fill(small_disk, 700_000)
    full = bench.start("trainer", config)
    assert full.wait(60) == 1, full.text()
    last = full.verdict()
    assert "No space left on device" in last and last.startswith("trainer: "), last
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    bench.train(config)
    bench.start("publisher", config, "--once").wait(60)
    assert bench.result(config).same_state(expected(bench, stage))


@pytest.mark.timeout(200)
def test_publisher_on_a_full_disk_waits_for_space_and_replicas_go_on(
    bench: Bench, stage: Stage, small_disk: Path
) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    config = stage.config(small_disk / "model")
    bench.start("trainer", config, HEADRACE_FAULT="train.durable:3").wait(60)
    assert bench.start("publisher", config, "--once").wait(60) == 0
    bench.train(config)
    ballast = fill(small_disk, 8192)
    publisher = bench.start("publisher", config, "--once")
    bench.until(lambda: "No space left on device" in publisher.text(), publisher)
    replica = bench.start("headrace", "serve", bench.model(config), "--port", "0")
    bench.until(lambda: "serving" in replica.text() or "listening" in replica.text(), replica)
    ballast.unlink()
    assert publisher.wait(60) == 0, publisher.text()
    assert bench.result(config).same_state(expected(bench, stage))
    replica.signal(signal.SIGKILL)


def test_model_directory_that_cannot_be_written_is_named(bench: Bench, stage: Stage, small_disk: Path) -> None:
    config = stage.config(bench.folder / "model")
    text = config.read_text().replace(f'model_dir: "{bench.folder / "model"}"', f'model_dir: "{small_disk / "model"}"')
    config.write_text(text)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for module in ("trainer", "publisher"):
        process = bench.start(module, config)
        assert process.wait(60) == 1, process.text()
        last = process.verdict()
        assert "Read-only file system" in last and str(small_disk) in last, last


def test_port_that_is_taken_is_named(bench: Bench, stage: Stage) -> None:
    config = stage.config(bench.folder / "model")
    bench.train(config)
    assert bench.start("publisher", config, "--once").wait(60) == 0
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        replica = bench.start("headrace", "serve", bench.model(config), "--port", port)
        assert replica.wait(60) == 1, replica.text()
        assert str(port) in replica.verdict()
        for module in ("trainer", "publisher"):
            process = bench.start(module, config, "--metrics-port", port)
            assert process.wait(60) == 1, process.text()
            assert str(port) in process.verdict() and "internal" not in process.text(), process.text()
