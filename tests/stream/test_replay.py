"""Replay: order, pace, partitions, formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, TopicPartition

from stream import replay_order
from stream.errors import ReplayError, TopicMissingError
from stream.kafka_options import KafkaOptions
from stream.replay import Replay, ReplayOptions
from stream.replay_order import TimeColumn, ordered_events

TIME = TimeColumn(name="t")


class Pace:
    """A clock that moves only when slept on."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def _write(path: Path, times: list[int], start: int = 0) -> None:
    table = pa.table({"t": pa.array(times, pa.int64()), "id": pa.array(range(start, start + len(times)), pa.int64())})
    pq.write_table(table, path)


def _ordered(path: Path, scratch: Path) -> tuple[list[int], list[int]]:
    scratch.mkdir(exist_ok=True)
    pieces = list(ordered_events(str(path), TIME, scratch))
    ids = [i for rows, _ in pieces for i in rows.column("id").to_pylist()]
    return [int(t) for _, times in pieces for t in times], ids


def _messages(bootstrap: str, topic: str, partition: int = 0) -> list[tuple[int, bytes]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0)])
    found = []
    while (message := consumer.poll(10.0)) is not None and message.error() is None:
        found.append((message.timestamp()[1], message.value()))
    consumer.close()
    return found


def _rows(payload: bytes) -> dict[str, list[object]]:
    with pa.ipc.open_stream(payload) as stream:
        rows: dict[str, list[object]] = stream.read_all().to_pydict()
    return rows


@pytest.mark.parametrize("seed", range(4))
def test_ordered_events_are_a_stable_sort_of_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(replay_order, "_RUN_ROWS", 50)
    monkeypatch.setattr(replay_order, "_BATCH_ROWS", 7)
    random = np.random.default_rng(seed)
    files = tmp_path / "files"
    files.mkdir()
    everything: list[tuple[int, int]] = []
    for number in range(5):
        times = random.integers(0, 40, int(random.integers(0, 200)))
        times = np.sort(times) if number % 2 else times
        _write(files / f"{number}.parquet", times.tolist(), start=1000 * number)
        everything += [(int(t), 1000 * number + i) for i, t in enumerate(times)]
    times_found, ids = _ordered(files, tmp_path / "scratch")
    assert list(zip(times_found, ids, strict=True)) == sorted(everything, key=lambda pair: pair[0])


def test_ordered_events_converts_units(tmp_path: Path) -> None:
    rows = pa.record_batch({"s": [1.5, 2.0], "us": [1_500, 2_999], "ts": pa.array([1, 2], pa.timestamp("s"))})
    assert TimeColumn(name="s", unit="SECONDS").of(rows, "f").tolist() == [1500, 2000]
    assert TimeColumn(name="us", unit="MICROSECONDS").of(rows, "f").tolist() == [1, 2]
    assert TimeColumn(name="ts").of(rows, "f").tolist() == [1000, 2000]


def test_ordered_events_names_what_has_no_time(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [1, None]}), tmp_path / "null.parquet")
    with pytest.raises(ReplayError, match=r"null\.parquet.*column t is null"):
        list(ordered_events(str(tmp_path / "null.parquet"), TIME, tmp_path))
    with pytest.raises(ReplayError, match=r"no column when"):
        list(ordered_events(str(tmp_path / "null.parquet"), TimeColumn(name="when"), tmp_path))


def test_replay_sends_all_rows_in_order_with_their_times(embedded_broker, tmp_path: Path) -> None:
    _write(tmp_path / "a.parquet", [5000, 1000, 3000, 2000, 4000])
    topic = embedded_broker.topic()
    kafka = KafkaOptions(brokers=embedded_broker.bootstrap, topics=(topic,))
    sent: list[int] = []
    count = Replay(kafka, ReplayOptions(time_column=TIME, rows_per_message=2), progress=sent.append).run(str(tmp_path))
    found = _messages(embedded_broker.bootstrap, topic)
    assert count == 5
    assert sent == [2, 4, 5]
    assert [_rows(value)["t"] for _, value in found] == [[1000, 2000], [3000, 4000], [5000]]
    assert [stamp for stamp, _ in found] == [2000, 4000, 5000]


def test_replay_keeps_the_pace_of_event_time(embedded_broker, tmp_path: Path) -> None:
    _write(tmp_path / "a.parquet", [1000, 3000, 9000])
    kafka = KafkaOptions(brokers=embedded_broker.bootstrap, topics=(embedded_broker.topic(),))
    pace = Pace()
    options = ReplayOptions(time_column=TIME, rows_per_message=1, speed=2.0)
    Replay(kafka, options, clock=pace.clock, sleep=pace.sleep).run(str(tmp_path))
    assert pace.slept == [1.0, 3.0]


def test_replay_keeps_the_rate(embedded_broker, tmp_path: Path) -> None:
    _write(tmp_path / "a.parquet", list(range(100)))
    kafka = KafkaOptions(brokers=embedded_broker.bootstrap, topics=(embedded_broker.topic(),))
    pace = Pace()
    options = ReplayOptions(time_column=TIME, rows_per_message=10, rate=50.0)
    Replay(kafka, options, clock=pace.clock, sleep=pace.sleep).run(str(tmp_path))
    assert pace.now == pytest.approx(1000.0 + 90 / 50)


def test_replay_as_json_sends_one_row_per_message_and_keeps_keys_together(embedded_broker, tmp_path: Path) -> None:
    _write(tmp_path / "a.parquet", [1, 2, 3, 4] * 5)
    topic = embedded_broker.topic(partitions=3)
    kafka = KafkaOptions(brokers=embedded_broker.bootstrap, topics=(topic,))
    Replay(kafka, ReplayOptions(time_column=TIME, format="JSON", key_column="t")).run(str(tmp_path))
    found = [[json.loads(value) for _, value in _messages(embedded_broker.bootstrap, topic, p)] for p in range(3)]
    keys = [{row["t"] for row in rows} for rows in found]
    assert sum(len(rows) for rows in found) == 20
    assert sum(len(key) for key in keys) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (lambda: ReplayOptions(speed=2.0), "event_time_field"),
        (lambda: ReplayOptions(rate=0.0), "rate must be a positive number"),
        (lambda: ReplayOptions(rows_per_message=0), "rows per message"),
    ],
)
def test_replay_options_refuse_nonsense(options: Callable[[], ReplayOptions], message: str) -> None:
    with pytest.raises(ReplayError, match=message):
        options()


def test_replay_into_a_missing_topic_names_it(embedded_broker) -> None:
    kafka = KafkaOptions(brokers=embedded_broker.bootstrap, topics=("never-made",))
    with pytest.raises(TopicMissingError, match="never-made"):
        Replay(kafka, ReplayOptions())
