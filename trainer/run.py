"""Assemble a trainer from a configuration and run it."""

import logging
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from types import FrameType, TracebackType

import torch

from checkpointer import CommitLog, Writer, WriterOptions
from checkpointer.due import CompactionDue, DueOptions
from checkpointer.lock import lock_directory
from checkpointer.open_store import StoreOptions, open_store
from checkpointer.store import Store
from features import FeatureSet, create_features, refuse_misfits
from features.sampling.maker import BatchMaker, open_maker
from protos.pipeline_pb2 import EasyRecConfig
from recmodels.observe import progressive_metrics
from stream.deadletter_replay import open_dead_letters
from stream.progress import RecordedCut
from trainer.commit_writer import CommitWriter, Identity
from trainer.committer import Committer
from trainer.desk import CommitDesk
from trainer.devices import settle
from trainer.errors import TrainerConfigError
from trainer.feature_record import record_features, what_changed
from trainer.fine_tune import fine_tune
from trainer.following import Follower
from trainer.launch import Launch, hold
from trainer.learner import Learner, create_learner
from trainer.loop import Trainer
from trainer.monitor import Monitor
from trainer.options import TrainOptions
from trainer.passes import open_pass
from trainer.position import Position
from trainer.profiling import profiling
from trainer.replaying import Recording, read_recording
from trainer.resume import check_fits, resume
from trainer.standby import stand_by
from trainer.summaries import Summaries
from trainer.transfer import open_transfer
from trainer.upkeep import Upkeep, start_child
from trainer.workers import Workers, naming_lost_ranks

logger = logging.getLogger(__name__)

CODE_VERSION = f"headrace {version('headrace')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One rank's run: what it was given, and what it learns with."""

    config: EasyRecConfig
    launch: Launch
    options: TrainOptions
    features: FeatureSet
    store: Store
    workers: Workers
    learner: Learner


def train(config: EasyRecConfig, launch: Launch, stop: threading.Event) -> None:
    """Train until the source ends or `stop` is set.

    1. hold the model directory (a standby: after 3)  2. join the other ranks  3. build the model
    4. restore the newest commit  5. learn, pass by pass, and commit  6. commit the rest
    """
    with naming_lost_ranks(launch.rank.rank), ExitStack() as stack:
        job = _build(config, launch, stack)
        follower = _open_follower(job)
        if launch.standby:
            # Whatever needs no commit is done by then: the other trainer may be gone at any moment.
            stand_by(config, job.store, launch, job.workers, follower, stack, stop)
        writer = _open_writer(job.store, launch, stack) if job.workers.rank == 0 else None
        seq = int(job.workers.gather(str(writer.head.seq if writer and writer.head else 0).encode())[0])
        position = _restore(job, seq, follower)
        recording = _open_recording(job, seq)
        monitor = _open_monitor(job, stack)
        desk = CommitDesk(
            job.learner,
            position,
            _open_committer(job, writer, stack, stop),
            options=job.options,
            workers=job.workers,
            monitor=monitor,
            has_base=seq > 0,
            upkeep=_open_upkeep(job),
        )
        logger.info(
            "training rank=%d world=%d device=%s step=%d",
            job.workers.rank,
            job.workers.world_size,
            launch.device,
            position.step,
        )
        trainer = Trainer(
            job.learner,
            options=job.options,
            workers=job.workers,
            position=position,
            desk=desk,
            monitor=monitor,
            stop=stop,
            summaries=Summaries(monitor.board, job.options.summaries),
            profiler=stack.enter_context(profiling(job.options.profile_dir, rank=job.workers.rank)),
            schedule=recording.steps() if recording else None,
        )
        maker = open_maker(job.config, job.features)
        monitor.watch_sampler(maker.totals)
        _learn(job, position, desk, trainer, maker, recording.cuts if recording else None)
        logger.info("trained rank=%d step=%d", job.workers.rank, position.step)


def _build(config: EasyRecConfig, launch: Launch, stack: ExitStack) -> Job:
    """Hold the model directory, join the other ranks, build the model."""
    options = TrainOptions.from_proto(config)
    if launch.threads:
        torch.set_num_threads(launch.threads)
    features = create_features(config)
    refuse_misfits(features, config.data_config)
    store = open_store(options.model_dir, StoreOptions.from_proto(config.checkpoint_config.s3), launch.faults)
    logger.info("stage=imported")
    if launch.rank.rank == 0 and not launch.standby:
        hold(config, store, launch, stack)
    settle(launch.device, config.train_config)
    workers = Workers(launch.rank, device=launch.device)
    logger.info("stage=joined")
    stack.push(partial(_leave, workers))
    learner = create_learner(config, features, device=launch.device, faults=launch.faults)
    logger.info("stage=built")
    return Job(
        config=config,
        launch=launch,
        options=options,
        features=features,
        store=store,
        workers=workers,
        learner=learner,
    )


