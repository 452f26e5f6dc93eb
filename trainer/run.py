"""Assemble a trainer from a configuration and run it."""

import logging
import signal
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from types import FrameType, TracebackType

import torch

from checkpointer import CommitLog, Writer, WriterOptions
from checkpointer.faults import NO_FAULTS, FaultPoints
from checkpointer.lock import TRAINER_LOCK, ProcessLock, acquire, take_over, wait_for
from checkpointer.open_store import StoreOptions, open_store
from checkpointer.store import Store
from features import FeatureSet, create_features
from features.sampling.maker import open_maker
from protos.pipeline_pb2 import EasyRecConfig
from recmodels.observe import progressive_metrics
from stream.deadletter_replay import open_dead_letters
from stream.progress import RecordedCut
from trainer.commit_writer import CommitWriter, Identity
from trainer.committer import Committer
from trainer.desk import CommitDesk
from trainer.errors import TrainerConfigError
from trainer.feature_record import record_features, what_changed
from trainer.fine_tune import fine_tune
from trainer.learner import Learner, create_learner
from trainer.loop import Trainer
from trainer.monitor import Monitor
from trainer.options import TrainOptions
from trainer.passes import open_pass
from trainer.position import Position
from trainer.profiling import profiling
from trainer.replaying import Recording, read_recording
from trainer.resume import resume
from trainer.summaries import Summaries
from trainer.upkeep import Upkeep, lock_directory, start_child
from trainer.workers import Rank, Workers, naming_lost_ranks

logger = logging.getLogger(__name__)

