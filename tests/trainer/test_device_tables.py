"""A whole trainer on the lookup that keeps rows on a device, here on tensors of the CPU: all of CUDA but the GPU.

fbgemm's writing operator is emulated (tests/recmodels/zch/writer.py); each batch is learnt from in a copy.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
Place = Callable[[], AbstractContextManager[None]]


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


def steps(config: EasyRecConfig, until: int, where: AbstractContextManager[None]) -> None:
    config.train_config.num_steps = until
    with where:
        run(config)


@pytest.mark.parametrize(
    ("first", "second"), [(on_device, on_device), (on_device, nullcontext), (nullcontext, on_device)]
)
def test_host_and_device_learn_the_same_and_take_over_from_each_other(
    configure: Configure, first: Place, second: Place
) -> None:
    host, moved = configure("host"), configure("moved")
    # Until a bucket is full: then the two evict in different orders.
    steps(host, 4, nullcontext())
    steps(moved, 2, first())
    steps(moved, 4, second())
    assert digest_of(moved) == digest_of(host)
