"""What an operator does with dead letters: read, decode for the eye, send to their topic again (`headrace dlq`)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from protos.pipeline_pb2 import EasyRecConfig
from stream.deadletter import DeadLetter, DeadLetterSink
from stream.deadletter_file import FileDeadLetters, read_folder
from stream.deadletter_kafka import KafkaDeadLetters, read_topic
from stream.decode import Decoder
from stream.encode import encode_rows
from stream.errors import DeadLetterError, SourceError
from stream.kafka_client import client_settings
from stream.kafka_options import KafkaOptions
from stream.opening import kafka_options, make_decoder

_log = logging.getLogger(__name__)

REPLAYED = "headrace-replayed"
"""Header of a message sent again: the key of its dead letter."""


def open_dead_letters(config: EasyRecConfig, *, writer: str, code_version: str) -> DeadLetterSink:
    """The sink of `stream_config.dead_letters`; without one a folder `dead_letters` in a local model directory."""
    target = config.stream_config.dead_letters
    if target.WhichOneof("target") == "topic":
        return KafkaDeadLetters(kafka_options(config), target.topic, code_version=code_version)
    return FileDeadLetters(_folder(config), writer=writer, code_version=code_version)


def read_dead_letters(config: EasyRecConfig) -> Iterator[DeadLetter]:
    """The kept letters, the first of each key."""
    target = config.stream_config.dead_letters
    if target.WhichOneof("target") == "topic":
        return read_topic(kafka_options(config), target.topic)
    return read_folder(_folder(config))


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


def replay_letters(letters: Iterable[DeadLetter], config: EasyRecConfig, *, timeout_s: float = 30.0) -> int:
    """Send letters to the topics that they came from, to be judged again; return how many were acknowledged.

    Raise DeadLetterError at the first that cannot be sent: those before it are sent.
    """
    options = kafka_options(config)
    replayer = _Replayer(options, timeout_s)
    decoder = make_decoder(config, None)
    sent = 0
    for letter in letters:
        if letter.cursor.topic not in options.topics:
            raise DeadLetterError(f"{letter.key} did not come from {', '.join(options.topics)}")
        replayer.send(letter, _payload(letter, decoder.format))
        sent += 1
    replayer.finish()
    return sent


def _payload(letter: DeadLetter, form: str) -> bytes:
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
        self._failed: list[str] = []
        settings = client_settings(options)
        self._producer = Producer(
            {**settings, "enable.idempotence": True, "message.max.bytes": options.fetch_max_bytes, "logger": _log}
        )

    def send(self, letter: DeadLetter, payload: bytes) -> None:
        headers = [(REPLAYED, letter.key.encode())]
        while True:
            try:
                self._producer.produce(letter.cursor.topic, payload, headers=headers, on_delivery=self._delivered)
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise DeadLetterError(f"{letter.key} cannot be sent again: {error.args[0].str()}") from None

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append(error.str())

    def finish(self) -> None:
        try:
            left = self._producer.flush(self._timeout_s)
        except KafkaException as error:
            raise DeadLetterError(f"letters were not sent again: {error.args[0].str()}") from None
        if left or self._failed:
            raise DeadLetterError(f"{left + len(self._failed)} letters were not sent again: {self._failed[:1]}")
