"""A standby: built, its tables kept at the newest commit, waiting until the other trainer is gone."""

import itertools
import logging
import threading
from contextlib import ExitStack

from checkpointer.lock import TRAINER_LOCK, lock_directory, wait_for
from checkpointer.store import Store
from protos.pipeline_pb2 import EasyRecConfig
from trainer.errors import TrainerConfigError
from trainer.following import Follower
from trainer.launch import Launch
from trainer.workers import Workers

logger = logging.getLogger(__name__)

_POLL_S = 0.02
_POLLS_PER_COMMIT = 10


def stand_by(
    config: EasyRecConfig,
    store: Store,
    launch: Launch,
    workers: Workers,
    follower: Follower,
    stack: ExitStack,
    stop: threading.Event,
) -> None:
    """Wait for the lock, however long; every rank follows the log meanwhile.

    Rank 0 waits and tells the others that it still does, since their patience for an answer is bounded.
    """
    directory = lock_directory(config.checkpoint_config.lock_dir, store)
    if not directory:
        raise TrainerConfigError(
            f"a standby waits for a lock, and {store.url} has none; set checkpoint_config.lock_dir to a folder that "
            "both trainers see"
        )
    polls = itertools.count()

    def follow() -> None:
        if next(polls) % _POLLS_PER_COMMIT == 0:
            follower.follow()

    def pause() -> None:
        stopped = stop.wait(_POLL_S)
        workers.gather(b"stop" if stopped else b"wait")
        if stopped:
            raise KeyboardInterrupt
        follow()

    if workers.rank == 0:
        stack.callback(wait_for(directory, TRAINER_LOCK, launch.host, pause=pause).release)
        logger.info("stage=held")
        workers.gather(b"go")
        return
    while (told := workers.gather(b"")[0]) != b"go":
        if told == b"stop":
            raise KeyboardInterrupt
        follow()
