"""What an operator does with dead letters: read, decode for the eye, send to their topic again (`headrace dlq`)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import OffsetSpec

from protos.pipeline_pb2 import EasyRecConfig
from stream.deadletter import DeadLetter, DeadLetterSink
from stream.deadletter_file import FileDeadLetters, read_folder
from stream.deadletter_kafka import KafkaDeadLetters, KafkaMarks, messages_of, read_topic
from stream.deadletter_marks import Action, Entry, FileMarks, Mark, Marks, Status, entries
from stream.decode import Decoder
from stream.encode import encode_rows
from stream.errors import DeadLetterError, SourceError
from stream.kafka_client import KafkaClient, client_settings
from stream.kafka_options import KafkaOptions
from stream.opening import kafka_options, make_decoder

_log = logging.getLogger(__name__)

REPLAYED = "headrace-replayed"
"""Header of a message sent again: the key of its dead letter."""
_PORTION = 500


def open_dead_letters(config: EasyRecConfig, *, writer: str, code_version: str) -> DeadLetterSink:
    """The sink of `stream_config.dead_letters`; without one a folder `dead_letters` in a local model directory."""
    target = config.stream_config.dead_letters
    if target.WhichOneof("target") == "topic":
        return KafkaDeadLetters(kafka_options(config), target.topic, code_version=code_version)
    folder = _folder(config)
    return FileDeadLetters(folder, writer=writer, code_version=code_version, clock_ms=_now_ms)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def read_dead_letters(config: EasyRecConfig) -> Iterator[DeadLetter]:
    """The kept letters, the first of each key."""
    target = config.stream_config.dead_letters
    if target.WhichOneof("target") == "topic":
        return read_topic(kafka_options(config), target.topic)
    return read_folder(_folder(config))


def read_entries(config: EasyRecConfig) -> Iterator[Entry]:
    """The kept letters with what became of them, each once however often it was sent again and refused again."""
    # Marks first: what is marked was there before.
    marked = list(open_marks(config).read())
    return entries(read_dead_letters(config), marked)


def _folder(config: EasyRecConfig) -> Path:
    path = config.stream_config.dead_letters.path or f"{config.model_dir.rstrip('/')}/dead_letters"
    if "://" in path:
        raise SourceError(f"dead letters cannot be kept in {path}: set stream_config.dead_letters to a topic or folder")
    return Path(path)


def decode_letter(letter: DeadLetter, config: EasyRecConfig) -> pa.RecordBatch | str:
    """The rows of a letter's raw bytes, or why they cannot be read."""
    decoder: Decoder = make_decoder(config, None, letter.format)
    decoded = decoder.decode([letter.raw])
    return decoded.failures[0].detail if decoded.failures else decoded.segments[0].rows


def open_marks(config: EasyRecConfig) -> Marks:
    """The marks beside the letters."""
    target = config.stream_config.dead_letters
    if target.WhichOneof("target") == "topic":
        return KafkaMarks(kafka_options(config), target.topic)
    return FileMarks(_folder(config))


def replay_letters(
    found: Iterable[Entry],
    config: EasyRecConfig,
    *,
    clock_ms: Callable[[], int],
    timeout_s: float = 30.0,
) -> int:
    """Send open letters to the topics that they came from, to be judged again; return how many were sent.

    Each is marked before and after: of a replay that was interrupted, the next one first looks which letters had
    reached the topic. Raise DeadLetterError at the first that cannot be sent; those of the same portion are not sent.
    """
    options, marks = kafka_options(config), open_marks(config)
    form = make_decoder(config, None).format
    sent = 0
    waiting = [entry for entry in found if entry.status is Status.OPEN]
    for start in range(0, len(waiting), _PORTION):
        portion = _settled(waiting[start : start + _PORTION], options, marks, clock_ms)
        payloads = {entry.letter.key: _payload(entry.letter, form, options.topics) for entry in portion}
        if not portion:
            continue
        ends = _ends(options, {entry.letter.cursor.topic for entry in portion})
        intents = [_intent(entry.letter, ends, clock_ms()) for entry in portion]
        marks.write(intents)
        places = _Replayer(options, timeout_s).send([(entry.letter, payloads[entry.letter.key]) for entry in portion])
        done = [_replayed(key, place, clock_ms()) for key, place in places.items()]
        marks.write(done)
        sent += len(done)
        if len(done) < len(portion):
            raise DeadLetterError(f"{len(portion) - len(done)} letters were not acknowledged; replay again")
    return sent


