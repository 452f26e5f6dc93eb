"""Each small file of a model directory, damaged in each way, under each command: one line, with the remedy."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkpointer import compact
from checkpointer.local_store import LocalStore
from publisher.codec import encode_pin, encode_pointer, encode_version
from publisher.manifest import Base, Blob, Pin, Pointer, ServingVersion, manifest_path

NUMBER = "00000000000000000002"
COMMANDS = (
    "status",
    "log ls",
    "log show",
    "log show served",
    "log verify",
    "log compact",
    "log revert 1",
    "rollback 1",
)

# What each command says of it; a command that is not named does without the file.
LOG = {"status", "log ls", "log show", "log show served", "log compact", "log revert 1"}
READ_BY = {
    "epoch.json": LOG,
    "log/00000000000000000003.json": LOG - {"log ls"},
    "bases/00000000000000000002.json": {"log compact"},
    "current.json": {"status", "log show served"},
    "pin.json": {"status"},
    f"versions/{NUMBER}/manifest.json": {"status", "log show served"},
    "versions/00000000000000000001/manifest.json": {"rollback 1"},
    "log/_head": set(),
}
# A rollback replaces a pointer and a pin that are damaged, not those of a newer program.
REPLACED = {("rollback 1", "newer format", path) for path in ("current.json", "pin.json")}
REMEDIES = ("restore", "delete", "writes it anew", "upgrade headrace", "update headrace")
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "garbled": lambda data: b"\xff\x00" + data[2:],
    "other type": lambda data: b"[]\n",
    "newer format": lambda data: b'{"format":99}' + b"\n" * data.endswith(b"\n"),
}


@pytest.fixture
def served(model_dir: Path) -> Path:
    """The three commits, a compacted base, two versions, a pointer and a pin."""
    store = LocalStore(model_dir)
    compact(store, 2)
    empty = Blob.of("contracts/c/empty.config", b"")
    store.put_if_absent(empty.path, b"")
    for number in (1, 2):
        store.put_if_absent(manifest_path(number), encode_version(version(number, empty), None))
    digest = Blob.of("", store.get(manifest_path(2))).digest
    pointer = Pointer(version=2, digest=digest, generation=7, swapped_ms=1)
    store.put_if_absent("current.json", encode_pointer(pointer))
    store.put_if_absent("pin.json", encode_pin(Pin(version=2, pinned_ms=1)))
    return model_dir


def version(number: int, blob: Blob) -> ServingVersion:
    return ServingVersion(
        version=number,
        previous=None,
        chain="c",
        commit="d",
        series="s",
        contract="contract",
        features="features",
        step=number,
        event_time_ms=number,
        watermark_ms=-1,
        broker_time_ms=-1,
        created_ms=1,
        encoding="fp32",
        tables=(),
        base=Base(seq=number, rows=0, blobs=()),
        deltas=(),
        dense=blob,
        artefacts=(),
        config=blob,
        layout=blob,
        stream=(),
        metrics={},
        assets=(),
        described=None,
    )


def run(headrace: Callable[..., Any], command: str, folder: Path) -> Any:
    words = command.split()
    place = 1 if words[0] in ("status", "rollback") else 2
    return headrace(*words[:place], folder, *words[place:])


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("path", READ_BY)
def test_a_damaged_file_is_one_line_with_its_remedy(
    headrace: Callable[..., Any], served: Path, tmp_path: Path, path: str, damage: str
) -> None:
    (served / path).write_bytes(DAMAGES[damage]((served / path).read_bytes()))
    for number, command in enumerate(COMMANDS):
        ran = run(headrace, command, shutil.copytree(served, tmp_path / f"copy{number}"))
        told = ran.errors.strip().splitlines()
        if command == "log verify":
            assert ran.code == (path != "log/_head") and (ran.code == 0 or path in ran.out), command
        elif command in READ_BY[path] or (command, damage, path) in REPLACED:
            assert ran.code in (1, 2) and len(told) == 1, (command, ran)
            assert path in told[0] and any(remedy in told[0] for remedy in REMEDIES), (command, told)
        else:
            assert ran.code == 0, (command, ran)


def test_sound_files_make_no_command_fail(headrace: Callable[..., Any], served: Path, tmp_path: Path) -> None:
    for number, command in enumerate(COMMANDS):
        ran = run(headrace, command, shutil.copytree(served, tmp_path / f"copy{number}"))
        assert ran.code == 0, (command, ran)
