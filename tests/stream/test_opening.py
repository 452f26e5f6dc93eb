"""Configurations become sources and decoders, or one clear error."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from protos import commit_pb2, data_pb2, stream_pb2
from protos.pipeline_pb2 import EasyRecConfig
from stream import open_source
from stream.cursor import Cursor
from stream.encode import encode_rows
from stream.errors import PositionError, ReplayError, SourceError
from stream.kafka_options import KafkaOptions
from stream.memory import MemorySource
from stream.opening import declared_format, kafka_options, make_decoder


def _config(kind: int, path: str = "") -> EasyRecConfig:
    config = EasyRecConfig(train_input_path=path, eval_input_path="", model_dir="m")
    config.data_config.dataset_type = kind
    return config


def test_open_source_reads_parquet_and_csv(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2], "more": [3, 4]}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("1|x\n2|y\n")
    csv = _config(data_pb2.CsvDataset, str(tmp_path / "a.csv"))
    csv.data_config.delimiter = "|"
    csv.data_config.input_fields.add(input_name="id", input_type=data_pb2.INT64)
    csv.data_config.input_fields.add(input_name="name")
    for config in (csv, _config(data_pb2.ParquetDataset, str(tmp_path / "a.parquet"))):
        with closing(open_source(config, columns=["id"])) as source:
            source.start(source.partitions(), {})
            chunk = source.read(0.0)
        assert chunk is not None
        assert chunk.rows.to_pydict() == {"id": [1, 2]}


def test_open_source_reads_the_topic_of_a_path(embedded_broker) -> None:
    topic = embedded_broker.topic()
    embedded_broker.produce(topic, encode_rows(pa.record_batch({"id": [1]}), "ARROW_IPC"))
    path = f"kafka://{embedded_broker.bootstrap}/{topic}?group.id=g"
    for config, told in ((_config(data_pb2.KafkaDataset, path), None), (_config(data_pb2.ParquetDataset), path)):
        with closing(open_source(config, path=told)) as source:
            assert source.partitions() == ((topic, 0),)


def test_open_source_names_what_it_cannot_read() -> None:
    config = _config(data_pb2.OdpsDataset, "odps://p/tables/t")
    config.data_config.odps_config_file = "/nowhere/odps.ini"
    with pytest.raises(SourceError, match=r"account file /nowhere/odps\.ini cannot be read"):
        open_source(config)
    with pytest.raises(SourceError, match=r"stream_config\.brokers is empty"):
        open_source(_config(data_pb2.KafkaDataset))


def test_kafka_options_take_every_field() -> None:
    config = _config(data_pb2.KafkaDataset)
    config.stream_config.CopyFrom(
        stream_pb2.StreamConfig(
            brokers="a:1,b:2", topic="clicks, views", group_id="g", start=stream_pb2.TIMESTAMP, start_timestamp_ms=5,
            stop_at_end=True, stop_timestamp_ms=9, stop_idle_ms=7, lost_offset=stream_pb2.SKIP_TO_EARLIEST,
            partition_refresh_ms=100, fetch_max_bytes=1000, broker_wait_ms=2500,
        )
    )  # fmt: skip
    assert kafka_options(config) == KafkaOptions(
        brokers="a:1,b:2", topics=("clicks", "views"), group_id="g", start="TIMESTAMP", start_timestamp_ms=5,
        stop_at_end=True, stop_timestamp_ms=9, stop_idle_ms=7, lost_offset="SKIP_TO_EARLIEST", refresh_ms=100,
        fetch_max_bytes=1000, deadline_s=2.5,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"brokers": "", "topics": ("t",)}, "brokers is empty"),
        ({"brokers": "b", "topics": ()}, "topic is empty"),
        ({"brokers": "b", "topics": ("t", "t")}, "names a topic twice"),
        ({"brokers": "b", "topics": ("t",), "start": "TIMESTAMP"}, "needs start_timestamp_ms"),
    ],
)
def test_kafka_options_refuse_what_makes_no_sense(options: dict, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        KafkaOptions(**options)


def test_the_format_follows_the_peer_where_it_is_not_declared() -> None:
    config = _config(data_pb2.KafkaDataset)
    assert declared_format(config) == "ARROW_IPC"
    config.data_config.input_fields_str = "id:INT64"
    assert declared_format(config) == "ARROW_IPC_BATCH"
    config.stream_config.format = stream_pb2.JSON
    assert make_decoder(config, None).format == "JSON"


@pytest.mark.parametrize(
    ("form", "message"),
    [(stream_pb2.ARROW_IPC_BATCH, "needs data_config.input_fields"), (stream_pb2.PROTOBUF, "protobuf_descriptor_file")],
)
def test_decoders_name_what_they_lack(form: int, message: str) -> None:
    config = _config(data_pb2.KafkaDataset)
    config.stream_config.format = form
    with pytest.raises(SourceError, match=message):
        make_decoder(config, None)


@pytest.mark.parametrize("topic_id", ["", "x-1", "AaIsk9vcfBOZIIAOu2/cDQ", "a+b/%2F=="])
def test_cursor_survives_proto_and_text(topic_id: str) -> None:
    topic = "s3://bucket/a/*.parquet"
    cursor = Cursor(topic=topic, partition=3, topic_id=topic_id, leader_epoch=7, offset=1 << 40, row=9)
    assert Cursor.from_proto(cursor.to_proto()) == cursor
    assert Cursor.from_text(cursor.text) == cursor.at(cursor.offset, cursor.row, leader_epoch=-1)
    assert Cursor.from_proto(commit_pb2.Cursor(topic="t")).leader_epoch == -1
    assert cursor.place < cursor.at(cursor.offset, 10).place < cursor.at(cursor.offset + 1).place


@pytest.mark.parametrize("text", ["", "a/b/c", "t//x/0/0", "t//0/-1/0"])
def test_cursor_refuses_other_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"cursor|invalid literal"):
        Cursor.from_text(text)


def test_memory_source_refuses_unknown_partitions_and_late_cursors() -> None:
    source = MemorySource({("m", 0): [pa.record_batch({"id": [1]})]})
    with pytest.raises(SourceError, match="no partition"):
        source.start([("m", 1)], {})
    with pytest.raises(PositionError, match="behind the last"):
        source.start([("m", 0)], {("m", 0): Cursor(topic="m", partition=0, offset=2)})


def test_encode_refuses_formats_and_values_it_cannot_write() -> None:
    with pytest.raises(ReplayError, match="cannot be written as PROTOBUF"):
        encode_rows(pa.record_batch({"id": [1]}), "PROTOBUF")
    with pytest.raises(ReplayError, match="cannot be written as JSON"):
        encode_rows(pa.record_batch({"id": [b"bytes"]}), "JSON")