def _open_follower(job: Job) -> Follower:
    check = partial(check_fits, learner=job.learner, explain=_explainer(job))
    return Follower(CommitLog(job.store), job.learner.tables, check)


def _explainer(job: Job) -> Callable[[str], str]:
    return partial(what_changed, job.store, features=job.features)


def _restore(job: Job, seq: int, follower: Follower) -> Position:
    """Put commit `seq` back, or begin; rank 0 records what the features are."""
    position = resume(
        CommitLog(job.store),
        seq,
        job.learner,
        job.workers,
        seed=job.config.seed,
        explain=_explainer(job),
        put_tables=follower.bring_to,
    )
    if job.workers.rank == 0:
        record_features(job.store, job.features)
    if seq == 0:
        follower.begin()
        fine_tune(job.config, job.learner)
    return position


def _open_committer(job: Job, writer: Writer | None, stack: ExitStack, stop: threading.Event) -> Committer:
    sink = open_dead_letters(job.config, writer=f"rank-{job.workers.rank}", code_version=CODE_VERSION)
    stack.callback(sink.close)
    commits = CommitWriter(
        job.store,
        writer=writer,
        workers=job.workers,
        sink=sink,
        identity=Identity(contract=job.learner.layout.digest(), features=job.learner.digest),
        new_metrics=partial(progressive_metrics, job.learner.model),
        stopping=stop.is_set,
    )
    committer = Committer(commits.write)
    stack.callback(committer.close)
    return committer


def _learn(
    job: Job,
    position: Position,
    desk: CommitDesk,
    trainer: Trainer,
    maker: BatchMaker,
    cuts: Sequence[RecordedCut] | None,
) -> None:
    """Pass over the source `num_epochs` times; a source that never ends has one pass."""
    # One core is the step's.
    threads = max(1, min(job.options.batch_threads, torch.get_num_threads() - 1))
    transfer = open_transfer(job.launch.device, pin=job.config.data_config.pin_memory)
    opened = partial(open_pass, depth=job.options.prefetch, threads=threads, transfer=transfer, cuts=cuts)
    while True:
        with opened(job.config, job.features, maker, position, job.workers) as one:
            ended = trainer.run(one.prefetcher, one.feed)
            if not ended or position.epoch + 1 >= job.options.num_epochs:
                desk.finish(passed=ended)
                return
        position.next_epoch()


@contextmanager
def stopping_on_signals(stop: threading.Event) -> Iterator[None]:
    """Set `stop` on SIGTERM and SIGINT: commit and leave. A second signal ends the process at once."""

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(
    workers: Workers, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
) -> None:
    workers.close(together=kind is None)


def _open_writer(store: Store, launch: Launch, stack: ExitStack) -> Writer:
    writer = Writer.open(
        store,
        WriterOptions(
            token=f"{launch.host}/{uuid.uuid4().hex}",
            clock_ms=lambda: time.time_ns() // 1_000_000,
            new_chain=lambda: uuid.uuid4().hex,
            writer=CODE_VERSION,
            faults=launch.faults,
        ),
    )
    stack.callback(writer.close)
    return writer


def _open_upkeep(job: Job) -> Upkeep | None:
    if job.workers.rank or not job.launch.config_path:
        return None
    options = job.config.checkpoint_config
    return Upkeep(
        job.launch.config_path,
        lock_directory(options.lock_dir, job.store),
        every=max(1, options.compact_after_commits // 2),
        start=start_child,
        due=CompactionDue(job.store, DueOptions.from_proto(options)),
    )


def _open_recording(job: Job, seq: int) -> Recording | None:
    if not job.launch.replay_cuts:
        return None
    if seq:
        raise TrainerConfigError(
            f"{job.config.model_dir} has commits already; recorded cuts are replayed from the beginning"
        )
    options = StoreOptions.from_proto(job.config.checkpoint_config.s3)
    return read_recording(open_store(job.launch.replay_cuts, options), job.workers)


def _open_monitor(job: Job, stack: ExitStack) -> Monitor:
    rank, launch, options = job.workers.rank, job.launch, job.options
    monitor = Monitor(
        port=launch.metrics_port + rank if launch.metrics_port else 0,
        host=launch.metrics_host,
        tensorboard_dir=f"{options.model_dir}/tensorboard/{rank}" if options.tensorboard else "",
    )
    monitor.watch_features(job.features.counts)
    stack.callback(monitor.close)
    return monitor
