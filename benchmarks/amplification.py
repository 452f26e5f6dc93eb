"""What a restore reads over the state itself, and what that costs, under policies of compaction (decision 0022).

An hour of half-second commits of Zipf ids by an injected clock, through the real writer, compaction and collection, in
memory; a compaction takes as long as `--took` says. Run: python -m benchmarks.amplification [--commits N]
"""

import argparse
import itertools
import logging
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from checkpointer import Commit, CommitLog, Kind, RetentionOptions, TableRows, Writer, WriterOptions, stage
from checkpointer.compact import compact
from checkpointer.due import CompactionDue, DueOptions
from checkpointer.memory_store import MemoryStore
from checkpointer.restore import plan
from checkpointer.retention import collect_garbage
from checkpointer.writer import Draft

# The shared shape (benchmarks/shape.py) in small: 2 % of its state is dense; a commit at full load has 5,000 lookups.
ROWS, DIM, DENSE = 20_000, 16, 9_000
COMMIT_S = 0.5


class Weighed(MemoryStore):
    """Counts bytes read of blobs, and adds up what lies in it."""

    read = 0

    def get(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """Read and count."""
        data = super().get(path, offset=offset, length=length)
        self.read += len(data) * path.endswith(".blob")
        return data

    def weight(self) -> int:
        """Bytes of all blobs."""
        return sum(len(data) for path, data in self._objects.items() if path.endswith(".blob"))


class Before:
    """The policy until now: every 32 commits, at 240 of them or when all their bytes outweigh the base."""

    def __init__(self, store: MemoryStore) -> None:
        self._store, self._seen = store, 0

    def add(self, grown_bytes: int) -> None:
        """Count a commit."""
        self._seen += 1

    def due(self) -> bool:
        """Look every so often."""
        if self._seen % 32:
            return False
        steps = plan(self._store, None)
        base = steps.base.bytes if steps.base else 0
        bytes_ = sum(commit.bytes for commit in steps.commits)
        return len(steps.commits) >= 240 or (len(steps.commits) >= 16 and bytes_ >= base)

    def started(self) -> None:
        """Nothing to note."""

    def ended(self) -> None:
        """Nothing to note."""


@dataclass(kw_only=True, slots=True)
class Course:
    """What was measured."""

    amplification: list[float] = field(default_factory=list)
    disk: list[float] = field(default_factory=list)
    committed: int = 0
    rewritten: int = 0
    bases: int = 0
    commit_s: float = 0.0
    compact_s: float = 0.0


def rows_of(ids: np.ndarray, step: int) -> TableRows:
    """Rows as an Adagrad table has them."""
    return TableRows(
        table="item",
        shard=0,
        kind="zch",
        ids=ids,
        slots=ids,
        columns={
            "weight": np.full((len(ids), DIM), step, np.float32),
            "momentum1": np.zeros(len(ids), np.float32),
            "last_seen_ms": np.full(len(ids), step, np.int64),
        },
        deleted=np.empty(0, np.int64),
    )


def touched(lookups: int, seed: int) -> Iterator[np.ndarray]:
    """The distinct ids of each commit: ranks of a Zipf distribution of exponent 1.2, spread over the id space."""
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, ROWS + 1) ** 1.2
    cdf = np.cumsum(weights) / weights.sum()
    spread = random.permutation(ROWS)
    while True:
        yield np.unique(spread[np.minimum(np.searchsorted(cdf, random.random(lookups)), ROWS - 1)])


