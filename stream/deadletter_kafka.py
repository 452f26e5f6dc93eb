"""Dead letters in a Kafka topic: raw bytes as the value, the cursor as the key, what went wrong in the headers."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from stream.cursor import Cursor
from stream.deadletter import DeadLetter
from stream.deadletter_marks import Mark
from stream.errors import DeadLetterError, DeadLettersWaitError
from stream.kafka_client import REFUSED, KafkaClient, client_settings, consumer_settings
from stream.kafka_options import KafkaOptions
from stream.security import Settings

_log = logging.getLogger(__name__)

_DETAIL_CHARACTERS = 2000
_HEADER_BYTES = 16_384
_MARK = "headrace-mark"


@dataclass(kw_only=True, slots=True)
class _Batch:
    """Letters under way; callbacks of a batch that was given up find nobody who listens."""

    keys: tuple[str, ...]
    left: int
    failed: list[KafkaError] = field(default_factory=list)


class KafkaDeadLetters:
    """A sink whose `write` returns when the brokers have every letter (idempotent producer, acks=all).

    `options` say how to reach the brokers; their topics are not used. The topic is created where it is missing. While
    brokers are away the letters stay with the producer, which tries for as long as it takes; `write` raises
    DeadLettersWaitError every `patience_s`.
    """

    def __init__(
        self,
        options: KafkaOptions,
        topic: str,
        *,
        code_version: str,
        timeout_s: float = 30.0,
        patience_s: float = 5.0,
    ) -> None:
        self._topic = topic
        self._code_version = code_version
        self._patience_s = patience_s
        self._brokers = options.brokers
        self._away = False
        self._refused: KafkaError | None = None
        self._batch: _Batch | None = None
        settings = client_settings(options)
        limit = min(options.fetch_max_bytes + _HEADER_BYTES, 1_000_000_000)
        _create_missing(settings, topic, timeout_s, limit)
        self._settings: Settings = {
            **settings,
            "enable.idempotence": True,
            "acks": "all",
            "message.max.bytes": limit,
            "delivery.timeout.ms": 0,  # for ever: an outage is no reason to lose what a commit waits for
            "linger.ms": 1,
        }
        self._producer = self._open()

    def _open(self) -> Producer:
        return Producer({**self._settings, "error_cb": self._on_error, "logger": _log})

    def write(self, letters: Sequence[DeadLetter]) -> None:
        """Send the letters, unless they are under way already, and wait."""
        keys = tuple(letter.key for letter in letters)
        if self._batch is None or self._batch.keys != keys:
            self._give_up()
            self._batch = _Batch(keys=keys, left=len(letters))
            for letter in letters:
                self._send(letter, self._batch)
        batch = self._batch
        deadline = time.monotonic() + self._patience_s
        while batch.left and self._refused is None and time.monotonic() < deadline:
            self._producer.poll(0.1)
        if batch.failed or self._refused is not None:
            reason = (self._refused or batch.failed[0]).str()
            missing = batch.left + len(batch.failed)
            self._give_up()
            raise DeadLetterError(f"topic {self._topic} did not take {missing} of {len(keys)} dead letters: {reason}")
        if batch.left:
            self._say_away("no answer", "_TIMED_OUT")
            raise DeadLettersWaitError(
                f"brokers {self._brokers} did not take {batch.left} of {len(keys)} dead letters for topic {self._topic}"
            )
        self._batch = None

    def _send(self, letter: DeadLetter, batch: _Batch) -> None:
        def delivered(error: KafkaError | None, _message: Message) -> None:
            batch.left -= 1
            if error is not None:
                batch.failed.append(error)
            else:
                self._reached()

        headers = _headers(letter, self._code_version)
        until = time.monotonic() + self._patience_s
        while True:
            try:
                self._producer.produce(
                    self._topic, letter.raw, key=letter.key.encode(), headers=headers, on_delivery=delivered
                )
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)
                if time.monotonic() > until:
                    self._give_up()
                    raise DeadLettersWaitError(f"the queue of topic {self._topic} does not empty") from None
            except KafkaException as error:
                self._give_up()
                raise DeadLetterError(
                    f"the dead letter of {letter.key} ({len(letter.raw)} bytes) cannot be sent to topic "
                    f"{self._topic}: {error.args[0].str()}"
                ) from None

    def _give_up(self) -> None:
        """Drop what is under way, with its producer, which may be past mending."""
        if self._batch is not None and self._batch.left:
            self._producer.purge()
            self._producer = self._open()
        self._batch, self._refused = None, None

    def _reached(self) -> None:
        if self._away:
            _log.info("event=kafka_reached brokers=%s dead letters for topic %s go on", self._brokers, self._topic)
        self._away = False

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in REFUSED:
            self._refused = error
        self._say_away(error.str(), error.name())

    def _say_away(self, detail: str, code: str) -> None:
        """Say it once per outage: a commit, and in the end training, waits for the letters."""
        if not self._away:
            _log.warning(
                "event=kafka_error brokers=%s code=%s detail=%s; dead letters for topic %s wait",
                self._brokers,
                code,
                detail,
                self._topic,
            )
        self._away = True

    def close(self) -> None:
        """Drop what was not acknowledged, which no commit counts; a second call does nothing."""
        self._give_up()


def read_topic(options: KafkaOptions, topic: str) -> Iterator[DeadLetter]:
    """All letters of a dead letter topic up to its end now, in order, the first of each key."""
    seen: set[str] = set()
    for message in messages_of(options, topic):
        if not _is_mark(message) and (letter := _letter(message)).key not in seen:
            seen.add(letter.key)
            yield letter


class KafkaMarks:
    """Marks in the topic of the letters, under the letters' keys."""

    def __init__(self, options: KafkaOptions, topic: str, *, timeout_s: float = 30.0) -> None:
        self._options = options
        self._topic = topic
        self._timeout_s = timeout_s

    def read(self) -> Iterator[Mark]:
        """All marks up to the topic's end now."""
        for message in messages_of(self._options, self._topic):
            if _is_mark(message):
                yield Mark.from_bytes(message.value() or b"", _place(message))

    def write(self, marks: Sequence[Mark]) -> None:
        """Send and wait."""
        failed: list[str] = []

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                failed.append(error.str())

        producer = Producer({**client_settings(self._options), "enable.idempotence": True, "logger": _log})
        try:
            for mark in marks:
                headers = [(_MARK, mark.action.encode())]
                producer.produce(
                    self._topic, mark.to_bytes(), key=mark.key.encode(), headers=headers, on_delivery=delivered
                )
            left = producer.flush(self._timeout_s)
        except (BufferError, KafkaException) as error:
            raise DeadLetterError(f"topic {self._topic} did not take marks: {error}") from None
        if left or failed:
            producer.purge()
            reason = failed[0] if failed else f"no answer within {self._timeout_s:g} s"
            raise DeadLetterError(f"topic {self._topic} did not take {left + len(failed)} marks: {reason}")


