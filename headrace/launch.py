"""Start ranks: one as a plain process, several under torchrun's agent without its tracebacks."""

import logging
import os
import sys
import uuid
from collections.abc import Mapping, Sequence

logger = logging.getLogger(__name__)


def launch(arguments: Sequence[str], *, nproc: int, environment: Mapping[str, str]) -> int:
    """Run `python ARGUMENTS` on `nproc` ranks of this machine; the exit code is 0 when all ended well.

    One rank takes the place of this process: signals reach it, its exit code is exact, and it has all the time that it
    needs to commit. The agent of several gives them 30 s after SIGTERM.
    """
    if nproc == 1:
        os.execve(sys.executable, [sys.executable, "-u", *arguments], dict(environment))
    return _under_an_agent(arguments, nproc)


def _under_an_agent(arguments: Sequence[str], nproc: int) -> int:
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    # Each rank has said itself what went wrong.
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=nproc,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        monitor_interval=0.1,
    )
    try:
        elastic_launch(config, sys.executable)("-u", *arguments)
    except ChildFailedError as error:
        codes = [failure.exitcode for failure in error.failures.values()]
        logger.debug("ranks failed codes=%s", codes)
        return max((code for code in codes if code > 0), default=1)
    except SignalException as error:
        logger.info("stopped by signal=%s", error.sigval.name)
    return 0
