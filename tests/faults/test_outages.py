"""A trainer that stalls and a broker that is away, for seconds in CI and, marked `slow`, for as long as in earnest."""

import dataclasses
import signal
import time

import pytest

from benchmarks.faults.processes import Process
from benchmarks.faults.stage import Stage
from stream.deadletter_kafka import read_topic
from stream.kafka_options import KafkaOptions
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


def letters_to(topic: str, bench: Bench) -> tuple[str, str]:
    """The change that sends the letters of `model` to a topic; those of other models stay in a folder."""
    return f'path: "{bench.folder / "model"}/dead_letters"', f'topic: "{topic}"'


def finish(
    bench: Bench, trainer: Process, stage: Stage, process: KafkaProcess, topic: str, *changes: tuple[str, str]
) -> None:
    """Stop the trainer, read to the topic's end, and compare with a run that nothing disturbed."""
    trainer.signal(signal.SIGTERM)
    assert trainer.wait(60) == 0, trainer.text()
    errors = [line for line in trainer.text().splitlines() if " ERROR " in line]
    assert not errors and "Traceback" not in trainer.text(), trainer.text()
    bounded = on(stage, process.bootstrap, topic, "stop_at_end: true")
    bench.train(bounded.config(bench.folder / "model", *changes))
    bench.train(bounded.config(bench.folder / "expected"))
    expected, found = bench.result(bench.folder / "expected.config"), bench.result(bench.folder / "model.config")
    assert expected.accounting["received"] == stage.rows
    if changes:
        options = KafkaOptions(brokers=process.bootstrap, topics=(topic,))
        letters = frozenset(letter.key for letter in read_topic(options, f"{topic}.dead"))
        found = dataclasses.replace(found, letters=letters)
    assert found.same_state(expected)


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
    # A commit waits until its dead letters are acknowledged: with them in a topic it waits for the broker too.
    dead = letters_to(f"{topic}.dead", bench)
    config = on(stage, process.bootstrap, topic).config(bench.folder / "model", dead)
    trainer = bench.start(command[0], *command[1:], config)
    bench.until(lambda: bench.commits(config) >= 3, trainer)
    process.kill()
    bench.until(lambda: "event=kafka_error" in trainer.text(), trainer)
    time.sleep(away_s)
    assert trainer.poll() is None, trainer.text()
    said = [line for line in trainer.text().splitlines() if "event=kafka_error" in line]
    assert said and process.bootstrap in said[0], trainer.text()
    assert len(said) <= 3, "it says so once per outage, not with every attempt"
    process.start()
    half = bench.received(config)
    send(process, topic, stage, 0.5, 1.0)
    bench.until(lambda: bench.received(config) > max(half, stage.rows * 0.6), trainer)
    # Messages may come before the answer to the question about topics, which is what it tells.
    bench.until(lambda: f"event=kafka_reached brokers={process.bootstrap}" in trainer.text(), trainer)
    finish(bench, trainer, stage, process, topic, dead)


@pytest.mark.timeout(300)
def test_a_trainer_whose_dead_letters_wait_ends_when_it_is_told_to(bench: Bench, stage: Stage, kafka_process) -> None:
    process = kafka_process()
    topic = process.broker().topic(len(PARTS))
    send(process, topic, stage, 0.0, 0.5)
    dead = letters_to(f"{topic}.dead", bench)
    config = on(stage, process.bootstrap, topic).config(bench.folder / "model", dead)
    trainer = bench.start("trainer", config)
    bench.until(lambda: bench.commits(config) >= 3, trainer)
    process.kill()
    bench.until(lambda: "event=kafka_error" in trainer.text(), trainer)
    trainer.signal(signal.SIGTERM)
    # 0 where no dead letter was under way: nothing of it needs the broker.
    assert trainer.wait(60) in (0, 1) and "Traceback" not in trainer.text(), trainer.text()
    process.start()
    send(process, topic, stage, 0.5, 1.0)
    trainer = bench.start("trainer", config)
    bench.until(lambda: bench.received(config) > stage.rows * 0.6, trainer)
    finish(bench, trainer, stage, process, topic, dead)
