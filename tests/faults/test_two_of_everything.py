"""Two trainers, two publishers, two replicas on one model directory."""

import dataclasses
import http.client
import signal
import time
from pathlib import Path

import pytest

from benchmarks.faults.stage import Stage
from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from stream.broker import free_port
from tests.faults.conftest import Bench


@pytest.fixture
def endless(stage: Stage, embedded_broker) -> Stage:
    """A topic that does not end, so that a trainer stays."""
    topic = embedded_broker.topic(3)
    for part in range(3):
        embedded_broker.produce(topic, stage.messages(part), partition=part)
    return dataclasses.replace(stage, stream=f'brokers: "{embedded_broker.bootstrap}" topic: "{topic}"')


def epochs(config: Path) -> list[int]:
    return [commit.epoch for commit in CommitLog(LocalStore(str(config.with_suffix("")))).commits()]


def test_second_trainer_is_refused_and_told_what_to_do(bench: Bench, endless: Stage) -> None:
    config = endless.config(bench.folder / "model")
    first = bench.start("trainer", config)
    bench.until(lambda: bench.commits(config) >= 1, first)
    second = bench.train(config, expect=1)
    last = second.verdict()
    assert "--take-over" in last and str(first.pid) in last
    first.signal(signal.SIGTERM)
    assert first.wait(60) == 0


def test_stalled_trainer_that_was_taken_over_never_commits_again(bench: Bench, endless: Stage, stage: Stage) -> None:
    config = endless.config(bench.folder / "model")
    old = bench.start("trainer", config)
    bench.until(lambda: bench.commits(config) >= 3, old)
    old.signal(signal.SIGSTOP)
    new = bench.start("trainer", config, "--take-over")
    bench.until(lambda: bench.received(config) > stage.rows * 0.9, new)
    old.signal(signal.SIGCONT)
    old.signal(signal.SIGTERM)
    status = old.wait(60)
    new.signal(signal.SIGTERM)
    assert new.wait(60) == 0, new.text()
    found = epochs(config)
    assert found == sorted(found) and set(found) == {1, 2}
    assert status == 1 and "took over" in old.verdict(), old.text()
    bounded = dataclasses.replace(endless, stream=f"{endless.stream} stop_at_end: true")
    bench.train(bounded.config(bench.folder / "model"))
    bench.train(bounded.config(bench.folder / "expected"))
    assert bench.result(config).same_state(bench.result(bench.folder / "expected.config"))


def test_standby_takes_over_when_the_first_is_killed(bench: Bench, endless: Stage, stage: Stage) -> None:
    config = endless.config(bench.folder / "model")
    first = bench.start("trainer", config, HEADRACE_FAULT="train.durable:5")
    bench.until(lambda: bench.commits(config) >= 1, first)
    standby = bench.start("trainer", config, "--standby")
    assert first.wait(60) == -signal.SIGKILL
    bench.until(lambda: bench.received(config) > stage.rows * 0.9, standby)
    standby.signal(signal.SIGTERM)
    assert standby.wait(60) == 0, standby.text()
    assert set(epochs(config)) == {1, 2}


def test_standby_leaves_when_it_is_told_to(bench: Bench, endless: Stage) -> None:
    config = endless.config(bench.folder / "model")
    first = bench.start("trainer", config)
    bench.until(lambda: bench.commits(config) >= 1, first)
    standby = bench.start("trainer", config, "--standby")
    bench.until(lambda: "stage=built" in standby.text(), standby)
    time.sleep(0.3)
    standby.signal(signal.SIGTERM)
    assert standby.wait(30) == 0, standby.text()
    first.signal(signal.SIGKILL)
    assert first.wait(30) == -signal.SIGKILL


def test_second_publisher_is_refused(bench: Bench, stage: Stage) -> None:
    config = stage.config(bench.folder / "model")
    bench.train(config)
    first = bench.start("publisher", config)
    pointer = bench.model(config) / "current.json"
    bench.until(pointer.exists, first)
    second = bench.start("publisher", config, "--once")
    assert second.wait(60) == 1
    assert "publisher" in second.verdict() and str(first.pid) in second.verdict()
    first.signal(signal.SIGKILL)
    assert first.wait(30) == -signal.SIGKILL
    third = bench.start("publisher", config, "--once")
    assert third.wait(60) == 0, third.text()


def test_two_replicas_follow_one_directory_and_come_up_before_it(bench: Bench, stage: Stage) -> None:
    config = stage.config(bench.folder / "model")
    ports = free_port(), free_port()
    replicas = [bench.start("headrace", "serve", bench.model(config), "--port", port) for port in ports]
    for replica, port in zip(replicas, ports, strict=True):
        bench.until(lambda replica=replica: "waiting for the first version" in replica.text(), replica)
        assert status_of(port, "live") == 200
        assert status_of(port, "ready") == 503
    assert not bench.model(config).exists(), "a replica makes nothing"
    bench.train(config)
    assert bench.start("publisher", config, "--once").wait(60) == 0
    for replica, port in zip(replicas, ports, strict=True):
        bench.until(lambda port=port: status_of(port, "ready") == 200, replica)
        replica.signal(signal.SIGTERM)
        assert replica.wait(30) == 0, replica.text()


def test_replica_of_a_directory_that_nobody_can_make_is_refused(bench: Bench) -> None:
    process = bench.start("headrace", "serve", bench.folder / "mdoels" / "model", "--port", 0)
    assert process.wait(30) == 2, process.text()
    assert f"{bench.folder / 'mdoels'} is no directory; correct the path" in process.verdict()


def status_of(port: int, health: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", f"/v2/health/{health}")
        return connection.getresponse().status
    finally:
        connection.close()