def simulate(options: DueOptions | None, *, lookups: int, commits: int, took_s: float) -> Course:
    """Run one policy; None: the one before."""
    store, course, clock = Weighed(), Course(), itertools.count()
    writer = Writer.open(store, WriterOptions(token="t", clock_ms=clock.__next__, new_chain=lambda: "c", writer="w"))
    now = [0.0]
    due = Before(store) if options is None else CompactionDue(store, options, clock=lambda: now[0])
    ids = touched(lookups, seed=1)
    append(store, writer, np.arange(ROWS), 0)
    compact(store)
    finishes, target = float("inf"), 0
    for step in range(1, commits + 1):
        now[0] += COMMIT_S
        began = time.process_time()
        commit = append(store, writer, next(ids), step)
        course.commit_s += time.process_time() - began
        course.committed += commit.bytes
        measure(store, course, restored=step % 500 == 0)
        due.add(commit.grown_bytes)
        if finishes == float("inf") and due.due():
            due.started()
            finishes, target = now[0] + took_s, commit.seq
        if now[0] >= finishes:
            began = time.process_time()
            course.rewritten += compact(store, target).bytes
            collect_garbage(store, RetentionOptions(keep_bases=2, keep_log_ms=0), now_ms=1 << 50)
            course.compact_s += time.process_time() - began
            course.bases += 1
            due.ended()
            finishes = float("inf")
    return course


def append(store: MemoryStore, writer: Writer, ids: np.ndarray, step: int) -> Commit:
    """One commit."""
    dense = {"parameter/w": np.full(DENSE, step, np.float32)}
    blobs = stage(store, seq=writer.next_seq, rank=0, rows=[rows_of(ids, step)], dense=dense)
    kind = Kind.DELTA if step else Kind.BASE
    return writer.append(
        Draft(
            kind=kind, step=step, event_time_ms=step, broker_time_ms=-1, world=1, contract="c", features="f",
            blobs=blobs,
        )
    )  # fmt: skip


def measure(store: Weighed, course: Course, *, restored: bool) -> None:
    """Note how things stand; now and then restore, to see that what is said to be read is read."""
    steps = plan(store, None)
    if steps.base is None:
        raise RuntimeError("there is a base from the start")
    course.amplification.append(steps.read_bytes / steps.base.bytes)
    course.disk.append(store.weight() / steps.base.bytes)
    if restored:
        store.read = 0
        for _ in CommitLog(store).restore().tables:
            pass
        if store.read != steps.read_bytes:
            raise RuntimeError(f"a restore read {store.read} bytes, not {steps.read_bytes}")


def main(arguments: list[str]) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--commits", type=int, default=7200)
    parser.add_argument("--lookups", type=int, nargs="+", default=[100, 700, 5000])
    parser.add_argument("--took", type=float, default=2.0)
    parser.add_argument("--only", default="", help="policies whose name holds this")
    args = parser.parse_args(arguments)
    logging.disable(logging.INFO)
    policies: dict[str, DueOptions | None] = {
        "before (ratio 1, every 32 commits)": None,
        "ratio 1, no share": DueOptions(after_ratio=1.0, max_share=1.0, least_bytes=0),
        "ratio 0.25, share 0.1": DueOptions(after_ratio=0.25, max_share=0.1, least_bytes=0),
        "ratio 0.25, share 0.2": DueOptions(after_ratio=0.25, least_bytes=0),
        "ratio 0.25, no share": DueOptions(after_ratio=0.25, max_share=1.0, least_bytes=0),
        "ratio 0.2, share 0.2 (default)": DueOptions(least_bytes=0),
    }
    print_row("lookups", "policy", "max", "p50", "disk max", "write ampl.", "bases", "compaction / commits, cpu")
    chosen = [(name, options) for name, options in policies.items() if args.only in name]
    for lookups, (name, options) in itertools.product(args.lookups, chosen):
        course = simulate(options, lookups=lookups, commits=args.commits, took_s=args.took)
        write = (course.committed + course.rewritten) / course.committed
        read = np.array(course.amplification)
        print_row(
            lookups, name, f"{read.max():.2f}", f"{np.median(read):.2f}", f"{max(course.disk):.2f}", f"{write:.2f}",
            course.bases, f"{course.compact_s / course.commit_s:.2f}",
        )  # fmt: skip


def print_row(*cells: object) -> None:
    """A line of a Markdown table."""
    sys.stdout.write("| " + " | ".join(map(str, cells)) + " |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
