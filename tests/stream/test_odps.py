"""Tables of MaxCompute through pyodps, against a stand-in: sessions, resumption, order, errors."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from protos import data_pb2
from protos.pipeline_pb2 import EasyRecConfig
from stream import open_source
from stream.cursor import Cursor, PartitionKey
from stream.errors import PositionError, SourceError, WriteError
from stream.odps import OdpsSource
from stream.odps_table import OdpsOptions, check_type, parse_table_paths, read_account, tried
from stream.writing import write_rows

from .odps_stand_in import StandIn, Table, framed, running, unframed

PATH = "odps://p/tables/clicks"


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with running() as service:
        rows = {f"dt={p}": pa.table({"id": list(range(10 * p, 10 * p + 6))}) for p in range(3)}
        service.tables["clicks"] = Table({"id": "bigint"}, ["dt"], rows)
        yield service


@pytest.fixture
def options(stand_in: StandIn, tmp_path: Path) -> OdpsOptions:
    return OdpsOptions(
        account=read_account(stand_in.account_file(tmp_path)), compression="UNCOMPRESSED", pause=lambda _: None
    )


def _changed(options: OdpsOptions, *, immutable: bool = False, ordered: bool = False) -> OdpsOptions:
    return OdpsOptions(
        account=options.account, compression="UNCOMPRESSED", immutable=immutable, ordered=ordered, pause=lambda _: None
    )


def _read(source: OdpsSource, cursors: dict[PartitionKey, Cursor] | None = None) -> list[int]:
    with closing(source):
        source.start(source.partitions(), cursors or {})
        found = []
        while (chunk := source.read(0.0)) is not None:
            found += chunk.rows.column("id").to_pylist()
        return found


def test_paths_of_tables() -> None:
    first, second = parse_table_paths("odps://p/tables/s.t/dt=1/h=2&dt=2/h=1,odps://q/tables/u/")
    assert (first.project, first.schema, first.table, first.partitions) == ("p", "s", "t", ("dt=1/h=2", "dt=2/h=1"))
    assert (second.project, second.schema, second.table, second.partitions) == ("q", "", "u", ())
    for path in ("odps://p", "odps://p/views/t", "odps://p/tables/t/dt", "/tmp/x", "odps://p/tables/"):
        with pytest.raises(SourceError, match="is no table; write odps://PROJECT"):
            parse_table_paths(path)


def test_whole_table_is_all_its_partitions(options: OdpsOptions) -> None:
    source = OdpsSource(PATH, options, columns=["id", "dt"], rows_per_block=4)
    assert len(source.partitions()) == 3
    assert sorted(_read(source)) == [*range(6), *range(10, 16), *range(20, 26)]


def test_ordered_partitions_are_read_as_listed(options: OdpsOptions) -> None:
    path = f"{PATH}/dt=2&dt=0"
    source = OdpsSource(path, _changed(options, ordered=True), rows_per_block=4)
    assert len(source.partitions()) == 1
    assert _read(source) == [*range(20, 26), *range(6)]


def test_partition_columns_are_typed_as_declared(options: OdpsOptions) -> None:
    source = OdpsSource(f"{PATH}/dt=1", options, columns=["dt"], declared=pa.schema([("dt", pa.int64())]))
    with closing(source):
        source.start(source.partitions(), {})
        chunk = source.read(0.0)
    assert chunk is not None
    assert chunk.rows.column("dt").to_pylist() == [1] * 6


def test_resume_uses_the_session_of_the_cursor(stand_in: StandIn, options: OdpsOptions) -> None:
    source = OdpsSource(f"{PATH}/dt=1", options, rows_per_block=4)
    (key,) = source.partitions()
    source.start([key], {})
    chunk = source.read(0.0)
    assert chunk is not None
    # A new session would see the new rows.
    stand_in.tables["clicks"].rows["dt=1"] = pa.table({"id": [0]})
    assert _read(OdpsSource(f"{PATH}/dt=1", options, rows_per_block=4), {key: chunk.cursor(3)}) == [13, 14, 15]


def test_expired_session_is_refused_unless_the_partition_cannot_change(stand_in: StandIn, options: OdpsOptions) -> None:
    source = OdpsSource(f"{PATH}/dt=1", options, rows_per_block=4)
    (key,) = source.partitions()
    source.start([key], {})
    chunk = source.read(0.0)
    assert chunk is not None
    cursors = {key: chunk.cursor(3)}
    stand_in.downloads.clear()
    with pytest.raises(PositionError, match="is gone .*set data_config.odps_immutable"):
        _read(OdpsSource(f"{PATH}/dt=1", options, rows_per_block=4), cursors)
    immutable = _changed(options, immutable=True)
    assert _read(OdpsSource(f"{PATH}/dt=1", immutable, rows_per_block=4), cursors) == [13, 14, 15]
    stand_in.downloads.clear()
    stand_in.tables["clicks"].rows["dt=1"] = pa.table({"id": [0]})
    with pytest.raises(PositionError, match="has 1 rows, but had 6"):
        _read(OdpsSource(f"{PATH}/dt=1", immutable, rows_per_block=4), cursors)


@pytest.mark.parametrize(("failures", "calls"), [(2, 3), (9, 4)])
def test_calls_are_tried_again(
    options: OdpsOptions, caplog: pytest.LogCaptureFixture, failures: int, calls: int
) -> None:
    from odps.errors import ODPSError

    made = []

    def call() -> str:
        made.append(1)
        if len(made) <= failures:
            raise ODPSError("busy")
        return "done"

    with caplog.at_level(logging.WARNING):
        if failures < 4:
            assert tried(call, "session s of t", options) == "done"
        else:
            with pytest.raises(SourceError, match="session s of t: .*busy"):
                tried(call, "session s of t", options)
    assert len(made) == calls
    assert caplog.text.count("session s of t") == calls - 1
    with pytest.raises(ZeroDivisionError):
        tried(lambda: 1 // 0, "x", options)


def test_opening_a_session_survives_failures(stand_in: StandIn, options: OdpsOptions) -> None:
    stand_in.fail = ["FlowExceeded", "InternalServerError"]
    assert _read(OdpsSource(f"{PATH}/dt=0", options)) == list(range(6))


def test_errors_name_the_table(stand_in: StandIn, options: OdpsOptions, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="table odps://p/tables/nobody"):
        OdpsSource("odps://p/tables/nobody", options)
    with pytest.raises(SourceError, match="is partitioned by dt, not as 'h=1' says"):
        OdpsSource(f"{PATH}/h=1", options)
    source = OdpsSource(f"{PATH}/dt=1", options, columns=["nobody"])
    with pytest.raises(SourceError, match="lacks the column nobody; it has id"):
        source.start(source.partitions(), {})
    stand_in.tables["odd"] = Table({"at": "datetime"}, [], {"": pa.table({"at": [1]})})
    source = OdpsSource("odps://p/tables/odd", options)
    with pytest.raises(SourceError, match="column at is DATETIME"):
        source.start(source.partitions(), {})
    (tmp_path / "short.ini").write_text("access_id=me\n")
    with pytest.raises(SourceError, match="lacks access_key"):
        read_account(str(tmp_path / "short.ini"))
    with pytest.raises(SourceError, match="'GZIP' is none of LZ4_FRAME"):
        OdpsOptions(account=options.account, compression="GZIP")


@pytest.mark.parametrize(
    ("kind", "fine"),
    [
        ("BIGINT", True), ("array<float>", True), ("ARRAY<ARRAY<STRING>>", True), ("map<string,bigint>", True),
        ("MAP<INT, DOUBLE>", True), ("BOOLEAN", False), ("decimal(10,2)", False), ("map<double,string>", False),
        ("array<struct<a:int>>", False), ("TIMESTAMP", False),
    ],
)  # fmt: skip
def test_types_that_features_read(kind: str, fine: bool) -> None:
    path = parse_table_paths(PATH)[0]
    if fine:
        check_type(path, "c", kind)
    else:
        with pytest.raises(SourceError, match="column c is"):
            check_type(path, "c", kind)


def _config(stand_in: StandIn, folder: Path) -> EasyRecConfig:
    config = EasyRecConfig()
    config.data_config.dataset_type = data_pb2.OdpsDataset
    config.data_config.odps_config_file = stand_in.account_file(folder)
    config.data_config.odps_data_compression = "UNCOMPRESSED"
    return config


def test_open_source_and_write_rows_go_round(stand_in: StandIn, tmp_path: Path) -> None:
    config = _config(stand_in, tmp_path)
    batches = [pa.record_batch({"id": [i, i + 1], "score": pa.array([0.5, 1.5], pa.float32())}) for i in (1, 3)]
    target = "odps://p/tables/scores/dt=9"
    assert write_rows(target, batches, config) == 4
    assert "CREATE TABLE" in stand_in.sql[0].upper()
    assert "PARTITIONED BY" in stand_in.sql[0].upper()
    assert write_rows(target, batches, config) == 4
    for kind in (data_pb2.OdpsDataset, data_pb2.OdpsDatasetV1):
        config.data_config.dataset_type = kind
        source = open_source(config, path=target, columns=["id", "score"])
        with closing(source):
            source.start(source.partitions(), {})
            chunk = source.read(0.0)
        assert chunk is not None
        assert chunk.rows.to_pydict() == {"id": [1, 2, 3, 4], "score": [0.5, 1.5, 0.5, 1.5]}


def test_write_refuses_types_and_places_that_a_table_has_not(stand_in: StandIn, tmp_path: Path) -> None:
    config = _config(stand_in, tmp_path)
    with pytest.raises(WriteError, match="cannot hold column b of type bool"):
        write_rows("odps://p/tables/new", [pa.record_batch({"b": [True]})], config)
    with pytest.raises(WriteError, match="names several places"):
        write_rows("odps://p/tables/new/dt=1&dt=2", [pa.record_batch({"b": [1]})], config)


def test_framing_has_the_checksums_of_the_reference() -> None:
    data = bytes(range(256)) * 600
    assert unframed(framed(data)) == data
    broken = bytearray(framed(data))
    broken[-1] ^= 1
    with pytest.raises(ValueError, match="checksum"):
        unframed(bytes(broken))
