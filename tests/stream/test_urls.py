"""Files behind URLs: an S3 server, which says by its tags what was replaced."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from protos import data_pb2
from protos.pipeline_pb2 import EasyRecConfig
from stream import open_source
from stream.broker import free_port
from stream.csv import CsvOptions, open_csv
from stream.errors import FileReplacedError, SourceError, WriteError
from stream.files import list_files
from stream.parquet import open_parquet
from stream.source import Source
from stream.urls import locate
from stream.writing import write_rows
from tests.s3_server import s3_server


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The endpoint of a real server that speaks S3, with the bucket `data`."""
    with s3_server("data") as endpoint:
        yield endpoint


@pytest.fixture
def s3(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names the server."""
    _account(monkeypatch, server)


def _account(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    told = {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "REGION": "us-east-1", "ALLOW_HTTP": "true"}
    for name, value in (told | {"ENDPOINT_URL": endpoint}).items():
        monkeypatch.setenv(f"AWS_{name}", value)
    # fsspec keeps what it once made.
    type(locate("s3://data")[0]).clear_instance_cache()


def _put(url: str, body: bytes) -> None:
    fs, path = locate(url)
    fs.pipe_file(path, body)


def _parquet(ids: list[int]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": ids}), file)
    return file.getvalue()


def _rows(source: Source) -> list[dict[str, object]]:
    with closing(source):
        source.start(source.partitions(), {})
        found: list[dict[str, object]] = []
        while (chunk := source.read(0.0)) is not None:
            found += chunk.rows.to_pylist()
        return found


@pytest.mark.usefixtures("s3")
def test_s3_is_listed_read_and_written() -> None:
    for day in range(2):
        _put(f"s3://data/clicks/dt={day}/part.parquet", _parquet([day, day + 10]))
    _put("s3://data/clicks/_SUCCESS", b"done")
    want = [{"id": 0, "dt": "0"}, {"id": 10, "dt": "0"}, {"id": 1, "dt": "1"}, {"id": 11, "dt": "1"}]
    for path in ("s3://data/clicks", "s3://data/clicks/*/*.parquet"):
        assert _rows(open_parquet(path)) == want
    assert write_rows("s3://data/out/scores.csv", [pa.record_batch({"p": [0.5]})], EasyRecConfig()) == 1
    assert _rows(open_csv("s3://data/out/scores.csv", CsvOptions(with_header=True))) == [{"p": 0.5}]
    assert [file.path for file in list_files("s3://data/out", ".csv")] == ["data/out/scores.csv"]


@pytest.mark.usefixtures("s3")
def test_object_replaced_under_its_name_is_noticed() -> None:
    _put("s3://data/a.parquet", _parquet([1]))
    source = open_parquet("s3://data/a.parquet")
    (key,) = source.partitions()
    source.start([key], {})
    cursor = source.position(key)
    _put("s3://data/a.parquet", _parquet([2]))
    with closing(source), pytest.raises(FileReplacedError, match="was replaced while it was read"):
        source.read(0.0)
    later = open_parquet("s3://data/a.parquet")
    with closing(later), pytest.raises(FileReplacedError, match="not the file that the cursor was made for"):
        later.start([key], {key: cursor})


def test_storage_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _account(monkeypatch, f"http://127.0.0.1:{free_port()}")
    config = EasyRecConfig()
    config.data_config.dataset_type = data_pb2.ParquetDataset
    with pytest.raises(SourceError, match=r"input path 's3://data/a\.parquet' cannot be listed"):
        open_source(config, path="s3://data/a.parquet")
    with pytest.raises(WriteError, match=r"s3://data/b\.parquet"):
        write_rows("s3://data/b.parquet", [pa.record_batch({"p": [0.5]})], config)
