"""gradient_accumulation_steps: the dense half steps once for several batches, rows learn from each."""

from collections.abc import Callable

import pytest

from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from protos.pipeline_pb2 import EasyRecConfig
from tests.trainer.test_run import Crash, CrashAt, digest_of, run

Configure = Callable[..., EasyRecConfig]


def accumulating(config: EasyRecConfig) -> EasyRecConfig:
    config.train_config.gradient_accumulation_steps = 3
    return config


def dense_steps(config: EasyRecConfig) -> tuple[int, int]:
    """(steps of the trainer, steps of the dense optimizer)."""
    restored = CommitLog(LocalStore(config.model_dir)).restore()
    return restored.commit.step, int(restored.dense["optimizer/steps"][0])


def test_dense_half_steps_once_for_three_batches(configure: Configure) -> None:
    config = accumulating(configure())
    run(config)
    steps, dense = dense_steps(config)
    assert dense == steps // 3 > 1


@pytest.mark.parametrize("step", [3, 4, 5])
def test_crash_between_two_dense_steps_resumes_identically(step: int, configure: Configure) -> None:
    whole, crashed = accumulating(configure("whole")), accumulating(configure("crashed"))
    run(whole)
    with pytest.raises(Crash):
        run(crashed, CrashAt("train.dense_updated", step))
    run(crashed)
    assert digest_of(crashed) == digest_of(whole)
