"""`python -m benchmarks [NAME ...] [--quick]`: measure, put the figures into benchmarks/results, show them."""

import argparse
import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.catalogue import SCRIPTS, Script
from benchmarks.figure import Figure, figure_from
from benchmarks.results import Latest, Machine, merge, write_markdown

RESULTS = Path(__file__).parent / "results"
_TIMEOUT_S = 1800

logger = logging.getLogger("benchmarks")


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the named scripts, or all; exit code 1 when one of them failed to measure."""
    names = [script.name for script in SCRIPTS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"of {', '.join(names)}; none: all")
    parser.add_argument("--quick", action="store_true", help="small runs that show that the scripts work")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of latest.json and the markdown")
    args = parser.parse_args(arguments)
    if unknown := sorted(set(args.names) - set(names)):
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(names)}")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    failed, latest = [], merge(args.results, [], now=datetime.now().astimezone(), quick=args.quick)
    for script in (script for script in SCRIPTS if not args.names or script.name in args.names):
        figures = run(script, quick=args.quick, environment=environment)
        failed += [] if figures else [script.name]
        now = datetime.now().astimezone()
        latest = merge(args.results, figures, now=now, quick=args.quick)
        # After every script: what an interrupted run has measured is there.
        write_markdown(args.results, latest, commands(), machine=Machine.here(), day=f"{now:%Y-%m-%d}")
    Console().print(_show(latest))
    if failed:
        logger.error("not measured: %s", ", ".join(failed))
    return 1 if failed else 0


def run(script: Script, *, quick: bool, environment: Mapping[str, str]) -> list[Figure]:
    """Run one script in a process of its own and return its figures; none when it failed."""
    command = [sys.executable, "-m", f"benchmarks.{script.name}", *(["--quick"] if quick else [])]
    logger.info("running %s load=%.1f", " ".join(command[1:]), os.getloadavg()[0])
    env = {**environment, "OMP_NUM_THREADS": str(script.threads), "RAYON_NUM_THREADS": str(script.threads)}
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        return []
    return [figure_from(document) for document in json.loads(done.stdout)]


def commands() -> dict[str, str]:
    """How each script is run alone, and which figures it measures."""
    made = {}
    for script in SCRIPTS:
        threads = f"OMP_NUM_THREADS={script.threads} RAYON_NUM_THREADS={script.threads}"
        made[f"{threads} python -m benchmarks.{script.name}"] = ", ".join(script.figures)
    return made


def _show(latest: Latest) -> Table:
    table = Table("figure", "value", "floor or peer", "ratio", "goal", "meets", "measured")
    for name, entry in sorted(latest.items()):
        cells = [entry[key] for key in ("floor_or_peer", "ratio", "goal", "meets")]
        shown = ["" if cell is None else str(cell) for cell in cells]
        table.add_row(name, f"{entry['value']} {entry['unit']}", *shown, str(entry["measured"]))
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
