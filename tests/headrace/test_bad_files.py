"""Commands and the files that they are given: each that cannot be used is named in one clear line."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trainer.__main__ import run as trainer

ROWS = pa.table({"user_id": ["a"], "slot": [1], "price": [0.5], "clicked": [1.0], "at": [5], "event": ["w"]})
LINES = "user_id,slot,price,clicked,at,event\na,1,0.5,1,5,w\n"
NO_PARQUET = "is no readable Parquet file"
PARQUET = {
    "absent.parquet": "matches no file",
    "*.absent": "matches no file",
    "folder.parquet": "is a folder without a file that ends in .parquet",
    "empty.parquet": NO_PARQUET,
    "csv.parquet": NO_PARQUET,
    "cut.parquet": NO_PARQUET,
    "other.parquet": "lacks the columns",
}
CSV = {
    "absent.csv": "matches no file",
    "folder.csv": "is a folder without a file that ends in .csv",
    "empty.csv": "has no readable header",
    "utf16.csv": "has no readable header: 'utf-8' codec can't decode",
    "semicolon.csv": "has one column, 'user_id;slot;price;clicked;at;event': data_config.delimiter is ','; is it ';'?",
    "parquet.csv": "is a Parquet file, no CSV; set data_config.dataset_type: ParquetDataset",
}
CONFIGS = {
    "absent.config": "cannot be read: No such file",
    "folder.config": "cannot be read: Is a directory",
    "utf16.config": "is not UTF-8 text (byte 0xff at 0); save it as UTF-8",
    "latin1.config": "is not UTF-8 text (byte 0xef at",
    "nul.config": r"is not valid text format: '\x00\x00'",
    "parquet.config": "is not UTF-8 text",
    "empty.config": "model_dir: is not set",
}


@pytest.fixture
def files(tmp_path: Path, write_config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with every kind of file; `csv.config` reads CSV."""
    monkeypatch.chdir(tmp_path)
    config = write_config(form="format: ARROW_IPC broker_wait_ms: 300").read_text()
    pq.write_table(ROWS, "good.parquet")
    pq.write_table(ROWS.slice(0, 0), "none.parquet")
    pq.write_table(pa.table({"x": [1]}), "other.parquet")
    whole = Path("good.parquet").read_bytes()
    for name in ("folder.parquet", "folder.csv", "folder.config", "folder"):
        Path(name).mkdir()
    contents = {
        "empty.parquet": b"", "csv.parquet": LINES.encode(), "cut.parquet": whole[:200], "empty.csv": b"",
        "utf16.csv": LINES.encode("utf-16"), "semicolon.csv": LINES.replace(",", ";").encode(), "parquet.csv": whole,
        "latin1.csv": LINES.replace("\na", "\n\xe4").encode("latin-1"), "header.csv": LINES.split("\n")[0].encode(),
        "bom.csv": LINES.encode("utf-8-sig"), "good.config": config.encode(), "bom.config": config.encode("utf-8-sig"),
        "utf16.config": config.encode("utf-16"),
        "latin1.config": config.replace("clicks", "cl\xefcks").encode("latin-1"),
        "nul.config": b"\0\0", "parquet.config": whole, "empty.config": b"",
        "csv.config": config.replace("KafkaDataset", "CsvDataset with_header: true").encode(),
    }  # fmt: skip
    for name, content in contents.items():
        Path(name).write_bytes(content)
    return tmp_path


def assert_told(ran: Any, *words: str) -> None:
    """One line beside what is logged, and nothing raised."""
    told = [line for line in ran.errors.splitlines() if not line[:4].isdigit()]
    assert ran.code in (1, 2), ran.out
    assert len(told) == 1, told
    assert told[0].startswith("headrace: ")
    for word in words:
        assert word in told[0]


@pytest.mark.parametrize("name", PARQUET)
@pytest.mark.parametrize("command", ["replay good.config {}", "features good.config --data {}"])
def test_parquet_that_cannot_be_used_is_named(
    headrace: Callable[..., Any], files: Path, command: str, name: str
) -> None:
    if name == "*.absent" and command.startswith("features"):
        name = "*.absent.parquet"
    assert_told(headrace(*command.format(name).split()), name.strip("*"), PARQUET.get(name, "matches no file"))


