"""The command line: `headrace COMMAND ...`."""

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

from headrace import __version__
from headrace.commands import COMMANDS
from protos.boundary import FAILED, guarded, leave

PACKAGES = ("protos", "stream", "features", "recmodels", "checkpointer", "trainer", "publisher", "headrace")
DESCRIPTION = "Streaming online learning for recommender models."


def build_parser() -> argparse.ArgumentParser:
    """The parser with every command."""
    parser = argparse.ArgumentParser(prog="headrace", description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"headrace {__version__}")
    parser.add_argument("--traceback", action="store_true", help="show the traceback of an error, to report it")
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], help="default: info")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add(commands)
    return parser


def run(arguments: Sequence[str], *, out: TextIO, errors: TextIO, environment: Mapping[str, str]) -> int:
    """Run one command and return its exit code; an error becomes one line on `errors`."""
    args = build_parser().parse_args(arguments)
    args.environment = environment
    _log_to(errors, args.log_level or environment.get("HEADRACE_LOG_LEVEL", "info"))
    return guarded(
        lambda: _until_nobody_reads(args, out), program="headrace", errors=errors, show_traceback=args.traceback
    )


def _log_to(errors: TextIO, level: str) -> None:
    """Our own packages log at `level`; libraries only warn, since some greet at import."""
    logging.basicConfig(level="WARNING", format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=errors)
    for package in PACKAGES:
        logging.getLogger(package).setLevel(level.upper())


def _until_nobody_reads(args: argparse.Namespace, out: TextIO) -> int:
    try:
        code = int(args.run(args, out))
        out.flush()
        return code
    except BrokenPipeError:
        # Whoever read our output has seen enough; closing stdout again at exit must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def main() -> None:
    """Entry point of the `headrace` script."""
    # Before a command imports torch: OpenMP's threads otherwise spin while they wait, at others' expense.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Libraries warn their developers about deprecations; that is no news for who runs a command.
    logging.captureWarnings(True)
    for noisy in ("py.warnings", "torchrec", "torch", "torch.fx"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    leave(run(sys.argv[1:], out=sys.stdout, errors=sys.stderr, environment=os.environ))


if __name__ == "__main__":
    main()
