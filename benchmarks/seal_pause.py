"""Figures seal_pause_p99 and seal_pause_share: training time lost to commits, at the shape of online_tax.

The trainer's own parts (feed, prefetch, learner, desk, committer, commit log), put together as `trainer.run` does, read
events from Parquet as fast as they learn and commit every half second to a local disk. Lost is all the time that the
loop spends with a commit: sealing and handing over, and taking its outcome. The base, once in a model's life, is apart.
"""

import logging
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from benchmarks.figure import Figure, load, run_script
from benchmarks.shape import BATCH, events, parse, pipeline
from checkpointer import Writer, WriterOptions
from checkpointer.local_store import LocalStore
from features import create_features
from features.sampling.maker import open_maker
from protos.pipeline_pb2 import EasyRecConfig
from recmodels.observe import progressive_metrics
from stream.deadletter_replay import open_dead_letters
from stream.progress import Progress
from trainer.commit_writer import CommitWriter, Identity
from trainer.committer import Committer
from trainer.desk import CommitDesk
from trainer.learner import create_learner
from trainer.loop import Trainer
from trainer.monitor import Monitor
from trainer.options import TrainOptions
from trainer.passes import open_pass
from trainer.position import Position
from trainer.profiling import profiling
from trainer.summaries import Summaries
from trainer.workers import Rank, Workers

PAUSE_GOAL_MS, SHARE_GOAL = 20.0, 0.03
SKIP = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """Milliseconds of the loop per commit, in `wall_s`: handing it over, and taking its outcome."""

    commits: list[float]
    wall_s: float


class TimedDesk(CommitDesk):
    """The desk, with a stopwatch on both of its doors. It counts after the first `SKIP` commits (the base is one)."""

    lost: Lost
    _pending_ms: float
    _handed_over: int
    _started: float

    def watch(self, seconds: float, stop: threading.Event) -> None:
        """Count for `seconds`, then stop the trainer."""
        self.lost = Lost(commits=[], wall_s=seconds)
        self._pending_ms, self._handed_over, self._started = 0.0, 0, float("inf")
        self._stop = stop

    def settle(self) -> None:
        """Settle, timed."""
        started = time.perf_counter()
        super().settle()
        self._pending_ms += 1e3 * (time.perf_counter() - started)
        if started - self._started > self.lost.wall_s:
            self._stop.set()

    def commit_when_free(self, *, others_busy: bool) -> None:
        """Seal and hand over, timed; what a commit costs is counted when the next one is handed over."""
        if others_busy:
            return
        if self._handed_over > SKIP:
            self.lost.commits.append(self._pending_ms)
        elif self._handed_over == SKIP:
            self._started = time.perf_counter()
        self._handed_over += 1
        started = time.perf_counter()
        super().commit_when_free(others_busy=others_busy)
        self._pending_ms = 1e3 * (time.perf_counter() - started)


def train(config: EasyRecConfig, folder: Path, seconds: float) -> Lost:
    """Train until the desk has counted for `seconds` and return what the loop lost in them."""
    options, features = TrainOptions.from_proto(config), create_features(config)
    store, workers, stop = LocalStore(str(folder)), Workers(Rank()), threading.Event()
    writer = Writer.open(
        store,
        WriterOptions(
            token="benchmark",
            clock_ms=lambda: time.time_ns() // 1_000_000,
            new_chain=lambda: "benchmark",
            writer="benchmark",
        ),
    )
    learner = create_learner(config, features, device=torch.device("cpu"))
    position, monitor = Position(progress=Progress()), Monitor()
    commits = CommitWriter(
        store,
        writer=writer,
        workers=workers,
        sink=open_dead_letters(config, writer="rank-0", code_version="benchmark"),
        identity=Identity(contract=learner.layout.digest(), features=learner.digest),
        new_metrics=partial(progressive_metrics, learner.model),
    )
    committer = Committer(commits.write)
    desk = TimedDesk(learner, position, committer, options=options, workers=workers, monitor=monitor, has_base=False)
    desk.watch(seconds, stop)
    making = open_maker(config, features)
    with (
        profiling(options.profile_dir, rank=0) as profiler,
        open_pass(config, features, making, position, workers, depth=options.prefetch, threads=1) as one,
    ):
        trainer = Trainer(
            learner,
            options=options,
            workers=workers,
            position=position,
            desk=desk,
            monitor=monitor,
            summaries=Summaries(monitor.board, options.summaries),
            profiler=profiler,
            stop=stop,
        )
        if trainer.run(one.prefetcher, one.feed):
            raise RuntimeError("the events ended before the time did")
    desk.finish()
    committer.close()
    workers.close()
    return desk.lost


def measure(quick: bool) -> list[Figure]:
    """Train on Parquet, read the stopwatch."""
    seconds, batches, copies = (3.0, 8, 60) if quick else (40.0, 40, 60)
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = pa.Table.from_batches([events(BATCH, seed=seed) for seed in range(batches)])
        paths = [folder / f"part-{copy:02}.parquet" for copy in range(copies)]
        pq.write_table(rows, paths[0], row_group_size=BATCH)
        for path in paths[1:]:
            path.hardlink_to(paths[0])
        config = parse(pipeline(folder / "model", path=f"{folder}/part-*.parquet"))
        config.stream_config.prefetch_batches = 4
        lost = train(config, folder / "model", seconds)
    pauses = np.array(lost.commits)
    p99, share = float(np.quantile(pauses, 0.99)), float(pauses.sum() / 1e3 / lost.wall_s)
    note = f"{len(pauses)} commits in {lost.wall_s:.0f} s, median {statistics.median(pauses):.1f} ms, {load()}"
    return [
        Figure(
            name="seal_pause_p99",
            value=p99,
            unit="ms",
            goal=f"<= {PAUSE_GOAL_MS:g} ms",
            meets=p99 <= PAUSE_GOAL_MS,
            note=note,
        ),
        Figure(
            name="seal_pause_share",
            value=share,
            unit="of wall time",
            goal=f"<= {SHARE_GOAL:.0%}",
            meets=share <= SHARE_GOAL,
            note=note,
        ),
    ]


if __name__ == "__main__":
    sys.exit(run_script(sys.argv[1:], __doc__, measure))
