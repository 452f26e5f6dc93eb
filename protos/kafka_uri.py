"""The peer's `kafka://HOST:PORT[,HOST:PORT...]/TOPIC?group.id=G[&key=value...]`, mapped to a StreamConfig.

The scheme may have any case; the topic is taken as it stands, without its leading slashes; values are percent-decoded,
`+` is a blank, an empty value vanishes, of a repeated key the last counts. A `#` would hide the rest: it is refused.
"""

from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from protos.errors import ConfigError, Reason
from protos.pipeline_pb2 import EasyRecConfig
from protos.stream_pb2 import EARLIEST, LATEST, TIMESTAMP, StreamConfig

SCHEME = "kafka://"

# Assigned partitions need no group protocol, and positions live in the commit log.
NO_OPS = {
    "enable.auto.commit": "group offsets are committed after the fact",
    "enable.auto.offset.store": "group offsets are committed after the fact",
    "auto.commit.interval.ms": "group offsets are committed after the fact",
    "partition.assignment.strategy": "partitions are assigned by rank, not by a group",
    "group.instance.id": "partitions are assigned by rank, not by a group",
    "group.protocol": "partitions are assigned by rank, not by a group",
    "session.timeout.ms": "partitions are assigned by rank, not by a group",
    "heartbeat.interval.ms": "partitions are assigned by rank, not by a group",
    "max.poll.interval.ms": "partitions are assigned by rank, not by a group",
}

_STARTS = {
    "earliest": EARLIEST,
    "smallest": EARLIEST,
    "beginning": EARLIEST,
    "latest": LATEST,
    "largest": LATEST,
    "end": LATEST,
}
_SECURITY = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "ssl.ca.location": "ca_file",
    "ssl.certificate.location": "certificate_file",
    "ssl.key.location": "key_file",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class KafkaUri:
    """The parts of a kafka:// URI."""

    brokers: str
    topic: str
    settings: dict[str, str] = field(default_factory=dict)


def is_kafka_uri(path: str) -> bool:
    """Whether `path` names a topic in the peer's way."""
    return path[: len(SCHEME)].lower() == SCHEME


def parse_kafka_uri(uri: str) -> KafkaUri:
    """Take `uri` apart; ConfigError when it is none.

    >>> parse_kafka_uri("KAFKA://a:1,b:2/clicks?group.id=g")
    KafkaUri(brokers='a:1,b:2', topic='clicks', settings={'group.id': 'g'})
    """
    if "#" in uri:
        raise _error(f"{uri!r} holds a '#', which would hide what follows; write it as %23")
    head, _, query = uri[len(SCHEME) :].partition("?")
    brokers, _, topic = head.partition("/")
    topic = topic.lstrip("/")
    if not is_kafka_uri(uri) or not brokers or not topic:
        raise _error(f"{uri!r} is no Kafka path; write kafka://HOST:PORT[,HOST:PORT]/TOPIC?group.id=GROUP")
    settings = {key: value for key, value in parse_qsl(query) if value}
    if "group.id" not in settings:
        raise _error(f"{uri!r} has no group.id; add ?group.id=GROUP (it only serves tools that watch the lag)")
    return KafkaUri(brokers=brokers, topic=topic, settings=settings)


def stream_config_of(uri: str) -> StreamConfig:
    """What `uri` says, as a StreamConfig; a setting without a counterpart is a ConfigError that names it."""
    parsed = parse_kafka_uri(uri)
    stream = StreamConfig(brokers=parsed.brokers, topic=parsed.topic)
    for key, value in parsed.settings.items():
        _apply(stream, key, value)
    return stream


def fold_paths(config: EasyRecConfig, source: str = "") -> EasyRecConfig:
    """Fold a kafka:// `train_input_path` into `stream_config`, whose own fields win, unless they contradict it."""
    for name in ("train_input_path", "eval_input_path"):
        path = getattr(config, name)
        if not is_kafka_uri(path):
            continue
        try:
            told = stream_config_of(path)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error.detail}", reason=error.reason, source=source) from None
        if name == "train_input_path":
            config.stream_config.CopyFrom(overlay(told, config.stream_config, source))
    return config


def stream_config_for(config: EasyRecConfig, path: str) -> StreamConfig:
    """The StreamConfig to read `path` with: that of `config`, at the topic that a kafka:// path names."""
    if not is_kafka_uri(path) or path == config.train_input_path:
        return config.stream_config
    elsewhere = StreamConfig()
    elsewhere.CopyFrom(config.stream_config)
    elsewhere.MergeFrom(stream_config_of(path))
    return elsewhere


def overlay(base: StreamConfig, declared: StreamConfig, source: str = "") -> StreamConfig:
    """`base` (from a URI) with everything that `declared` adds; both must agree on brokers and topic."""
    for name in ("brokers", "topic"):
        ours, theirs = getattr(declared, name), getattr(base, name)
        if declared.HasField(name) and ours != theirs:
            detail = f"stream_config.{name} is {ours!r} but the input path says {theirs!r}; keep one of them"
            raise ConfigError(detail, reason=Reason.INCONSISTENT, source=source)
    merged = StreamConfig()
    merged.CopyFrom(base)
    merged.MergeFrom(declared)
    return merged


def _apply(stream: StreamConfig, key: str, value: str) -> None:
    if key in NO_OPS:
        return
    if key == "group.id":
        stream.group_id = value
    elif key == "start.timestamp.ms":
        stream.start = TIMESTAMP
        stream.start_timestamp_ms = _count(key, value)
    elif key == "auto.offset.reset":
        _apply_reset(stream, value)
    elif key == "fetch.max.bytes":
        stream.fetch_max_bytes = _count(key, value)
    elif key in _SECURITY:
        setattr(stream.security, _SECURITY[key], value)
    else:
        known = sorted({*NO_OPS, *_SECURITY, "group.id", "start.timestamp.ms", "auto.offset.reset", "fetch.max.bytes"})
        raise _error(f"kafka setting {key} has no counterpart here; remove it (known are: {', '.join(known)})")


def _apply_reset(stream: StreamConfig, value: str) -> None:
    if value not in _STARTS:
        raise _error(f"auto.offset.reset is {value!r}; write earliest or latest")
    if stream.start != TIMESTAMP:
        stream.start = _STARTS[value]


def _count(key: str, value: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise _error(f"{key} is {value!r}; write a whole number that is not negative")
    return int(value)


def _error(detail: str) -> ConfigError:
    return ConfigError(detail, reason=Reason.BAD_VALUE)
