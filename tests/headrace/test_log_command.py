"""`headrace log`, `status` and `rollback` on a commit log."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from publisher.codec import encode_pin
from publisher.manifest import Pin


def test_log_ls_lists_the_commits(headrace: Callable[..., Any], model_dir: Path) -> None:
    ran = headrace("log", "ls", model_dir, "--json")
    assert ran.code == 0
    assert [line["seq"] for line in json.loads(ran.out)] == [1, 2, 3]
    shown = headrace("log", "ls", model_dir, "--last", 1)
    assert [line.split()[0] for line in shown.out.splitlines()] == ["seq", "3"]


def test_log_show_tells_tables_positions_and_accounting(headrace: Callable[..., Any], model_dir: Path) -> None:
    found = json.loads(headrace("log", "show", model_dir, 2, "--json").out)
    assert found["tables"] == {"user/zch": {"put": 2, "deleted": 0}}
    assert found["stream"][0]["cursors"][0]["offset"] == "20"
    assert found["figures"] == {"auc": 0.5}
    assert json.loads(headrace("log", "show", model_dir, "--json").out)["seq"] == 3
    lines = headrace("log", "show", model_dir, 2).out.splitlines()
    assert lines[lines.index("tables") + 1] == "  user/zch  put=2 deleted=0"
    assert "offset=20" in lines[lines.index("cursors") + 1]


def test_log_show_says_which_rows_of_the_stream_a_commit_learned(headrace: Callable[..., Any], model_dir: Path) -> None:
    learned = {"clicks/0": {"from": "10:0", "until": "20:0", "since_commit": 1}}
    assert json.loads(headrace("log", "show", model_dir, 2, "--json").out)["learned"] == learned
    first = json.loads(headrace("log", "show", model_dir, 1, "--json").out)["learned"]
    assert first == {"clicks/0": {"from": "the start", "until": "10:0", "since_commit": 0}}
    lines = headrace("log", "show", model_dir, 2).out.splitlines()
    assert lines[lines.index("learned") + 1] == "  clicks/0  from=10:0 until=20:0 since_commit=1"


def test_log_show_of_the_served_version_needs_one(headrace: Callable[..., Any], model_dir: Path) -> None:
    ran = headrace("log", "show", model_dir, "served")
    assert ran.code == 2 and "serves no version yet" in ran.errors
    with pytest.raises(SystemExit, match="2"):
        headrace("log", "show", model_dir, "newest")


def test_log_show_names_a_commit_that_is_not_there(headrace: Callable[..., Any], model_dir: Path) -> None:
    ran = headrace("log", "show", model_dir, 9)
    assert ran.code == 1
    assert "9.json: missing" in ran.errors
    assert ran.errors.count("\n") == 1


@pytest.mark.parametrize("command", ["show", "ls", "verify"])
def test_log_of_an_empty_directory_says_what_to_do(headrace: Callable[..., Any], tmp_path: Path, command: str) -> None:
    ran = headrace("log", command, tmp_path)
    assert ran.code == 2
    assert "holds no commit yet; train first" in ran.errors


def test_log_verify_is_sound_until_a_bit_flips(headrace: Callable[..., Any], model_dir: Path) -> None:
    assert headrace("log", "verify", model_dir).code == 0
    blob = next(model_dir.glob("log/blobs/**/*.blob"))
    content = bytearray(blob.read_bytes())
    content[len(content) // 2] ^= 1
    blob.chmod(0o644)
    blob.write_bytes(content)
    ran = headrace("log", "verify", model_dir, "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["findings"][0]["flaw"] == "altered"
    assert "1 flaw\n" in headrace("log", "verify", model_dir).out


def test_log_verify_names_what_is_broken_beside_the_log_too(headrace: Callable[..., Any], model_dir: Path) -> None:
    (model_dir / "epoch.json").write_bytes(b"")
    (model_dir / "current.json").write_bytes(b'{"format"')
    (model_dir / "pin.json").write_bytes(encode_pin(Pin(version=9, pinned_ms=1)))
    (model_dir / "versions" / f"{7:020d}").mkdir(parents=True)
    (model_dir / "versions" / f"{7:020d}" / "manifest.json").write_bytes(b"[]")
    ran = headrace("log", "verify", model_dir)
    assert ran.code == 1
    assert [tuple(line.split()[:2]) for line in ran.out.splitlines()[:-1]] == [
        ("truncated", "epoch.json:"),
        ("missing", "log/00000000000000000007.json:"),
        ("missing", "log/00000000000000000009.json:"),
        ("corrupt", "current.json:"),
        ("missing", "versions/00000000000000000009/manifest.json:"),
        ("format", "versions/00000000000000000007/manifest.json:"),
    ]
    found = json.loads(headrace("log", "verify", model_dir, "--json").out)
    assert len(found["findings"]) == 6 and found["commits"] == 3


def test_log_verify_tells_of_a_commit_that_is_only_staged(headrace: Callable[..., Any], model_dir: Path) -> None:
    (model_dir / "log" / f"{3:020d}.json").unlink()
    ran = headrace("log", "verify", model_dir)
    assert ran.code == 0 and "commit 3 staged but without a manifest (at work, killed, or lost): sound" in ran.out


def test_log_compact_writes_a_base(headrace: Callable[..., Any], model_dir: Path) -> None:
    done = json.loads(headrace("log", "compact", model_dir, "--json").out)
    assert done["base"] == 3
    restored = CommitLog(LocalStore(model_dir)).restore()
    assert sum(len(part) for part in restored.tables) == 6
    assert headrace("log", "verify", model_dir).code == 0


def test_log_revert_goes_on_from_an_older_commit(headrace: Callable[..., Any], model_dir: Path) -> None:
    ran = headrace("log", "revert", model_dir, 1, "--from-now")
    assert ran.code == 0, ran.errors
    head = CommitLog(LocalStore(model_dir)).head()
    assert head is not None
    assert (head.seq, head.step, head.from_now) == (4, 1, True)
    assert head.forked is not None
    assert head.forked.seq == 1


def test_status_before_the_first_training_says_who_makes_the_directory(
    headrace: Callable[..., Any], tmp_path: Path
) -> None:
    ran = headrace("status", tmp_path / "soon")
    assert (ran.code, ran.out) == (2, "")
    assert "is no directory; give the model_dir of the configuration, which its trainer makes" in ran.errors


def test_status_tells_commit_version_and_accounting(headrace: Callable[..., Any], model_dir: Path) -> None:
    found = json.loads(headrace("status", model_dir, "--json").out)
    assert found["commit"]["seq"] == 3
    assert found["version"] == {"served": "none yet"}
    assert found["accounting"]["clicks"].startswith("received=30 trained=30 late=0")
    assert "unknown" in found["lag"]
    shown = headrace("status", model_dir).out
    assert "received=30" in shown and "_ms" not in shown
    assert re.search(r"^  age +\d+ d \d+ h$", shown, re.MULTILINE), shown


def test_status_asks_the_brokers_for_the_lag(
    headrace: Callable[..., Any], model_dir: Path, write_config: Callable[..., Path], embedded_broker: Any
) -> None:
    embedded_broker.create("clicks")
    embedded_broker.produce("clicks", [b"x"] * 37)
    path = write_config(brokers=embedded_broker.bootstrap)
    found = json.loads(headrace("status", model_dir, "--config", path, "--json").out)
    assert found["lag"] == {"clicks/0": 7}


def test_status_still_tells_the_rest_when_the_brokers_are_down(
    headrace: Callable[..., Any], model_dir: Path, write_config: Callable[..., Path]
) -> None:
    ran = headrace("status", model_dir, "--config", write_config(brokers="127.0.0.1:9"), "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert "127.0.0.1:9" in found["lag"]["unknown"]
    assert found["commit"]["seq"] == 3


@pytest.mark.parametrize("arguments", [["rollback"], ["rollback", "1"]])
def test_rollback_says_that_nothing_is_served(
    headrace: Callable[..., Any], model_dir: Path, arguments: list[str]
) -> None:
    command, *seq = arguments
    ran = headrace(command, model_dir, *seq)
    assert ran.code == 1
    assert "nothing is served" in ran.errors
