"""What a demo may remove."""

from pathlib import Path

import pytest

from headrace.demo.errors import DemoError
from headrace.demo.folder import clear


def test_an_earlier_demo_is_removed(tmp_path: Path) -> None:
    out = tmp_path / "runs" / "demo"
    clear(out)
    (out / "model" / "log").mkdir(parents=True)
    (out / "summary.json").write_text("{}")
    clear(out)
    assert list(out.iterdir()) == []


def test_a_folder_of_the_users_own_is_left_as_it_is(tmp_path: Path) -> None:
    for name in ("pipeline.config", "thesis.tex"):
        (tmp_path / name).write_text("mine")
    with pytest.raises(DemoError, match="holds 'thesis.tex', which is not of a demo; give --out a folder of its own"):
        clear(tmp_path)
    assert (tmp_path / "pipeline.config").read_text() == "mine"
