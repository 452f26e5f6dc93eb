"""Protobuf schemas that differ between producer and reader: messages to batches and dead letters (docs/streams.md)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, text_format

from protos.pipeline_pb2 import EasyRecConfig
from stream.decode_protobuf import ProtobufDecoder, load_descriptor
from stream.errors import MissingColumnsError
from tests.conftest import Broker
from tests.stream.test_schema_changes import read_cuts

Field = tuple[int, str]
Schema = Mapping[str, Field]
SCHEMA: Schema = {
    "user": (1, "int64"), "item": (2, "string"), "y": (3, "optional float"), "price": (4, "float"),
    "pieces": (5, "int32"), "kind": (6, "enum"), "tags": (7, "repeated int32"), "at": (8, "int64"),
    "event": (9, "string"),
}  # fmt: skip
EVENT = {"user": 7, "item": "hat", "y": 1.0, "price": 2.5, "pieces": 3, "kind": 1}
EVENT |= {"tags": [1, 2], "at": 5, "event": "e"}
KINDS = {"NONE": 0, "HAT": 1}


def described(schema: Schema, *, syntax: str = "proto3", kinds: Mapping[str, int] = KINDS) -> bytes:
    """What protoc writes of a file with one message, `shop.Click`."""
    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name="shop.proto", package="shop", syntax=syntax)
    enum = file.enum_type.add(name="Kind")
    for name, number in kinds.items():
        enum.value.add(name=name, number=number)
    message = file.message_type.add(name="Click")
    for name, (number, text) in schema.items():
        label, _, kind = text.rpartition(" ")
        field = message.field.add(name=name, number=number, label={"repeated": 3, "required": 2}.get(label, 1))
        field.type = getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{kind.upper()}")
        if kind == "enum":
            field.type_name = ".shop.Kind"
        if label == "optional" and syntax == "proto3":
            field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{name}")
    return files.SerializeToString()


def message(schema: Schema, values: Mapping[str, object], *, kinds: Mapping[str, int] = KINDS) -> bytes:
    """A message that a producer with this schema sends."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(described(schema, kinds=kinds)).file:
        pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Click"))
    payload: bytes = json_format.ParseDict(dict(values), made()).SerializeToString()
    return payload


def configured(folder: Path, schema: Schema = SCHEMA, *, syntax: str = "proto3", broker: Broker) -> EasyRecConfig:
    (folder / "shop.fds").write_bytes(described(schema, syntax=syntax))
    config = EasyRecConfig()
    text_format.Parse(
        f"""
        data_config {{ dataset_type: KafkaDataset batch_size: 4 fg_mode: FG_NORMAL label_fields: "y" }}
        stream_config {{ brokers: "{broker.bootstrap}" topic: "{broker.topic()}" format: PROTOBUF stop_at_end: true
          protobuf_descriptor_file: "{folder}/shop.fds" protobuf_message: "shop.Click" event_time_field: "at"
          event_id_field: "event" dead_letters {{ max_share: 1 }} }}
        feature_configs {{ id_feature {{
          feature_name: "user" expression: "user:user" hash_bucket_size: 9 embedding_dim: 4 }} }}
        feature_configs {{ id_feature {{
          feature_name: "item" expression: "item:item" hash_bucket_size: 9 embedding_dim: 4 }} }}
        feature_configs {{ id_feature {{
          feature_name: "kind" expression: "item:kind" num_buckets: 100 embedding_dim: 4 }} }}
        feature_configs {{ id_feature {{
          feature_name: "tags" expression: "item:tags" num_buckets: 100 embedding_dim: 4 }} }}
        feature_configs {{ raw_feature {{ feature_name: "price" expression: "item:price" }} }}
        feature_configs {{ raw_feature {{ feature_name: "pieces" expression: "item:pieces" }} }}
        """,
        config,
    )
    return config


def outcome(
    config: EasyRecConfig, payloads: Sequence[bytes], broker: Broker
) -> tuple[list[dict[str, object]], list[str]]:
    """The rows that are trained, and reason and detail of the others."""
    broker.produce(config.stream_config.topic, payloads)
    cuts = read_cuts(config)
    letters = [letter for cut in cuts for letter in cut.dead]
    assert all(letter.raw for letter in letters)
    return [row for cut in cuts for row in cut.rows.to_pylist()], [f"{one.reason} {one.detail}" for one in letters]


def without(*names: str) -> dict[str, Field]:
    return {name: field for name, field in SCHEMA.items() if name not in names}


def test_changes_that_protobuf_allows_change_nothing(tmp_path: Path, embedded_broker: Broker) -> None:
    added = message({**SCHEMA, "more": (20, "string")}, {**EVENT, "event": "a", "more": "m"})
    others = {name: value for name, value in EVENT.items() if name != "user"}
    renamed = message({**without("user"), "customer": (1, "int64")}, {**others, "event": "b", "customer": 7})
    parts = [message(SCHEMA, {name: value}) for name, value in reversed({**EVENT, "event": "c"}.items())]
    narrower = message({**SCHEMA, "user": (1, "int32")}, {**EVENT, "event": "d"})
    wider = message({**SCHEMA, "pieces": (5, "int64")}, {**EVENT, "event": "e"})
    newer_kinds = {**KINDS, "SHOE": 9}
    unknown = message(SCHEMA, {**EVENT, "event": "f", "kind": "SHOE"}, kinds=newer_kinds)
    newer = b"\0" + (8).to_bytes(4, "big") + b"\0" + message(SCHEMA, {**EVENT, "event": "g"})
    payloads = [added, renamed, b"".join(parts), narrower, wider, unknown, newer]
    rows, letters = outcome(configured(tmp_path, broker=embedded_broker), payloads, embedded_broker)
    assert letters == []
    expected = [{**EVENT, "event": event} for event in "abcdefg"]
    expected[5]["kind"] = 9
    assert rows == expected


