"""`headrace publish` and `headrace rollback`."""

import argparse
import time
from typing import TextIO

from headrace.commands.parsing import Commands, add_command, add_model_dir
from protos.arguments import at_least, port


def add(commands: Commands) -> None:
    """Add the parsers."""
    publish = add_command(
        commands,
        "publish",
        run_publish,
        summary="publish every commit as a serving version; the same as python -m publisher CONFIG",
        example="headrace publish pipeline.config",
    )
    publish.add_argument("config", metavar="CONFIG")
    publish.add_argument(
        "--resume",
        action="store_true",
        help="release what a rollback pinned, also for a publisher that runs",
    )
    publish.add_argument("--metrics-port", type=port, default=0, help="Prometheus (default: none)")
    publish.add_argument(
        "--metrics-host", default="127.0.0.1", metavar="ADDRESS", help="what it listens on (default: loopback)"
    )
    rollback = add_command(
        commands,
        "rollback",
        run_rollback,
        summary="serve an older version, by default the one before, and stay there until publish --resume",
        example="headrace rollback runs/model 41",
    )
    add_model_dir(rollback)
    rollback.add_argument("seq", metavar="SEQ", type=at_least(1), nargs="?")
    rollback.add_argument(
        "--config",
        metavar="CONFIG",
        help="sign with its signing_key_file, and tell replicas on its notify_topic",
    )


def run_publish(args: argparse.Namespace, out: TextIO) -> int:
    """Follow the commit log until SIGTERM."""
    from headrace.checked import load_checked
    from publisher.__main__ import run

    load_checked(args.config, notices=False)
    metrics = ["--metrics-port", str(args.metrics_port), "--metrics-host", args.metrics_host]
    run([args.config, *(["--resume"] if args.resume else []), *metrics])
    return 0


def run_rollback(args: argparse.Namespace, out: TextIO) -> int:
    """Move the pointer back and pin it."""
    from headrace.model_dir import open_model_dir
    from protos.load import load_config
    from protos.pipeline_pb2 import EasyRecConfig
    from publisher.run import roll_back

    config = load_config(args.config) if args.config else EasyRecConfig()
    pointer = roll_back(config, open_model_dir(args), args.seq, lambda: time.time_ns() // 1_000_000)
    out.write(f"serving version {pointer.version}, pinned; to go on: headrace publish CONFIG --resume\n")
    return 0
