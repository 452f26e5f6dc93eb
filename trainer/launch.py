"""How a trainer process was started, and how it holds its model directory against others."""

import logging
from contextlib import ExitStack
from dataclasses import dataclass

import torch

from checkpointer.faults import NO_FAULTS, FaultPoints
from checkpointer.lock import TRAINER_LOCK, ProcessLock, acquire, lock_directory, take_over
from checkpointer.store import Store
from protos.pipeline_pb2 import EasyRecConfig
from trainer.devices import CPU
from trainer.workers import Rank

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """How a trainer process was started."""

    rank: Rank = Rank()
    device: torch.device = CPU
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
