"""A trainer that stalls and a broker that is away, for seconds in CI and, marked `slow`, for as long as in earnest."""

import dataclasses
import signal
import time

import pytest

from benchmarks.faults.processes import Process
from benchmarks.faults.stage import Stage
from tests.conftest import KafkaProcess
from tests.faults.conftest import Bench

PARTS = range(3)
# Brokers cut a connection that was idle for so long (10 min by default): a trainer that stalls longer finds it closed.
CUTS_IDLE = "connections.max.idle.ms=4000"


def on(stage: Stage, bootstrap: str, topic: str, more: str = "") -> Stage:
    return dataclasses.replace(
        stage, stream=f'brokers: "{bootstrap}" topic: "{topic}" partition_refresh_ms: 200 {more}'
    )


def send(process: KafkaProcess, topic: str, stage: Stage, first: float, last: float) -> None:
    """Produce a share of every part, each into its own partition."""
    broker = process.broker()
    for part in PARTS:
        messages = stage.messages(part)
        broker.produce(topic, messages[int(first * len(messages)) : int(last * len(messages))], partition=part)


def finish(bench: Bench, trainer: Process, stage: Stage, process: KafkaProcess, topic: str) -> None:
    """Stop the trainer, read to the topic's end, and compare with a run that nothing disturbed."""
    trainer.signal(signal.SIGTERM)
    assert trainer.wait(60) == 0, trainer.text()
    assert "ERROR" not in trainer.text() and "Traceback" not in trainer.text(), trainer.text()
    bounded = on(stage, process.bootstrap, topic, "stop_at_end: true")
    for name in ("model", "expected"):
        bench.train(bounded.config(bench.folder / name))
    expected = bench.result(bench.folder / "expected.config")
    assert expected.accounting["received"] == stage.rows
    assert bench.result(bench.folder / "model.config").same_state(expected)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("stall_s", "properties", "command"),
    [
        pytest.param(9, [CUTS_IDLE], ("trainer",), id="seconds"),
        pytest.param(610, [], ("headrace", "train"), id="ten minutes", marks=pytest.mark.slow),
    ],
)
def test_stalled_trainer_goes_on_where_it_was(
    stall_s: float, properties: list[str], command: tuple[str, ...], bench: Bench, stage: Stage, kafka_process
) -> None:
    process = kafka_process(*properties)
    topic = process.broker().topic(len(PARTS))
    send(process, topic, stage, 0.0, 0.4)
    config = on(stage, process.bootstrap, topic).config(bench.folder / "model")
    trainer = bench.start(command[0], *command[1:], config)
    bench.until(lambda: bench.commits(config) >= 3, trainer)
    trainer.signal(signal.SIGSTOP)
    before = bench.received(config)
    send(process, topic, stage, 0.4, 0.7)
    time.sleep(stall_s)
    assert bench.received(config) == before < stage.rows * 0.5
    send(process, topic, stage, 0.7, 1.0)
    trainer.signal(signal.SIGCONT)
    bench.until(lambda: bench.received(config) > stage.rows * 0.9, trainer)
    finish(bench, trainer, stage, process, topic)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("away_s", "command"),
    [
        pytest.param(1, ("trainer",), id="a second"),
        pytest.param(8, ("trainer",), id="seconds"),
        pytest.param(70, ("headrace", "train"), id="a minute", marks=pytest.mark.slow),
    ],
)
def test_trainer_waits_for_a_broker_that_crashed(
    away_s: float, command: tuple[str, ...], bench: Bench, stage: Stage, kafka_process
) -> None:
    process = kafka_process()
    topic = process.broker().topic(len(PARTS))
    send(process, topic, stage, 0.0, 0.5)
    config = on(stage, process.bootstrap, topic).config(bench.folder / "model")
    trainer = bench.start(command[0], *command[1:], config)
    bench.until(lambda: bench.commits(config) >= 3, trainer)
    process.kill()
    time.sleep(away_s)
    assert trainer.poll() is None, trainer.text()
    said = [line for line in trainer.text().splitlines() if "event=kafka_error" in line]
    assert said and process.bootstrap in said[0], trainer.text()
    assert len(said) <= 3, "it says so once per outage, not with every attempt"
    process.start()
    half = bench.received(config)
    send(process, topic, stage, 0.5, 1.0)
    bench.until(lambda: bench.received(config) > max(half, stage.rows * 0.6), trainer)
    assert f"event=kafka_reached brokers={process.bootstrap}" in trainer.text()
    finish(bench, trainer, stage, process, topic)
