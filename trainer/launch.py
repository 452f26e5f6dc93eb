"""How a trainer process was started, and how it holds its model directory against others."""

import logging
import threading
from contextlib import ExitStack
from dataclasses import dataclass

from checkpointer.faults import NO_FAULTS, FaultPoints
from checkpointer.lock import TRAINER_LOCK, ProcessLock, acquire, lock_directory, take_over, wait_for
from checkpointer.store import Store
from protos.pipeline_pb2 import EasyRecConfig
from trainer.errors import TrainerConfigError
from trainer.workers import Rank, Workers

logger = logging.getLogger(__name__)


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


def hold(config: EasyRecConfig, store: Store, launch: Launch, stack: ExitStack) -> None:
    """Hold the model directory, as far as locks reach: see checkpointer/lock.py."""
    directory = lock_directory(config.checkpoint_config.lock_dir, store)
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


def stand_by(
    config: EasyRecConfig, store: Store, launch: Launch, workers: Workers, stack: ExitStack, stop: threading.Event
) -> None:
    """Rank 0 waits for the lock, however long; it tells the others so, whose patience for an answer is bounded."""
    directory = lock_directory(config.checkpoint_config.lock_dir, store)
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
