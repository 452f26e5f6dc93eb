"""`python -m benchmarks.faults N [--ranks R]`: N kills, a few a run; each run must end as the one without kills."""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.faults.harness import plan, points, run_to_end
from benchmarks.faults.processes import Zygote
from benchmarks.faults.stage import prepare

KILLS_PER_RUN = 8


def main(arguments: list[str]) -> int:
    """Run the kills; exit code 1 when a run ended differently."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults")
    parser.add_argument("kills", type=int, nargs="?", default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=1)
    args = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="headrace-faults-"))
    stage = prepare(folder / "data")
    started, happened, differing = time.monotonic(), 0, []
    with Zygote(folder / "log") as zygote:
        reached = points(zygote, stage, folder / "points", ranks=args.ranks)
        expected = run_to_end(zygote, stage, folder / "expected", [], ranks=args.ranks)
        for run in range(-(-args.kills // KILLS_PER_RUN)):
            kills = plan(reached, kills=min(KILLS_PER_RUN, args.kills - run * KILLS_PER_RUN), seed=args.seed + run)
            result = run_to_end(zygote, stage, folder / f"run-{run}", kills, ranks=args.ranks)
            happened += result.kills
            if not result.same_state(expected):
                differing.append({"run": run, "kills": [str(kill) for kill in kills]})
            else:
                shutil.rmtree(folder / f"run-{run}")
    answer = {
        "kills": happened,
        "planned": args.kills,
        "ranks": args.ranks,
        "points": len(reached),
        "runs_that_differ": differing,
        "accounting": expected.accounting,
        "seconds": round(time.monotonic() - started, 1),
        "folder": str(folder),
    }
    sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    if not differing:
        shutil.rmtree(folder)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
