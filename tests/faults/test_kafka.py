"""The trainer on a real Apache Kafka while it, its broker, or its topic goes away."""

import dataclasses
import signal
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import TopicPartition

from benchmarks.faults.harness import plan
from benchmarks.faults.processes import Process
from benchmarks.faults.stage import Stage
from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from stream.encode import encode_rows
from tests.faults.conftest import Bench

PARTS = range(3)
KILLS = 4


def on(stage: Stage, bootstrap: str, topic: str, more: str = "stop_at_end: true") -> Stage:
    return dataclasses.replace(
        stage, stream=f'brokers: "{bootstrap}" topic: "{topic}" partition_refresh_ms: 200 {more}'
    )


def send(broker, topic: str, stage: Stage, first: float = 0.0, last: float = 1.0) -> None:
    """Produce a share of every part, each into its own partition."""
    for part in PARTS:
        messages = stage.messages(part)
        broker.produce(topic, messages[int(first * len(messages)) : int(last * len(messages))], partition=part)


def stop(process: Process) -> None:
    process.signal(signal.SIGTERM)
    assert process.wait(60) == 0, process.text()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(2))
def test_killed_trainer_goes_on_with_the_very_next_row_of_every_message(
    seed: int, bench: Bench, stage: Stage, kafka_broker
) -> None:
    topic = kafka_broker.topic(len(PARTS))
    send(kafka_broker, topic, stage)
    on_topic = on(stage, kafka_broker.bootstrap, topic)
    config = on_topic.config(bench.folder / "expected")
    bench.train(config, HEADRACE_FAULT=f"record={bench.folder / 'points'}")
    expected = bench.result(config)
    assert expected.accounting["received"] == stage.rows
    reached = Counter(("trainer", 0, point) for point in (bench.folder / "points").read_text().splitlines())
    config, happened = on_topic.config(bench.folder / "killed"), 0
    for kill in plan(reached, kills=KILLS, seed=seed):
        happened += bench.start("trainer", config, **kill.environment).wait(120) == -signal.SIGKILL
    bench.train(config)
    assert happened >= KILLS // 2
    assert bench.result(config).same_state(expected)


def test_topic_created_anew_while_training_is_an_error_and_stays_one(bench: Bench, stage: Stage, kafka_broker) -> None:
    topic = kafka_broker.topic(len(PARTS))
    send(kafka_broker, topic, stage)
    config = on(stage, kafka_broker.bootstrap, topic, "").config(bench.folder / "anew")
    trainer = bench.start("trainer", config)
    bench.until(lambda: bench.commits(config) >= 3, trainer)
    kafka_broker.delete(topic)
    time.sleep(1)
    if trainer.poll() is None:
        kafka_broker.create(topic, len(PARTS))
        send(kafka_broker, topic, stage)
        assert trainer.wait(60) == 1, trainer.text()
    else:
        kafka_broker.create(topic, len(PARTS))
    last = trainer.verdict()
    assert last.startswith("trainer: topic ") and ("deleted" in last), trainer.text()
    again = bench.train(config, expect=1).verdict()
    assert "was deleted and created anew" in again
    assert "headrace log revert" in again


@pytest.mark.parametrize("command", ["train", "replay"])
def test_topic_that_is_missing_is_named(command: str, bench: Bench, stage: Stage, kafka_broker) -> None:
    config = on(stage, kafka_broker.bootstrap, "nowhere").config(bench.folder / "model")
    arguments = {"train": ("train", config), "replay": ("replay", config, stage.folder)}[command]
    process = bench.start("headrace", *arguments)
    assert process.wait(60) == 1, process.text()
    assert f"topic nowhere does not exist on brokers {kafka_broker.bootstrap}: create it" in process.verdict()


def test_retention_that_was_faster_is_an_error_or_a_declared_gap(bench: Bench, stage: Stage, kafka_broker) -> None:
    topic = kafka_broker.topic(len(PARTS))
    send(kafka_broker, topic, stage, 0.0, 0.5)
    config = on(stage, kafka_broker.bootstrap, topic).config(bench.folder / "lost")
    bench.train(config)
    before = bench.received(config)
    send(kafka_broker, topic, stage, 0.5, 1.0)
    gone = [TopicPartition(topic, part, int(0.8 * len(stage.messages(part)))) for part in PARTS]
    for future in kafka_broker.admin.delete_records(gone).values():
        future.result(10)
    last = bench.train(config, expect=1).verdict()
    assert "retention removed" in last and "lost_offset: SKIP_TO_EARLIEST" in last
    assert bench.received(config) == before
    bench.train(
        on(stage, kafka_broker.bootstrap, topic, "stop_at_end: true lost_offset: SKIP_TO_EARLIEST").config(
            bench.folder / "lost"
        )
    )
    assert before < bench.received(config) < stage.rows * 0.75


