"""`headrace config check|schema`, and the producer that it prints."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from features import create_features
from headrace.estimate import estimate, size
from headrace.event_schema import event_schema
from headrace.producer import producer_source
from protos.load import load_config
from stream import open_source

from .conftest import DECLARED


def test_config_check_tells_what_it_will_take(headrace: Callable[..., Any], write_config: Callable[..., Path]) -> None:
    ran = headrace("config", "check", write_config(), "--events-per-second", "100")
    assert ran.code == 0
    for words in (
        "ok, 0 notice(s)",
        "user_id_emb",
        "memory of the model",
        "a commit, at most",
        "disk in a day, at most",
    ):
        assert words in ran.out


def test_config_check_prints_every_error_and_exits_with_2(
    headrace: Callable[..., Any], write_config: Callable[..., Path]
) -> None:
    path = write_config()
    path.write_text(path.read_text().replace("batch_size: 64", "batch_size: 0 shuffle: true"))
    ran = headrace("config", "check", path)
    assert ran.code == 2
    assert "error   data_config.batch_size: 0" in ran.out
    assert "notice  data_config.shuffle: true has no effect" in ran.out
    assert "1 error(s), 1 notice(s)" in ran.out


def test_config_check_speaks_of_the_device_that_will_train(
    headrace: Callable[..., Any], write_config: Callable[..., Path]
) -> None:
    path = write_config()
    path.write_text(path.read_text().replace("train_config {", "train_config { cuda_matmul_allow_tf32: true"))
    ran = headrace("config", "check", path, "--device", "cpu")
    assert "notice  train_config.cuda_matmul_allow_tf32: true has no effect: there is no CUDA device" in ran.out
    assert "ok, 1 notice(s), for training on cpu" in ran.out
    # An error depends on no device, and is told before torch is asked for one.
    path.write_text(path.read_text().replace("batch_size: 64", "batch_size: 0"))
    ran = headrace("config", "check", path, "--device", "cuda")
    assert ran.code == 2 and "1 error(s), 0 notice(s)" in ran.out


def test_estimate_counts_rows_weights_optimizer_and_map(write_config: Callable[..., Path]) -> None:
    found = estimate(load_config(write_config()), events_per_second=100)
    tables = {table.name: table for table in found.tables}
    assert tables["user_id_emb"].row_bytes == 16 * 4 + 4 + 16
    assert tables["user_id_emb"].memory_bytes == 1000 * (16 * 4 + 4 + 16)
    assert tables["user_id_emb_wide"].dim == 4
    assert tables["slot_emb"].row_bytes == 16 * 4 + 4
    assert found.commit_seconds == 0.5
    assert found.memory_bytes > sum(table.memory_bytes for table in found.tables)


def test_estimate_bounds_a_commit_by_the_rows_that_there_are(write_config: Callable[..., Path]) -> None:
    config = load_config(write_config())
    slow, fast, flood = (estimate(config, events_per_second=rate).commit_bytes for rate in (10, 100, 10**9))
    assert slow < fast < flood
    assert flood == estimate(config, events_per_second=10**10).commit_bytes


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (3.2e13, "32 TB")])
def test_size_is_readable(count: float, text: str) -> None:
    assert size(count) == text


def test_event_schema_names_every_column_that_is_read(write_config: Callable[..., Path]) -> None:
    schema = event_schema(load_config(write_config()))
    columns = {column.name: column for column in schema.columns}
    assert list(columns) == ["user_id", "slot", "price", "clicked", "at", "event"]
    assert {name: column.type for name, column in columns.items()} == {
        "user_id": "STRING",
        "slot": "INT64",
        "price": "FLOAT",
        "clicked": "FLOAT",
        "at": "INT64",
        "event": "STRING",
    }
    assert columns["slot"].below == 10
    assert [name for name, column in columns.items() if not column.optional] == ["clicked", "at", "event"]


def test_event_schema_takes_declared_types_and_their_order(write_config: Callable[..., Path]) -> None:
    schema = event_schema(load_config(write_config(declared=DECLARED)))
    assert [(column.name, column.type) for column in schema.columns][3] == ("clicked", "INT32")
    assert all(column.declared for column in schema.columns)


def test_event_schema_of_json_has_no_map_that_is_not_declared(write_config: Callable[..., Path]) -> None:
    path = write_config(form="format: JSON")
    path.write_text(path.read_text().replace('"user:user_id"', '"user:user_id" weighted: true'))
    config = load_config(path)
    assert event_schema(config).columns[0].type == "ARRAY_STRING"
    config.data_config.input_fields.add(input_name="user_id", input_type="MAP_STRING_FLOAT")
    assert event_schema(config).columns[0].type == "MAP_STRING_FLOAT"
    del config.data_config.input_fields[:]
    config.stream_config.ClearField("format")
    assert event_schema(config).columns[0].type == "MAP_STRING_FLOAT"


def test_config_schema_prints_a_table(headrace: Callable[..., Any], write_config: Callable[..., Path]) -> None:
    ran = headrace("config", "schema", write_config(form="format: JSON"))
    assert ran.code == 0
    assert ran.out.startswith("topic clicks, a message is one event, a JSON object")
    assert "feature user_id" in ran.out


def descriptor_file(folder: Path) -> Path:
    message = descriptor_pb2.DescriptorProto(name="Click")
    kinds = {
        "user_id": "STRING",
        "slot": "INT64",
        "price": "FLOAT",
        "clicked": "INT32",
        "at": "INT64",
        "event": "STRING",
    }
    for number, (name, kind) in enumerate(kinds.items(), start=1):
        label = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
        code = descriptor_pb2.FieldDescriptorProto.Type.Value(f"TYPE_{kind}")
        message.field.add(name=name, number=number, type=code, label=label)
    files = descriptor_pb2.FileDescriptorSet()
    files.file.add(name="click.proto", package="acme", syntax="proto3", message_type=[message])
    path = folder / "click.desc"
    path.write_bytes(files.SerializeToString())
    return path


def test_config_check_reads_the_schema_of_protobuf_messages(
    headrace: Callable[..., Any], write_config: Callable[..., Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    form = f'format: PROTOBUF protobuf_message: "acme.Click" protobuf_descriptor_file: "{tmp_path}/click.desc"'
    path = write_config(form=form)
    absent = headrace("config", "check", path)
    assert absent.code == 1 and "click.desc cannot be read" in absent.errors
    descriptor_file(tmp_path)
    assert headrace("config", "check", path).code == 0
    assert [line for line in caplog.messages if "without clicked counts as clicked=0" in line]
    path.write_text(path.read_text().replace("item:price", "item:prize"))
    misspelt = headrace("config", "check", path)
    assert misspelt.code == 1
    assert "click.desc lacks the column prize (feature price); it has user_id, slot, price" in misspelt.errors


@pytest.mark.parametrize(
    ("form", "declared"),
    [
        ("format: JSON", DECLARED),
        ("format: ARROW_IPC", ""),
        ("format: ARROW_IPC_BATCH", DECLARED),
        ('format: PROTOBUF protobuf_message: "acme.Click" protobuf_descriptor_file: "{descriptors}"', ""),
    ],
)
def test_the_printed_producer_sends_events_that_the_trainer_reads_and_accepts(
    write_config: Callable[..., Path], tmp_path: Path, embedded_broker: Any, form: str, declared: str
) -> None:
    topic = embedded_broker.topic()
    form = form.format(descriptors=descriptor_file(tmp_path))
    path = write_config(form=form, declared=declared, brokers=embedded_broker.bootstrap, topic=topic)
    config = load_config(path)
    program = tmp_path / "producer.py"
    program.write_text(producer_source(config), encoding="utf-8")
    subprocess.run([sys.executable, str(program), "300"], check=True, timeout=60, capture_output=True)

    features = create_features(config)
    source = open_source(config)
    keys = source.partitions()
    source.start(keys, {})
    rows = 0
    while rows < 300:
        chunk = source.read(10.0)
        assert chunk is not None, f"only {rows} rows arrived"
        assert chunk.dead == ()
        assert len(features.validate(chunk.rows).rows) == 0
        rows += chunk.rows.num_rows
    source.close()
    assert rows == 300
