"""What a publisher has done beside itself: compiling the dense half, writing serving bases, tidying the log."""

import logging
import tempfile
from collections.abc import Callable
from pathlib import Path

from checkpointer.errors import LockedError
from checkpointer.log import CommitLog
from checkpointer.maintenance import maintain_model
from checkpointer.store import Store
from protos.pipeline_pb2 import EasyRecConfig
from publisher.artefacts import compiled_already, store_artefact
from publisher.bases import build_base
from publisher.contract import Contract
from publisher.errors import PublisherError
from publisher.export.build import build_dense_half
from publisher.export.compile import compile_dense, program_digest
from publisher.export.host import this_host
from publisher.export.runtime import AOT_INDUCTOR
from publisher.options import PublishOptions

logger = logging.getLogger(__name__)

TASKS = ("compile", "base", "maintain")


def run_task(config: EasyRecConfig, store: Store, task: str, arguments: list[str], clock_ms: Callable[[], int]) -> None:
    """Run one task; its result lies in the store."""
    if task == "compile" and len(arguments) == 1:
        compile_artefact(config, store, arguments[0])
    elif task == "base" and len(arguments) == 1 and arguments[0].isdecimal():
        encoding = PublishOptions.from_proto(config).encoding
        build_base(CommitLog(store), store, int(arguments[0]), Contract.of(config).tables, encoding)
    elif task == "maintain" and not arguments:
        maintain_log(config, store, clock_ms)
    else:
        raise PublisherError(f"no task {task!r} with arguments {arguments}: there are {', '.join(TASKS)}")


def maintain_log(config: EasyRecConfig, store: Store, clock_ms: Callable[[], int]) -> None:
    """Compact the commit log and collect garbage, unless somebody else is at it."""
    try:
        maintain_model(store, config, now_ms=clock_ms(), holder=f"publisher of {store.url}")
    except LockedError as error:
        logger.info("log is being maintained already: %s", error)


def compile_artefact(config: EasyRecConfig, store: Store, runtime: str) -> None:
    """Compile the dense half of a configuration for this host, unless the same program was compiled before."""
    contract, host, half = Contract.of(config), this_host(), build_dense_half(config)
    # Tracing is as quick as finding out whether it is needed.
    program = program_digest(half, contract.widths) if runtime == AOT_INDUCTOR else ""
    if program and compiled_already(store, contract.digest, runtime, program, host):
        logger.info("dense half is compiled already runtime=%s", runtime)
        return
    with tempfile.TemporaryDirectory(prefix="headrace-compile-") as scratch:
        payload = compile_dense(runtime, half, contract.widths, Path(scratch))
    store_artefact(store, contract.digest, runtime, payload, program, host)
