"""Commits by steps, when the stream falls silent before the next one is due."""

import threading
import time

import pytest

from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from protos.pipeline_pb2 import EasyRecConfig
from tests.trainer.test_replaying import Live, messages, topic  # noqa: F401  (a fixture)
from tests.trainer.test_run import digest_of, run
from trainer.launch import Launch
from trainer.run import train


def steps_of(config: EasyRecConfig) -> list[int]:
    return [commit.step for commit in CommitLog(LocalStore(config.model_dir)).commits()]


def silent_after(config: EasyRecConfig, commits: int) -> int:
    """The step of the last of so many commits, waited for."""
    deadline = time.monotonic() + 90
    while len(steps_of(config)) < commits:
        assert time.monotonic() < deadline, steps_of(config)
        time.sleep(0.05)
    return steps_of(config)[-1]


@pytest.mark.timeout(240)
def test_what_was_learnt_before_a_silence_is_committed_and_changes_no_bit(topic: Live) -> None:  # noqa: F811
    config = topic.config("silent", linger_ms=0, commit_steps=1000)
    config.stream_config.ClearField("stop_idle_ms")
    config.checkpoint_config.commit_interval_ms = 50
    stop = threading.Event()
    trainer = threading.Thread(target=train, args=(config, Launch(), stop))
    trainer.start()
    try:
        steps = [silent_after(config, 1)]
        for half in (slice(0, 20), slice(20, None)):
            for partition in (0, 1):
                topic.broker.produce(topic.topic, messages(topic.stage, partition)[half], partition)
            steps.append(silent_after(config, len(steps_of(config)) + 1))
    finally:
        stop.set()
        trainer.join()
    assert 0 == steps[0] < steps[1] < steps[2] < 1000
    once = topic.config("once", linger_ms=0, commit_steps=1000)
    once.train_config.num_steps = steps_of(config)[-1]
    run(once)
    assert len(steps_of(once)) == 2 and digest_of(once) == digest_of(config)
