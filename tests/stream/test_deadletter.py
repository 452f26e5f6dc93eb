"""Dead letters: every sink keeps them, readers give each once, replay sends them to be judged again."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from protos import data_pb2, stream_pb2
from protos.pipeline_pb2 import EasyRecConfig
from stream import open_source
from stream.cursor import Cursor
from stream.deadletter import DeadLetter, DeadLetterSink, MemoryDeadLetters
from stream.deadletter_file import FileDeadLetters, read_folder
from stream.deadletter_kafka import KafkaDeadLetters, read_topic
from stream.deadletter_marks import Action, FileMarks, Mark, Status, entries
from stream.deadletter_replay import (
    REPLAYED,
    clear_letters,
    decode_letter,
    open_dead_letters,
    open_marks,
    read_dead_letters,
    read_entries,
    replay_letters,
)
from stream.encode import encode_rows
from stream.errors import DeadLetterError, DeadLettersWaitError, SourceError
from stream.kafka_options import KafkaOptions

Kept = tuple[DeadLetterSink, Callable[[], list[DeadLetter]]]


def _letter(
    offset: int, *, raw: bytes = b"\x00\xffraw", reason: str = "undecodable", topic: str = "clicks"
) -> DeadLetter:
    cursor = Cursor(topic=topic, topic_id="id1", partition=2, offset=offset, row=3)
    return DeadLetter(cursor=cursor, reason=reason, detail="détail\nof it", raw=raw, format="JSON")


@pytest.fixture(params=["memory", "file", "embedded", "kafka"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    if request.param == "memory":
        memory = MemoryDeadLetters()
        return memory, lambda: list(memory.read())
    if request.param == "file":
        return FileDeadLetters(tmp_path, writer="rank0", code_version="1"), lambda: list(read_folder(tmp_path))
    broker = request.getfixturevalue(f"{request.param}_broker")
    topic = broker.topic()
    options = KafkaOptions(brokers=broker.bootstrap, topics=("unused",))
    return KafkaDeadLetters(options, topic, code_version="1"), lambda: list(read_topic(options, topic))


def test_sink_keeps_letters_whole_and_in_order(kept: Kept) -> None:
    sink, read = kept
    letters = [_letter(0), _letter(1, raw=b"", reason="empty"), _letter(2, raw=b"x" * 100_000)]
    sink.write(letters[:2])
    sink.write(letters[2:])
    sink.close()
    found = read()
    assert [(x.key, x.reason, x.detail, x.raw, x.format) for x in found] == [
        (x.key, x.reason, x.detail, x.raw, x.format) for x in letters
    ]


def test_sink_written_twice_reads_once(kept: Kept) -> None:
    sink, read = kept
    sink.write([_letter(0), _letter(1)])
    sink.write([_letter(1), _letter(2)])
    sink.close()
    assert [letter.cursor.offset for letter in read()] == [0, 1, 2]


def test_sink_takes_nothing_and_closes_twice(kept: Kept) -> None:
    sink, read = kept
    sink.write([])
    sink.close()
    sink.close()
    assert read() == []


def test_file_sink_drops_a_torn_line_and_goes_on(tmp_path: Path) -> None:
    sink = FileDeadLetters(tmp_path, writer="rank0", code_version="1")
    sink.write([_letter(0), _letter(1)])
    sink.close()
    path = tmp_path / "rank0.dead.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert [letter.cursor.offset for letter in read_folder(tmp_path)] == [0]
    sink = FileDeadLetters(tmp_path, writer="rank0", code_version="1")
    sink.write([_letter(2)])
    sink.close()
    assert [letter.cursor.offset for letter in read_folder(tmp_path)] == [0, 2]


def test_file_sink_goes_on_after_a_disk_that_was_full(tmp_path: Path) -> None:
    """Which had taken a part of the letters, that were then written again."""
    sink = FileDeadLetters(tmp_path, writer="rank0", code_version="1")
    sink.write([_letter(0)])
    letters = [_letter(1, raw=b"x" * 40_000), _letter(2, raw=b"x" * 40_000)]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(DeadLetterError, match="did not take 2 dead letters"):
            sink.write(letters)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [letter.cursor.offset for letter in read_folder(tmp_path)] == [0]
    sink.write(letters)
    sink.close()
    assert [letter.cursor.offset for letter in read_folder(tmp_path)] == [0, 1, 2]


def test_file_sink_survives_a_kill_after_write(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from stream.cursor import Cursor;"
        "from stream.deadletter import DeadLetter; from stream.deadletter_file import FileDeadLetters;"
        "sink = FileDeadLetters(Path(sys.argv[1]), writer='r', code_version='1');"
        "cursor = Cursor(topic='t', partition=0);"
        "sink.write([DeadLetter(cursor=cursor, reason='r', detail='', raw=b'x', format='JSON')]);"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    assert len(list(read_folder(tmp_path))) == 1


def test_file_sink_names_a_broken_line_and_an_unusable_folder(tmp_path: Path) -> None:
    (tmp_path / "r.dead.jsonl").write_text("{}\n")
    with pytest.raises(DeadLetterError, match=r"r\.dead\.jsonl line 1 holds no dead letter"):
        list(read_folder(tmp_path))
    with pytest.raises(DeadLetterError, match="cannot be kept"):
        FileDeadLetters(tmp_path / "r.dead.jsonl" / "below", writer="r", code_version="1")


def test_kafka_sink_marks_letters_for_other_tools(embedded_broker) -> None:
    topic = embedded_broker.topic()
    sink = KafkaDeadLetters(
        KafkaOptions(brokers=embedded_broker.bootstrap, topics=("unused",)), topic, code_version="0.1.0+abc"
    )
    sink.write([_letter(7)])
    consumer = Consumer({"bootstrap.servers": embedded_broker.bootstrap, "group.id": "tools"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(10.0)
    consumer.close()
    assert message is not None
    assert message.key() == b"clicks/id1/2/7/3"
    assert dict(message.headers() or ()) == {
        "topic": b"clicks",
        "partition": b"2",
        "offset": b"7",
        "row": b"3",
        "reason": b"undecodable",
        "detail": "détail\nof it".encode(),
        "code_version": b"0.1.0+abc",
        "format": b"JSON",
    }


def test_kafka_sink_creates_a_missing_topic(kafka_broker) -> None:
    options = KafkaOptions(brokers=kafka_broker.bootstrap, topics=("unused",))
    topic = f"created-{time.time_ns()}"
    sink = KafkaDeadLetters(options, topic, code_version="1")
    sink.write([_letter(0)])
    assert len(list(read_topic(options, topic))) == 1


def test_kafka_sink_says_what_was_not_acknowledged(kafka_broker) -> None:
    topic = kafka_broker.topic(max_message_bytes="1000")
    sink = KafkaDeadLetters(KafkaOptions(brokers=kafka_broker.bootstrap, topics=("u",)), topic, code_version="1")
    with pytest.raises(DeadLetterError, match=f"topic {topic} did not take [12] of 2 dead letters: .*too large"):
        sink.write([_letter(0), _letter(1, raw=b"x" * 5000)])


def test_kafka_sink_waits_for_a_broker_that_is_gone_and_says_so_once(kafka_process, caplog) -> None:
    process = kafka_process()
    options = KafkaOptions(brokers=process.bootstrap, topics=("unused",))
    sink = KafkaDeadLetters(options, "dead", code_version="1", patience_s=0.7)
    _insist(sink, [_letter(0)])
    caplog.clear()
    process.kill()
    letters = [_letter(1), _letter(2)]
    with caplog.at_level("INFO", "stream"):
        for _ in range(4):
            with pytest.raises(DeadLettersWaitError, match="did not take 2 of 2"):
                sink.write(letters)
        process.start()
        _insist(sink, letters)
    told = [record.getMessage() for record in caplog.records if "event=kafka_" in record.getMessage()]
    assert [line.split()[0] for line in told] == ["event=kafka_error", "event=kafka_reached"], told
    assert _messages(process.bootstrap, "dead") == 3, "those that waited were sent once"
    process.kill()
    with pytest.raises(DeadLettersWaitError):
        sink.write([_letter(3)])
    closing_at = time.monotonic()
    sink.close()
    assert time.monotonic() - closing_at < 20, "what waits is dropped, not waited for"


def _insist(sink: KafkaDeadLetters, letters: list[DeadLetter]) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            return sink.write(letters)
        except DeadLettersWaitError:
            assert time.monotonic() < until


def _messages(bootstrap: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "count"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10.0)[1])
    finally:
        consumer.close()


def _config(broker, tmp_path: Path, topic: str, form: int = stream_pb2.JSON) -> EasyRecConfig:
    config = EasyRecConfig(train_input_path="", eval_input_path="", model_dir=str(tmp_path / "model"))
    config.data_config.dataset_type = data_pb2.KafkaDataset
    config.data_config.input_fields.add(input_name="id", input_type=data_pb2.INT64)
    config.stream_config.brokers = broker.bootstrap
    config.stream_config.topic = topic
    config.stream_config.format = form
    config.stream_config.stop_at_end = True
    return config


def test_dead_letters_go_to_the_model_directory_where_nothing_is_said(embedded_broker, tmp_path: Path) -> None:
    config = _config(embedded_broker, tmp_path, "clicks")
    sink = open_dead_letters(config, writer="rank0", code_version="1")
    sink.write([_letter(0), _letter(1, reason="empty")])
    sink.close()
    assert (tmp_path / "model" / "dead_letters" / "rank0.dead.jsonl").exists()
    assert [letter.reason for letter in read_dead_letters(config)][1:] == ["empty"]
    config.model_dir = "s3://bucket/model"
    with pytest.raises(SourceError, match="set stream_config.dead_letters"):
        open_dead_letters(config, writer="rank0", code_version="1")


def test_letters_decode_or_say_why_not(embedded_broker, tmp_path: Path) -> None:
    config = _config(embedded_broker, tmp_path, "clicks")
    rows = decode_letter(_letter(0, raw=b'{"id": 5}'), config)
    assert isinstance(rows, pa.RecordBatch)
    assert rows.to_pylist() == [{"id": 5}]
    assert "not a JSON object" in str(decode_letter(_letter(0, raw=b"nope"), config))


@pytest.mark.parametrize("form", [stream_pb2.JSON, stream_pb2.ARROW_IPC, stream_pb2.ARROW_IPC_BATCH])
def test_replayed_letters_come_back_as_rows(embedded_broker, tmp_path: Path, form: int) -> None:
    topic = embedded_broker.topic()
    config = _config(embedded_broker, tmp_path, topic, form)
    row = pa.record_batch({"id": pa.array([7], pa.int64())})
    cursor = Cursor(topic=topic, partition=0)
    whole = DeadLetter(
        cursor=cursor, reason="r", detail="", raw=encode_rows(row, stream_pb2.MessageFormat.Name(form))[0],
        format=stream_pb2.MessageFormat.Name(form),
    )  # fmt: skip
    single = DeadLetter(
        cursor=cursor.at(1), reason="r", detail="", raw=encode_rows(row, "ARROW_IPC")[0], format="ARROW_IPC"
    )
    with closing(open_dead_letters(config, writer="rank0", code_version="1")) as sink:
        sink.write([whole, single])
    assert replay_letters(read_entries(config), config, clock_ms=lambda: 1) == 2
    with closing(open_source(config)) as source:
        source.start(source.partitions(), {})
        ids: list[int] = []
        until = time.monotonic() + 10
        while not source.ended((topic, 0)) and time.monotonic() < until:
            if (chunk := source.read(0.1)) is not None:
                ids += chunk.rows.column("id").to_pylist()
    assert ids == [7, 7]


def test_replay_refuses_letters_of_other_topics(embedded_broker, tmp_path: Path) -> None:
    topic = embedded_broker.topic()
    with pytest.raises(DeadLetterError, match=f"did not come from {topic}"):
        replay_letters(entries([_letter(0)], []), _config(embedded_broker, tmp_path, topic), clock_ms=lambda: 1)


@pytest.fixture(params=["file", "topic"])
def poisoned(request: pytest.FixtureRequest, embedded_broker, tmp_path: Path) -> EasyRecConfig:
    """Two rows that cannot be mended, as letters in a folder or in a topic."""
    topic = embedded_broker.topic()
    embedded_broker.produce(topic, [b"bad 0", b"bad 1"])
    config = _config(embedded_broker, tmp_path, topic)
    if request.param == "topic":
        config.stream_config.dead_letters.topic = f"{topic}.dead"
    _refuse(config, 0)
    return config


def _refuse(config: EasyRecConfig, first: int) -> int:
    """Do as a trainer: what of the topic cannot be read, from an offset on, becomes a letter; give the topic's end."""
    topic, at = config.stream_config.topic, first
    cursors = {(topic, 0): next(iter(read_dead_letters(config))).cursor.at(first)} if first else {}
    letters: list[DeadLetter] = []
    with closing(open_source(config)) as source:
        source.start(source.partitions(), cursors)
        until = time.monotonic() + 20
        while not source.ended((topic, 0)) and time.monotonic() < until:
            if (chunk := source.read(0.1)) is not None:
                letters += chunk.dead
                at = chunk.end.offset
    with closing(open_dead_letters(config, writer="rank0", code_version="1")) as sink:
        sink.write(letters)
    return at


