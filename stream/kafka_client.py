"""Connections to Kafka: the consumer, the questions to the brokers, and errors that say what to do."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec, TopicDescription

from stream.cursor import PartitionKey
from stream.errors import AuthenticationError, BrokerUnreachableError, SourceError, TopicMissingError
from stream.kafka_options import KafkaOptions
from stream.security import Settings

_log = logging.getLogger(__name__)

REFUSED = frozenset(
    {
        KafkaError._AUTHENTICATION,  # noqa: SLF001 - librdkafka's own codes have such names
        KafkaError._SSL,  # noqa: SLF001
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
MISSING = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.INCONSISTENT_TOPIC_ID,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    }
)
_MISSING_GRACE_S = 2.0  # a topic that was just created may not be known everywhere


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """What the brokers say about a topic."""

    name: str
    topic_id: str
    partitions: tuple[int, ...]


def client_settings(options: KafkaOptions) -> Settings:
    """What consumer, admin client and producer share. May hold secrets."""
    return {
        "bootstrap.servers": options.brokers,
        "client.id": "headrace",
        "reconnect.backoff.ms": 100,
        "reconnect.backoff.max.ms": 1000,
        # Its log repeats what error_cb tells, with every attempt to connect.
        "log_level": 2,
        **options.security.settings(),
    }


def consumer_settings(options: KafkaOptions) -> Settings:
    """A consumer that joins no group, commits nothing by itself and never moves to another offset by itself."""
    return {
        **client_settings(options),
        # A consumer must have a group id; without ours nothing is ever committed to this one.
        "group.id": options.group_id or "headrace-unused",
        "allow.auto.create.topics": False,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 100,
        "fetch.queue.backoff.ms": 10,
        "fetch.error.backoff.ms": 100,
        "fetch.max.bytes": options.fetch_max_bytes,
        "max.partition.fetch.bytes": min(options.fetch_max_bytes, 16 << 20),
        "message.max.bytes": min(options.fetch_max_bytes, 1_000_000_000),
        # Brokers send at least one whole batch of messages, whatever its size: a lower limit would never get past it.
        "receive.message.max.bytes": 2_147_483_647,
        "queued.max.messages.kbytes": max(options.fetch_max_bytes // 1024, 1024),
    }


class KafkaClient:
    """One consumer and one admin client."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._refused: KafkaError | None = None
        self._unreachable: KafkaError | None = None
        try:
            self.consumer = Consumer(
                {**consumer_settings(options), "error_cb": self._on_error, "on_commit": _on_commit, "logger": _log}
            )
            self._admin = AdminClient({**client_settings(options), "error_cb": self._on_error, "logger": _log})
        except KafkaException as error:
            raise SourceError(f"the Kafka client refuses its settings: {error.args[0].str()}") from None

    def _on_error(self, error: KafkaError) -> None:
        """Remember it; say it once per outage, since librdkafka tells it with every attempt."""
        known = self._refused if error.code() in REFUSED else self._unreachable
        if known is None:
            _log.warning(
                "event=kafka_error brokers=%s code=%s detail=%s",
                self._options.brokers,
                error.name(),
                error.str(),
            )
        if error.code() in REFUSED:
            self._refused = error
        elif known is None or error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001
            # That all are down says less than why one is.
            self._unreachable = error

    def unreachable(self) -> bool:
        """Brokers went away since the last successful question."""
        return self._unreachable is not None

    def reached(self) -> None:
        """Brokers answered."""
        if self._unreachable is not None or self._refused is not None:
            _log.info("event=kafka_reached brokers=%s", self._options.brokers)
        self._unreachable = self._refused = None

    def raise_if_refused(self) -> None:
        """Raise AuthenticationError where a broker refused us since the last successful question."""
        if self._refused is not None:
            raise AuthenticationError(self._refusal(self._refused))

    def _refusal(self, error: KafkaError) -> str:
        protocol = self._options.security.protocol
        return (
            f"brokers {self._options.brokers} refuse access over {protocol}: {error.str()}; see stream_config.security"
        )

    def describe(self) -> dict[str, Topic]:
        """All our topics, waiting for brokers; raise a SourceError that says what is wrong after the deadline."""
        deadline = time.monotonic() + self._options.deadline_s
        missing_until = time.monotonic() + _MISSING_GRACE_S
        last: KafkaError | None = None
        while True:
            try:
                topics = {name: topic_of(future) for name, future in self.ask_topics(1.0).items()}
                self.reached()
                return topics
            except KafkaException as error:
                last = error.args[0]
            self.poll()
            self._raise_if_final(last, time.monotonic() > missing_until)
            if time.monotonic() > deadline:
                why = last if self._unreachable is None else self._unreachable
                # To a plain client, a broker that wants TLS looks like one that is away.
                protocol = self._options.security.protocol
                raise BrokerUnreachableError(
                    f"no broker of {self._options.brokers} answered within {self._options.deadline_s:g} s: {why.str()};"
                    f" check the address, and stream_config.security (security_protocol {protocol})"
                ) from None
            time.sleep(0.05)

    def _raise_if_final(self, error: KafkaError, missing_is_final: bool) -> None:
        self.raise_if_refused()
        if error.code() in REFUSED:
            raise AuthenticationError(self._refusal(error))
        if error.code() in MISSING and missing_is_final:
            names = ", ".join(self._options.topics)
            raise TopicMissingError(
                f"topic {names} does not exist on brokers {self._options.brokers}: create it, or correct the name"
            )

    def ask_topics(self, timeout_s: float) -> Mapping[str, Future[TopicDescription]]:
        """Ask for all our topics without waiting."""
        topics = TopicCollection(list(self._options.topics))
        asked: Mapping[str, Future[TopicDescription]] = self._admin.describe_topics(topics, request_timeout=timeout_s)
        return asked

    def poll(self) -> None:
        """Serve the admin client's callbacks."""
        self._admin.poll(0)

    def offsets(self, keys: Iterable[PartitionKey], spec: OffsetSpec) -> dict[PartitionKey, int]:
        """The offset that `spec` names, per partition; -1 where a timestamp is later than all messages.

        Waits for leaders, which partitions lack while a broker starts or takes over.
        """
        asked = {TopicPartition(*key): spec for key in keys}
        if not asked:
            return {}
        timeout = self._options.deadline_s
        try:
            answers = self._admin.list_offsets(
                asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=timeout
            )
            return {(tp.topic, tp.partition): future.result(timeout + 5).offset for tp, future in answers.items()}
        except KafkaException as error:
            self._raise_if_final(error.args[0], True)
            raise SourceError(
                f"brokers {self._options.brokers} did not tell offsets within {timeout:g} s: {error.args[0].str()}"
            ) from None

    def ends(self, keys: Iterable[PartitionKey]) -> dict[PartitionKey, int]:
        """The offset after the last committed message, per partition. Leaves the consumer without an assignment.

        Tansu answers with the first offset of the last batch, plus one: what a fetch from there brings is counted too.
        """
        ends = self.offsets(keys, OffsetSpec.latest())
        for key, message in self._peek(ends).items():
            if message.error() is None:
                _, high = self.consumer.get_watermark_offsets(TopicPartition(*key), cached=True)
                ends[key] = max(high, message.offset() + 1)
        return ends

    def epochs(self, offsets: Mapping[PartitionKey, int]) -> dict[PartitionKey, int]:
        """The leader epoch under which the message at an offset was written; partitions without such a message lack.

        Leaves the consumer without an assignment.
        """
        found = {}
        for key, message in self._peek(offsets).items():
            if message.error() is None and message.offset() == offsets[key] and message.leader_epoch() is not None:
                found[key] = int(message.leader_epoch())
        return found

    def _peek(self, offsets: Mapping[PartitionKey, int]) -> dict[PartitionKey, Message]:
        """The first message from an offset on, or the event that there is none, per partition."""
        if not offsets:
            return {}
        self.consumer.assign([TopicPartition(*key, offset) for key, offset in offsets.items()])
        found: dict[PartitionKey, Message] = {}
        deadline = time.monotonic() + self._options.deadline_s
        while len(found) < len(offsets):
            message = self.consumer.poll(0.1)
            if message is not None and message.topic() is not None:
                found.setdefault((message.topic(), message.partition()), message)
            if time.monotonic() > deadline:
                missing = sorted(set(offsets) - set(found))
                raise SourceError(f"brokers {self._options.brokers} serve nothing of {missing}")
        self.consumer.unassign()
        return found

    def close(self) -> None:
        """Close the consumer."""
        self.consumer.close()


def topic_of(future: Future[TopicDescription]) -> Topic:
    """Wait for a description; raise KafkaException where there is none."""
    found = future.result(10.0)
    for partition in found.partitions:
        if partition.leader is None:
            _log.warning("event=no_leader topic=%s partition=%s", found.name, partition.id)
    return Topic(
        name=found.name, topic_id=str(found.topic_id), partitions=tuple(sorted(p.id for p in found.partitions))
    )


def _on_commit(error: KafkaError | None, offsets: list[TopicPartition]) -> None:
    if error is not None:
        _log.warning("event=acknowledge_failed code=%s detail=%s", error.name(), error.str())


def create_topics(options: KafkaOptions, *, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
    """Create those of our topics that are missing, with as many replicas as the brokers do by default."""
    admin = AdminClient({**client_settings(options), "logger": _log})
    new = [NewTopic(name, partitions, config=dict(settings or {})) for name in options.topics]
    for name, future in admin.create_topics(new, request_timeout=options.deadline_s).items():
        try:
            future.result(options.deadline_s + 5)
            _log.info("event=topic_created topic=%s partitions=%s", name, partitions)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise SourceError(f"topic {name} cannot be created: {error.args[0].str()}") from None
