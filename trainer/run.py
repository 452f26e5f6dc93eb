"""Assemble a trainer from a configuration and run it."""

import logging
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from types import FrameType

import torch

from checkpointer import CommitLog, Writer, WriterOptions
from checkpointer.faults import NO_FAULTS, FaultPoints
from checkpointer.lock import TRAINER_LOCK, ProcessLock, acquire, take_over, wait_for
from checkpointer.open_store import StoreOptions, open_store
from checkpointer.store import Store
from features import FeatureSet, create_features
from protos.pipeline_pb2 import EasyRecConfig
from protos.stream_pb2 import LATEST
from stream import open_source
from stream.deadletter_replay import open_dead_letters
from stream.feed import Feed, FeedOptions
from stream.source import PartitionKey
from trainer.commit_writer import CommitWriter, Identity
from trainer.committer import Committer
from trainer.desk import CommitDesk
from trainer.learner import Learner, create_learner
from trainer.loop import Trainer
from trainer.monitor import Monitor
from trainer.options import TrainOptions
from trainer.prefetch import Prefetcher
from trainer.resume import resume
from trainer.workers import Rank, Workers

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
    faults: FaultPoints = NO_FAULTS


def train(config: EasyRecConfig, launch: Launch, stop: threading.Event) -> None:
    """Train until the source ends or `stop` is set.

    1. hold the model directory  2. join the other ranks  3. build  4. restore  5. read from there  6. learn
    """
    options = TrainOptions.from_proto(config)
    features = create_features(config)
    store = open_store(options.model_dir, StoreOptions.from_proto(config.checkpoint_config.s3), launch.faults)
    with ExitStack() as stack:
        if launch.rank.rank == 0:
            stack.callback(_hold(config, launch, stop).release)
        workers = Workers(launch.rank)
        stack.callback(workers.close)
        writer = _open_writer(store, launch) if workers.rank == 0 else None
        learner = create_learner(config, features, device=torch.device("cpu"))
        _run(config, options, features, learner, workers, store, writer, launch, stop, stack)


def _run(
    config: EasyRecConfig,
    options: TrainOptions,
    features: FeatureSet,
    learner: Learner,
    workers: Workers,
    store: Store,
    writer: Writer | None,
    launch: Launch,
    stop: threading.Event,
    stack: ExitStack,
) -> None:
    seq = int(workers.gather(str(writer.head.seq if writer and writer.head else 0).encode())[0])
    log = CommitLog(store)
    feed_options = FeedOptions.from_proto(config, columns=features.columns)
    source = open_source(_start_of(config, log, seq), columns=feed_options.all_columns)
    keys = own_partitions(source.partitions(), workers)
    position = resume(log, seq, learner, rank=workers.rank, keys=keys, seed=options.seed)
    feed = Feed(
        source,
        feed_options,
        validate=features.validate,
        progress=position.progress,
        keys=keys,
        clock=time.monotonic,
    )
    stack.callback(feed.close)
    prefetcher = Prefetcher(feed, features, depth=options.prefetch)
    stack.callback(prefetcher.close)
    sink = open_dead_letters(config, writer=f"rank-{workers.rank}", code_version=CODE_VERSION)
    stack.callback(sink.close)
    monitor = Monitor(
        port=launch.metrics_port + workers.rank if launch.metrics_port else 0,
        tensorboard_dir=f"{options.model_dir}/tensorboard/{workers.rank}" if options.tensorboard else "",
    )
    stack.callback(monitor.close)
    identity = Identity(contract=learner.layout.digest(), features=learner.digest)
    committer = Committer(CommitWriter(store, writer=writer, workers=workers, sink=sink, identity=identity).write)
    stack.callback(committer.close)
    desk = CommitDesk(
        learner,
        position,
        committer,
        options=options,
        rank=workers.rank,
        feed=feed,
        monitor=monitor,
        has_base=seq > 0,
    )
    logger.info(
        "training rank=%d world=%d step=%d partitions=%s", workers.rank, workers.world_size, position.step, keys
    )
    Trainer(
        learner,
        options=options,
        workers=workers,
        prefetcher=prefetcher,
        position=position,
        desk=desk,
        monitor=monitor,
        stop=stop,
    ).run()
    logger.info("trained rank=%d step=%d", workers.rank, position.step)


def own_partitions(partitions: tuple[PartitionKey, ...], workers: Workers) -> tuple[PartitionKey, ...]:
    """This rank's partitions: a pure function of the partition's number and the world size."""
    return tuple(key for key in partitions if key[1] % workers.world_size == workers.rank)


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


def _hold(config: EasyRecConfig, launch: Launch, stop: threading.Event) -> ProcessLock:
    """Hold the model directory, as far as locks reach: see checkpointer/lock.py."""
    directory = config.checkpoint_config.lock_dir or config.model_dir
    if launch.take_over:
        return take_over(directory, TRAINER_LOCK, launch.host)
    if launch.standby:
        return wait_for(directory, TRAINER_LOCK, launch.host, pause=lambda: _pause(stop))
    return acquire(directory, TRAINER_LOCK, launch.host)


def _pause(stop: threading.Event) -> None:
    if stop.wait(0.05):
        raise KeyboardInterrupt


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


def _start_of(config: EasyRecConfig, log: CommitLog, seq: int) -> EasyRecConfig:
    """After `headrace log revert --from-now` the stream starts at its end, once."""
    if not seq or not log.get(seq).from_now:
        return config
    changed = EasyRecConfig()
    changed.CopyFrom(config)
    changed.stream_config.start = LATEST
    return changed
