"""Telling replicas that a version is there, over Kafka; a replica that hears nothing polls the pointer."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from publisher.errors import Reason, VersionError
from publisher.fields import Fields, canonical
from publisher.manifest import Pointer

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Notification:
    """The pointer that was just written; a hint, never the truth."""

    version: int
    digest: str

    @classmethod
    def of(cls, pointer: Pointer) -> "Notification":
        """Tell of a pointer."""
        return cls(version=pointer.version, digest=pointer.digest)

    def encode(self) -> bytes:
        """Serialize.

        >>> Notification(version=7, digest="ab").encode()
        b'{"digest":"ab","version":7}'
        """
        return canonical({"version": self.version, "digest": self.digest})

    @classmethod
    def decode(cls, payload: bytes) -> "Notification":
        """Parse; refuse anything else that lies in the topic."""
        fields = Fields.parse(payload, "a notification")
        version = fields.integer("version")
        if version < 0:
            raise VersionError(Reason.FORMAT, f"a notification: version must not be negative, got {version}")
        return cls(version=version, digest=fields.text("digest"))


class Notifier(Protocol):
    """Sends notifications; never blocks and never fails a publish."""

    def notify(self, notification: Notification) -> None:
        """Send, sooner or later, or not at all."""
        ...

    def close(self) -> None:
        """Send what is still in flight, within a moment."""
        ...


class NoNotifier:
    """Nobody is told: replicas poll."""

    def notify(self, notification: Notification) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class KafkaNotifier:
    """Sends to one topic; a lost message is counted through `on_lost`, since replicas poll as well."""

    def __init__(self, topic: str, settings: Mapping[str, str | int | bool], on_lost: Callable[[], None]) -> None:
        """`settings` are librdkafka's: brokers and security."""
        self._topic = topic
        self._on_lost = on_lost
        self._producer = Producer(
            {
                "linger.ms": 0,
                "message.timeout.ms": 10_000,
                "queue.buffering.max.messages": 1000,
                **settings,
            }
        )

    def notify(self, notification: Notification) -> None:
        """Enqueue the message; delivery is reported later."""
        try:
            self._producer.produce(self._topic, notification.encode(), key=b"current", on_delivery=self._delivered)
        except (BufferError, KafkaException) as error:
            self._lost(error)
        self._producer.poll(0)

    def close(self) -> None:
        """Wait up to two seconds for what is in flight."""
        left = self._producer.flush(2.0)
        if left:
            logger.warning("notifications not sent count=%d topic=%s", left, self._topic)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._lost(error)

    def _lost(self, error: object) -> None:
        logger.warning("notification lost topic=%s error=%s: replicas will poll", self._topic, error)
        self._on_lost()
