"""`latest.json` and the markdown over several runs."""

import json
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.figure import Figure
from benchmarks.results import Machine, merge, write_markdown

MACHINE = Machine(processor="A B", cores=2, memory_gib=4.0, system="Linux 1")
DAY = datetime(2026, 1, 2, tzinfo=UTC)


def figure(name: str, value: float, *, meets: bool = True) -> Figure:
    return Figure(name=name, value=value, unit="s", floor_or_peer=1.0, ratio=value, goal="<= 1", meets=meets)


def test_figures_of_earlier_runs_stay_with_their_date(tmp_path: Path) -> None:
    merge(tmp_path, [figure("a", 1.0), figure("b", 1.0)], now=DAY, quick=False)
    merge(tmp_path, [figure("b", 2.0)], now=DAY.replace(day=3), quick=True)
    latest = json.loads((tmp_path / "latest.json").read_text())
    assert (latest["a"]["value"], latest["a"]["measured"][:10], latest["a"]["quick"]) == (1.0, "2026-01-02", False)
    assert (latest["b"]["value"], latest["b"]["measured"][:10], latest["b"]["quick"]) == (2.0, "2026-01-03", True)


def test_markdown_shows_machine_commands_and_asks_for_profiles_of_what_misses(tmp_path: Path) -> None:
    latest = merge(tmp_path, [figure("fine", 1.0), figure("slow", 2.0, meets=False)], now=DAY, quick=False)
    path = write_markdown(tmp_path, latest, {"run slow": "slow"}, machine=MACHINE, day="2026-01-02")
    text = path.read_text()
    assert path.name == "2026-01-02-a-b-2-cores.md"
    assert "A B, 2 cores, 4.0 GiB" in text
    assert "    run slow  # slow" in text
    assert "### slow" in text
    assert "### fine" not in text


def test_profiles_written_by_hand_stay_in_the_markdown(tmp_path: Path) -> None:
    latest = merge(tmp_path, [figure("slow", 2.0, meets=False)], now=DAY, quick=False)
    path = write_markdown(tmp_path, latest, {}, machine=MACHINE, day="2026-01-02")
    path.write_text(path.read_text() + "\nit waits for the disk\n")
    latest = merge(tmp_path, [figure("slow", 3.0, meets=False)], now=DAY, quick=False)
    write_markdown(tmp_path, latest, {}, machine=MACHINE, day="2026-01-02")
    text = path.read_text()
    assert "it waits for the disk" in text
    assert "3.0 s" in text
    assert text.count("### slow") == 1


def test_a_figure_that_begins_to_miss_asks_for_a_profile(tmp_path: Path) -> None:
    write_markdown(tmp_path, merge(tmp_path, [figure("a", 1.0)], now=DAY, quick=False), {}, machine=MACHINE, day="d")
    latest = merge(tmp_path, [figure("a", 2.0, meets=False)], now=DAY, quick=False)
    assert "### a\n" in write_markdown(tmp_path, latest, {}, machine=MACHINE, day="d").read_text()
