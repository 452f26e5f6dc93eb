"""KafkaSource beyond the contract: start and end positions, what happens to topics and brokers, acknowledging."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition

from stream.cursor import Cursor, PartitionKey
from stream.decode_arrow import ArrowStreamDecoder
from stream.encode import encode_rows
from stream.errors import (
    AuthenticationError,
    BrokerUnreachableError,
    LogTruncatedError,
    OffsetLostError,
    SourceError,
    TopicMissingError,
    TopicRecreatedError,
)
from stream.kafka import KafkaSource
from stream.kafka_client import consumer_settings
from stream.kafka_options import KafkaOptions
from stream.security import SecurityOptions
from stream.source import Chunk


def _message(*ids: int) -> bytes:
    return encode_rows(pa.record_batch({"id": pa.array(ids, pa.int64())}), "ARROW_IPC")[0]


def _source(bootstrap: str, topic: str, ticks: Callable[[], float] = time.monotonic, **options) -> KafkaSource:
    defaults = {"refresh_ms": 200, "deadline_s": 15.0}
    made = KafkaOptions(brokers=bootstrap, topics=(topic,), **{**defaults, **options})
    return KafkaSource(made, ArrowStreamDecoder(), ticks=ticks)


def _ids(chunks: list[Chunk]) -> list[int]:
    return [i for chunk in chunks if chunk.rows.num_columns for i in chunk.rows.column("id").to_pylist()]


def _read(source: KafkaSource, rows: int, deadline_s: float = 20.0) -> list[Chunk]:
    """Chunks until so many rows came."""
    chunks: list[Chunk] = []
    until = time.monotonic() + deadline_s
    while len(_ids(chunks)) < rows:
        assert time.monotonic() < until, f"{len(_ids(chunks))} of {rows} rows came"
        if (chunk := source.read(0.1)) is not None:
            chunks.append(chunk)
    return chunks


def _drain(source: KafkaSource, key: PartitionKey, deadline_s: float = 20.0) -> list[Chunk]:
    chunks: list[Chunk] = []
    until = time.monotonic() + deadline_s
    while not source.ended(key):
        assert time.monotonic() < until, f"the source did not end at {source.position(key)}"
        if (chunk := source.read(0.1)) is not None:
            chunks.append(chunk)
    return chunks


def _until_error(source: KafkaSource, deadline_s: float = 20.0) -> None:
    until = time.monotonic() + deadline_s
    while time.monotonic() < until:
        source.read(0.1)
    raise AssertionError("no error came")


def test_source_starts_at_latest_and_gives_what_comes_after(embedded_broker) -> None:
    topic = embedded_broker.topic()
    embedded_broker.produce(topic, [_message(i) for i in range(5)])
    with closing(_source(embedded_broker.bootstrap, topic, start="LATEST")) as source:
        source.start(source.partitions(), {})
        assert source.position((topic, 0)).offset == 5
        embedded_broker.produce(topic, [_message(7)])
        assert _ids(_read(source, 1)) == [7]


def test_source_starts_at_a_timestamp(kafka_broker) -> None:
    topic = kafka_broker.topic(partitions=2)
    kafka_broker.produce(topic, [_message(i) for i in range(5)], timestamps=[1000 + i for i in range(5)])
    for stamp, offset in ((1003, 3), (0, 0), (9000, 5)):
        with closing(_source(kafka_broker.bootstrap, topic, start="TIMESTAMP", start_timestamp_ms=stamp)) as source:
            source.start(source.partitions(), {})
            assert source.position((topic, 0)).offset == offset
            assert source.position((topic, 1)).offset == 0


@pytest.mark.parametrize("broker", ["embedded_broker", "kafka_broker"])
@pytest.mark.parametrize(("stamp", "ids"), [(0, [0, 1, 2, 3, 4]), (1003, [3, 4]), (1004, [4]), (9000, [])])
def test_source_gives_what_follows_a_timestamp(
    request: pytest.FixtureRequest, broker: str, stamp: int, ids: list[int]
) -> None:
    served = request.getfixturevalue(broker)
    topic = served.topic()
    served.produce(topic, [_message(i) for i in range(5)], timestamps=[1000, 1002, 1001, 1003, 1004])
    options = {"start": "TIMESTAMP", "start_timestamp_ms": stamp, "stop_at_end": True}
    with closing(_source(served.bootstrap, topic, **options)) as source:
        source.start(source.partitions(), {})
        assert _ids(_drain(source, (topic, 0))) == ids
        assert source.position((topic, 0)).offset == 5


@pytest.mark.parametrize("broker", ["embedded_broker", "kafka_broker"])
def test_source_stops_at_the_end_seen_at_start(request: pytest.FixtureRequest, broker: str) -> None:
    served = request.getfixturevalue(broker)
    topic = served.topic(partitions=2)
    served.produce(topic, [_message(i) for i in range(5)])
    with closing(_source(served.bootstrap, topic, stop_at_end=True)) as source:
        source.start(source.partitions(), {})
        assert source.ended((topic, 1))
        served.produce(topic, [_message(i) for i in range(5, 9)])
        assert _ids(_drain(source, (topic, 0))) == [0, 1, 2, 3, 4]
        assert source.read(0.3) is None


def test_source_stops_at_the_first_message_of_the_stop_time(kafka_broker) -> None:
    topic = kafka_broker.topic()
    kafka_broker.produce(topic, [_message(i) for i in range(6)], timestamps=[1000, 1001, 1009, 1002, 1010, 1003])
    with closing(_source(kafka_broker.bootstrap, topic, stop_timestamp_ms=1005)) as source:
        source.start(source.partitions(), {})
        assert _ids(_drain(source, (topic, 0))) == [0, 1]
        assert source.position((topic, 0)).offset == 2


def test_source_ends_at_a_stop_time_in_the_past_without_such_a_message(kafka_broker) -> None:
    topic = kafka_broker.topic()
    kafka_broker.produce(topic, [_message(1)], timestamps=[1000])
    with closing(_source(kafka_broker.bootstrap, topic, stop_timestamp_ms=5000)) as source:
        source.start(source.partitions(), {})
        assert _ids(_drain(source, (topic, 0))) == [1]


def test_source_ends_after_silence_by_the_given_clock(embedded_broker) -> None:
    now = [1000.0]
    topic = embedded_broker.topic()
    embedded_broker.produce(topic, [_message(1)])
    with closing(_source(embedded_broker.bootstrap, topic, ticks=lambda: now[0], stop_idle_ms=5000)) as source:
        source.start(source.partitions(), {})
        _read(source, 1)
        for _ in range(10):
            source.read(0.05)
        assert not source.ended((topic, 0))
        now[0] += 4.9
        source.read(0.05)
        assert not source.ended((topic, 0))
        now[0] += 0.2
        assert source.ended((topic, 0))


def test_source_skips_aborted_transactions_and_ends_behind_their_markers(kafka_broker) -> None:
    topic = kafka_broker.topic()
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(20)
    for commit in (True, False, True, False):
        producer.begin_transaction()
        for i in range(3):
            producer.produce(topic, _message(i if commit else 100 + i))
        producer.flush()
        producer.commit_transaction() if commit else producer.abort_transaction()
    with closing(_source(kafka_broker.bootstrap, topic, stop_at_end=True)) as source:
        source.start(source.partitions(), {})
        chunks = _drain(source, (topic, 0))
        assert _ids(chunks) == [0, 1, 2, 0, 1, 2]
        assert source.lag() == {(topic, 0): 0}
        assert source.position((topic, 0)).offset == 16


def test_source_says_whether_the_time_is_of_appending(kafka_broker) -> None:
    created = kafka_broker.topic()
    appended = kafka_broker.topic(message_timestamp_type="LogAppendTime")
    found = []
    for topic in (created, appended):
        kafka_broker.produce(topic, [_message(1)], timestamps=[1000])
        with closing(_source(kafka_broker.bootstrap, topic)) as source:
            source.start(source.partitions(), {})
            (chunk,) = _read(source, 1)
        found.append((chunk.append_time, chunk.broker_time_ms[0] == 1000))
    assert found == [(False, True), (True, False)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_source_reads_compressed_messages(embedded_broker, codec: str) -> None:
    topic = embedded_broker.topic()
    producer = Producer({"bootstrap.servers": embedded_broker.bootstrap, "compression.type": codec, "linger.ms": 50})
    for i in range(20):
        producer.produce(topic, _message(*range(i, i + 50)))
    assert producer.flush(20) == 0
    with closing(_source(embedded_broker.bootstrap, topic)) as source:
        source.start(source.partitions(), {})
        assert _ids(_read(source, 1000)) == [i + j for i in range(20) for j in range(50)]


def test_source_keeps_bad_messages_as_dead_letters_and_goes_on(embedded_broker) -> None:
    topic = embedded_broker.topic()
    embedded_broker.produce(topic, [_message(1), b"garbage", None, _message(2), b""])
    with closing(_source(embedded_broker.bootstrap, topic, stop_at_end=True)) as source:
        source.start(source.partitions(), {})
        chunks = _drain(source, (topic, 0))
        dead = [letter for chunk in chunks for letter in chunk.dead]
        assert _ids(chunks) == [1, 2]
        assert [(letter.cursor.offset, letter.reason, letter.raw) for letter in dead] == [
            (1, "undecodable", b"garbage"),
            (2, "empty", b""),
            (4, "empty", b""),
        ]
        assert source.position((topic, 0)).offset == 5


@pytest.mark.parametrize("fetch_max_bytes", [1 << 16, 52_428_800])
def test_source_reads_a_message_of_ten_megabytes(kafka_broker, fetch_max_bytes: int) -> None:
    topic = kafka_broker.topic(max_message_bytes="12000000")
    rows = list(range(1_250_000))
    kafka_broker.produce(topic, [_message(1), _message(*rows), _message(2)])
    with closing(_source(kafka_broker.bootstrap, topic, fetch_max_bytes=fetch_max_bytes)) as source:
        source.start(source.partitions(), {})
        ids = _ids(_read(source, len(rows) + 2))
    assert ids == [1, *rows, 2]


def test_source_of_a_missing_topic_names_topic_and_brokers(embedded_broker) -> None:
    with pytest.raises(TopicMissingError, match=f"never-made.*{embedded_broker.bootstrap}"):
        _source(embedded_broker.bootstrap, "never-made")


def test_source_without_brokers_fails_after_the_deadline() -> None:
    began = time.monotonic()
    with pytest.raises(BrokerUnreachableError, match=r"127\.0\.0\.1:1 answered within 1 s"):
        _source("127.0.0.1:1", "clicks", deadline_s=1.0)
    assert time.monotonic() - began < 10


def test_source_refuses_a_cursor_behind_the_end_of_the_log(embedded_broker) -> None:
    topic = embedded_broker.topic()
    embedded_broker.produce(topic, [_message(1)])
    with (
        closing(_source(embedded_broker.bootstrap, topic)) as source,
        pytest.raises(LogTruncatedError, match="ends at 1, before the cursor at 5"),
    ):
        source.start([(topic, 0)], {(topic, 0): Cursor(topic=topic, partition=0, offset=5)})


def test_source_refuses_the_cursor_of_a_topic_created_anew(kafka_broker) -> None:
    topic = kafka_broker.topic()
    kafka_broker.produce(topic, [_message(i) for i in range(3)])
    with closing(_source(kafka_broker.bootstrap, topic)) as source:
        source.start(source.partitions(), {})
        cursor = _read(source, 3)[-1].end
    _recreate(kafka_broker, topic)
    kafka_broker.produce(topic, [_message(i) for i in range(5)])
    with (
        closing(_source(kafka_broker.bootstrap, topic)) as source,
        pytest.raises(TopicRecreatedError, match=f"topic {topic} was deleted and created anew"),
    ):
        source.start([(topic, 0)], {(topic, 0): cursor})


def test_source_notices_while_reading_that_the_topic_was_created_anew(kafka_broker) -> None:
    topic = kafka_broker.topic()
    kafka_broker.produce(topic, [_message(1)])
    with closing(_source(kafka_broker.bootstrap, topic)) as source:
        source.start(source.partitions(), {})
        _read(source, 1)
        _recreate(kafka_broker, topic)
        kafka_broker.produce(topic, [_message(2), _message(3)])
        with pytest.raises((TopicRecreatedError, TopicMissingError), match=topic):
            _until_error(source)


def test_source_notices_while_reading_that_the_topic_is_gone(kafka_broker) -> None:
    topic = kafka_broker.topic()
    kafka_broker.produce(topic, [_message(1)])
    with closing(_source(kafka_broker.bootstrap, topic)) as source:
        source.start(source.partitions(), {})
        _read(source, 1)
        kafka_broker.delete(topic)
        with pytest.raises(TopicMissingError, match=topic):
            _until_error(source)


def _recreate(broker, topic: str) -> None:
    broker.delete(topic)
    for _ in range(50):
        try:
            broker.create(topic)
            return
        except Exception:  # noqa: BLE001 - deletion is asynchronous
            time.sleep(0.1)
    raise AssertionError("the topic could not be created again")


def test_source_fails_or_skips_where_retention_removed_messages(kafka_broker) -> None:
    topic = kafka_broker.topic()
    kafka_broker.produce(topic, [_message(i) for i in range(6)])
    key, cursor = (topic, 0), Cursor(topic=topic, partition=0, offset=1)
    kafka_broker.admin.delete_records([TopicPartition(topic, 0, 4)])[TopicPartition(topic, 0)].result(15)
    with (
        closing(_source(kafka_broker.bootstrap, topic)) as source,
        pytest.raises(OffsetLostError, match=r"removed 3 messages \(1 to 3\)"),
    ):
        source.start([key], {key: cursor})
    with closing(_source(kafka_broker.bootstrap, topic, lost_offset="SKIP_TO_EARLIEST")) as source:
        source.start([key], {key: cursor})
        assert source.skipped() == {key: 3}
        assert _ids(_read(source, 2)) == [4, 5]


@pytest.mark.parametrize("policy", ["FAIL", "SKIP_TO_EARLIEST"])
def test_source_meets_retention_while_it_stalls(kafka_broker, policy: str) -> None:
    topic = kafka_broker.topic()
    payload = _message(*range(2000))
    kafka_broker.produce(topic, [payload] * 300)
    options = {"lost_offset": policy, "fetch_max_bytes": 1 << 20, "rows_per_read": 2000}
    with closing(_source(kafka_broker.bootstrap, topic, **options)) as source:
        source.start(source.partitions(), {})
        before = _read(source, 2000)
        kafka_broker.admin.delete_records([TopicPartition(topic, 0, 290)])[TopicPartition(topic, 0)].result(15)
        if policy == "FAIL":
            with pytest.raises(OffsetLostError, match="retention removed"):
                _until_error(source)
            return
        chunks = before
        while chunks[-1].end.offset != 300:
            chunks += _read(source, 2000)
        (skipped,) = source.skipped().values()
        assert len(_ids(chunks)) == 2000 * (300 - skipped)
        assert skipped > 100


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def test_source_survives_a_stalled_reader_without_losing_or_hoarding(kafka_broker) -> None:
    topic = kafka_broker.topic()
    blob = os.urandom(100_000)
    rows = [pa.record_batch({"id": pa.array([i], pa.int64()), "blob": [blob]}) for i in range(1000)]
    kafka_broker.produce(topic, [encode_rows(row, "ARROW_IPC")[0] for row in rows])
    del rows
    with closing(_source(kafka_broker.bootstrap, topic, fetch_max_bytes=4 << 20)) as source:
        source.start(source.partitions(), {})
        before = _resident_mb()
        ids = _ids(_read(source, 1))
        time.sleep(4.0)
        assert _resident_mb() - before < 30, "100 MB wait in the topic: they must stay there"
        while len(ids) < 1000:
            ids += _ids(_read(source, 1))
    assert ids == list(range(1000))


@pytest.mark.parametrize("broker", ["embedded_broker", "kafka_broker"])
def test_source_loses_nothing_however_partitions_are_held(request: pytest.FixtureRequest, broker: str) -> None:
    served = request.getfixturevalue(broker)
    topic = served.topic(partitions=3)
    for partition in range(3):
        served.produce(topic, [_message(*range(4 * i, 4 * i + 4)) for i in range(3000)], partition)
    randomly = random.Random(7)
    found: dict[PartitionKey, list[int]] = {}
    with closing(_source(served.bootstrap, topic, stop_at_end=True, rows_per_read=500)) as source:
        keys = source.partitions()
        source.start(keys, {})
        until = time.monotonic() + 60
        while not all(source.ended(key) for key in keys):
            assert time.monotonic() < until, {key: len(ids) for key, ids in found.items()}
            held = {key for key in keys if randomly.random() < 0.4}
            source.hold(held)
            if (chunk := source.read(0.02)) is not None:
                assert chunk.key not in held
                found.setdefault(chunk.key, []).extend(_ids([chunk]))
    assert found == {key: list(range(12_000)) for key in keys}


def test_source_has_no_poll_deadline(embedded_broker) -> None:
    topic = embedded_broker.topic()
    options = KafkaOptions(brokers=embedded_broker.bootstrap, topics=(topic,), group_id="stalled")
    limits = {"max.poll.interval.ms": 1000, "session.timeout.ms": 1000}
    consumer = Consumer({**consumer_settings(options), **limits})
    consumer.assign([TopicPartition(topic, 0, 0)])
    time.sleep(3.0)
    embedded_broker.produce(topic, [_message(i) for i in range(3)])
    events = [message for _ in range(30) if (message := consumer.poll(0.1)) is not None]
    consumer.close()
    errors = {message.error().code() for message in events if message.error() is not None}
    assert errors <= {KafkaError._PARTITION_EOF}
    assert [message.offset() for message in events if message.error() is None] == [0, 1, 2]


def test_source_that_speaks_tls_to_a_broker_that_does_not_says_so(kafka_broker) -> None:
    with pytest.raises((AuthenticationError, BrokerUnreachableError), match=r"(?i)ssl"):
        _source(kafka_broker.bootstrap, "clicks", security=SecurityOptions(protocol="SSL"), deadline_s=5.0)


def test_source_goes_on_when_a_killed_broker_comes_back(kafka_process) -> None:
    process = kafka_process()
    broker = process.broker()
    broker.create("clicks")
    broker.produce("clicks", [_message(i) for i in range(50)])
    with closing(_source(process.bootstrap, "clicks", stop_idle_ms=3000)) as source:
        source.start(source.partitions(), {})
        ids = _ids(_read(source, 50))
        process.kill()
        until = time.monotonic() + 5.0
        while time.monotonic() < until:
            assert source.read(0.2) is None
        assert not source.ended(("clicks", 0)), "an absent broker is not silence"
        process.start()
        broker.produce("clicks", [_message(i) for i in range(50, 100)])
        ids += _ids(_read(source, 50, deadline_s=60.0))
    assert ids == list(range(100))


def test_source_waits_for_a_leader_at_the_start(kafka_process) -> None:
    # A broker whose heartbeats come too seldom is fenced in between: its partitions have no leader then.
    process = kafka_process("broker.session.timeout.ms=2000", "broker.heartbeat.interval.ms=5000")
    broker = process.broker()
    while True:
        try:
            broker.create("clicks")
            break
        except KafkaException:
            time.sleep(0.1)
    broker.produce("clicks", [_message(1)])
    while broker.admin.list_topics("clicks", timeout=10).topics["clicks"].partitions[0].leader != -1:
        time.sleep(0.05)
    with closing(_source(process.bootstrap, "clicks", deadline_s=60.0)) as source:
        source.start(source.partitions(), {})
        assert _ids(_read(source, 1, deadline_s=60.0)) == [1]


def test_source_refuses_the_cursor_of_a_log_that_was_cut_and_written_anew(kafka_process) -> None:
    process = kafka_process()
    broker = process.broker()
    broker.create("clicks")
    for i in range(10):
        broker.produce("clicks", [_message(i)])
    key = ("clicks", 0)
    with closing(_source(process.bootstrap, "clicks")) as source:
        source.start([key], {})
        whole = _read(source, 10)
    early, late = whole[0].cursor(3), whole[-1].end
    assert early.leader_epoch == late.leader_epoch >= 0
    process.kill()
    log = process.folder / "data" / "log" / "clicks-0" / "00000000000000000000.log"
    os.truncate(log, log.stat().st_size // 2)
    process.start()
    process.broker().produce("clicks", [_message(i) for i in range(100, 120)])
    with closing(_source(process.bootstrap, "clicks", stop_at_end=True)) as source:
        source.start([key], {key: early})
        assert _ids(_drain(source, key)) == [3, 4, *range(100, 120)]
        assert source.position(key).leader_epoch > early.leader_epoch
    with closing(_source(process.bootstrap, "clicks")) as source, pytest.raises(LogTruncatedError, match="clicks"):
        source.start([key], {key: late})
        _until_error(source)


def test_source_is_told_clearly_when_it_is_refused(kafka_process, tmp_path) -> None:
    port = kafka_process.free_port()
    users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_reader="right";'
    process = kafka_process(
        f"listeners=PLAINTEXT://127.0.0.1:{{port}},SASL://127.0.0.1:{port},CONTROLLER://127.0.0.1:{{controller}}",
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},SASL://127.0.0.1:{port}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        f"listener.name.sasl.plain.sasl.jaas.config={users}",
    )
    broker = process.broker()
    broker.create("clicks")
    (tmp_path / "user").write_text("reader\n")
    (tmp_path / "right").write_text("right\n")
    (tmp_path / "wrong").write_text("sesame\n")

    def security(password: str) -> SecurityOptions:
        return SecurityOptions(
            protocol="SASL_PLAINTEXT",
            mechanism="PLAIN",
            username_file=str(tmp_path / "user"),
            password_file=str(tmp_path / password),
        )

    bootstrap = f"127.0.0.1:{port}"
    with pytest.raises(AuthenticationError, match=f"{bootstrap} refuse access") as caught:
        _source(bootstrap, "clicks", security=security("wrong"))
    assert "sesame" not in str(caught.value)
    with closing(_source(bootstrap, "clicks", security=security("right"))) as source:
        assert source.partitions() == (("clicks", 0),)


@pytest.mark.parametrize("broker", ["embedded_broker", "kafka_broker"])
def test_acknowledged_offsets_are_seen_by_lag_tools(request: pytest.FixtureRequest, broker: str) -> None:
    served = request.getfixturevalue(broker)
    topic = served.topic()
    served.produce(topic, [_message(i) for i in range(5)])
    group = f"{topic}-group"
    with closing(_source(served.bootstrap, topic, group_id=group)) as source:
        source.start(source.partitions(), {})
        _read(source, 5)
        source.acknowledge({(topic, 0): source.position((topic, 0)).at(3)})
        for _ in range(100):
            source.read(0.1)
            asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
            answer = served.admin.list_consumer_group_offsets([asked])[group].result(15)
            if answer.topic_partitions[0].offset == 3:
                return
    raise AssertionError("the group's offset was not committed")


def test_source_without_a_group_acknowledges_nothing(embedded_broker) -> None:
    topic = embedded_broker.topic()
    with closing(_source(embedded_broker.bootstrap, topic)) as source:
        source.start(source.partitions(), {})
        source.acknowledge({(topic, 0): source.position((topic, 0))})


def test_source_refuses_unknown_partitions(embedded_broker) -> None:
    topic = embedded_broker.topic()
    with (
        closing(_source(embedded_broker.bootstrap, topic)) as source,
        pytest.raises(SourceError, match=f"no partition {topic}/7"),
    ):
        source.start([(topic, 7)], {})
