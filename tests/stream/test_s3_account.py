"""Whose account s3:// is: one rule for the model directory and for all that is read and written beside it."""

import io
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkpointer.errors import StoreError
from checkpointer.open_store import StoreOptions, open_store
from features import create_features
from features.sampling.listing import list_path
from protos.load import parse_config
from protos.pipeline_pb2 import EasyRecConfig
from protos.s3_account import S3Account, data_account
from publisher.contract import Contract
from stream import open_source
from stream.errors import SourceError
from stream.files import list_files
from stream.opening import odps_options
from stream.replay_order import unordered_events
from stream.urls import locate
from stream.writing import write_rows
from tests.s3_server import s3_server

SECRET = "correct-horse-battery"
CONFIG = """
train_input_path: "s3://data/rows.parquet"
model_dir: "s3://models/m"
data_config {{ dataset_type: ParquetDataset fg_mode: FG_NORMAL label_fields: "click" {data} }}
checkpoint_config {{ {model} }}
feature_configs {{ id_feature {{ feature_name: "color" expression: "item:color" embedding_dim: 4
  vocab_file: "s3://data/words.txt" default_bucketize_value: 0 }} }}
model_config {{
  feature_groups {{ group_name: "deep" group_type: DEEP feature_names: "color" }}
  multi_tower {{ towers {{ input: "deep" mlp {{ hidden_units: 4 }} }} final {{ hidden_units: 4 }} }}
  losses {{ binary_cross_entropy {{}} }}
}}
"""


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server("data") as endpoint:
        yield endpoint


def account(folder: Path, endpoint: str, name: str = "data") -> str:
    """The message of an account whose secrets are in a file."""
    path = folder / f"{name}-account"
    path.write_text(f"{name}-key\n{SECRET}-{name}\n")
    return f's3 {{ endpoint: "{endpoint}" credentials_file: "{path}" allow_http: true }}'


def config(*, data: str = "", model: str = "") -> EasyRecConfig:
    return parse_config(CONFIG.format(data=data, model=model), json=False)


def put(told: EasyRecConfig, url: str, body: bytes) -> None:
    fs, path = locate(url, data_account(told))
    fs.pipe_file(path, body)


@pytest.mark.parametrize("where", ["data", "model"])
def test_an_account_in_a_file_reads_and_writes_everything(where: str, server: str, tmp_path: Path) -> None:
    told = config(**{where: account(tmp_path, server)})
    body = io.BytesIO()
    pq.write_table(pa.table({"color": ["red"], "click": [1.0]}), body)
    put(told, "s3://data/rows.parquet", body.getvalue())
    put(told, "s3://data/words.txt", b"other\nred\n")
    put(told, "s3://data/items.tsv", b"id:int64\tweight:float\tattrs:string\n1\t1.0\tx\n")

    with closing(open_source(told)) as source:
        source.start(source.partitions(), {})
        chunk = source.read(0.0)
    assert chunk is not None and chunk.rows.to_pylist() == [{"color": "red", "click": 1.0}]
    (made,) = create_features(told).parse(chunk.rows).sparse_features.values()
    assert made.values().tolist() == [1]
    assert Contract.of(told).assets == (("s3://data/words.txt", b"other\nred\n"),)
    items = list_path(
        "s3://data/items.tsv", delimiter="\t", odps=lambda: odps_options(told.data_config), s3=data_account(told)
    )
    assert items.lines(columns=3, weight=1)
    assert [rows.num_rows for rows in unordered_events("s3://data/rows.parquet", data_account(told))] == [1]
    assert write_rows("s3://data/out.parquet", [pa.record_batch({"p": [0.5]})], told) == 1
    (written,) = list_files("s3://data/out.parquet", ".parquet", data_account(told))
    assert SECRET not in repr(written)


@dataclass
class Refusing:
    """A server that refuses everybody, and notes who they said they are."""

    endpoint: str = ""
    told: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def refusing() -> Iterator[Refusing]:
    noted = Refusing()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            who = self.headers["Authorization"].partition("Credential=")[2].partition("/")[0]
            noted.told.append((self.path.split("?")[0], who))
            body = f"<Error><Code>InvalidAccessKeyId</Code><AWSAccessKeyId>{who}</AWSAccessKeyId></Error>".encode()
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = answer

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    noted.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield noted
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_each_place_is_asked_with_its_own_account_and_no_secret_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with refusing() as server, caplog.at_level(logging.DEBUG):
        told = config(data=account(tmp_path, server.endpoint), model=account(tmp_path, server.endpoint, "model"))
        with pytest.raises(SourceError, match=r"input path 's3://data/rows\.parquet' cannot be listed") as data:
            open_source(told)
        store = open_store(told.model_dir, StoreOptions.from_proto(told.checkpoint_config.s3))
        with pytest.raises(StoreError) as model:
            store.get("log/1.json")
    assert {who for path, who in server.told if path.startswith("/data")} == {"data-key"}
    assert {who for path, who in server.told if path.startswith("/models")} == {"model-key"}
    assert SECRET not in f"{data.value} {model.value} {caplog.text} {told}"
    assert "\n" not in str(data.value)


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "cannot be read: No such file"), (SECRET.encode(), "must hold two lines"), (b"\xff\xfe", "it is no text")],
)
def test_a_file_that_holds_no_account_is_named_and_not_repeated(
    content: bytes | None, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "account"
    if content is not None:
        path.write_bytes(content)
    told = config(model=f's3 {{ credentials_file: "{path}" }}')
    with pytest.raises(SourceError, match=f"S3 credentials file {path}.*{why}") as data:
        open_source(told)
    with pytest.raises(StoreError, match=f"S3 credentials file {path}.*{why}") as model:
        open_store(told.model_dir, StoreOptions.from_proto(told.checkpoint_config.s3))
    assert SECRET not in f"{data.value} {model.value}"


def test_what_is_not_told_comes_from_the_environment(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": SECRET, "ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    fs, path = locate("s3://data/environment.txt", S3Account(endpoint=server))
    fs.pipe_file(path, b"1")
    assert fs.cat_file(path) == b"1"
