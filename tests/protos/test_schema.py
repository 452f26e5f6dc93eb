"""Our schema against the peer's, and the generated code against its sources."""

import filecmp
import subprocess
import sys
from pathlib import Path

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from protos.commit_pb2 import StreamState
from protos.pipeline_pb2 import EasyRecConfig

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "peer_schema.tsv"

OURS = {
    "EasyRecConfig",
    "Hash_EvictionPolicy",
    "StreamConfig",
    "DeadLetterConfig",
    "RowFilter",
    "KafkaSecurity",
    "CheckpointConfig",
    "S3Options",
    "PublishConfig",
    "GateConfig",
    "ServeConfig",
}

TYPES = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in vars(FieldDescriptor).items()
    if name.startswith("TYPE_") and isinstance(number, int)
}


def descriptors() -> tuple[dict[str, Descriptor], dict[str, EnumDescriptor]]:
    messages: dict[str, Descriptor] = {}
    enums: dict[str, EnumDescriptor] = {}

    def visit(message: Descriptor) -> None:
        name = message.full_name.removeprefix("headrace.protos.")
        if name in messages or not message.full_name.startswith("headrace.") or message.GetOptions().map_entry:
            return
        messages[name] = message
        for field in message.fields:
            if field.message_type is not None:
                visit(field.message_type)
            if field.enum_type is not None:
                enums[field.enum_type.full_name.removeprefix("headrace.protos.")] = field.enum_type

    visit(EasyRecConfig.DESCRIPTOR)
    return messages, enums


def label_of(field: FieldDescriptor) -> str:
    if field.is_required:
        return "required"
    return "repeated" if field.is_repeated else "optional"


def type_of(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        entry = field.message_type
        if entry.GetOptions().map_entry:
            key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
            return f"map<{type_of(key)},{type_of(value)}>"
        name = entry.full_name
        return name.removeprefix("headrace.protos.") if name.startswith("headrace.") else f".{name}"
    if field.enum_type is not None:
        return field.enum_type.full_name.removeprefix("headrace.protos.")
    return TYPES[field.type]


def same_default(field: FieldDescriptor, written: str) -> bool:
    if not written:
        return not field.has_default_value
    if not field.has_default_value:
        return False
    if field.enum_type is not None:
        return field.enum_type.values_by_number[field.default_value].name == written
    if type_of(field) == "bool":
        return str(field.default_value).lower() == written
    if type_of(field) in ("float", "double"):
        return abs(field.default_value - float(written)) <= 1e-6 * abs(float(written))
    if type_of(field) == "string":
        return field.default_value == written.encode().decode("unicode_escape")
    return str(field.default_value) == written


def peer_rows() -> list[list[str]]:
    lines = GOLDEN.read_text(encoding="utf-8").splitlines()[2:]
    return [[*line.split("\t"), "", "", "", "", "", ""][:7] for line in lines]


def test_schema_holds_every_field_of_the_peer_with_number_type_label_default_and_oneof() -> None:
    messages, _ = descriptors()
    checked = 0
    for message, name, number, label, kind, default, oneof in peer_rows():
        if message.startswith("enum "):
            continue
        assert message in messages, message
        if not name:
            assert messages[message].fields == [] or message in OURS
            continue
        field = messages[message].fields_by_name[name]
        where = f"{message}.{name}"
        assert field.number == int(number), where
        assert type_of(field) == kind, where
        assert same_default(field, default), (where, default, field.default_value)
        assert label_of(field) == label or kind.startswith("map<"), where
        assert (field.containing_oneof.name if field.containing_oneof else "") == oneof, where
        checked += 1
    assert checked > 1100


def test_schema_adds_fields_of_ours_from_number_1000_only() -> None:
    messages, _ = descriptors()
    peers = {(row[0], row[1]) for row in peer_rows()}
    peer_messages = {message for message, _ in peers}
    for name, message in messages.items():
        if name not in peer_messages:
            assert name in OURS, name
            continue
        added = [field for field in message.fields if (name, field.name) not in peers]
        assert all(field.number >= 1000 for field in added), name


def test_schema_holds_every_enum_value_of_the_peer() -> None:
    _, enums = descriptors()
    rows = [row for row in peer_rows() if row[0].startswith("enum ")]
    assert len(rows) == 10
    for title, values, *_ in rows:
        enum = enums[title.removeprefix("enum ")]
        written = dict(pair.split("=") for pair in values.split())
        assert {value.name: str(value.number) for value in enum.values} == written


def test_generated_code_is_what_the_sources_give(tmp_path: Path) -> None:
    sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "protos").glob("*.proto"))
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    subprocess.run([*command, *sources], cwd=ROOT, check=True)
    made = sorted(path.name for path in (tmp_path / "protos").iterdir())
    committed = sorted(path.name for path in (ROOT / "protos").glob("*_pb2.py*"))
    assert made == committed
    _, different, broken = filecmp.cmpfiles(tmp_path / "protos", ROOT / "protos", made, shallow=False)
    assert (different, broken) == ([], [])


def test_stream_state_round_trips_every_field() -> None:
    state = StreamState()
    state.cursors.add(topic="t", topic_id="i", partition=3, leader_epoch=2, offset=9, row=4)
    state.accounting.add(
        topic="t", received=6, trained=1, late=1, dead_lettered=1, filtered=1, duplicate=1, remainder=1
    )
    state.cuts.add(step=5, rank=1, rows=[1, 0, 2])
    state.seen.add(topic="t", partition=3, ids=[2**64 - 1], event_time_ms=[-1])
    assert StreamState.FromString(state.SerializeToString(deterministic=True)) == state