def clear_letters(found: Iterable[Entry], config: EasyRecConfig, *, clock_ms: Callable[[], int]) -> int:
    """Mark open letters as done with; return how many."""
    marked = [
        Mark(key=entry.letter.key, action=Action.CLEARED, at_ms=clock_ms())
        for entry in found
        if entry.status is Status.OPEN
    ]
    if marked:
        open_marks(config).write(marked)
    return len(marked)


def _intent(letter: DeadLetter, ends: Mapping[str, Mapping[str, int]], at_ms: int) -> Mark:
    return Mark(key=letter.key, action=Action.SENDING, at_ms=at_ms, ends=ends[letter.cursor.topic])


def _replayed(key: str, place: tuple[str, int, int], at_ms: int) -> Mark:
    return Mark(key=key, action=Action.REPLAYED, at_ms=at_ms, sent_as=place)


def _ends(options: KafkaOptions, topics: Collection[str]) -> dict[str, dict[str, int]]:
    client = KafkaClient(replace(options, topics=tuple(sorted(topics))))
    try:
        keys = [(name, partition) for name, topic in client.describe().items() for partition in topic.partitions]
        ends: dict[str, dict[str, int]] = {topic: {} for topic in topics}
        for (name, partition), end in client.offsets(keys, OffsetSpec.latest()).items():
            ends[name][str(partition)] = end
        return ends
    finally:
        client.close()


def _settled(portion: Sequence[Entry], options: KafkaOptions, marks: Marks, clock_ms: Callable[[], int]) -> list[Entry]:
    """Those that an interrupted replay had not sent; those that it had are marked."""
    unsure = [entry for entry in portion if entry.sending is not None]
    found: dict[str, tuple[str, int, int]] = {}
    for topic in {entry.letter.cursor.topic for entry in unsure}:
        starts: dict[int, int] = {}
        for entry in unsure:
            if entry.letter.cursor.topic == topic and entry.sending is not None:
                for partition, end in entry.sending.ends.items():
                    starts[int(partition)] = min(end, starts.get(int(partition), end))
        for message in messages_of(options, topic, starts):
            key = dict(message.headers() or ()).get(REPLAYED)
            if key:
                found.setdefault(key.decode(), (topic, message.partition(), message.offset()))
    sent = {entry.letter.key: found[entry.letter.key] for entry in unsure if entry.letter.key in found}
    if sent:
        marks.write([_replayed(key, place, clock_ms()) for key, place in sent.items()])
        _log.info("event=replayed_before letters=%s", len(sent))
    return [entry for entry in portion if entry.letter.key not in sent]


def _payload(letter: DeadLetter, form: str, topics: Collection[str]) -> bytes:
    if letter.cursor.topic not in topics:
        raise DeadLetterError(f"{letter.key} did not come from {', '.join(topics)}")
    if letter.format == form:
        return letter.raw
    if letter.format != "ARROW_IPC":
        raise DeadLetterError(f"{letter.key} is {letter.format}, but its topic holds {form}")
    # A single row out of a message of many is kept as an Arrow stream.
    with pa.ipc.open_stream(letter.raw) as stream:
        return encode_rows(stream.read_all().combine_chunks().to_batches()[0], form)[0]


class _Replayer:
    def __init__(self, options: KafkaOptions, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._places: dict[str, tuple[str, int, int]] = {}
        settings = client_settings(options)
        self._producer = Producer(
            {**settings, "enable.idempotence": True, "message.max.bytes": options.fetch_max_bytes, "logger": _log}
        )

    def send(self, letters: Iterable[tuple[DeadLetter, bytes]]) -> dict[str, tuple[str, int, int]]:
        """Where each letter that was acknowledged lies now."""
        for letter, payload in letters:
            self._send(letter, payload)
        self._producer.flush(self._timeout_s)
        self._producer.purge()
        return self._places

    def _send(self, letter: DeadLetter, payload: bytes) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self._places[letter.key] = (message.topic(), message.partition(), message.offset())
            else:
                _log.error("event=not_replayed letter=%s detail=%s", letter.key, error.str())

        while True:
            try:
                self._producer.produce(
                    letter.cursor.topic, payload, headers=[(REPLAYED, letter.key.encode())], on_delivery=delivered
                )
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                # Nothing more is sent; what was acknowledged is found by the next replay.
                _log.error("event=not_replayed letter=%s detail=%s", letter.key, error.args[0].str())
                return
