"""`headrace dlq ls|show|replay`: the dead letters of a configuration."""

import argparse
import collections
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from headrace.commands.parsing import Commands, add_command, add_family, at_least

if TYPE_CHECKING:
    from stream.deadletter import DeadLetter

_RAW_BYTES = 500  # enough to see what it is


def add(commands: Commands) -> None:
    """Add the parsers."""
    family = add_family(commands, "dlq", summary="look at dead letters, and send them to their topic again")
    ls = add_command(
        family, "ls", run_ls, summary="count the dead letters by reason", example="headrace dlq ls pipeline.config"
    )
    show = add_command(
        family,
        "show",
        run_show,
        summary="show dead letters: cursor, reason, detail, and what their bytes decode to",
        example="headrace dlq show pipeline.config --reason null_label --last 5",
    )
    show.add_argument("--last", type=at_least(1), default=10, help="only that many, the newest (default: 10)")
    replay = add_command(
        family,
        "replay",
        run_replay,
        summary="send dead letters to the topics that they came from, to be judged again",
        example="headrace dlq replay pipeline.config --reason undecodable",
    )
    for parser in (ls, show, replay):
        parser.add_argument("config", metavar="CONFIG")
        parser.add_argument("--reason", help="only letters with this reason code")
    for parser in (ls, show):
        parser.add_argument("--json", action="store_true", help="for programs")


def run_ls(args: argparse.Namespace, out: TextIO) -> int:
    """Count by reason."""
    counts = collections.Counter(letter.reason for letter in _letters(args))
    if args.json:
        out.write(json.dumps(dict(counts), indent=2) + "\n")
        return 0
    out.writelines(f"{count:>10}  {reason}\n" for reason, count in counts.most_common())
    out.write(f"{counts.total():>10}  in all\n")
    return 0


def run_show(args: argparse.Namespace, out: TextIO) -> int:
    """Show the newest letters."""
    from headrace.checked import load_checked
    from stream.deadletter_replay import decode_letter

    config = load_checked(args.config)
    for letter in collections.deque(_letters(args), maxlen=args.last):
        decoded = decode_letter(letter, config)
        rows = decoded if isinstance(decoded, str) else decoded.to_pylist()
        shown = {
            "cursor": letter.key,
            "reason": letter.reason,
            "detail": letter.detail,
            "format": letter.format,
            "bytes": len(letter.raw),
            "decoded": rows,
        }
        if isinstance(decoded, str):
            shown["raw"] = letter.raw[:_RAW_BYTES].decode(errors="backslashreplace")
        if args.json:
            out.write(json.dumps(shown, default=str) + "\n")
        else:
            out.writelines(f"{key:8} {value}\n" for key, value in shown.items())
            out.write("\n")
    return 0


def run_replay(args: argparse.Namespace, out: TextIO) -> int:
    """Send letters again."""
    from headrace.checked import load_checked
    from stream.deadletter_replay import replay_letters

    sent = replay_letters(_letters(args), load_checked(args.config))
    out.write(f"sent {sent} dead letters to their topics again\n")
    return 0


def _letters(args: argparse.Namespace) -> "Iterator[DeadLetter]":
    """The letters, of one reason where it is given; UsageError where there are letters, but none of that one."""
    from headrace.checked import load_checked
    from headrace.errors import UsageError
    from stream.deadletter_replay import read_dead_letters

    others: set[str] = set()
    found = 0
    for letter in read_dead_letters(load_checked(args.config)):
        if args.reason in (None, letter.reason):
            found += 1
            yield letter
        else:
            others.add(letter.reason)
    if others and not found:
        raise UsageError(f"no dead letter has reason {args.reason!r}; there are {', '.join(sorted(others))}")
