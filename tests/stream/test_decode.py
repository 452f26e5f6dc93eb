"""Decoders: bad payloads become failures, good ones survive, schemas split runs."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, message_factory

from protos import data_pb2
from stream.decode import Decoded, Decoder
from stream.decode_arrow import ArrowBatchDecoder, ArrowStreamDecoder
from stream.decode_json import JsonDecoder
from stream.decode_protobuf import ProtobufDecoder, load_descriptor
from stream.decode_schema import declared_schema, field_type
from stream.encode import encode_rows
from stream.errors import SourceError


def _batch(*ids: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(ids, pa.int64()), "name": [f"n{i}" for i in ids]})


def _stream(*batches: pa.RecordBatch, schema: pa.Schema | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema or batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def _rows(decoded: Decoded) -> list[dict[str, object]]:
    return [row for segment in decoded.segments for row in segment.rows.to_pylist()]


def _check_cover(decoded: Decoded, n: int) -> None:
    """Segments cover the run without gaps, and every message gave rows of its segment or a failure."""
    assert decoded.segments[0].first == 0
    assert decoded.segments[-1].stop == n
    for left, right in zip(decoded.segments, decoded.segments[1:], strict=False):
        assert left.stop == right.first
    for segment in decoded.segments:
        assert len(segment.message) == len(segment.row) == segment.rows.num_rows
        assert all(segment.first <= m < segment.stop for m in segment.message)


def test_arrow_numbers_rows_by_message() -> None:
    decoded = ArrowStreamDecoder().decode([_stream(_batch(1, 2)), _stream(_batch(3)), _stream(_batch(4, 5, 6))])
    (segment,) = decoded.segments
    assert segment.rows.column("id").to_pylist() == [1, 2, 3, 4, 5, 6]
    assert segment.message.tolist() == [0, 0, 1, 2, 2, 2]
    assert segment.row.tolist() == [0, 1, 0, 0, 1, 2]


@pytest.mark.parametrize("warm", [False, True])
def test_arrow_reads_all_batches_of_a_message(warm: bool) -> None:
    decoder = ArrowStreamDecoder()
    if warm:
        decoder.decode([_stream(_batch(0))])
    decoded = decoder.decode([_stream(_batch(1, 2), _batch(3)), _stream(schema=_batch(1).schema)])
    assert [row["id"] for row in _rows(decoded)] == [1, 2, 3]
    assert decoded.failures == ()


def test_arrow_refuses_bytes_behind_the_end() -> None:
    decoder = ArrowStreamDecoder()
    for _ in range(2):
        decoded = decoder.decode([_stream(_batch(1)), _stream(_batch(1)) + _stream(_batch(2))])
        assert [row["id"] for row in _rows(decoded)] == [1]
        assert [failure.index for failure in decoded.failures] == [1]


def test_arrow_keeps_the_rest_of_a_run_with_bad_messages() -> None:
    payloads = [None, _stream(_batch(1)), b"", b"garbage", _stream(_batch(2))[:-40], _stream(_batch(3))]
    decoded = ArrowStreamDecoder().decode(payloads)
    _check_cover(decoded, 6)
    assert [row["id"] for row in _rows(decoded)] == [1, 3]
    assert [(f.index, f.reason) for f in decoded.failures] == [
        (0, "empty"),
        (2, "empty"),
        (3, "undecodable"),
        (4, "undecodable"),
    ]


def test_arrow_splits_a_run_where_the_schema_changes() -> None:
    wider = pa.record_batch({"id": pa.array([7], pa.int64()), "extra": [0.5]})
    decoded = ArrowStreamDecoder().decode([_stream(_batch(1)), b"bad", _stream(wider), _stream(_batch(2))])
    _check_cover(decoded, 4)
    assert [segment.rows.schema.names for segment in decoded.segments] == [
        ["id", "name"],
        ["id", "extra"],
        ["id", "name"],
    ]
    assert [(segment.first, segment.stop) for segment in decoded.segments] == [(0, 2), (2, 3), (3, 4)]


def test_arrow_ignores_metadata_and_decodes_dictionaries() -> None:
    plain = _batch(1, 2)
    tagged = plain.replace_schema_metadata({"producer": "7"})
    coded = pa.record_batch([plain.column("id"), plain.column("name").dictionary_encode()], names=["id", "name"])
    decoded = ArrowStreamDecoder().decode([_stream(plain), _stream(tagged), _stream(coded), _stream(coded)])
    (segment,) = decoded.segments
    assert segment.rows.column("name").to_pylist() == ["n1", "n2"] * 4


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_arrow_reads_compressed_buffers(codec: str) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _batch(1).schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_batch(_batch(*range(1000)))
    payload = bytes(sink.getvalue())
    assert len(_rows(ArrowStreamDecoder().decode([payload, payload]))) == 2000


def test_arrow_projects() -> None:
    decoded = ArrowStreamDecoder(["name", "absent"]).decode([_stream(_batch(1)), _stream(_batch(2))])
    assert decoded.segments[0].rows.schema.names == ["name"]


@pytest.mark.parametrize("seed", range(3))
def test_arrow_survives_flipped_bytes(seed: int) -> None:
    randomly = random.Random(seed)
    good = _stream(_batch(*range(20)))
    decoder = ArrowStreamDecoder()
    decoder.decode([good])
    for _ in range(1500):
        bad = bytearray(good)
        for _ in range(randomly.randint(1, 4)):
            bad[randomly.randrange(len(bad))] = randomly.randrange(256)
        decoded = decoder.decode([good, bytes(bad), good])
        _check_cover(decoded, 3)
        for segment in decoded.segments:
            segment.rows.to_pylist()
        firsts = [row["id"] for segment in decoded.segments for row in segment.rows.to_pylist() if "id" in row]
        assert firsts[:20] == list(range(20))


def test_arrow_of_an_unknown_version_is_a_failure() -> None:
    good = _stream(_batch(1))
    details = []
    for place in range(8, 80):
        newer = bytearray(good)
        newer[place] = 9
        details += [failure.detail for failure in ArrowStreamDecoder().decode([bytes(newer)]).failures]
    assert any("future MetadataVersion" in detail for detail in details), set(details)


def test_arrow_batch_needs_the_declared_schema() -> None:
    batch = _batch(1, 2)
    decoder = ArrowBatchDecoder(batch.schema)
    payload = encode_rows(batch, "ARROW_IPC_BATCH")[0]
    other = encode_rows(pa.record_batch({"id": ["a"]}), "ARROW_IPC_BATCH")[0]
    decoded = decoder.decode([payload, other, payload + payload, b"x", payload])
    assert [row["id"] for row in _rows(decoded)] == [1, 2, 1, 2]
    assert [failure.index for failure in decoded.failures] == [1, 2, 3]


def test_json_types_by_the_declared_schema_and_finds_bad_messages() -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.float32()), ("tags", pa.list_(pa.string()))])
    payloads = [
        b'{"id": 1, "x": 0.5, "tags": ["a"], "more": 1}',
        b"nope",
        b'{"id": "one"}',
        b'{\n "id": 2\n}',
        b'{"id": 3}{"id": 4}',
        b"   ",
        None,
        b"[1]",
        b'{"id": 5, "id": 6}',
        b'{"x": "\xff"}',
        b'\x00\x00\x00\x00\x07{"id": 7}',
    ]
    decoded = JsonDecoder(schema).decode(payloads)
    _check_cover(decoded, len(payloads))
    (segment,) = decoded.segments
    assert segment.rows.schema.equals(schema)
    assert segment.rows.column("id").to_pylist() == [1, 2, 7]
    assert segment.message.tolist() == [0, 3, 10]
    assert [failure.index for failure in decoded.failures] == [1, 2, 4, 5, 6, 7, 8, 9]


def test_json_never_gives_a_row_to_the_wrong_message() -> None:
    decoded = JsonDecoder(pa.schema([("a", pa.int64())])).decode([b'{"a":1}{"a":2}', b" ", b'{"a":', b"3}", b'{"a":4}'])
    assert _rows(decoded) == [{"a": 4}]
    assert decoded.segments[0].message.tolist() == [4]


def test_json_without_a_schema_keeps_the_types_seen_first() -> None:
    decoder = JsonDecoder()
    first = decoder.decode([b'{"id": 1, "x": null}'])
    assert _rows(first) == [{"id": 1, "x": None}]
    second = decoder.decode([b'{"id": 2, "x": 0.5}', b'{"id": "s"}'])
    assert _rows(second) == [{"id": 2, "x": 0.5}]
    assert [failure.index for failure in second.failures] == [1]


def test_json_reads_objects_as_maps_and_finds_bad_ones() -> None:
    schema = pa.schema(
        [("m", pa.map_(pa.string(), pa.float32())), ("id", pa.int64()), ("n", pa.map_(pa.int64(), pa.string()))]
    )
    payloads = [
        b'{"id": 1, "m": {"a": 1, "b": 0.5}, "n": {"7": "x"}}',
        b'{"id": 2, "m": {"a": "much"}}',
        b'{"id": 3, "m": null}',
        b'{"id": 4, "m": [1]}',
        b'{"id": 5, "n": {"seven": "x"}}',
        b'{"id": 6, "m": {"a": 1, "a": 2}}',
        b'{"id": 7, "m": {"a": NaN}}',
        b'{"id": 8, "m": {}}',
    ]
    decoded = JsonDecoder(schema).decode(payloads)
    assert [segment.rows.schema for segment in decoded.segments] == [schema]
    assert _rows(decoded) == [
        {"id": 1, "m": [("a", 1.0), ("b", 0.5)], "n": [(7, "x")]},
        {"id": 3, "m": None, "n": None},
        {"id": 8, "m": [], "n": None},
    ]
    assert [failure.index for failure in decoded.failures] == [1, 3, 4, 5, 6]
    only_maps = JsonDecoder(schema, ["m"]).decode([payloads[0], payloads[2]])
    assert _rows(only_maps) == [{"m": [("a", 1.0), ("b", 0.5)]}, {"m": None}]


def test_json_maps_come_back_as_they_were_written() -> None:
    schema = pa.schema([("id", pa.int64()), ("m", pa.map_(pa.int64(), pa.float64()))])
    batch = pa.RecordBatch.from_pylist([{"id": 1, "m": [(3, 0.5)]}, {"id": 2, "m": None}], schema=schema)
    payloads = encode_rows(batch, "JSON")
    assert payloads[0] == b'{"id":1,"m":{"3":0.5}}'
    assert _rows(JsonDecoder(schema).decode(payloads)) == batch.to_pylist()


@pytest.mark.parametrize(
    ("payload", "detail"),
    [
        (b'{"a": 1, "b": 3.5, "c": "x"}', "column 'b' is declared int64: "),
        (b'{"a": 1, "b": 3, "c": 7}', "column 'c' is declared string: "),
        (b'{"a": [], "b": 3, "c": "x"}', "column 'a' is declared int64: "),
        (b'{"a": 1, "b": 3, "c": "x" "d": 4}', "JSON parse error: "),
    ],
)
def test_json_names_the_column_that_does_not_fit(payload: bytes, detail: str) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.string())])
    decoded = JsonDecoder(schema).decode([b'{"a": 1, "b": 2, "c": "y"}', payload])
    assert _rows(decoded) == [{"a": 1, "b": 2, "c": "y"}]
    assert decoded.failures[0].detail.startswith(detail)


def test_json_reads_a_message_of_two_megabytes() -> None:
    payload = b'{"text": "' + b"x" * (2 << 20) + b'"}'
    decoded = JsonDecoder(pa.schema([("text", pa.string())])).decode([payload, payload])
    assert [len(str(row["text"])) for row in _rows(decoded)] == [2 << 20] * 2


def _click_set() -> descriptor_pb2.FileDescriptorSet:
    described = descriptor_pb2.FileDescriptorSet()
    file = described.file.add(name="events.proto", package="events", syntax="proto3")
    message = file.message_type.add(name="Click")
    kinds = descriptor_pb2.FieldDescriptorProto
    for number, (name, kind, label) in enumerate(
        [("id", kinds.TYPE_INT64, 1), ("name", kinds.TYPE_STRING, 1), ("tags", kinds.TYPE_INT64, 3)], 1
    ):
        message.field.add(name=name, number=number, type=kind, label=label)
    file.message_type.add(name="Other")
    return described


def _protobuf(tmp_path: Path) -> tuple[ProtobufDecoder, list[bytes]]:
    path = tmp_path / "events.fds"
    path.write_bytes(_click_set().SerializeToString())
    descriptor = load_descriptor(str(path), "events.Click")
    click = message_factory.GetMessageClass(descriptor)
    payloads = [click(id=i, name=f"n{i}", tags=[i, i + 1]).SerializeToString() for i in range(1, 4)]
    return ProtobufDecoder(descriptor), payloads


def test_protobuf_finds_bad_messages_and_keeps_the_rest(tmp_path: Path) -> None:
    decoder, good = _protobuf(tmp_path)
    framed, foreign = b"\0\0\0\0\1\0" + good[2], b"\0\0\0\0\1\2\2" + good[2]
    decoded = decoder.decode([good[0], b"\xff\xff", None, good[1], b"\x12\x02\xff\xfe", framed, foreign])
    _check_cover(decoded, 7)
    assert _rows(decoded) == [{"id": i, "name": f"n{i}", "tags": [i, i + 1]} for i in (1, 2, 3)]
    assert [(f.index, f.reason) for f in decoded.failures] == [
        (1, "undecodable"),
        (2, "empty"),
        (4, "undecodable"),
        (6, "undecodable"),
    ]


@pytest.mark.parametrize(
    "length", [b"\xff" * 9 + b"\x01", b"\xff" * 8 + b"\x7f", b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x08"]
)
def test_protobuf_of_a_negative_or_wild_length_is_a_failure(length: bytes, tmp_path: Path) -> None:
    decoder, good = _protobuf(tmp_path)
    decoded = decoder.decode([good[0], b"\x12" + length + good[0], good[1]])
    assert [(f.index, f.reason) for f in decoded.failures] == [(1, "undecodable")]
    assert [row["id"] for row in _rows(decoded)] == [1, 2]


def test_protobuf_descriptor_errors_name_file_and_message(tmp_path: Path) -> None:
    path = tmp_path / "events.fds"
    with pytest.raises(SourceError, match=r"events\.fds cannot be read"):
        load_descriptor(str(path), "events.Click")
    path.write_bytes(b"\xff\xff")
    with pytest.raises(SourceError, match="no FileDescriptorSet"):
        load_descriptor(str(path), "events.Click")
    path.write_bytes(_click_set().SerializeToString())
    with pytest.raises(SourceError, match=r"'events\.Clik' is not in"):
        load_descriptor(str(path), "events.Clik")


@pytest.mark.parametrize("seed", range(5))
def test_decoders_give_the_same_rows_whatever_the_runs(seed: int, tmp_path: Path) -> None:
    random_ = np.random.default_rng(seed)
    ids = random_.integers(0, 1 << 60, 40)
    batch = pa.record_batch({"id": ids})
    decoders: list[tuple[Decoder, list[bytes]]] = [
        (JsonDecoder(batch.schema), encode_rows(batch, "JSON")),
        (ArrowStreamDecoder(), [encode_rows(batch.slice(i, 3), "ARROW_IPC")[0] for i in range(0, 40, 3)]),
    ]
    for decoder, payloads in decoders:
        whole = _rows(decoder.decode(payloads))
        cut = int(random_.integers(1, len(payloads)))
        assert whole == _rows(decoder.decode(payloads[:cut])) + _rows(decoder.decode(payloads[cut:]))
        assert [row["id"] for row in whole] == ids.tolist()


def test_declared_schema_reads_both_notations() -> None:
    config = data_pb2.DataConfig(input_fields_str="id:BIGINT; tags : array<string>;m:MAP<string,float>;")
    want = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.float32()))])
    assert declared_schema(config) == want
    fields = data_pb2.DataConfig()
    fields.input_fields.add(input_name="id", input_type=data_pb2.INT64)
    fields.input_fields.add(input_name="tags", input_type=data_pb2.ARRAY_STRING)
    fields.input_fields.add(input_name="m", input_type=data_pb2.MAP_STRING_FLOAT)
    assert declared_schema(fields) == want
    assert declared_schema(data_pb2.DataConfig()) is None


@pytest.mark.parametrize("name", [name for name, _ in data_pb2.FieldType.items()])
def test_field_type_knows_every_declared_type(name: str) -> None:
    assert isinstance(field_type(name), pa.DataType)


@pytest.mark.parametrize("text", ["id", "id:", ":INT64", "id:BOOLEAN", "id:INT64;id:INT64", "m:MAP<FLOAT,INT64>"])
def test_declared_schema_refuses_what_it_cannot_read(text: str) -> None:
    with pytest.raises(SourceError):
        declared_schema(data_pb2.DataConfig(input_fields_str=text))


def test_json_without_a_column_gives_nulls_whatever_came_before(caplog: pytest.LogCaptureFixture) -> None:
    with_it, without = b'{"id": 1, "age": 2}', b'{"id": 1}'
    for earlier in ([], [without], [with_it]):
        decoder = JsonDecoder(columns=["age", "id"])
        for payload in earlier:
            decoder.decode([payload])
        assert _rows(decoder.decode([without, without])) == [{"id": 1, "age": None}] * 2
    assert caplog.messages == []


@pytest.mark.parametrize("declared", [None, pa.schema({"id": pa.int64(), "age": pa.float32()})])
def test_json_columns_that_never_have_a_value_are_told_once(
    declared: pa.Schema | None, caplog: pytest.LogCaptureFixture
) -> None:
    decoder = JsonDecoder(declared, columns=["age", "id"])
    for _ in range(3):
        decoder.decode([b'{"id": 1, "agee": 2}'] * 700)
    assert caplog.messages == ["no value so far column=age messages=1400: correct its name?"]
