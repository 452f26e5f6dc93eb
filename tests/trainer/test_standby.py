"""A standby is ready before its turn comes, and takes it when the other trainer is gone."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from checkpointer.lock import TRAINER_LOCK, acquire
from protos.pipeline_pb2 import EasyRecConfig
from trainer.launch import Launch
from trainer.run import train


def test_standby_builds_its_model_then_waits_for_the_lock_then_trains(
    configure: Callable[[str], EasyRecConfig], caplog: pytest.LogCaptureFixture
) -> None:
    config = configure("model")
    held = acquire(config.model_dir, TRAINER_LOCK, "another trainer")
    built, released = threading.Event(), threading.Event()

    def release_once_built() -> None:
        built.wait(60)
        released.set()
        held.release()

    class Watching(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() == "stage=built":
                built.set()
            if record.getMessage() == "stage=held":
                assert released.is_set()

    waiter = threading.Thread(target=release_once_built)
    waiter.start()
    handler, logger = Watching(), logging.getLogger("trainer.run")
    logger.addHandler(handler)
    try:
        with caplog.at_level(logging.INFO, logger="trainer"):
            train(config, Launch(standby=True), threading.Event())
    finally:
        logger.removeHandler(handler)
        waiter.join()
    stages = [line.split()[0] for line in caplog.messages if line.startswith("stage=")]
    assert stages == ["stage=imported", "stage=joined", "stage=built", "stage=held", "stage=first_step"]
    assert CommitLog(LocalStore(str(Path(config.model_dir)))).head() is not None


def test_standby_that_is_told_to_stop_gives_up(configure: Callable[[str], EasyRecConfig]) -> None:
    config, stop = configure("model"), threading.Event()
    held = acquire(config.model_dir, TRAINER_LOCK, "another trainer")
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        train(config, Launch(standby=True), stop)
    held.release()
    assert CommitLog(LocalStore(str(Path(config.model_dir)))).head() is None
