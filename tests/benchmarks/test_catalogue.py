"""Every figure that the issue asks for has a script, and scripts that are cheap run here."""

import importlib
import inspect
import json
from pathlib import Path

import pytest

from benchmarks.__main__ import RESULTS, main
from benchmarks.catalogue import SCRIPTS

KEYS = {"value", "unit", "floor_or_peer", "ratio", "goal", "meets"}
ASKED = {
    "staleness_p50",
    "staleness_p99",
    "online_tax",
    "online_tax_whole",
    "arrow_to_batch",
    "kafka_to_batch",
    "delta_bytes_per_row_int8",
    "delta_bytes_per_row_fp32",
    "seal_pause_p99",
    "recovery_standby",
    "recovery_cold",
    "lookup_p99_during_swap",
    "features_mix",
    "features_mix_beside_polars",
    "features_mix_beside_duckdb",
    "features_request_p99",
}


def test_every_figure_that_was_asked_for_has_a_script() -> None:
    assert {figure for script in SCRIPTS for figure in script.figures} >= ASKED


@pytest.mark.parametrize("name", [script.name for script in SCRIPTS])
def test_every_script_can_measure(name: str) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    assert list(inspect.signature(module.measure).parameters) == ["quick"]
    assert module.__doc__


@pytest.mark.parametrize("script", [script for script in SCRIPTS if script.cheap], ids=lambda script: script.name)
def test_cheap_scripts_measure_what_they_promise(script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = main([script.name, "--quick", "--results", str(tmp_path)], {"PATH": "/usr/bin:/bin"})
    latest = json.loads((tmp_path / "latest.json").read_text())
    assert code == 0
    assert set(latest) == set(script.figures)
    for entry in latest.values():
        assert entry.keys() >= KEYS
        assert entry["value"] > 0
        assert isinstance(entry["meets"], bool)
        assert entry["quick"] is True


def test_an_unknown_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["latency", "--results", str(tmp_path)], {})
    assert ended.value.code == 2
    assert "no benchmark is called latency" in capsys.readouterr().err


def test_committed_results_are_of_full_runs_and_complete() -> None:
    latest = json.loads((RESULTS / "latest.json").read_text())
    assert latest.keys() >= ASKED
    for name, entry in latest.items():
        assert entry.keys() >= KEYS, name
        assert entry["quick"] is False, name
        assert (entry["meets"] is None) == (entry["goal"] is None), name
