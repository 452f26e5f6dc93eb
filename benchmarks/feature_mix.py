"""Figures features_mix* and features_request_p99: the realistic mix, beside polars and DuckDB, and one request of it.

The mix is 40 features (benchmarks/feature_inputs.py). One core, by its own time. A request is one user and 200 items.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from benchmarks import feature_inputs as mix
from benchmarks.feature_kinds import rates
from benchmarks.figure import Figure, load, run_script

ROWS = 4096
GOAL = 250_000
ITEMS = 200
GOAL_MS = 2.0
PART = ("words", "tags", "shops", "numbers", "hashed_numbers", "raw", "combo", "expr", "sequence")
"""What polars and DuckDB can express: 37 of the 40 features."""
_WHAT = (
    "37 of the 40: hashed words, tags and numbers, vocabularies, numbers within bounds, raw with its treatments, "
    "combos (joined, then hashed), expr, sequences (split, cut to 50, hashed); not the lookups and the match. The peer "
    "hashes its own way, and leaves columns, not tensors"
)


def _mix(quick: bool) -> Figure:
    found = rates(mix.feature_set(), mix.rows(ROWS), 3 if quick else 15)
    both = 1 / (1 / found["parse"] + 1 / found["validate"])
    return Figure(
        name="features_mix", value=found["parse"], unit="rows/s", floor_or_peer=found["memcpy"],
        ratio=found["parse"] / found["memcpy"], goal=f">= {GOAL:,} rows/s", meets=found["parse"] >= GOAL,
        note=f"40 features, 150 steps a row, batches of {ROWS}, by the core's own time; checking the rows, the step "
        f"before: {found['validate']:,.0f}/s, both: {both:,.0f}/s; {load()}",
    )  # fmt: skip


def _beside(peer: str, own: float, quick: bool) -> Figure:
    """Our rate for the part beside the peer's, which takes the batch size that suits it better."""
    # Polars counts its threads when it is imported.
    threads = ["env", "POLARS_MAX_THREADS=1", sys.executable]
    command = [*threads, "-m", "benchmarks.feature_peers", peer, "2" if quick else "9"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=600, check=True)
    reached: dict[str, float] = json.loads(done.stdout)
    size = max(reached, key=lambda one: reached[one])
    return Figure(
        name=f"features_mix_beside_{peer}", value=own, unit="rows/s", floor_or_peer=reached[size],
        ratio=own / reached[size],
        note=f"{_WHAT}; {peer} with one thread and batches of {size} rows, ours of {ROWS}; {load()}",
    )  # fmt: skip


def _milliseconds(call: Callable[[], object], times: int, clock: Callable[[], float]) -> np.ndarray:
    found = np.empty(times)
    for turn in range(times):
        begin = clock()
        call()
        found[turn] = 1000 * (clock() - begin)
    return found


def _request(quick: bool) -> Figure:
    features = mix.feature_set()
    given = mix.rows(ITEMS, seed=1)
    users = [name for name in given.schema.names if not name.startswith("item_")]
    user = given.select(users).slice(0, 1)
    items = given.select([name for name in given.schema.names if name.startswith("item_")])
    times = 200 if quick else 3000

    def answer() -> None:
        tiled = features.tiled(user, items)
        if tiled.validate():
            raise RuntimeError("the request of the mix has bad rows")
        tiled.parse()

    own = _milliseconds(answer, times, time.thread_time)
    wall = _milliseconds(answer, times, time.perf_counter)
    value = float(np.percentile(own, 99))
    return Figure(
        name="features_request_p99", value=value, unit="ms", goal=f"<= {GOAL_MS} ms", meets=value <= GOAL_MS,
        note=f"checking and making the 40 features, as a replica does, 1 user, {ITEMS} items, {times} times, by the "
        f"core's own time: p50 {np.percentile(own, 50):.2f} ms; by the wall's clock p50 {np.percentile(wall, 50):.2f}, "
        f"p99 {np.percentile(wall, 99):.2f} ms; {load()}",
    )  # fmt: skip


def measure(quick: bool) -> list[Figure]:
    """The mix and its part in batches of 4096 rows, then requests."""
    torch.set_num_threads(1)
    own = rates(mix.feature_set(PART), mix.rows(ROWS), 3 if quick else 15)["parse"]
    beside = [_beside(peer, own, quick) for peer in ("polars", "duckdb")]
    return [_mix(quick), *beside, _request(quick)]


if __name__ == "__main__":
    sys.exit(run_script(sys.argv[1:], __doc__, measure))
