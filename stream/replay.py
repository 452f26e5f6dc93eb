"""Offline events into a Kafka topic, in event-time order, at the pace of their times, at a given rate, or at once.

A message's timestamp is the event time of its last row. Messages go to the topic's partitions in turn, or, with a key
column, each row to the partition of its key.
"""

from __future__ import annotations

import logging
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from protos import stream_pb2
from protos.pipeline_pb2 import EasyRecConfig
from protos.s3_account import ENVIRONMENT, S3Account, data_account
from stream.encode import encode_rows
from stream.errors import ReplayError
from stream.kafka_client import KafkaClient, client_settings
from stream.kafka_options import KafkaOptions
from stream.opening import declared_format
from stream.replay_order import TimeColumn, Times, ordered_events, unordered_events
from stream.source import Clock

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayOptions:
    """`speed` is event time over real time; `rate` is rows per second; neither means as fast as it goes."""

    time_column: TimeColumn | None = None
    format: str = "ARROW_IPC"
    rows_per_message: int = 128  # one in JSON, always
    speed: float | None = None
    rate: float | None = None
    key_column: str | None = None
    s3: S3Account = ENVIRONMENT
    timeout_s: float = 60.0  # for the brokers to acknowledge

    def __post_init__(self) -> None:
        if self.rows_per_message < 1:
            raise ReplayError(f"rows per message must be at least 1, got {self.rows_per_message}")
        for name, value in (("speed", self.speed), ("rate", self.rate)):
            if value is not None and not 0 < value < float("inf"):
                raise ReplayError(f"{name} must be a positive number, got {value}")
        if self.speed is not None and self.time_column is None:
            raise ReplayError("speed needs stream_config.event_time_field: without event times there is no pace")


