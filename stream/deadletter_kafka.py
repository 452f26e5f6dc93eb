"""Dead letters in a Kafka topic: raw bytes as the value, the cursor as the key, what went wrong in the headers."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from stream.cursor import Cursor
from stream.deadletter import DeadLetter
from stream.errors import DeadLetterError
from stream.kafka_client import KafkaClient, client_settings, consumer_settings
from stream.kafka_options import KafkaOptions
from stream.security import Settings

_log = logging.getLogger(__name__)

_DETAIL_CHARACTERS = 2000
_HEADER_BYTES = 16_384


class KafkaDeadLetters:
    """A sink whose `write` returns when the brokers have every letter (idempotent producer, acks=all).

    `options` say how to reach the brokers; their topics are not used. The topic is created where it is missing.
    """

    def __init__(self, options: KafkaOptions, topic: str, *, code_version: str, timeout_s: float = 30.0) -> None:
        self._topic = topic
        self._code_version = code_version
        self._timeout_s = timeout_s
        self._failed: list[KafkaError] = []
        self._brokers = options.brokers
        self._away = False
        settings = client_settings(options)
        limit = min(options.fetch_max_bytes + _HEADER_BYTES, 1_000_000_000)
        _create_missing(settings, topic, timeout_s, limit)
        self._producer = Producer(
            {
                **settings,
                "enable.idempotence": True,
                "acks": "all",
                "message.max.bytes": limit,
                "delivery.timeout.ms": int(timeout_s * 1000),
                "linger.ms": 1,
                "error_cb": self._on_error,
                "logger": _log,
            }
        )

    def write(self, letters: Sequence[DeadLetter]) -> None:
        """Send the letters and wait; raise DeadLetterError unless all are acknowledged."""
        self._failed.clear()
        for letter in letters:
            self._send(letter)
        left = self._flush()
        if left or self._failed:
            reason = self._failed[0].str() if self._failed else f"no answer within {self._timeout_s:g} s"
            raise DeadLetterError(
                f"topic {self._topic} did not take {left + len(self._failed)} of {len(letters)} dead letters: {reason}"
            )

    def _send(self, letter: DeadLetter) -> None:
        headers = _headers(letter, self._code_version)
        while True:
            try:
                self._producer.produce(
                    self._topic, letter.raw, key=letter.key.encode(), headers=headers, on_delivery=self._delivered
                )
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise DeadLetterError(
                    f"the dead letter of {letter.key} ({len(letter.raw)} bytes) cannot be sent to topic "
                    f"{self._topic}: {error.args[0].str()}"
                ) from None

    def _flush(self) -> int:
        """Wait for all acknowledgements; give how many are missing."""
        try:
            return int(self._producer.flush(self._timeout_s + 1))
        except KafkaException as error:
            raise DeadLetterError(f"topic {self._topic} takes no more dead letters: {error.args[0].str()}") from None

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append(error)
        else:
            self._away = False

    def _on_error(self, error: KafkaError) -> None:
        """Say it once per outage: a commit, and then training, waits for the letters."""
        if not self._away:
            _log.warning(
                "event=kafka_error brokers=%s code=%s detail=%s; dead letters for topic %s wait",
                self._brokers,
                error.name(),
                error.str(),
                self._topic,
            )
        self._away = True

    def close(self) -> None:
        """Wait for what is under way; a second call does nothing."""
        self._flush()


def read_topic(options: KafkaOptions, topic: str) -> Iterator[DeadLetter]:
    """All letters of a dead letter topic up to its end now, in order, the first of each key."""
    client = KafkaClient(KafkaOptions(brokers=options.brokers, topics=(topic,), security=options.security))
    try:
        partitions = client.describe()[topic].partitions
        ends = client.ends([(topic, partition) for partition in partitions])
    finally:
        client.close()
    consumer = Consumer({**consumer_settings(options), "auto.offset.reset": "earliest", "logger": _log})
    seen: set[str] = set()
    try:
        for (_, partition), end in sorted(ends.items()):
            if end:
                yield from _read_partition(consumer, TopicPartition(topic, partition, 0), end, seen)
    finally:
        consumer.close()


def _read_partition(consumer: Consumer, start: TopicPartition, end: int, seen: set[str]) -> Iterator[DeadLetter]:
    consumer.assign([start])
    while True:
        message = consumer.poll(10.0)
        if message is None:
            raise DeadLetterError(f"topic {start.topic} partition {start.partition} gave nothing for 10 s")
        if (error := message.error()) is not None:
            if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                return
            raise DeadLetterError(f"topic {start.topic} cannot be read: {error.str()}")
        letter = _letter(message)
        if letter.key not in seen:
            seen.add(letter.key)
            yield letter
        if message.offset() >= end - 1:
            return


def _headers(letter: DeadLetter, code_version: str) -> list[tuple[str, bytes]]:
    texts = {
        "topic": letter.cursor.topic,
        "partition": str(letter.cursor.partition),
        "offset": str(letter.cursor.offset),
        "row": str(letter.cursor.row),
        "reason": letter.reason,
        "detail": letter.detail[:_DETAIL_CHARACTERS],
        "code_version": code_version,
        "format": letter.format,
    }
    return [(name, text.encode()) for name, text in texts.items()]


def _letter(message: Message) -> DeadLetter:
    place = f"topic {message.topic()} partition {message.partition()} offset {message.offset()}"
    headers = dict(message.headers() or ())
    try:
        cursor = Cursor.from_text((message.key() or b"").decode())
        texts = {name: (headers[name] or b"").decode() for name in ("reason", "detail", "format")}
    except (ValueError, KeyError) as error:
        raise DeadLetterError(f"{place} holds no dead letter of ours: {error}") from None
    return DeadLetter(cursor=cursor, raw=message.value() or b"", **texts)


def _create_missing(settings: Settings, topic: str, timeout_s: float, max_bytes: int) -> None:
    try:
        admin = AdminClient({**settings, "logger": _log})
        if topic in admin.list_topics(timeout=timeout_s).topics:
            return
        # Brokers take 1 MB by default: a letter is as large as the message that could not be read.
        new = NewTopic(topic, 1, config={"max.message.bytes": str(max_bytes)})
        admin.create_topics([new])[topic].result(timeout_s)
        _log.info("event=dead_letter_topic_created topic=%s", topic)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise DeadLetterError(f"dead letter topic {topic} cannot be used: {error.args[0].str()}") from None