def _states(config: EasyRecConfig) -> list[tuple[Status, int]]:
    return [(entry.status, entry.attempts) for entry in read_entries(config)]


def _replay(config: EasyRecConfig) -> int:
    return replay_letters(read_entries(config), config, clock_ms=lambda: 7)


def test_a_letter_that_fails_again_is_one_letter_with_two_attempts(poisoned: EasyRecConfig) -> None:
    assert _states(poisoned) == [(Status.OPEN, 1)] * 2
    assert _replay(poisoned) == 2
    assert _states(poisoned) == [(Status.REPLAYED, 1)] * 2
    assert _replay(poisoned) == 0, "a letter is sent once"
    assert _refuse(poisoned, 2) == 4
    assert _states(poisoned) == [(Status.OPEN, 2)] * 2
    assert _replay(poisoned) == 2
    assert _refuse(poisoned, 4) == 6
    assert _states(poisoned) == [(Status.OPEN, 3)] * 2


def test_a_cleared_letter_is_kept_and_never_sent_again(poisoned: EasyRecConfig) -> None:
    first = next(iter(read_entries(poisoned)))
    assert clear_letters([first], poisoned, clock_ms=lambda: 7) == 1
    assert _states(poisoned) == [(Status.CLEARED, 1), (Status.OPEN, 1)]
    assert clear_letters(read_entries(poisoned), poisoned, clock_ms=lambda: 7) == 1
    assert _replay(poisoned) == 0
    assert len(list(read_dead_letters(poisoned))) == 2


