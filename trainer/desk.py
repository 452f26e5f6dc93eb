"""When and how a rank hands its state over for a commit, and what follows from how the commit ended."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from checkpointer import Commit
from checkpointer.errors import CheckpointError, FencedError
from stream.cursor import Cursor
from stream.feed import Feed
from trainer.committer import Committer, Outcome, Snapshot
from trainer.dense import capture, capture_rng
from trainer.errors import TrainerError
from trainer.learner import QUORUM, Learner, metric_arrays
from trainer.monitor import Monitor
from trainer.options import TrainOptions
from trainer.passes import join_new_partitions, new_partitions
from trainer.position import Position
from trainer.upkeep import Upkeep
from trainer.workers import Workers

logger = logging.getLogger(__name__)

MAX_FAILURES = 5
MAX_DEAD_BYTES = 64 << 20


class CommitDesk:
    """Seal when due, hand over, and confirm or take back when the outcome is known.

    One commit is in flight at a time. By interval, one that comes due meanwhile merges into the next; by steps,
    training waits for the one in flight, so that commit boundaries are the same in every run.
    """

    def __init__(
        self,
        learner: Learner,
        position: Position,
        committer: Committer,
        *,
        options: TrainOptions,
        workers: Workers,
        monitor: Monitor,
        has_base: bool,
        upkeep: Upkeep | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._learner = learner
        self._position = position
        self._committer = committer
        self._options = options
        self._workers = workers
        self._feed: Feed | None = None
        self._monitor = monitor
        self._needs_base = not has_base
        self._upkeep = upkeep
        self._clock = clock
        self._last = clock()
        self._last_step = position.step
        self._last_moves = position.moves
        self._stood, self._moved = (position.step, position.moves), self._last
        self._marked = position.instant
        self._failures = 0
        self._failure: BaseException | None = None

    @property
    def busy(self) -> bool:
        """Whether a commit is in flight."""
        return self._committer.busy

    @property
    def full(self) -> bool:
        """Whether training should rest: a commit waits for its dead letters, and enough of them wait for the next."""
        return self.busy and self._position.dead_bytes > MAX_DEAD_BYTES

    def follow(self, feed: Feed) -> None:
        """From here on the cuts come from `feed`."""
        self._feed = feed

    def due(self) -> bool:
        """Whether what was learnt since the last seal should be committed now."""
        now = self._position.instant
        if self._marked.quorum_ms < 0 <= now.quorum_ms:
            # The first event time only says where the marks begin.
            self._marked = replace(self._marked, quorum_ms=now.quorum_ms)
        if self._needs_base or self._options.marks.crossed(self._marked, now):
            return True
        position, clock = self._position, self._clock()
        if (position.step, position.moves) != self._stood:
            self._stood, self._moved = (position.step, position.moves), clock
        steps, elapsed = position.step - self._last_step, (clock - self._last) * 1000
        if self._options.cadence.steps:
            return self._options.cadence.due(steps=steps, elapsed_ms=elapsed, silent_ms=(clock - self._moved) * 1000)
        # Steps are of all ranks, moves of this one: its partitions may be silent while others learn.
        return self._options.cadence.due(steps=max(steps, position.moves - self._last_moves), elapsed_ms=elapsed)

    def joining(self) -> bool:
        """Whether partitions of this rank wait for a commit, which may not come by itself: the others may be silent."""
        return self._feed is not None and bool(new_partitions(self._feed, self._workers))

    def commit_when_free(self, *, others_busy: bool) -> None:
        """Seal and hand over; while a commit is in flight somewhere, wait for it (by steps) or merge (by interval)."""
        if others_busy and not self._options.cadence.steps:
            return
        self._wait()
        self._commit()

    def settle(self) -> None:
        """Take the outcome of the commit in flight, when it is known."""
        outcome = self._committer.outcome(0.0)
        if outcome is not None:
            self._judge(outcome)

    def finish(self, *, passed: bool = False) -> None:
        """Commit everything learnt, and wait until it is durable; `passed`: the source has ended."""
        self._wait()
        # A commit is of all ranks or of none: one that has nothing to add takes part.
        if self._workers.any(self._needs_base or self._position.moves != self._last_moves):
            self._commit(passed=passed)
            self._wait()
        if self._failures:
            raise TrainerError(f"the last commit failed: {self._failure}; a restart goes on from the newest one")

    def _wait(self) -> None:
        outcome = self._committer.outcome(None)
        if outcome is not None:
            self._judge(outcome)

    def _commit(self, *, passed: bool = False) -> None:
        started = self._clock()
        position, learner = self._position, self._learner
        if self._needs_base:
            learner.tables.touch_all()
        tables = tuple(learner.tables.seal())
        metrics = learner.metrics.state()
        dense = metric_arrays(learner, self._workers.rank, metrics) | capture_rng(self._workers.rank, learner.device)
        if self._workers.rank == 0:
            dense |= capture(learner.half, learner.dense)
            dense |= {QUORUM: np.array([position.quorum_ms])} if self._options.marks.by_time else {}
        snapshot = Snapshot(
            step=position.step,
            event_time_ms=position.event_time_ms,
            broker_time_ms=position.broker_time_ms,
            full=self._needs_base,
            keep=self._options.marks.crossed(self._marked, replace(position.instant, epoch=position.epoch + passed)),
            tables=tables,
            dense=dense,
            metrics=metrics,
            stream=position.seal(),
            dead=position.take_dead(),
        )
        self._last, self._last_step, self._last_moves = started, position.step, position.moves
        self._marked = replace(position.instant, quorum_ms=max(self._marked.quorum_ms, position.quorum_ms))
        self._needs_base = False
        if self._feed is not None:
            join_new_partitions(self._feed, self._workers)
        self._monitor.seal_seconds.observe(self._clock() - started)
        learner.faults.reached("train.sealed")
        self._committer.submit(snapshot)

    def _after_durable(self, snapshot: Snapshot, commit: Commit) -> None:
        if self._upkeep is not None:
            self._upkeep.after_commit(commit.seq, commit.grown_bytes)
        if self._feed is not None:
            cursors = map(Cursor.from_proto, snapshot.stream.cursors)
            self._feed.acknowledge({cursor.key: cursor for cursor in cursors})
            self._monitor.lagging(self._feed.lag, self._feed.skipped)

    def _judge(self, outcome: Outcome) -> None:
        """Confirm what is durable; take back what is not, so that the next commit carries it."""
        learner, position = self._learner, self._position
        self._monitor.commit_seconds.observe(outcome.seconds)
        if outcome.commit is not None:
            learner.faults.reached("train.durable")
            learner.tables.confirm()
            self._failures = 0
            self._monitor.committed(outcome.commit.seq, outcome.commit.bytes, outcome.commit.broker_time_ms)
            if self._workers.rank == 0:
                logger.info("committed seq=%d bytes=%d", outcome.commit.seq, outcome.commit.bytes)
            self._after_durable(outcome.snapshot, outcome.commit)
            return
        learner.tables.restore_touched()
        position.progress.restore_increment(outcome.snapshot.stream)
        position.put_back(outcome.snapshot.dead)
        self._needs_base = self._needs_base or outcome.snapshot.full
        self._last_moves = -1
        self._failures += 1
        self._failure = outcome.error
        self._monitor.failed()
        if isinstance(outcome.error, FencedError) or not isinstance(outcome.error, CheckpointError):
            raise TrainerError(f"commits cannot go on: {outcome.error}") from outcome.error
        if self._failures >= MAX_FAILURES:
            raise TrainerError(f"{self._failures} commits in a row failed: {outcome.error}") from outcome.error
