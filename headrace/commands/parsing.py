"""What the commands' parsers have in common."""

import argparse
from collections.abc import Callable
from typing import TextIO, TypeAlias

from headrace.errors import UsageError

# argparse has no public name for what add_subparsers gives.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001
Run: TypeAlias = Callable[[argparse.Namespace, TextIO], int]


def add_command(commands: Commands, name: str, run: Run, *, summary: str, example: str) -> argparse.ArgumentParser:
    """A parser for `headrace NAME`; every command shows an example in its help."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def add_family(commands: Commands, name: str, *, summary: str) -> Commands:
    """A parser for `headrace NAME SUBCOMMAND`."""
    parser = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True)


def add_model_dir(parser: argparse.ArgumentParser) -> None:
    """The argument MODEL_DIR, and what an S3 endpoint needs besides; headrace.model_dir opens it."""
    parser.add_argument("model_dir", metavar="MODEL_DIR", help="a directory, or s3://bucket/prefix")
    s3 = parser.add_argument_group("for s3://")
    s3.add_argument("--s3-endpoint", metavar="URL")
    s3.add_argument("--s3-region", metavar="NAME", help="default: AWS_REGION, else us-east-1")
    s3.add_argument("--s3-credentials-file", metavar="FILE", help="two lines: access key id, secret access key")
    s3.add_argument("--s3-allow-http", action="store_true")


def add_device(parser: argparse.ArgumentParser, what: str) -> None:
    """The option --device of a command that computes with a model."""
    text = f"{what} (default: CUDA where this machine has it)"
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help=text)


def require(condition: bool, message: str) -> None:
    """Raise UsageError with `message` unless `condition` holds."""
    if not condition:
        raise UsageError(message)