CODE_VERSION = f"headrace {version('headrace')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """How a trainer process was started."""

    rank: Rank = Rank()
    host: str = "localhost"
    take_over: bool = False
    standby: bool = False
    metrics_port: int = 0
    metrics_host: str = "127.0.0.1"
    threads: int = 0  # of torch's kernels; 0: as many as torch takes by itself
    replay_cuts: str = ""  # a model directory whose recorded batches are trained again
    faults: FaultPoints = NO_FAULTS
    config_path: str = ""  # of the child that tidies the log; "": none does


def train(config: EasyRecConfig, launch: Launch, stop: threading.Event) -> None:
    """Train until the source ends or `stop` is set.

    1. hold the model directory (a standby: after 3)  2. join the other ranks  3. build the model
    4. restore the newest commit  5. learn, pass by pass, and commit  6. commit the rest
    """
    options = TrainOptions.from_proto(config)
    if launch.threads:
        torch.set_num_threads(launch.threads)
    features = create_features(config)
    store = open_store(options.model_dir, StoreOptions.from_proto(config.checkpoint_config.s3), launch.faults)
    with naming_lost_ranks(launch.rank.rank), ExitStack() as stack:
        workers = _join(config, store, launch, stack)
        learner = create_learner(config, features, device=torch.device("cpu"), faults=launch.faults)
        logger.info("stage=built")
        if launch.standby:
            # Whatever needs no commit is done by then: the other trainer may be gone at any moment.
            _stand_by(config, store, launch, workers, stack, stop)
        writer = _open_writer(store, launch) if workers.rank == 0 else None
        seq = int(workers.gather(str(writer.head.seq if writer and writer.head else 0).encode())[0])
        position = _restore(config, store, seq, features, learner, workers)
        recording = _open_recording(config, launch, workers, seq)
        monitor = _open_monitor(options, launch)
        monitor.watch_features(features.counts)
        stack.callback(monitor.close)
        desk = CommitDesk(
            learner,
            position,
            _open_committer(config, store, writer, workers, learner, stack),
            options=options,
            workers=workers,
            monitor=monitor,
            has_base=seq > 0,
            upkeep=_open_upkeep(config, store, launch),
        )
        logger.info("training rank=%d world=%d step=%d", workers.rank, workers.world_size, position.step)
        trainer = Trainer(
            learner,
            options=options,
            workers=workers,
            position=position,
            desk=desk,
            monitor=monitor,
            stop=stop,
            summaries=Summaries(monitor.board, options.summaries),
            profiler=stack.enter_context(profiling(options.profile_dir, rank=workers.rank)),
            schedule=recording.steps() if recording else None,
        )
        _learn(config, features, options, position, workers, desk, trainer, recording.cuts if recording else None)
        logger.info("trained rank=%d step=%d", workers.rank, position.step)


def _join(config: EasyRecConfig, store: Store, launch: Launch, stack: ExitStack) -> Workers:
    logger.info("stage=imported")
    if launch.rank.rank == 0 and not launch.standby:
        _hold(config, store, launch, stack)
    workers = Workers(launch.rank)
    logger.info("stage=joined")
    stack.push(partial(_leave, workers))
    return workers


def _restore(
    config: EasyRecConfig, store: Store, seq: int, features: FeatureSet, learner: Learner, workers: Workers
) -> Position:
    """Put commit `seq` back, or begin; rank 0 records what the features are."""
    explain = partial(what_changed, store, features=features)
    position = resume(CommitLog(store), seq, learner, workers, seed=config.seed, explain=explain)
    if workers.rank == 0:
        record_features(store, features)
    if seq == 0:
        fine_tune(config, learner)
    return position


def _open_committer(
    config: EasyRecConfig, store: Store, writer: Writer | None, workers: Workers, learner: Learner, stack: ExitStack
) -> Committer:
    sink = open_dead_letters(config, writer=f"rank-{workers.rank}", code_version=CODE_VERSION)
    stack.callback(sink.close)
    metrics = partial(progressive_metrics, learner.model)
    identity = Identity(contract=learner.layout.digest(), features=learner.digest)
    commits = CommitWriter(store, writer=writer, workers=workers, sink=sink, identity=identity, new_metrics=metrics)
    committer = Committer(commits.write)
    stack.callback(committer.close)
    return committer


def _learn(
    config: EasyRecConfig,
    features: FeatureSet,
    options: TrainOptions,
    position: Position,
    workers: Workers,
    desk: CommitDesk,
    trainer: Trainer,
    cuts: Sequence[RecordedCut] | None,
) -> None:
    """Pass over the source `num_epochs` times; a source that never ends has one pass."""
    maker = open_maker(config, features)
    while True:
        with open_pass(config, features, maker, position, workers, depth=options.prefetch, cuts=cuts) as one:
            ended = trainer.run(one.prefetcher, one.feed)
            if not ended or position.epoch + 1 >= options.num_epochs:
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


def _hold(config: EasyRecConfig, store: Store, launch: Launch, stack: ExitStack) -> None:
    """Hold the model directory, as far as locks reach: see checkpointer/lock.py."""
    directory = lock_directory(config, store)
    lock: ProcessLock
    if not directory:
        logger.info("no lock url=%s: the producer epoch alone fences an older trainer", store.url)
        return
    if launch.take_over:
        lock = take_over(directory, TRAINER_LOCK, launch.host)
    else:
        remedy = "stop it, or pass --take-over to fence it"
        lock = acquire(directory, TRAINER_LOCK, launch.host, remedy=remedy)
    stack.callback(lock.release)
    logger.info("stage=held")


def _stand_by(
    config: EasyRecConfig, store: Store, launch: Launch, workers: Workers, stack: ExitStack, stop: threading.Event
) -> None:
    """Rank 0 waits for the lock, however long; it tells the others so, whose patience for an answer is bounded."""
    directory = lock_directory(config, store)
    if not directory:
        raise TrainerConfigError(
            f"a standby waits for a lock, and {store.url} has none; set checkpoint_config.lock_dir to a folder that "
            "both trainers see"
        )

    def pause() -> None:
        stopped = stop.wait(0.05)
        workers.gather(b"stop" if stopped else b"wait")
        if stopped:
            raise KeyboardInterrupt

    if workers.rank == 0:
        stack.callback(wait_for(directory, TRAINER_LOCK, launch.host, pause=pause).release)
        logger.info("stage=held")
        workers.gather(b"go")
        return
    while (told := workers.gather(b"")[0]) != b"go":
        if told == b"stop":
            raise KeyboardInterrupt


def _leave(
    workers: Workers, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
) -> None:
    workers.close(together=kind is None)


def _open_writer(store: Store, launch: Launch) -> Writer:
    return Writer.open(
        store,
        WriterOptions(
            token=f"{launch.host}/{uuid.uuid4().hex}",
            clock_ms=lambda: time.time_ns() // 1_000_000,
            new_chain=lambda: uuid.uuid4().hex,
            writer=CODE_VERSION,
            faults=launch.faults,
        ),
    )


def _open_upkeep(config: EasyRecConfig, store: Store, launch: Launch) -> Upkeep | None:
    if launch.rank.rank or not launch.config_path:
        return None
    every = max(1, config.checkpoint_config.compact_after_commits // 2)
    return Upkeep(launch.config_path, lock_directory(config, store), every=every, start=start_child)


def _open_recording(config: EasyRecConfig, launch: Launch, workers: Workers, seq: int) -> Recording | None:
    if not launch.replay_cuts:
        return None
    if seq:
        raise TrainerConfigError(
            f"{config.model_dir} has commits already; recorded cuts are replayed from the beginning"
        )
    return read_recording(open_store(launch.replay_cuts, StoreOptions.from_proto(config.checkpoint_config.s3)), workers)


def _open_monitor(options: TrainOptions, launch: Launch) -> Monitor:
    rank = launch.rank.rank
    return Monitor(
        port=launch.metrics_port + rank if launch.metrics_port else 0,
        host=launch.metrics_host,
        tensorboard_dir=f"{options.model_dir}/tensorboard/{rank}" if options.tensorboard else "",
    )
