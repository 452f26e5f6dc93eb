"""`is_profiling`: a trace of twelve steps by torch's profiler, for TensorBoard or chrome://tracing."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from torch.profiler import profile, schedule, tensorboard_trace_handler

logger = logging.getLogger(__name__)

WAIT, WARM_UP, ACTIVE = 1, 1, 10


class StepClock(Protocol):
    """What counts finished steps."""

    def step(self) -> None:
        """One more step is finished."""


class NoProfiler:
    """Counts nothing."""

    def step(self) -> None:
        """Nothing to do."""


@contextmanager
def profiling(folder: str, *, rank: int) -> Iterator[StepClock]:
    """Trace a few steps after the first into `folder`; an empty folder traces nothing."""
    if not folder:
        yield NoProfiler()
        return
    handler = tensorboard_trace_handler(folder, worker_name=f"rank{rank}")
    logger.info("profiling steps=%d folder=%s", ACTIVE, folder)
    with profile(
        schedule=schedule(wait=WAIT, warmup=WARM_UP, active=ACTIVE, repeat=1), on_trace_ready=handler
    ) as clock:
        yield clock
