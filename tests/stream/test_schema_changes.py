"""Schemas that change while rows are read: the declared rules, for files and messages alike (docs/streams.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from google.protobuf import text_format

from features import create_features
from protos.pipeline_pb2 import EasyRecConfig
from stream import open_source
from stream.encode import encode_rows
from stream.errors import MissingColumnsError
from stream.feed import Cut, Feed, FeedOptions
from tests.conftest import Broker

OLD = pa.record_batch({"user": [7], "price": pa.array([1], pa.int32()), "y": pa.array([1.0], pa.float32())})
NEW = {
    "added": OLD.append_column("more", pa.array(["m"])),
    "reordered": OLD.select(["y", "price", "user"]),
    "widened": pa.record_batch({"user": [2**40], "price": [2.5], "y": [0.0]}),
    "dropped": OLD.drop_columns(["price"]),
}
MESSAGES = ("ARROW_IPC", "JSON")


def _config(kind: str) -> EasyRecConfig:
    config = EasyRecConfig()
    text_format.Parse(
        f"""
        data_config {{ dataset_type: {kind} batch_size: 2 fg_mode: FG_NORMAL label_fields: "y" }}
        stream_config {{ stop_at_end: true dead_letters {{ max_share: 1 }} }}
        feature_configs {{ id_feature {{ feature_name: "user" expression: "user:user" embedding_dim: 4
                                         hash_bucket_size: 100 }} }}
        feature_configs {{ raw_feature {{ feature_name: "price" expression: "item:price" }} }}
        """,
        config,
    )
    return config


@pytest.fixture(params=["parquet", "csv", *MESSAGES])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[list[pa.RecordBatch]], EasyRecConfig]:
    """Writes batches as files or messages, one each, and gives the configuration that reads them."""
    form = request.param

    def write(batches: list[pa.RecordBatch]) -> EasyRecConfig:
        if form in MESSAGES:
            broker: Broker = request.getfixturevalue("embedded_broker")
            config = _config("KafkaDataset")
            text_format.Merge(
                f'stream_config {{ brokers: "{broker.bootstrap}" topic: "{broker.topic()}" format: {form} }}', config
            )
            broker.produce(config.stream_config.topic, [m for rows in batches for m in encode_rows(rows, form)])
            return config
        config = _config("ParquetDataset" if form == "parquet" else "CsvDataset")
        config.train_input_path = str(tmp_path)
        config.data_config.with_header = True
        for number, rows in enumerate(batches):
            table = pa.table(rows)
            if form == "parquet":
                pq.write_table(table, tmp_path / f"{number}.parquet")
            else:
                pyarrow.csv.write_csv(table, tmp_path / f"{number}.csv")
        return config

    write.form = form  # type: ignore[attr-defined]
    return write


def read_cuts(config: EasyRecConfig) -> list[Cut]:
    features = create_features(config)
    options = FeedOptions.from_proto(config, columns=features.columns)
    source = open_source(config, columns=options.all_columns)
    feed = Feed(source, options, validate=features.validate)
    try:
        cuts = []
        while not feed.finished:
            if (cut := feed.next(10.0)) is not None:
                cuts.append(cut)
        return cuts
    finally:
        feed.close()


@pytest.mark.parametrize("change", ["added", "reordered"])
def test_columns_that_are_added_or_stand_elsewhere_change_nothing(written, change: str) -> None:
    cuts = read_cuts(written([OLD, NEW[change]]))
    rows = [row for cut in cuts for row in cut.rows.to_pylist()]
    assert rows == OLD.to_pylist() * 2
    assert not [letter for cut in cuts for letter in cut.dead]


def test_types_widen_from_then_on(written) -> None:
    cuts = read_cuts(written([OLD, NEW["widened"]]))
    rows = [row for cut in cuts for row in cut.rows.to_pylist()]
    letters = [letter for cut in cuts for letter in cut.dead]
    if written.form == "JSON":
        # Which messages decide the types depends on how many come at once; what does not fit is told.
        assert len(rows) + len(letters) == 2
        return
    if written.form in ("parquet", "ARROW_IPC"):
        assert rows == [*OLD.to_pylist(), *NEW["widened"].to_pylist()]
        return
    # Text has no types of its own: those of the first file hold, and 2.5 is no integer.
    assert rows == OLD.to_pylist()
    assert [letter.reason for letter in letters]


def test_declared_types_are_those_from_the_start(written) -> None:
    config = written([OLD, NEW["widened"]])
    config.data_config.input_fields_str = "user:INT64;price:DOUBLE;y:FLOAT"
    cuts = read_cuts(config)
    assert [row for cut in cuts for row in cut.rows.to_pylist()] == [*OLD.to_pylist(), *NEW["widened"].to_pylist()]
    assert {cut.rows.schema.field("price").type for cut in cuts if cut.rows.num_rows} == {pa.float64()}


def test_column_that_is_dropped_is_named(written) -> None:
    config = written([OLD, NEW["dropped"]])
    if written.form not in MESSAGES:
        with pytest.raises(MissingColumnsError, match=r"1\.(parquet|csv) lacks the column price"):
            read_cuts(config)
        return
    cuts = read_cuts(config)
    letters = [letter for cut in cuts for letter in cut.dead]
    rows = [row for cut in cuts for row in cut.rows.to_pylist()]
    if written.form == "JSON":
        # A key that is absent is a null, as everywhere in JSON.
        assert (rows, letters) == ([*OLD.to_pylist(), {**OLD.to_pylist()[0], "price": None}], [])
        return
    assert rows == OLD.to_pylist()
    assert len(letters) == 1 and "price" in letters[0].detail
