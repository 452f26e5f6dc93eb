"""What the Kafka source is told, by `stream_config`."""

from __future__ import annotations

from dataclasses import dataclass, field

from protos import stream_pb2
from stream.errors import SourceError
from stream.security import SecurityOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class KafkaOptions:
    """Where to read, from where to where, and what to do when messages are gone.

    >>> KafkaOptions(brokers="b:9092", topics=("clicks",)).start
    'EARLIEST'
    """

    brokers: str
    topics: tuple[str, ...]
    group_id: str | None = None  # unset: nothing is acknowledged
    start: str = "EARLIEST"  # EARLIEST, LATEST, TIMESTAMP
    start_timestamp_ms: int | None = None
    stop_at_end: bool = False
    stop_timestamp_ms: int | None = None
    stop_idle_ms: int | None = None
    lost_offset: str = "FAIL"  # FAIL, SKIP_TO_EARLIEST
    refresh_ms: int = 30_000
    fetch_max_bytes: int = 52_428_800
    security: SecurityOptions = field(default_factory=SecurityOptions)
    deadline_s: float = 30.0  # for a first answer of the brokers
    rows_per_read: int = 16_384  # about that many rows are decoded at once

    def __post_init__(self) -> None:
        if not self.brokers:
            raise SourceError("stream_config.brokers is empty: set host:port of the Kafka brokers")
        if not self.topics or not all(self.topics):
            raise SourceError("stream_config.topic is empty: set the topic to read")
        if len(set(self.topics)) < len(self.topics):
            raise SourceError(f"stream_config.topic names a topic twice: {','.join(self.topics)}")
        if self.start == "TIMESTAMP" and self.start_timestamp_ms is None:
            raise SourceError("start: TIMESTAMP needs start_timestamp_ms")

    @property
    def bounded(self) -> bool:
        """Reading ends by itself."""
        return self.stop_at_end or self.stop_timestamp_ms is not None or self.stop_idle_ms is not None

    @classmethod
    def from_proto(cls, message: stream_pb2.StreamConfig) -> KafkaOptions:
        """From `stream_config`."""
        return cls(
            brokers=message.brokers,
            topics=tuple(name.strip() for name in message.topic.split(",") if name.strip()),
            group_id=message.group_id or None,
            start=stream_pb2.StartPosition.Name(message.start),
            start_timestamp_ms=message.start_timestamp_ms if message.HasField("start_timestamp_ms") else None,
            stop_at_end=message.stop_at_end,
            stop_timestamp_ms=message.stop_timestamp_ms if message.HasField("stop_timestamp_ms") else None,
            stop_idle_ms=message.stop_idle_ms if message.HasField("stop_idle_ms") else None,
            lost_offset=stream_pb2.LostOffsetPolicy.Name(message.lost_offset),
            refresh_ms=message.partition_refresh_ms,
            deadline_s=message.broker_wait_ms / 1000,
            fetch_max_bytes=message.fetch_max_bytes,
            security=SecurityOptions.from_proto(message.security),
        )
