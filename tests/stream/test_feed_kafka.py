"""The feed on a broker and on Parquet files: the same promises as in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf import text_format

from features import create_features
from protos import pipeline_pb2
from stream import open_source
from stream.accounting import Counts
from stream.feed import Cut, Feed, FeedOptions
from stream.progress import Progress

ROWS = 60


def batches(partition: int) -> list[pa.RecordBatch]:
    """Rows in messages of 7; every tenth has no label."""
    rows = [
        {
            "user": f"u{i % 5}",
            "price": i / 2,
            "y": None if i % 10 == 9 else i % 2,
            "t": 1000 + i,
            "e": f"{partition}-{i}",
        }
        for i in range(ROWS)
    ]
    kinds = pa.schema({"user": pa.string(), "price": pa.float32(), "y": pa.int32(), "t": pa.int64(), "e": pa.string()})
    return [pa.RecordBatch.from_pylist(rows[at : at + 7], schema=kinds) for at in range(0, ROWS, 7)]


def config(path: str, kind: str) -> pipeline_pb2.EasyRecConfig:
    made = pipeline_pb2.EasyRecConfig()
    text_format.Parse(
        f"""
        train_input_path: "{path}"
        data_config {{ dataset_type: {kind} batch_size: 16 fg_mode: FG_NORMAL label_fields: "y" }}
        stream_config {{ event_time_field: "t" event_id_field: "e" allowed_lateness_ms: 100
                         dead_letters {{ max_share: 1 }} }}
        feature_configs {{ id_feature {{ feature_name: "user" expression: "user:user" embedding_dim: 4
                                         hash_bucket_size: 100 }} }}
        feature_configs {{ raw_feature {{ feature_name: "price" expression: "item:price" }} }}
        """,
        made,
    )
    return made


def read(made: pipeline_pb2.EasyRecConfig, progress: Progress, limit: int | None = None) -> list[Cut]:
    """Train up to `limit` cuts, and parse each."""
    features = create_features(made)
    options = FeedOptions.from_proto(made, columns=features.columns)
    source = open_source(made, columns=options.all_columns)
    feed = Feed(source, options, validate=features.validate, progress=progress)
    cuts: list[Cut] = []
    while not feed.finished and (limit is None or len(cuts) < limit):
        cut = feed.next(10.0)
        if cut is not None:
            assert features.parse(cut.rows).size == cut.rows.num_rows if cut.rows.num_rows else True
            progress.advance(cut)
            cuts.append(cut)
    feed.close()
    return cuts


def facts(cut: Cut) -> tuple[object, ...]:
    rows = cut.rows.column("e").to_pylist() if cut.rows.num_rows else []
    places = {key: cursor.place for key, cursor in cut.cursors.items()}
    return rows, cut.counts, places, dict(cut.accounting), [(letter.key, letter.reason) for letter in cut.dead]


def assert_resumes_at_every_cut(made: pipeline_pb2.EasyRecConfig, expected: Counts) -> None:
    progress = Progress()
    whole = read(made, progress)
    assert list(progress.accounting.values()) == [expected]
    for cut_at in range(1, len(whole)):
        stopped = Progress()
        before = read(made, stopped, limit=cut_at)
        after = read(made, Progress.from_proto([stopped.to_proto()]))
        assert [facts(cut) for cut in before + after] == [facts(cut) for cut in whole]


def ipc(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


@pytest.fixture
def topic(embedded_broker: Any) -> str:
    """Two partitions of events, with two messages that are none."""
    name = embedded_broker.topic(2)
    for partition in range(2):
        values = [ipc(batch) for batch in batches(partition)]
        embedded_broker.produce(name, [*values[:3], b"not arrow", *values[3:]], partition)
    return str(name)


def test_the_feed_resumes_at_every_cut_on_a_broker(embedded_broker: Any, topic: str) -> None:
    made = config("", "KafkaDataset")
    made.stream_config.brokers, made.stream_config.topic = embedded_broker.bootstrap, topic
    made.stream_config.stop_at_end = True
    made.stream_config.format = 0
    assert_resumes_at_every_cut(made, Counts(trained=2 * 54, dead_lettered=2 * 6 + 2))


def test_the_feed_resumes_at_every_cut_on_parquet_files(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_batches(batches(0)), tmp_path / "0.parquet", row_group_size=13)
    made = config(f"{tmp_path}/*.parquet", "ParquetDataset")
    assert_resumes_at_every_cut(made, Counts(trained=54, dead_lettered=6))