def replay_options(
    config: EasyRecConfig,
    *,
    speed: float | None = None,
    rate: float | None = None,
    rows_per_message: int = 128,
    key_column: str | None = None,
) -> ReplayOptions:
    """The event time and format that a configuration declares, at a pace."""
    stream = config.stream_config
    unit = stream_pb2.TimeUnit.Name(stream.event_time_unit)
    column = TimeColumn(name=stream.event_time_field, unit=unit) if stream.event_time_field else None
    return ReplayOptions(
        time_column=column,
        format=declared_format(config),
        rows_per_message=rows_per_message,
        speed=speed,
        rate=rate,
        key_column=key_column,
        s3=data_account(config),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Post:
    rows: pa.RecordBatch
    partition: int
    last_ms: int  # 0: no event time


class Replay:
    """One replay into the first topic of the options. `progress` is called with the rows sent so far."""

    def __init__(
        self,
        kafka: KafkaOptions,
        options: ReplayOptions,
        *,
        clock: Clock = time.time,
        sleep: Callable[[float], None] = time.sleep,
        progress: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self._options = options
        self._clock = clock
        self._sleep = sleep
        self._progress = progress
        self._topic = kafka.topics[0]
        self._partitions = _partitions(kafka)
        self._failed: list[KafkaError] = []
        self._producer = Producer(
            {
                **client_settings(kafka),
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.max.bytes": min(kafka.fetch_max_bytes, 1_000_000_000),
                "logger": _log,
            }
        )
        self._started: float | None = None
        self._first_ms = 0
        self._sent = 0

    def run(self, path: str) -> int:
        """Send all rows of a path's Parquet files; return how many, all of them acknowledged."""
        with tempfile.TemporaryDirectory(prefix="headrace-replay-") as scratch:
            for post in self._posts(self._events(path, Path(scratch))):
                self._wait(post)
                self._send(post)
        left = self._flush()
        self._raise_failed()
        if left:
            raise ReplayError(f"topic {self._topic}: {left} messages were not acknowledged within the time")
        return self._sent

    def _events(self, path: str, scratch: Path) -> Iterator[tuple[pa.RecordBatch, Times | None]]:
        if self._options.time_column is None:
            return ((rows, None) for rows in unordered_events(path, self._options.s3))
        return ordered_events(path, self._options.time_column, scratch, self._options.s3)

    def _posts(self, events: Iterator[tuple[pa.RecordBatch, Times | None]]) -> Iterator[_Post]:
        """Cut the events into messages of `rows_per_message`, the last one shorter."""
        size = 1 if self._options.format == "JSON" else self._options.rows_per_message
        for number, (rows, times) in enumerate(_rebatch(events, size)):
            for partition, part in self._places(rows, number):
                last = 0 if times is None else int(times[part[-1]])
                whole = len(part) == rows.num_rows
                yield _Post(rows=rows if whole else rows.take(pa.array(part)), partition=partition, last_ms=last)

    def _places(self, rows: pa.RecordBatch, number: int) -> Iterator[tuple[int, Times]]:
        """Which rows go to which partition."""
        everything = np.arange(rows.num_rows, dtype=np.int64)
        if self._options.key_column is None:
            yield number % self._partitions, everything
            return
        if self._options.key_column not in rows.schema.names:
            raise ReplayError(f"the events have no key column {self._options.key_column}")
        keys = rows.column(self._options.key_column).to_pylist()
        places = np.array([zlib.crc32(str(key).encode()) % self._partitions for key in keys], np.int64)
        for partition in np.unique(places):
            yield int(partition), everything[places == partition]

    def _wait(self, post: _Post) -> None:
        """Sleep until the message is due."""
        now = self._clock()
        if self._started is None:
            self._started, self._first_ms = now, post.last_ms
        due = self._started
        if self._options.speed is not None:
            due = max(due, self._started + (post.last_ms - self._first_ms) / 1000 / self._options.speed)
        if self._options.rate is not None:
            due = max(due, self._started + self._sent / self._options.rate)
        if due > now:
            self._producer.poll(0)
            self._sleep(due - now)

    def _send(self, post: _Post) -> None:
        for payload in encode_rows(post.rows, self._options.format):
            self._produce(payload, post)
        self._sent += post.rows.num_rows
        self._progress(self._sent)
        self._raise_failed()

    def _produce(self, payload: bytes, post: _Post) -> None:
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    payload,
                    partition=post.partition,
                    timestamp=post.last_ms,
                    on_delivery=self._delivered,
                )
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise ReplayError(
                    f"a message of {post.rows.num_rows} rows ({len(payload)} bytes) cannot be sent to "
                    f"{self._topic}: {error.args[0].str()}; send fewer rows per message"
                ) from None

    def _flush(self) -> int:
        try:
            return int(self._producer.flush(self._options.timeout_s))
        except KafkaException as error:
            raise ReplayError(f"topic {self._topic} does not take the events: {error.args[0].str()}") from None

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def _raise_failed(self) -> None:
        if self._failed:
            raise ReplayError(f"topic {self._topic} does not take the events: {self._failed[0].str()}")


def _partitions(kafka: KafkaOptions) -> int:
    client = KafkaClient(kafka)
    try:
        return len(client.describe()[kafka.topics[0]].partitions)
    finally:
        client.close()


def _rebatch(
    events: Iterator[tuple[pa.RecordBatch, Times | None]], size: int
) -> Iterator[tuple[pa.RecordBatch, Times | None]]:
    """Batches of exactly `size` rows, the last one perhaps shorter."""
    rest: tuple[pa.RecordBatch, Times | None] | None = None
    for rows, times in events:
        if rest is not None:
            rows = pa.concat_batches([rest[0], rows])
            times = None if times is None or rest[1] is None else np.concatenate([rest[1], times])
        full = rows.num_rows // size * size
        for start in range(0, full, size):
            yield rows.slice(start, size), None if times is None else times[start : start + size]
        rest = (rows.slice(full), None if times is None else times[full:]) if full < rows.num_rows else None
    if rest is not None:
        yield rest
