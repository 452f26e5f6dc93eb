"""Every bad input that a user can give, through real processes: one clear line, the right exit code, nothing lost."""

import dataclasses
import http.client
import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf import descriptor_pb2, message_factory

from benchmarks.faults.processes import Zygote
from benchmarks.faults.stage import Stage, prepare
from stream.broker import free_port
from stream.decode_protobuf import load_descriptor
from stream.encode import encode_rows

FAILED, BAD_INPUT = 1, 2

ID = 'expression: "user:user"'
ROWS = {
    "user": pa.array([5], pa.int64()),
    "item": pa.array([6], pa.int64()),
    "kind": pa.array([1], pa.int64()),
    "event_id": pa.array(["fresh"]),
    "time_ms": pa.array([400_000], pa.int64()),
    "label": pa.array([1.0], pa.float32()),
}


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return prepare(tmp_path_factory.mktemp("bad") / "data", rows=640, parts=1)


@pytest.fixture(scope="session")
def zygote(stage: Stage) -> Iterator[Zygote]:
    with Zygote(stage.folder / "log") as running:
        yield running


@pytest.fixture(scope="session")
def trained(zygote: Zygote, stage: Stage) -> Path:
    """A model directory with a log, a served version and its configuration beside it."""
    config = stage.config(stage.folder.parent / "trained")
    assert zygote.run("trainer", [str(config)]) == 0
    assert zygote.run("publisher", [str(config), "--once"]) == 0
    return config.with_suffix("")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ran:
    code: int
    text: str

    @property
    def last(self) -> str:
        return self.text.splitlines()[-1] if self.text else ""


@pytest.fixture
def run(zygote: Zygote, tmp_path: Path) -> Callable[..., Ran]:
    def call(module: str, *arguments: object) -> Ran:
        process = zygote.start(module, [str(item) for item in arguments], log=tmp_path / "process.log")
        ran = Ran(code=process.wait(90), text=process.text())
        assert "Traceback" not in ran.text, ran.text
        assert "internal error" not in ran.text, ran.text
        return ran

    return call


