"""`python -m publisher CONFIG`: the publisher process, and the tasks that it runs beside itself."""

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence

from prometheus_client import start_http_server

from checkpointer.faults import NO_FAULTS, FaultPoints
from checkpointer.faults_kill import faults_from
from checkpointer.open_store import StoreOptions, open_store
from protos.arguments import port
from protos.boundary import guarded
from protos.checked import load_checked
from publisher.background import end_with
from publisher.metrics import PublisherMetrics
from publisher.run import Invocation, follow
from publisher.tasks import TASKS, run_task

# Libraries that were imported before may have set up logging their own way: `force`.
_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def build_parser() -> argparse.ArgumentParser:
    """The parser of the process."""
    parser = argparse.ArgumentParser(prog="python -m publisher", description="Publish commits as serving versions.")
    parser.add_argument("config", help="pipeline configuration, as README.md shows it")
    parser.add_argument("--resume", action="store_true", help="remove the pin of a rollback")
    parser.add_argument("--once", action="store_true", help="publish what is there, then end")
    parser.add_argument("--metrics-port", type=port, default=0, help="Prometheus endpoint; 0: none")
    parser.add_argument("--metrics-host", default="127.0.0.1", help="the address that it listens on")
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    parser.add_argument("--task", nargs="+", metavar=("TASK", "ARGUMENT"), help=f"one of {', '.join(TASKS)}, then end")
    return parser


def run(arguments: Sequence[str], faults: FaultPoints = NO_FAULTS) -> None:
    """Run the process until SIGTERM or SIGINT; raises what a user should read."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    run_until(arguments, stop, faults)


def run_until(arguments: Sequence[str], stop: threading.Event, faults: FaultPoints = NO_FAULTS) -> None:
    """Run the process until `stop` is set."""
    args = build_parser().parse_args(arguments)
    logging.basicConfig(level=args.log_level.upper(), format=_FORMAT, force=True)
    config = load_checked(args.config, notices=not args.task)
    store = open_store(config.model_dir, StoreOptions.from_proto(config.checkpoint_config.s3), faults)
    if args.task:
        run_task(config, store, args.task[0], args.task[1:], _now_ms)
        return
    metrics = PublisherMetrics()
    if args.metrics_port:
        try:
            start_http_server(args.metrics_port, addr=args.metrics_host, registry=metrics.registry)
        except OSError as error:
            raise OSError(
                error.errno, error.strerror, f"metrics port {args.metrics_host}:{args.metrics_port}"
            ) from None
    command = (sys.executable, "-m", "publisher", args.config, "--log-level", args.log_level, "--task")
    how = Invocation(command=command, unpin=args.resume, once=args.once, pid=os.getpid(), clock_ms=_now_ms)
    follow(config, store, how, stop, metrics)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def main() -> None:
    """Entry point: an error becomes one line and an exit code."""
    # For the tasks beside, which compile and trace: this process itself computes nothing in threads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    sys.exit(guarded(lambda: _run(sys.argv[1:]), program="publisher", errors=sys.stderr))


def _run(arguments: Sequence[str]) -> int:
    if build_parser().parse_args(arguments).task:
        end_with(sys.stdin.fileno())
    run(arguments, faults_from(os.environ.get("HEADRACE_FAULT", "")))
    return 0


if __name__ == "__main__":
    main()
