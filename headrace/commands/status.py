"""`headrace status`: how a model directory stands."""

import argparse
import json
from typing import TextIO

from headrace.commands.parsing import Commands, add_command, add_model_dir


def add(commands: Commands) -> None:
    """Add the parser."""
    parser = add_command(
        commands,
        "status",
        run,
        summary="show lag, commits, version, staleness and accounting",
        example="headrace status runs/model --json",
    )
    add_model_dir(parser)
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument(
        "--config",
        metavar="CONFIG",
        help="ask the brokers of its stream_config for the lag, not those of the served version",
    )


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Show the status."""
    import time

    from headrace.model_dir import open_model_dir
    from headrace.status import status

    found = status(open_model_dir(args), config_path=args.config, now_ms=time.time_ns() // 1_000_000)
    if args.json:
        out.write(json.dumps(found, indent=2) + "\n")
        return 0
    for section, values in found.items():
        out.write(f"{section}\n")
        out.writelines(f"  {key:18} {'-' if value is None else value}\n" for key, value in values.items())
    return 0
