"""What an operator decides about a replica."""

from dataclasses import dataclass, field
from pathlib import Path

from protos import pipeline_pb2
from publisher.replica.errors import StartError
from stream.kafka_client import client_settings
from stream.kafka_options import KafkaOptions
from stream.security import Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Notifications:
    """Where versions are announced; `settings` are librdkafka's (brokers, security) and may hold secrets."""

    topic: str
    settings: Settings = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeOptions:
    """Limits and addresses; `port` 0 takes a free one, `name` is the model's name in the protocol.

    >>> ServeOptions().host
    '127.0.0.1'
    """

    host: str = "127.0.0.1"
    port: int = 8080
    name: str = "headrace"
    token_file: Path | None = None
    verify_key_file: Path | None = None
    state_file: Path | None = None
    notifications: Notifications | None = None
    poll_s: float = 0.05
    max_request_bytes: int = 16 << 20
    # A row of one byte becomes kilobytes of activations: the limit on bytes does not bound memory.
    max_rows: int = 1 << 16
    max_concurrent: int = 64
    max_connections: int = 512
    body_timeout_s: float = 30.0
    drain_s: float = 10.0
    staleness_alert_s: float = 5.0
    unready_when_stale: bool = False
    workers: int = 2

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise StartError(f"port {self.port} is not between 0 and 65535")
        if not self.name or "/" in self.name:
            raise StartError(f"model name {self.name!r} must not be empty or contain '/'")
        if self.state_file is not None and self.verify_key_file is None:
            raise StartError("--state-file guards signed pointers: give --verify-key-file too, or leave it out")
        positive = {
            "poll_interval_ms": self.poll_s,
            "max_request_bytes": self.max_request_bytes,
            "max_rows": self.max_rows,
            "max_concurrent_requests": self.max_concurrent,
            "max_connections": self.max_connections,
            "workers": self.workers,
        }
        for option, value in positive.items():
            if value <= 0:
                raise StartError(f"{option} must be positive, got {value}")

    @classmethod
    def from_proto(
        cls,
        config: pipeline_pb2.EasyRecConfig,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        token_file: Path | None = None,
    ) -> "ServeOptions":
        """Take the limits of `serve_config`; key, cadence and notifications of `publish_config`."""
        serve, publish = config.serve_config, config.publish_config
        key = publish.verify_key_file
        return cls(
            host=host,
            port=port,
            token_file=token_file,
            verify_key_file=Path(key) if key else None,
            notifications=_notifications(config),
            poll_s=publish.poll_interval_ms / 1000,
            max_request_bytes=serve.max_request_bytes,
            max_concurrent=serve.max_concurrent_requests,
            max_connections=serve.max_connections,
            drain_s=serve.drain_ms / 1000,
            staleness_alert_s=serve.staleness_alert_ms / 1000,
            unready_when_stale=serve.unready_when_stale,
        )


def _notifications(config: pipeline_pb2.EasyRecConfig) -> Notifications | None:
    topic = config.publish_config.notify_topic
    if not topic:
        return None
    return Notifications(topic=topic, settings=client_settings(KafkaOptions.from_proto(config.stream_config)))
