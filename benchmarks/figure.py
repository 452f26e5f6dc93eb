"""One measured figure, what it is held against, and how a script prints its own."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A figure as `latest.json` holds it.

    `floor_or_peer` is what the value is held against, in the same run; `ratio` relates the two, where they relate.
    `goal` reads as in the issue's table; a figure that only stands beside another one has none, and meets nothing.

    >>> Figure(name="a", value=2.0, unit="s", goal="<= 3 s", meets=True).document()["floor_or_peer"] is None
    True
    """

    name: str
    value: float
    unit: str
    floor_or_peer: float | None = None
    ratio: float | None = None
    goal: str | None = None
    meets: bool | None = None
    note: str = ""

    def document(self) -> dict[str, object]:
        """Everything but the name, rounded to what can be told apart."""
        fields: dict[str, object] = {key: _short(value) for key, value in asdict(self).items()}
        del fields["name"]
        return fields


def figure_from(document: dict[str, object]) -> Figure:
    """Read what `document` wrote, its name beside it."""
    return Figure(**document)  # type: ignore[arg-type]


def run_script(arguments: Sequence[str], about: str | None, measure: Callable[[bool], list[Figure]]) -> int:
    """What every script's `main` does: measure, print the figures as one JSON array."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small run that shows that the script works")
    quick = bool(parser.parse_args(arguments).quick)
    figures = measure(quick)
    sys.stdout.write(json.dumps([{"name": f.name, **f.document()} for f in figures], indent=2) + "\n")
    return 0


def load() -> str:
    """The machine's load average of the last minute, as notes show it."""
    return f"load {os.getloadavg()[0]:.1f}"


def _short(value: object) -> object:
    return float(f"{value:.5g}") if isinstance(value, float) else value
