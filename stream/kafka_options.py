"""What the Kafka source is told: from `stream_config`, or from a `kafka://` path."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from protos import stream_pb2
from stream.errors import SourceError
from stream.security import SecurityOptions

_SECRET_KEYS = ("sasl.password", "sasl.username", "ssl.key.password", "ssl.key.pem", "sasl.oauthbearer.client.secret")


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
    def from_proto(cls, message: stream_pb2.StreamConfig, path: str | None = None) -> KafkaOptions:
        """From `stream_config`; a `kafka://` path wins over its brokers, topic, group and start time."""
        place = KafkaPath.parse(path) if path else None
        start_ms = message.start_timestamp_ms if message.HasField("start_timestamp_ms") else None
        start = stream_pb2.StartPosition.Name(message.start)
        if place is not None and place.start_timestamp_ms is not None:
            start, start_ms = "TIMESTAMP", place.start_timestamp_ms
        topics = (place.topic,) if place else tuple(name.strip() for name in message.topic.split(",") if name.strip())
        return cls(
            brokers=place.brokers if place else message.brokers,
            topics=topics,
            group_id=(place.group_id if place else None) or message.group_id or None,
            start=start,
            start_timestamp_ms=start_ms,
            stop_at_end=message.stop_at_end,
            stop_timestamp_ms=message.stop_timestamp_ms if message.HasField("stop_timestamp_ms") else None,
            stop_idle_ms=message.stop_idle_ms if message.HasField("stop_idle_ms") else None,
            lost_offset=stream_pb2.LostOffsetPolicy.Name(message.lost_offset),
            refresh_ms=message.partition_refresh_ms,
            fetch_max_bytes=message.fetch_max_bytes,
            security=SecurityOptions.from_proto(message.security),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class KafkaPath:
    """`kafka://HOST:PORT[,HOST:PORT]/TOPIC[?group.id=G&start.timestamp.ms=T]`.

    >>> KafkaPath.parse("kafka://a:1,b:2/clicks?group.id=g").brokers
    'a:1,b:2'
    """

    brokers: str
    topic: str
    group_id: str | None = None
    start_timestamp_ms: int | None = None

    @classmethod
    def parse(cls, path: str) -> KafkaPath:
        """Parse a path; raise SourceError where it is none, holds a secret or a setting that we do not take."""
        parts = urlsplit(path)
        shown = path.split("?")[0]
        if parts.scheme.lower() != "kafka" or not parts.netloc or not parts.path.strip("/"):
            raise SourceError(f"{shown!r} is not kafka://HOST:PORT/TOPIC")
        if "@" in parts.netloc:
            raise SourceError("a kafka:// path must not hold credentials: use stream_config.security with files")
        if parts.fragment:
            raise SourceError(f"{shown!r} holds a #: write it as %23")
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        for key in query:
            if key in _SECRET_KEYS:
                raise SourceError(f"{shown!r} holds {key}: put it into a file and name that in stream_config.security")
            if key not in ("group.id", "start.timestamp.ms"):
                raise SourceError(f"{shown!r} sets {key}, which is not taken from a path: use stream_config")
        return cls(
            brokers=parts.netloc,
            topic=parts.path.lstrip("/"),
            group_id=query.get("group.id") or None,
            start_timestamp_ms=_start_ms(query.get("start.timestamp.ms"), shown),
        )


def _start_ms(text: str | None, shown: str) -> int | None:
    if text is None:
        return None
    if not text.isdecimal():
        raise SourceError(f"{shown!r}: start.timestamp.ms must be a number of milliseconds, got {text!r}")
    return int(text)
