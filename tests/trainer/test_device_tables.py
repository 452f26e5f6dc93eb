"""A whole trainer on the lookup that keeps rows on a device, here on tensors of the CPU: all of CUDA but the GPU.

fbgemm's writing operator is emulated (tests/recmodels/zch/writer.py); each batch is learnt from in a copy.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
import torch

import trainer.learner
import trainer.run
from features import Batch
from protos.pipeline_pb2 import EasyRecConfig
from recmodels.sharding import shard
from recmodels.zch.device_lookup import DeviceLookup
from tests.recmodels.conftest import Writer
from tests.trainer.test_run import Crash, CrashAt, digest_of, run
from trainer.transfer import Sent, Transfer

Configure = Callable[..., EasyRecConfig]


def elsewhere(device: torch.device, *, pin: bool) -> Transfer:
    """Batches arrive as copies."""

    def send(batch: Batch) -> Sent:
        moved = copy.deepcopy(batch)
        return Sent(host=batch, receive=lambda: moved)

    return send


@contextmanager
def on_device() -> Iterator[None]:
    """Learners are built as they are for a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer.learner, "shard", partial(shard, lookup_of=partial(DeviceLookup, operator=Writer())))
        patch.setattr(trainer.run, "open_transfer", elsewhere)
        yield


def test_a_crash_resumes_identically_on_a_devices_tables(configure: Configure) -> None:
    whole, crashed = configure("whole"), configure("crashed")
    with on_device():
        run(whole)
        with pytest.raises(Crash):
            run(crashed, CrashAt("train.dense_updated", 5))
        run(crashed)
    assert digest_of(crashed) == digest_of(whole)


def test_what_a_device_has_begun_the_host_ends_as_if_it_had_begun_it(configure: Configure) -> None:
    whole, moved = configure("whole"), configure("moved")
    run(whole)
    # Once buckets are full the two evict in different orders: not yet in four steps.
    moved.train_config.num_steps = 4
    with on_device():
        run(moved)
    moved.train_config.num_steps = 0
    run(moved)
    assert digest_of(moved) == digest_of(whole)
