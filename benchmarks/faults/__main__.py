"""`python -m benchmarks.faults N [--ranks R | --mixed]`: N kills; each run must end as the one without kills."""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.broker import ApacheKafka
from benchmarks.faults.harness import plan, points, run_to_end
from benchmarks.faults.mixed import PARTS, ROWS_PER_KILL, run_mixed
from benchmarks.faults.processes import Zygote
from benchmarks.faults.stage import prepare

KILLS_PER_RUN = 8


def main(arguments: list[str]) -> int:
    """Run the kills; exit code 1 when a run ended differently."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults")
    parser.add_argument("kills", type=int, nargs="?", default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--mixed", action="store_true", help="of anything: two ranks, publisher, replica, Apache Kafka")
    args = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="headrace-faults-"))
    started = time.monotonic()
    answer, sound = (
        _mixed(folder, args.kills, args.seed) if args.mixed else _points(folder, args.kills, args.seed, args.ranks)
    )
    answer |= {"planned": args.kills, "seconds": round(time.monotonic() - started, 1), "folder": str(folder)}
    sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    if sound:
        shutil.rmtree(folder)
    return 0 if sound else 1


def _points(folder: Path, kills: int, seed: int, ranks: int) -> tuple[dict[str, object], bool]:
    """Kills at named points, a few in each run."""
    stage = prepare(folder / "data")
    happened, differing = 0, []
    with Zygote(folder / "log") as zygote:
        reached = points(zygote, stage, folder / "points", ranks=ranks)
        expected = run_to_end(zygote, stage, folder / "expected", [], ranks=ranks)
        for run in range(-(-kills // KILLS_PER_RUN)):
            planned = plan(reached, kills=min(KILLS_PER_RUN, kills - run * KILLS_PER_RUN), seed=seed + run)
            result = run_to_end(zygote, stage, folder / f"run-{run}", planned, ranks=ranks)
            happened += result.kills
            if not result.same_state(expected):
                differing.append({"run": run, "kills": [str(kill) for kill in planned]})
            else:
                shutil.rmtree(folder / f"run-{run}")
    answer: dict[str, object] = {
        "kills": happened,
        "ranks": ranks,
        "points": len(reached),
        "runs_that_differ": differing,
        "accounting": expected.accounting,
    }
    return answer, not differing


def _mixed(folder: Path, kills: int, seed: int) -> tuple[dict[str, object], bool]:
    """Kills of any process of one long run."""
    stage = prepare(folder / "data", rows=ROWS_PER_KILL * (kills + 1), parts=PARTS)
    with Zygote(folder / "log") as zygote, ApacheKafka(folder / "kafka") as kafka:
        mixed = run_mixed(zygote, kafka, stage, folder, kills=kills, seed=seed)
    answer: dict[str, object] = {
        "kills": mixed.found.kills,
        "killed": mixed.killed,
        "same_state": mixed.found.same_state(mixed.expected),
        "versions_answered": mixed.versions_answered,
        "torn": mixed.torn,
        "strange_answers": mixed.strange,
        "served": mixed.served,
        "published": mixed.published,
        "accounting": mixed.found.accounting,
        "accounting_expected": mixed.expected.accounting,
    }
    return answer, mixed.sound()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