DROPPED = [
    ("y", "null_label"),
    ("at", "null_event_time"),
    ("event", "null_event_id"),
]


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_a_field_that_is_not_sent_is_a_null_where_the_row_needs_it(
    syntax: str, tmp_path: Path, embedded_broker: Broker
) -> None:
    payloads = [
        message(without(name), {key: value for key, value in EVENT.items() if key != name}) for name, _ in DROPPED
    ]
    config = configured(tmp_path, syntax=syntax, broker=embedded_broker)
    rows, letters = outcome(config, payloads, embedded_broker)
    assert rows == []
    assert [letter.split()[0] for letter in letters] == [reason for _, reason in DROPPED]


@pytest.mark.parametrize(("syntax", "absent"), [("proto2", None), ("proto3", 0)])
def test_a_features_field_that_is_not_sent_is_what_its_schema_says(
    syntax: str, absent: object, tmp_path: Path, embedded_broker: Broker
) -> None:
    names = ("user", "item", "price", "pieces", "kind", "tags")
    payload = message(without(*names), {key: value for key, value in EVENT.items() if key not in names})
    rows, letters = outcome(configured(tmp_path, syntax=syntax, broker=embedded_broker), [payload], embedded_broker)
    assert letters == []
    values = dict.fromkeys(names, absent) | {"item": None if absent is None else "", "tags": []}
    assert rows == [{**EVENT, **values}]


def test_a_label_that_cannot_be_missing_is_told_and_is_zero(
    tmp_path: Path, embedded_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    config = configured(tmp_path, {**SCHEMA, "y": (3, "float")}, broker=embedded_broker)
    payload = message(without("y"), {key: value for key, value in EVENT.items() if key != "y"})
    with caplog.at_level(logging.WARNING):
        rows, letters = outcome(config, [payload], embedded_broker)
    assert (rows, letters) == ([{**EVENT, "y": 0.0}], [])
    told = [record.getMessage() for record in caplog.records if "without y counts as y=0" in record.getMessage()]
    assert len(told) == 1 and "shop.Click" in told[0] and "`optional`" in told[0]


CHANGED: list[tuple[str, Field, object, str]] = [
    ("y", (3, "double"), 1.0, "shop.Click.y = 3 is float, and the message has 64 bits there"),
    ("user", (1, "string"), "7", "shop.Click.user = 1 is int64, and the message has bytes there"),
    ("item", (2, "int64"), 7, "shop.Click.item = 2 is string, and the message has a varint there"),
    ("item", (2, "bytes"), "//79", "invalid UTF-8"),
    ("pieces", (5, "int64"), 5_000_000_000, "shop.Click.pieces = 5 is int32, and the message has 5000000000 there"),
    ("tags", (7, "repeated int64"), [1, -5_000_000_000], "tags = 7 is int32, and the message has -5000000000 there"),
    ("kind", (6, "int64"), 1 << 40, "kind = 6 is enum, and the message has 1099511627776 there"),
]


def test_types_that_do_not_fit_are_dead_letters_and_never_zeros(tmp_path: Path, embedded_broker: Broker) -> None:
    good = message(SCHEMA, EVENT)
    changed = [message({**SCHEMA, name: field}, {**EVENT, name: value}) for name, field, value, _ in CHANGED]
    rows, letters = outcome(
        configured(tmp_path, broker=embedded_broker), [good, *changed, message(SCHEMA, {**EVENT, "event": "f"})],
        embedded_broker,
    )  # fmt: skip
    assert rows == [EVENT, {**EVENT, "event": "f"}]
    assert len(letters) == len(CHANGED)
    for letter, (*_, detail) in zip(letters, CHANGED, strict=True):
        assert letter.startswith("undecodable") and detail in letter, letter


def test_columns_that_nobody_reads_may_be_of_any_type(tmp_path: Path) -> None:
    (tmp_path / "shop.fds").write_bytes(described(SCHEMA))
    decoder = ProtobufDecoder(load_descriptor(str(tmp_path / "shop.fds"), "shop.Click"), columns=["user"])
    decoded = decoder.decode([message({**SCHEMA, "y": (3, "double")}, EVENT)])
    assert decoded.failures == () and decoded.segments[0].rows.to_pylist() == [{"user": 7}]


def test_a_column_that_the_descriptor_lacks_is_an_error_at_the_start(tmp_path: Path, embedded_broker: Broker) -> None:
    config = configured(tmp_path, without("price"), broker=embedded_broker)
    with pytest.raises(MissingColumnsError, match=r"shop\.Click of .*shop\.fds lacks the column price"):
        read_cuts(config)
