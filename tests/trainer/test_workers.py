"""Votes, decisions, and the exchange between ranks."""

import numpy as np
import pytest
import torch
import torch.distributed as dist

from trainer.errors import WorkerError
from trainer.options import Cadence
from trainer.wire import pack_arrays, unpack_arrays
from trainer.workers import Decision, Vote, naming_lost_ranks


def vote(**changes: int) -> np.ndarray:
    values = {"rows": 0, "event_time_ms": -1, "finished": False, "stop": False, "commit": False, "busy": False}
    return Vote(**{**values, **changes}).pack()


def test_decision_adds_rows_and_takes_the_latest_time() -> None:
    decision = Decision.of(np.stack([vote(rows=3, event_time_ms=10), vote(rows=4, event_time_ms=7)]))
    assert (decision.rows, decision.event_time_ms) == (7, 10)


def test_job_is_finished_only_when_every_rank_is() -> None:
    assert not Decision.of(np.stack([vote(finished=True), vote()])).finished
    assert Decision.of(np.stack([vote(finished=True), vote(finished=True)])).finished


def test_any_rank_stops_the_job_and_rank_0_alone_says_when_to_commit() -> None:
    decision = Decision.of(np.stack([vote(), vote(stop=True, commit=True)]))
    assert decision.stop and not decision.commit


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer"),
        RuntimeError("NCCL communicator was aborted on rank 1"),
        dist.DistBackendError("remote process exited or there was a network error"),
    ],
    ids=lambda error: str(error)[:9],
)
def test_what_either_library_says_of_a_lost_rank_is_said_in_words(error: RuntimeError) -> None:
    with pytest.raises(WorkerError, match="rank 0 lost another rank"), naming_lost_ranks(0):
        raise error


def test_what_has_nothing_to_do_with_other_ranks_stays_what_it_is() -> None:
    with pytest.raises(torch.OutOfMemoryError), naming_lost_ranks(0):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


def test_arrays_survive_the_wire() -> None:
    arrays = {"a": np.arange(6).reshape(2, 3)[:, ::2], "empty": np.zeros((0, 4), np.float32)}
    back = unpack_arrays(pack_arrays(arrays))
    assert all(np.array_equal(back[name], value) for name, value in arrays.items())


def test_cadence_by_steps_ignores_the_clock() -> None:
    cadence = Cadence(interval_ms=500, steps=4)
    assert not cadence.due(steps=3, elapsed_ms=1e9) and cadence.due(steps=4, elapsed_ms=0)


def test_cadence_by_interval_needs_something_learnt() -> None:
    cadence = Cadence(interval_ms=500, steps=0)
    assert not cadence.due(steps=0, elapsed_ms=1e9) and cadence.due(steps=1, elapsed_ms=500)