def test_a_replay_that_was_killed_sends_only_what_had_not_arrived(poisoned: EasyRecConfig) -> None:
    """It died after the first letter reached the topic, and before it could say so."""
    letters = list(read_dead_letters(poisoned))
    topic = poisoned.stream_config.topic
    marks = open_marks(poisoned)
    marks.write([Mark(key=letter.key, action=Action.SENDING, at_ms=1, ends={"0": 2}) for letter in letters])
    producer = Producer({"bootstrap.servers": poisoned.stream_config.brokers})
    producer.produce(topic, letters[0].raw, headers=[(REPLAYED, letters[0].key.encode())])
    assert producer.flush(10) == 0
    assert _states(poisoned) == [(Status.OPEN, 1)] * 2
    assert _replay(poisoned) == 1
    assert _states(poisoned) == [(Status.REPLAYED, 1)] * 2
    assert _refuse(poisoned, 2) == 4
    assert _states(poisoned) == [(Status.OPEN, 2)] * 2


def test_letters_know_when_they_were_kept(poisoned: EasyRecConfig) -> None:
    now = time.time() * 1000
    assert all(now - 600_000 < letter.at_ms < now + 600_000 for letter in read_dead_letters(poisoned))


def test_marks_survive_a_torn_line_and_name_a_broken_one(tmp_path: Path) -> None:
    marks = FileMarks(tmp_path)
    assert list(marks.read()) == []
    written = [Mark(key=str(number), action=Action.CLEARED, at_ms=number) for number in range(3)]
    marks.write(written[:2])
    path = tmp_path / "marks.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    assert list(marks.read()) == written[:1]
    marks.write(written[2:])
    assert list(marks.read()) == [written[0], written[2]]
    path.write_bytes(b"[]\n")
    with pytest.raises(DeadLetterError, match=r"marks\.jsonl line 1 holds no mark"):
        list(marks.read())
