"""`headrace train`: the trainer under torchrun's agent."""

import argparse
from typing import TextIO

from headrace.commands.parsing import Commands, add_command, add_device, require
from protos.arguments import LAST_PORT, at_least, port


def add(commands: Commands) -> None:
    """Add the parser."""
    parser = add_command(
        commands,
        "train",
        run,
        summary="train continuously; the same as torchrun -m trainer CONFIG, without which one rank does",
        example="headrace train pipeline.config --nproc 2",
    )
    parser.add_argument("config", metavar="CONFIG")
    parser.add_argument("--nproc", type=at_least(1), default=1, help="ranks on this machine (default: 1)")
    parser.add_argument("--take-over", action="store_true", help="fence another trainer of this model directory")
    add_device(parser, "where to train; each rank has a GPU of its own")
    parser.add_argument("--threads", type=at_least(1), metavar="N", help="of each rank (default: cores / ranks)")
    parser.add_argument("--metrics-port", type=port, default=0, help="Prometheus; rank n adds n (default: none)")
    parser.add_argument("--metrics-host", metavar="ADDRESS", help="what it listens on (default: loopback)")
    parser.add_argument(
        "--replay-cuts", metavar="MODEL_DIR", help="train the batches that its log recorded, bit for bit"
    )
    parser.add_argument("--standby", action="store_true", help="be ready, and wait until the other trainer is gone")


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Check the configuration, then train until the source ends or a signal comes."""
    from headrace.checked import load_checked
    from headrace.launch import launch

    last = args.metrics_port + args.nproc - 1
    require(not args.metrics_port or last <= LAST_PORT, f"--metrics-port: the last rank would listen on {last}")
    load_checked(args.config, notices=False)
    if args.nproc > 1:
        # Each rank would say the same: here it is said once.
        from trainer.devices import Machine, choose

        choose(args.device, Machine.found(), local_world=args.nproc)
    return launch(["-m", "trainer", *of_a_rank(args)], nproc=args.nproc, environment=args.environment)


def of_a_rank(args: argparse.Namespace) -> list[str]:
    """What each rank's own command line says."""
    flags = {"--take-over": args.take_over, "--standby": args.standby, "--traceback": args.traceback}
    values = {
        "--device": args.device,
        "--threads": args.threads,
        "--metrics-port": args.metrics_port,
        "--metrics-host": args.metrics_host,
        "--replay-cuts": args.replay_cuts,
        "--log-level": args.log_level,
    }
    options = [flag for flag, wanted in flags.items() if wanted]
    options += [part for flag, value in values.items() if value for part in (flag, str(value))]
    return [args.config, *options]
