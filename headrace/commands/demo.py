"""`headrace demo`: the whole loop on one machine."""

import argparse
from pathlib import Path
from typing import TextIO

from headrace.commands.parsing import Commands, add_command
from protos.arguments import at_least


def add(commands: Commands) -> None:
    """Add the parser."""
    parser = add_command(
        commands,
        "demo",
        run,
        summary="run the whole loop on MovieLens-100K with an embedded broker, and show it live",
        example="headrace demo --out runs/demo",
    )
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), help="default: runs/demo")
    parser.add_argument("--cache", type=Path, default=Path("runs/cache"), help="where the data set is kept")
    parser.add_argument("--events", type=at_least(0), default=0, help="only that many events (default: all)")


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Run the demo; exit code 1 when a request failed."""
    from rich.console import Console

    from headrace.demo.run import DemoOptions, demo

    summary = demo(
        DemoOptions(out=args.out, cache=args.cache, events=args.events), env=args.environment, console=Console(file=out)
    )
    out.write(f"the report is {args.out / 'report.html'}, the logs are in {args.out / 'logs'}\n")
    return 1 if summary["failed_requests"] else 0
