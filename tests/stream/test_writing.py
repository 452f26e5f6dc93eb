"""Prediction output: formats, places, and nothing half-written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from protos import data_pb2
from protos.pipeline_pb2 import EasyRecConfig
from stream.errors import WriteError
from stream.writing import check_output, form_of, write_rows

BATCHES = [pa.record_batch({"id": [1, 2], "name": ['a "b"', ""]}), pa.record_batch({"id": [3], "name": [None]})]
BATCHES[1] = BATCHES[1].cast(BATCHES[0].schema)


def test_parquet_and_csv_are_written_whole(tmp_path: Path) -> None:
    for name in ("deep/er/out.parquet", "out.csv"):
        assert write_rows(str(tmp_path / name), iter(BATCHES), EasyRecConfig()) == 3
    assert pq.read_table(tmp_path / "deep/er/out.parquet").to_pydict()["id"] == [1, 2, 3]
    text = (tmp_path / "out.csv").read_text().splitlines()
    assert text == ['"id","name"', '1,"a ""b"""', '2,""', "3,"]
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["out.csv", "out.parquet"]


def test_urls_are_written_too() -> None:
    assert write_rows("memory://scores/out.parquet", iter(BATCHES), EasyRecConfig()) == 3
    with fsspec.open("memory://scores/out.parquet", "rb") as file:
        assert pq.read_table(file).num_rows == 3


def test_format_is_told_by_name_then_data_set() -> None:
    config = EasyRecConfig()
    config.data_config.dataset_type = data_pb2.CsvDataset
    assert form_of("a.parquet", config) == "parquet"
    assert form_of("a", config) == "csv"
    config.data_config.dataset_type = data_pb2.KafkaDataset
    assert form_of("a", config) == "parquet"
    assert form_of("odps://p/tables/t", config) == "odps"


@pytest.mark.parametrize("name", ["a.txt", "s3://bucket/a.csv.gz", "folder.d/a.json"])
def test_an_ending_that_is_not_ours_is_refused_unless_the_format_is_told(name: str, tmp_path: Path) -> None:
    with pytest.raises(WriteError, match=r"name it \.parquet or \.csv, or pass --format"):
        form_of(name, EasyRecConfig())
    assert write_rows(str(tmp_path / "a.txt"), iter(BATCHES), EasyRecConfig(), "csv") == 3
    assert form_of("folder.d/A.CSV", EasyRecConfig()) == "csv"


def test_an_output_is_checked_before_there_are_rows(tmp_path: Path) -> None:
    lists = pa.schema([("vector", pa.list_(pa.float32()))])
    check_output(str(tmp_path / "a.parquet"), lists, EasyRecConfig())
    with pytest.raises(WriteError, match="CSV cannot hold the lists of vector"):
        check_output(str(tmp_path / "a.csv"), lists, EasyRecConfig())
    with pytest.raises(WriteError, match="is a folder"):
        check_output(str(tmp_path), pa.schema([]), EasyRecConfig())


def test_what_was_there_stays_when_writing_fails(tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    write_rows(str(target), iter(BATCHES[:1]), EasyRecConfig())

    def failing() -> Iterator[pa.RecordBatch]:
        yield BATCHES[0]
        raise RuntimeError("the model broke")

    with pytest.raises(RuntimeError, match="the model broke"):
        write_rows(str(target), failing(), EasyRecConfig())
    assert pq.read_table(target).num_rows == 2
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="there are no rows to write"):
        write_rows(str(tmp_path / "a.parquet"), iter([]), EasyRecConfig())
    lists = [pa.record_batch({"id": [1], "vector": [[0.5]]})]
    with pytest.raises(WriteError, match="CSV cannot hold the lists of vector"):
        write_rows(str(tmp_path / "a.csv"), iter(lists), EasyRecConfig())
    with pytest.raises(WriteError, match="is a folder"):
        write_rows(str(tmp_path), iter(BATCHES), EasyRecConfig())
