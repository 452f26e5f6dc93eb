"""`latest.json` and the dated markdown: what was measured, where, how, and why a figure misses its goal."""

import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.figure import Figure

Latest = dict[str, dict[str, object]]

_LIBRARIES = ("torch", "torchrec", "fbgemm-gpu-cpu", "pyarrow", "numba", "confluent-kafka")


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """Where a figure was measured."""

    processor: str
    cores: int
    memory_gib: float
    system: str

    @classmethod
    def here(cls) -> "Machine":
        """This one."""
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        return cls(
            processor=names[0] if names else platform.machine(),
            cores=os.cpu_count() or 1,
            memory_gib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
            system=f"Linux {platform.release()}",
        )

    @property
    def slug(self) -> str:
        """For file names.

        >>> Machine(processor="AMD EPYC", cores=2, memory_gib=8.0, system="Linux").slug
        'amd-epyc-2-cores'
        """
        words = "".join(c if c.isalnum() else " " for c in self.processor.lower()).split()
        return "-".join([*words[:4], str(self.cores), "cores"])


def merge(folder: Path, figures: Iterable[Figure], *, now: datetime, quick: bool) -> Latest:
    """Put `figures` into `latest.json`; those of earlier runs stay, with their date."""
    path = folder / "latest.json"
    latest: Latest = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for figure in figures:
        latest[figure.name] = {**figure.document(), "measured": now.isoformat(timespec="seconds"), "quick": quick}
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(latest, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return latest


def write_markdown(folder: Path, latest: Latest, commands: Mapping[str, str], *, machine: Machine, day: str) -> Path:
    """Write `DAY-MACHINE.md`; what stands below its line `## Profiles`, written by hand, stays.

    `commands` are what each names in a comment.
    """
    path = folder / f"{day}-{machine.slug}.md"
    kept = path.read_text(encoding="utf-8").partition("\n## Profiles\n")[2] if path.exists() else ""
    missed = [name for name, entry in latest.items() if entry["meets"] is False]
    asked = [f"\n### {name}\n\nNot profiled yet.\n" for name in missed if f"### {name}\n" not in kept]
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    lines = [
        f"# Figures of {day}",
        "",
        f"{machine.processor}, {machine.cores} cores, {machine.memory_gib:.1f} GiB, {machine.system}; {libraries}.",
        "",
        *_table(latest),
        "",
        "## Commands",
        "",
        *[f"    {command}  # {names}" for command, names in commands.items()],
        "",
        "## Profiles",
    ]
    path.write_text("\n".join(lines) + "\n" + kept + "".join(asked), encoding="utf-8")
    return path


_COLUMNS = ("figure", "value", "floor or peer", "ratio", "goal", "meets", "measured", "note")


def _table(latest: Latest) -> list[str]:
    rows = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    for name in sorted(latest):
        entry = latest[name]
        mark = "" if entry["meets"] is None else "yes" if entry["meets"] else "**no**"
        cells = [name, f"{entry['value']} {entry['unit']}"]
        cells += [_cell(entry[key]) for key in ("floor_or_peer", "ratio", "goal")]
        rows.append(f"| {' | '.join([*cells, mark, str(entry['measured']), str(entry['note'])])} |")
    return rows


def _cell(value: object) -> str:
    return "" if value is None else str(value)
