"""The newest pointer that was seen, across restarts."""

import errno
import logging
import os
from pathlib import Path

import pytest

from publisher.replica.errors import StartError
from publisher.replica.options import ServeOptions
from publisher.replica.seen import Seen


def test_number_is_remembered_across_restarts(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    seen = Seen(path, "dir")
    assert seen.generation == 0
    for generation in (3, 3, 7):
        seen.saw(generation)
    assert Seen(path, "dir").generation == 7
    assert [found.name for found in tmp_path.iterdir()] == ["state.json"]


def test_file_is_durable_before_it_takes_the_place_of_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.json"
    Seen(path, "dir").saw(3)

    def power_fails(_descriptor: int) -> None:
        raise OSError(errno.EIO, "the power failed")

    monkeypatch.setattr(os, "fsync", power_fails)
    Seen(path, "dir").saw(7)
    assert Seen(path, "dir").generation == 3


def test_without_a_file_it_is_forgotten() -> None:
    seen = Seen(None, "dir")
    seen.saw(7)
    assert (seen.generation, Seen(None, "dir").generation) == (7, 0)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"generation":"7","url":"dir"}', b'{"generation": 7}'])
def test_damaged_file_ends_the_start(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(damage)
    with pytest.raises(StartError, match="then delete the file"):
        Seen(path, "dir")


def test_file_of_another_directory_or_in_none_ends_the_start(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    Seen(path, "dir").saw(1)
    with pytest.raises(StartError, match="is of model directory dir, not of other"):
        Seen(path, "other")
    with pytest.raises(StartError, match="is no directory"):
        Seen(tmp_path / "nowhere" / "state.json", "dir")
    with pytest.raises(StartError, match="--verify-key-file too"):
        ServeOptions(state_file=path)


def test_file_that_cannot_be_written_is_told_of_once_and_serving_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    seen = Seen(folder / "state.json", "dir")
    folder.rmdir()
    with caplog.at_level(logging.ERROR):
        seen.saw(1)
        seen.saw(2)
    assert (seen.generation, caplog.text.count("state file not written")) == (2, 1)
    folder.mkdir()
    seen.saw(3)
    assert Seen(folder / "state.json", "dir").generation == 3