def messages_of(
    options: KafkaOptions, topic: str, starts: Mapping[int, int] = MappingProxyType({})
) -> Iterator[Message]:
    """All messages of a topic from `starts` (default: the earliest) up to its end now, partition by partition."""
    client = KafkaClient(KafkaOptions(brokers=options.brokers, topics=(topic,), security=options.security))
    try:
        partitions = client.describe()[topic].partitions
        ends = client.ends([(topic, partition) for partition in partitions])
    finally:
        client.close()
    consumer = Consumer({**consumer_settings(options), "auto.offset.reset": "earliest", "logger": _log})
    try:
        for (_, partition), end in sorted(ends.items()):
            start = starts.get(partition, 0)
            if end > start:
                yield from _read_partition(consumer, TopicPartition(topic, partition, start), end)
    finally:
        consumer.close()


def _read_partition(consumer: Consumer, start: TopicPartition, end: int) -> Iterator[Message]:
    consumer.assign([start])
    while True:
        message = consumer.poll(10.0)
        if message is None:
            raise DeadLetterError(f"topic {start.topic} partition {start.partition} gave nothing for 10 s")
        if (error := message.error()) is not None:
            if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                return
            raise DeadLetterError(f"topic {start.topic} cannot be read: {error.str()}")
        yield message
        if message.offset() >= end - 1:
            return


def _is_mark(message: Message) -> bool:
    return _MARK in dict(message.headers() or ())


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
    headers = dict(message.headers() or ())
    try:
        cursor = Cursor.from_text((message.key() or b"").decode())
        texts = {name: (headers[name] or b"").decode() for name in ("reason", "detail", "format")}
    except (ValueError, KeyError) as error:
        raise DeadLetterError(f"{_place(message)} holds no dead letter of ours: {error}") from None
    kind, at_ms = message.timestamp()
    known = at_ms if kind != TIMESTAMP_NOT_AVAILABLE else -1
    return DeadLetter(cursor=cursor, raw=message.value() or b"", at_ms=known, **texts)


def _place(message: Message) -> str:
    return f"topic {message.topic()} partition {message.partition()} offset {message.offset()}"


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