@pytest.mark.parametrize("name", CSV)
def test_csv_that_cannot_be_used_is_named(headrace: Callable[..., Any], files: Path, name: str) -> None:
    assert_told(headrace("features", "csv.config", "--data", name), name, CSV[name])


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(
    "command", ["train {}", "replay {} good.parquet", "features {} --data good.parquet", "config schema {}"]
)
def test_configurations_that_cannot_be_read_are_named(
    headrace: Callable[..., Any], files: Path, command: str, name: str
) -> None:
    ran = headrace(*command.format(name).split())
    assert ran.code == 2 and ran.errors.startswith(f"headrace: {name}:") and CONFIGS[name] in ran.errors
    assert ran.errors.isprintable() or ran.errors.replace("\n", "").isprintable()


def test_a_mark_at_the_beginning_is_no_part_of_a_configuration_or_of_csv(
    headrace: Callable[..., Any], files: Path
) -> None:
    assert headrace("config", "check", "bom.config").code == 0
    assert "user_id='a'" in headrace("features", "csv.config", "--data", "bom.csv").out


@pytest.mark.parametrize(("config", "name"), [("good", "none.parquet"), ("csv", "header.csv"), ("csv", "latin1.csv")])
def test_a_file_without_a_row_that_can_be_read_is_told(
    headrace: Callable[..., Any], files: Path, config: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    ran = headrace("features", f"{config}.config", "--data", name)
    assert_told(ran, f"{name} holds no rows that can be read")
    assert ("unreadable=1 left out path=latin1.csv" in caplog.text) == (name == "latin1.csv")


@pytest.mark.parametrize(
    ("out", "words"),
    [("folder", "folder is a folder; name a file in it"), ("good.config/x", "the folder good.config cannot be made")],
)
def test_what_features_cannot_write_is_named(headrace: Callable[..., Any], files: Path, out: str, words: str) -> None:
    assert_told(headrace("features", "good.config", "--data", "good.parquet", "--out", out), words)
    assert not list(files.rglob("*.part"))


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ("absent.parquet", "cannot be read: No such file"),
        ("folder.parquet", "cannot be read: Is a directory"),
        ("csv.parquet", NO_PARQUET),
        ("none.parquet", "has 0 rows"),
    ],
)
def test_what_features_cannot_compare_with_is_named(
    headrace: Callable[..., Any], files: Path, expected: str, words: str
) -> None:
    ran = headrace("features", "good.config", "--data", "good.parquet", "--compare", expected)
    assert_told(ran, expected, words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--out good.config --cache cache", "the folder good.config cannot be made: File exists; give --out"),
        ("--out good.config/x --cache cache", "the folder good.config/x cannot be made: Not a directory; give --out"),
        ("--out demo --cache good.config", "the folder good.config cannot be made: File exists; give --cache"),
        ("--out demo --cache cache", "recbole-1.whl is no whole wheel of recbole"),
    ],
)
def test_demo_names_what_it_cannot_use(headrace: Callable[..., Any], files: Path, arguments: str, words: str) -> None:
    Path("cache").mkdir()
    shutil.copy("csv.parquet", "cache/recbole-1.whl")
    assert_told(headrace("demo", *arguments.split()), words)


@pytest.mark.parametrize("name", ["absent.parquet", "csv.parquet", "folder.parquet", "semicolon.csv", "parquet.csv"])
def test_train_names_the_file_that_it_cannot_use(name: str, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind = "ParquetDataset" if name.endswith(".parquet") else "CsvDataset with_header: true"
    text = Path("good.config").read_text().replace("KafkaDataset", kind)
    Path("train.config").write_text(f'train_input_path: "{name}"\n{text}')
    assert trainer(["train.config", "--log-level", "error"], {}) == 1
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("trainer: ")]
    assert len(told) == 1 and name in told[0] and (PARQUET | CSV)[name] in told[0]


@contextmanager
def nobody() -> Iterator[None]:
    """As a user who may read nothing of others."""
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(
    ("command", "unreadable"),
    [
        ("features good.config --data good.parquet", "good.parquet"),
        ("features csv.config --data bom.csv", "bom.csv"),
        ("replay good.config good.parquet", "good.parquet"),
        ("config check good.config", "good.config"),
        ("features good.config --data good.parquet --compare none.parquet", "none.parquet"),
    ],
)
def test_files_that_may_not_be_read_are_named(
    headrace: Callable[..., Any], files: Path, command: str, unreadable: str
) -> None:
    for folder in (files, *files.parents[:3]):
        if folder.stat().st_uid == 0 and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    Path(unreadable).chmod(0)
    with nobody():
        ran = headrace(*command.split())
    assert_told(ran, unreadable, "Permission denied")
