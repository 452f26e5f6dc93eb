"""`headrace status`: how a model directory stands."""

import argparse
import json
from typing import TextIO

from headrace.commands.parsing import Commands, add_command, add_model_dir
from headrace.moments import age, instant


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
    parser.add_argument("--json", action="store_true", help="for programs, with times in milliseconds")
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
        out.write(f"{section.removesuffix('_ms')}\n")
        told = (_told(key, value, instants=section.endswith("_ms")) for key, value in values.items())
        out.writelines(f"  {key:18} {value}\n" for key, value in told)
    return 0


def _told(key: str, value: object, *, instants: bool) -> tuple[str, object]:
    """A value for people: instants in UTC, and ages in units of their size; programs have the milliseconds."""
    if value is None or (instants and value == -1):
        return key, "-"
    if instants and isinstance(value, int):
        return key, instant(value)
    if key.endswith("_ms") and isinstance(value, int):
        return key.removesuffix("_ms"), age(value)
    return key, value
