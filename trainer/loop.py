"""The continuous loop: learn from one batch after the other, and commit what was learnt when it is due."""

import logging
import threading
import time
from collections.abc import Callable

import torch

from stream.feed import Feed
from trainer.desk import CommitDesk
from trainer.learner import Learner
from trainer.monitor import Monitor
from trainer.options import TrainOptions
from trainer.position import Position
from trainer.prefetch import Prefetcher, Prepared
from trainer.profiling import StepClock
from trainer.replaying import Schedule
from trainer.summaries import Summaries
from trainer.workers import Decision, Vote, Workers

logger = logging.getLogger(__name__)

_WAIT_S = 0.02
_LOGGED = ("auc", "auc_window", "log_loss", "normalized_entropy", "calibration", "rows")


class Trainer:
    """Train for ever, or until the source ends, `num_steps` are done or `stop` is set.

    Every rank runs the same loop and takes part in every step, with an empty batch where it has no rows.
    """

    def __init__(
        self,
        learner: Learner,
        *,
        options: TrainOptions,
        workers: Workers,
        position: Position,
        desk: CommitDesk,
        monitor: Monitor,
        stop: threading.Event,
        summaries: Summaries,
        profiler: StepClock,
        schedule: Schedule | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._learner = learner
        self._options = options
        self._workers = workers
        self._position = position
        self._desk = desk
        self._monitor = monitor
        self._stop = stop
        self._summaries = summaries
        self._profiler = profiler
        self._schedule = schedule
        self._clock = clock
        self._loss = torch.zeros(())
        self._learned = False
        self._feed: Feed | None = None
        self._kept: Prepared | None = None

    def run(self, prefetcher: Prefetcher, feed: Feed) -> bool:
        """Run over one pass of the source; True when it ended, False when something else ended the run.

        1. take a batch  2. vote with the other ranks  3. commit what was learnt before it, when due
        4. learn from it  5. move the position
        While some rank waits for its batch (see TrainOptions.in_step), the others keep theirs.
        """
        self._feed = feed
        self._desk.follow(feed)
        self._learner.dense.epochs = self._position.epoch
        while True:
            prepared, waited = (self._kept, 0.0) if self._kept is not None else self._take(prefetcher)
            decision = self._workers.decide(self._vote(prepared, finished=prefetcher.finished))
            self._desk.settle()
            if decision.commit:
                self._desk.commit_when_free(others_busy=decision.busy)
            self._kept = prepared if decision.waiting and _holds_rows(prepared) else None
            started = self._clock()
            learns = decision.rows > 0 and not decision.waiting
            if learns:
                self._learn(prepared, decision)
            if prepared is not None and self._kept is None:
                self._position.advance(prepared.cut)
                self._monitor.step(prepared.cut, seconds=self._clock() - started, waited=waited)
            if learns:
                self._log()
            if decision.stop:
                self._stop.set()  # this rank's commits learn of it too, which may be waiting for brokers
            if decision.stop or self._done():
                return False
            if decision.finished:
                return True

    def _take(self, prefetcher: Prefetcher) -> tuple[Prepared | None, float]:
        started = self._clock()
        if self._desk.full and self._schedule is None:
            # It goes on taking part in steps, without rows.
            time.sleep(_WAIT_S)
            return None, self._clock() - started
        prepared = self._take_recorded(prefetcher) if self._schedule else None
        if self._schedule is None or self._schedule.over:
            prepared = prepared or prefetcher.next(0.0) or prefetcher.next(_WAIT_S)
        return prepared, self._clock() - started

    def _take_recorded(self, prefetcher: Prefetcher) -> Prepared | None:
        """The batch that this rank had in the coming step, however long it takes to read; None when it had none."""
        if self._schedule is None or not self._schedule.takes(self._position.step + 1):
            return None
        while not self._stop.is_set() and not prefetcher.finished:
            prepared = prefetcher.next(_WAIT_S)
            if prepared is not None:
                return prepared
        return None

    def _vote(self, prepared: Prepared | None, *, finished: bool) -> Vote:
        cut = prepared.cut if prepared is not None else None
        return Vote(
            rows=cut.rows.num_rows if cut is not None else 0,
            event_time_ms=int(cut.event_time_ms.max()) if cut is not None and len(cut.event_time_ms) else -1,
            finished=prepared is None and finished,
            stop=self._stop.is_set(),
            commit=self._desk.due(),
            busy=self._desk.busy,
            joining=self._desk.joining(),
            waiting=self._options.in_step and not finished and not _holds_rows(prepared) and self._schedule is None,
        )

    def _learn(self, prepared: Prepared | None, decision: Decision) -> None:
        batch = prepared.batch if prepared is not None and prepared.batch is not None else self._learner.empty
        host = prepared.host if prepared is not None else None
        # Gradients are divided by the world size: undo that, and weigh by the rows that are truly there.
        scale = batch.size * self._workers.world_size / decision.rows
        event_time_ms = self._position.observe(decision.event_times_ms, self._options.marks)
        watch = self._draw_gradients if self._summaries.of_gradients and self._shows(self._position.step + 1) else None
        self._loss = self._learner.step(batch, scale=scale, event_time_ms=event_time_ms, host=host, watch=watch)
        self._position.step += 1
        self._profiler.step()
        if not self._learned:
            self._learned = True
            logger.info("stage=first_step step=%d", self._position.step)

    def _done(self) -> bool:
        return 0 < self._options.num_steps <= self._position.step

    def _shows(self, step: int) -> bool:
        return self._options.log_every_steps > 0 and step % self._options.log_every_steps == 0

    def _draw_gradients(self) -> None:
        learner = self._learner
        self._summaries.gradients(self._position.step + 1, learner.half.named_parameters(), scale=learner.dense.scale)

    def _log(self) -> None:
        step, learner = self._position.step, self._learner
        if not self._shows(step):
            return
        values = learner.metrics.values()
        figures = {name: values[name] for name in _LOGGED if values[name] == values[name]}
        figures |= learner.model.compute_train_metric()
        if self._feed is not None:
            figures |= self._monitor.progress(self._feed.lag, self._position.progress.watermarks)
        self._monitor.scalars(step, {"loss": float(self._loss), **figures})
        self._monitor.tables(learner.tables.figures())
        rates = {f"dense_{number}": rate for number, rate in enumerate(learner.dense.rates())}
        rates |= {f"sparse_{number}": group["lr"] for number, group in enumerate(learner.fused.param_groups[:1])}
        self._summaries.state(step, learner.half.named_parameters(), rates)


def _holds_rows(prepared: Prepared | None) -> bool:
    return prepared is not None and prepared.batch is not None