def test_partitions_that_appear_are_read_from_their_start(bench: Bench, stage: Stage, kafka_broker) -> None:
    topic = kafka_broker.topic(1)
    kafka_broker.produce(topic, stage.messages(0))
    # By count a batch waits for every partition: what is left of one would hold up the others.
    config = on(stage, kafka_broker.bootstrap, topic, "linger_ms: 50").config(bench.folder / "grown")
    trainer = bench.start("trainer", config)
    bench.until(lambda: bench.commits(config) >= 3, trainer)
    kafka_broker.grow(topic, len(PARTS))
    for part in PARTS[1:]:
        kafka_broker.produce(topic, stage.messages(part), partition=part)
    bench.until(lambda: bench.received(config) > stage.rows * 0.95, trainer)
    time.sleep(0.5)
    stop(trainer)
    assert bench.received(config) == stage.rows
    log = CommitLog(LocalStore(str(bench.model(config))))
    head = log.head()
    assert head is not None
    assert sorted(cursor.partition for state in log.stream(head) for cursor in state.cursors) == list(PARTS)


def huge(stage: Stage, rows: int) -> bytes:
    """A good message of 10 MB: the first rows of a part, with a column that nobody reads."""
    table = pq.read_table(stage.folder / "part-0.parquet").slice(0, rows).combine_chunks()
    ballast = pa.array(["x" * (10_000_000 // rows)] * rows)
    return encode_rows(table.append_column("ballast", ballast).to_batches()[0], "ARROW_IPC")[0]


@pytest.mark.parametrize("dead_topic", ["created by the trainer", "too small"])
def test_messages_of_ten_megabytes_are_trained_or_become_letters(
    dead_topic: str, bench: Bench, stage: Stage, kafka_broker
) -> None:
    topic = kafka_broker.topic(1, max_message_bytes="20000000")
    kafka_broker.produce(topic, [huge(stage, 50), b"\0" * 10_000_000])
    if dead_topic == "too small":
        kafka_broker.create(f"{topic}.dead", max_message_bytes="1000000")
    letters = (f'path: "{bench.folder / "model"}/dead_letters"', f'topic: "{topic}.dead"')
    config = on(stage, kafka_broker.bootstrap, topic).config(bench.folder / "model", letters)
    if dead_topic == "too small":
        last = bench.train(config, expect=1).verdict()
        assert f"topic {topic}.dead did not take" in last and "too large" in last, last
        assert bench.received(config) == 0
        return
    bench.train(config)
    assert bench.received(config) == 51
    listed = bench.start("headrace", "dlq", "ls", config)
    assert listed.wait(60) == 0 and "undecodable" in listed.text(), listed.text()


def test_broker_that_is_down_at_the_start_is_named_and_waited_for(bench: Bench, stage: Stage, kafka_process) -> None:
    process = kafka_process()
    topic = process.broker().topic(len(PARTS))
    send(process.broker(), topic, stage)
    process.kill()
    config = on(stage, process.bootstrap, topic).config(bench.folder / "late")
    trainer = bench.start("trainer", config)
    time.sleep(4)
    assert trainer.poll() is None, trainer.text()
    process.start()
    assert trainer.wait(60) == 0, trainer.text()
    assert bench.received(config) == stage.rows
    assert process.bootstrap in trainer.text()


def test_broker_that_never_comes_ends_the_trainer(bench: Bench, stage: Stage, tmp_path: Path) -> None:
    config = on(stage, "127.0.0.1:9", "clicks", "broker_wait_ms: 1500").config(tmp_path / "never")
    started = time.monotonic()
    last = bench.train(config, expect=1).verdict()
    assert time.monotonic() - started > 1.5
    assert last.startswith("trainer: no broker of 127.0.0.1:9 answered within 1.5 s: "), last