CONFIGURATIONS = {
    "typo": (("batch_size: 64", "bach_size: 64"), "bach_size"),
    "typo in a message": (("zch_size: 256", "zch_sise: 256"), "zch_sise"),
    "unknown model": (("deepfm {", "deepfn {"), "deepfn"),
    "not a number": (("batch_size: 64", 'batch_size: "many"'), "batch_size"),
    "unknown enum": (("fg_mode: FG_NORMAL", "fg_mode: FG_NOMRAL"), "FG_NOMRAL"),
    "no batch size": (("batch_size: 64", "batch_size: 0"), "batch_size"),
    "feature without a column": ((ID, 'expression: ""'), "expression"),
    "feature twice": (('feature_name: "item"', 'feature_name: "user"'), "user"),
    "group of an unknown feature": (('feature_names: ["user", "item", "kind"]', 'feature_names: ["usr"]'), "usr"),
    "group twice": (('group_name: "deep"', 'group_name: "wide"'), "wide"),
    "unclosed brace": (("model_config {", "model_config {{"), ""),
    "zero rows": (("zch_size: 256", "zch_size: 0"), "give it a size"),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("module", ["trainer", "publisher", "check", "train"])
def test_bad_configuration_is_one_error_everywhere(
    name: str, module: str, run: Callable[..., Ran], stage: Stage, tmp_path: Path
) -> None:
    change, word = CONFIGURATIONS[name]
    config = stage.config(tmp_path / "model", change)
    commands = {"check": ("headrace", "config", "check", config), "train": ("headrace", "train", config)}
    ran = run(*commands.get(module, (module, config)))
    assert ran.code == BAD_INPUT, ran.text
    assert word in ran.text and str(config) in ran.text
    assert not (tmp_path / "model" / "log").exists()


def test_column_that_no_file_has_is_named(run: Callable[..., Ran], stage: Stage, tmp_path: Path) -> None:
    ran = run("trainer", stage.config(tmp_path / "model", (ID, 'expression: "user:usr"')))
    assert ran.code == FAILED
    assert "lacks the column usr (feature user)" in ran.last


def test_filter_that_does_not_fit_its_column_is_named(run: Callable[..., Ran], stage: Stage, tmp_path: Path) -> None:
    # Only the data say what type a column has.
    ran = run("trainer", stage.config(tmp_path / "model", ('value: "9"', 'value: "nine"')))
    assert ran.code == FAILED and "filter kind NE 'nine'" in ran.last


def test_input_files_that_are_missing_are_named(run: Callable[..., Ran], stage: Stage, tmp_path: Path) -> None:
    config = stage.config(tmp_path / "model", (str(stage.folder), str(tmp_path / "nowhere")))
    ran = run("trainer", config)
    assert ran.code == FAILED and "nowhere" in ran.last


LOGS: dict[str, tuple[Callable[[Path], None], str]] = {
    "manifest cut in half": (lambda log: cut(newest(log)), "0000"),
    "manifest with a flipped bit": (lambda log: flip(newest(log)), "0000"),
    "empty manifest": (lambda log: newest(log).write_bytes(b""), "0000"),
    "blob with a flipped bit": (lambda log: flip(blob_of(log)), "blob"),
    "blob cut in half": (lambda log: cut(blob_of(log)), "blob"),
    "blob removed": (lambda log: blob_of(log).unlink(), "blob"),
    "commit missing": (lambda log: sorted(log.glob("*.json"))[-2].unlink(), "0000"),
    "written by a newer version": (lambda log: newer(newest(log)), "format"),
}


def newest(log: Path) -> Path:
    return max(log.glob("*.json"))


def blob_of(log: Path) -> Path:
    named = json.loads(newest(log).read_text())
    found = [Path(part["path"]).name for part in named["blobs"]]
    return next(path for path in log.rglob("*") if path.name == found[0])


def cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(bytes(data))


def newer(path: Path) -> None:
    text = json.loads(path.read_text())
    text["format"] = 999
    path.write_text(json.dumps(text, sort_keys=True, separators=(",", ":")) + "\n")


@pytest.mark.parametrize("name", LOGS)
def test_damaged_log_is_refused_by_name_and_left_alone(
    name: str, run: Callable[..., Ran], trained: Path, stage: Stage, tmp_path: Path
) -> None:
    damage, word = LOGS[name]
    shutil.copytree(trained, tmp_path / "model")
    config = stage.config(tmp_path / "model")
    damage(tmp_path / "model" / "log")
    before = contents(tmp_path / "model" / "log")
    for command in (("trainer", config), ("headrace", "log", "verify", tmp_path / "model")):
        ran = run(*command)
        assert ran.code == FAILED, ran.text
        assert word in ran.text
    assert contents(tmp_path / "model" / "log") == before


def contents(log: Path) -> dict[Path, bytes]:
    """Every file but the hint of where the end is, which any reader may correct."""
    return {path: path.read_bytes() for path in log.rglob("*") if path.is_file() and path.name != "_head"}


def test_log_of_another_model_is_refused(run: Callable[..., Ran], trained: Path, stage: Stage, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "model")
    ran = run("trainer", stage.config(tmp_path / "model", ("hidden_units: [16]", "hidden_units: [8]")))
    assert ran.code == FAILED and "new model_dir" in ran.last


def row(**changes: pa.Array) -> bytes:
    columns = {name: value for name, value in {**ROWS, **changes}.items() if value is not None}
    return encode_rows(pa.record_batch(columns), "ARROW_IPC")[0]


def negative_length() -> bytes:
    """The event id's text ends before it begins."""
    good = row()
    text = good.rindex(b"fresh")
    end = good.rindex(b"\x05\0\0\0", 0, text)
    return good[:end] + (-5).to_bytes(4, "little", signed=True) + good[end + 4 :]


def newer_arrow() -> bytes:
    """A message whose schema names a version of Arrow's format that does not exist yet."""
    good = row()
    version = good.index(b"\x04\0", 8)  # V5, in the first table of the schema message
    return good[:version] + b"\x09" + good[version + 1 :]


MESSAGES = {
    "undecodable": (b"\x00garbage", "undecodable"),
    "negative length": (negative_length(), "undecodable"),
    "version of Arrow that is not known": (newer_arrow(), "undecodable"),
    "nan for an id": (row(user=pa.array([np.nan])), "not_finite"),
    "empty": (b"", ""),
    "cut in half": (row()[:100], ""),
    "null label": (row(label=pa.array([None], pa.float32())), "null_label"),
    "nan label": (row(label=pa.array([np.nan], pa.float32())), ""),
    "no event time": (row(time_ms=pa.array([None], pa.int64())), "null_event_time"),
    "event time before 1970": (row(time_ms=pa.array([-1], pa.int64())), "bad_event_time"),
    "event time far ahead": (row(time_ms=pa.array([4_000_000_000_000], pa.int64())), "time_in_future"),
    "no event id": (row(event_id=pa.array([None], pa.string())), "null_event_id"),
    "column missing": (row(label=None), ""),
    "column of another type": (row(user=pa.array([[1, 2]])), ""),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_bad_message_goes_to_the_dead_letters_and_training_goes_on(
    name: str, run: Callable[..., Ran], stage: Stage, embedded_broker, tmp_path: Path
) -> None:
    payload, reason = MESSAGES[name]
    topic = embedded_broker.topic()
    good = stage.messages(0, rows=64)
    embedded_broker.produce(topic, [*good[:5], payload, *good[5:]])
    stream = f'brokers: "{embedded_broker.bootstrap}" topic: "{topic}" stop_at_end: true'
    config = dataclasses.replace(stage, stream=stream).config(tmp_path / "model")
    assert run("trainer", config).code == 0
    ran = run("headrace", "status", tmp_path / "model", "--json")
    assert f"received={stage.rows + 1} " in ran.text, ran.text
    assert "trained=544 " in ran.text, ran.text  # as without the message
    listed = run("headrace", "dlq", "ls", config)
    assert listed.code == 0 and reason in listed.text


def protobuf(folder: Path, rows: list[dict[str, object]]) -> tuple[Path, list[bytes]]:
    """A FileDescriptorSet with the messages Click and View, and rows as clicks."""
    described = descriptor_pb2.FileDescriptorSet()
    file = described.file.add(name="events.proto", package="events", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    types = dict.fromkeys(("user", "item", "kind", "time_ms"), kinds.TYPE_INT64)
    types |= {"event_id": kinds.TYPE_STRING, "label": kinds.TYPE_FLOAT}
    for message in (file.message_type.add(name="Click"), file.message_type.add(name="View")):
        for number, (name, kind) in enumerate(types.items(), 1):
            field = message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
            field.proto3_optional, field.oneof_index = True, number - 1
            message.oneof_decl.add(name=f"_{name}")
    path = folder / "events.fds"
    path.write_bytes(described.SerializeToString())
    click = message_factory.GetMessageClass(load_descriptor(str(path), "events.Click"))
    return path, [
        click(**{name: value for name, value in row.items() if value is not None}).SerializeToString() for row in rows
    ]


FRAMED = {
    "framed": (lambda good: b"\0\0\0\0\x07\0" + good, None),
    "of another type": (lambda good: b"\0\0\0\0\x07\2\2" + good, "undecodable"),
    "of a frame version that is not known": (lambda good: b"\1\0\0\0\x07\0" + good, "undecodable"),
    "of negative length": (lambda good: b"\x2a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + good, "undecodable"),
    "tombstone": (lambda good: None, "empty"),
}


@pytest.mark.parametrize("name", FRAMED)
def test_protobuf_message_of_another_make_goes_to_the_dead_letters(
    name: str, run: Callable[..., Ran], stage: Stage, embedded_broker, tmp_path: Path
) -> None:
    make, reason = FRAMED[name]
    table = pq.read_table(stage.folder / "part-0.parquet")
    fresh = {**table.slice(0, 1).to_pylist()[0], "event_id": "fresh", "label": 1.0, "kind": 1, "time_ms": 70_000}
    file, payloads = protobuf(tmp_path, [*table.to_pylist(), fresh])
    topic = embedded_broker.topic()
    embedded_broker.produce(topic, [*payloads[:-1], make(payloads[-1])])
    stream = f'brokers: "{embedded_broker.bootstrap}" topic: "{topic}" stop_at_end: true format: PROTOBUF'
    told = f'{stream} protobuf_message: "events.Click" protobuf_descriptor_file: "{file}"'
    config = dataclasses.replace(stage, stream=told).config(tmp_path / "model")
    assert run("trainer", config).code == 0
    text = run("headrace", "status", tmp_path / "model", "--json").text
    assert f"received={stage.rows + 1} " in text
    assert ("trained=544 " if reason else "trained=545 ") in text, text
    assert (reason or "null_label") in run("headrace", "dlq", "ls", config).text


def tensor(name: str, data: list[object], datatype: str = "INT64") -> dict[str, object]:
    return {"name": name, "shape": [len(data)], "datatype": datatype, "data": data}


GOOD = [tensor("user", [1, 2]), tensor("item", [1, 2]), tensor("kind", [1, 2])]
REQUESTS: dict[str, tuple[list[dict[str, object]], str]] = {
    "missing": (GOOD[:2], "input 'kind' is missing"),
    "misspelt": ([*GOOD[:2], tensor("knid", [1, 2])], "'knid'"),
    "wrongly typed": ([*GOOD[:2], tensor("kind", ["a", "b"], "BYTES")], "'kind'"),
    "not what its type says": ([*GOOD[:2], tensor("kind", ["a", "b"])], "'kind'"),
    "empty": ([*GOOD[:2], tensor("kind", [])], "input 'kind' is empty"),
    "shorter than the others": ([*GOOD[:2], tensor("kind", [1])], "'kind'"),
}


def test_bad_requests_are_answered_by_a_replica_that_goes_on(zygote: Zygote, trained: Path, tmp_path: Path) -> None:
    port = free_port()
    replica = zygote.start("headrace", ["serve", str(trained), "--port", str(port)], log=tmp_path / "replica.log")
    try:
        while post(port, GOOD)[0] != 200:
            assert replica.poll() is None, replica.text()
            time.sleep(0.05)
        for name, (inputs, words) in REQUESTS.items():
            status, answer = post(port, inputs)
            assert status == 400 and words in answer["error"], (name, status, answer)
            assert post(port, GOOD)[0] == 200, name
    finally:
        replica.signal(signal.SIGTERM)
    assert replica.wait(60) == 0 and "Traceback" not in replica.text(), replica.text()


def post(port: int, inputs: list[dict[str, object]]) -> tuple[int, dict[str, str]]:
    """The status and the answer; 0 while nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", "/v2/models/headrace/infer", json.dumps({"inputs": inputs}))
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    except ConnectionError:
        return 0, {}
    finally:
        connection.close()
