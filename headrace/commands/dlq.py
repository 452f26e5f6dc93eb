"""`headrace dlq ls|show|replay|clear`: the dead letters of a configuration."""

import argparse
import collections
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from headrace.commands.parsing import Commands, add_command, add_family
from headrace.moments import instant, moment, since_epoch
from protos.arguments import at_least

if TYPE_CHECKING:
    from protos.pipeline_pb2 import EasyRecConfig
    from stream.deadletter_marks import Entry

_RAW_BYTES = 500  # enough to see what it is


def add(commands: Commands) -> None:
    """Add the parsers."""
    family = add_family(commands, "dlq", summary="look at dead letters, send them to their topic again, clear them")
    ls = add_command(
        family,
        "ls",
        run_ls,
        summary="count the dead letters that are open, by reason",
        example="headrace dlq ls pipeline.config --since 2h",
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
        summary="send open dead letters to the topics that they came from, to be judged again; each once",
        example="headrace dlq replay pipeline.config --reason undecodable --dry-run",
    )
    clear = add_command(
        family,
        "clear",
        run_clear,
        summary="mark open dead letters as done with: they are kept, and only --all shows them",
        example="headrace dlq clear pipeline.config --reason empty --until 2026-11-30T12:00",
    )
    for parser in (ls, show, replay, clear):
        _add_selection(parser)
    for parser in (ls, show):
        parser.add_argument("--all", action="store_true", help="also those that were replayed or cleared")
        parser.add_argument("--json", action="store_true", help="for programs")
    for parser in (replay, clear):
        parser.add_argument("--dry-run", action="store_true", help="only say which ones it would be")


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG")
    parser.add_argument("--reason", help="only letters with this reason code")
    parser.add_argument("--key", action="append", metavar="CURSOR", help="only the letter of this cursor; repeatable")
    when = "a time in UTC (2026-11-30T12:00) or an age (90s, 30m, 2h, 1d)"
    parser.add_argument("--since", type=moment, metavar="TIME", help=f"only letters written since then: {when}")
    parser.add_argument("--until", type=moment, metavar="TIME", help="only letters written before then")


def run_ls(args: argparse.Namespace, out: TextIO) -> int:
    """Count by reason; what is not open in columns of its own."""
    from headrace.checked import load_checked
    from stream.deadletter_marks import Status

    counts: dict[str, collections.Counter[str]] = {status: collections.Counter() for status in Status}
    for entry in _selected(args, load_checked(args.config)):
        counts[entry.status][entry.letter.reason] += 1
    shown = counts if args.all else {Status.OPEN: counts[Status.OPEN]}
    if args.json:
        out.write(json.dumps(shown if args.all else dict(counts[Status.OPEN]), indent=2) + "\n")
        return 0
    for status, by_reason in shown.items():
        suffix = f"  {status}" if args.all else ""
        out.writelines(f"{count:>10}  {reason}{suffix}\n" for reason, count in by_reason.most_common())
    out.write(f"{sum(by_reason.total() for by_reason in shown.values()):>10}  in all\n")
    done = counts[Status.REPLAYED].total(), counts[Status.CLEARED].total()
    if any(done) and not args.all:
        out.write(f"{'':>10}  besides {done[0]} replayed and {done[1]} cleared: --all\n")
    return 0


def run_show(args: argparse.Namespace, out: TextIO) -> int:
    """Show the newest letters."""
    from headrace.checked import load_checked
    from stream.deadletter_marks import Status
    from stream.deadletter_replay import decode_letter

    config = load_checked(args.config)
    wanted = (entry for entry in _selected(args, config) if args.all or entry.status is Status.OPEN)
    for entry in collections.deque(wanted, maxlen=args.last):
        letter = entry.letter
        decoded = decode_letter(letter, config)
        rows = decoded if isinstance(decoded, str) else decoded.to_pylist()
        shown = {
            "cursor": letter.key,
            "reason": letter.reason,
            "detail": letter.detail,
            "status": entry.status.value,
            "attempts": entry.attempts,
            "written": instant(letter.at_ms) if letter.at_ms >= 0 else "unknown",
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

    config = load_checked(args.config)
    if args.dry_run:
        return _tell(args, config, out, "send")
    with _alone(config):
        sent = replay_letters(_selected(args, config), config, clock_ms=_now_ms)
    out.write(f"sent {sent} dead letters to their topics again\n")
    return 0


def run_clear(args: argparse.Namespace, out: TextIO) -> int:
    """Mark letters."""
    from headrace.checked import load_checked
    from stream.deadletter_replay import clear_letters

    config = load_checked(args.config)
    if args.dry_run:
        return _tell(args, config, out, "clear")
    with _alone(config):
        cleared = clear_letters(_selected(args, config), config, clock_ms=_now_ms)
    out.write(f"cleared {cleared} dead letters\n")
    return 0


@contextmanager
def _alone(config: "EasyRecConfig") -> "Iterator[None]":
    """Hold the lock of who marks letters, where the trainer has its own: two at once would send each letter twice."""
    from checkpointer.lock import acquire, lock_directory
    from checkpointer.open_store import StoreOptions, open_store

    store = open_store(config.model_dir, StoreOptions.from_proto(config.checkpoint_config.s3))
    directory = lock_directory(config.checkpoint_config.lock_dir, store)
    if not directory:
        yield
        return
    with acquire(directory, "dead_letters.lock", f"headrace dlq, process {os.getpid()}", remedy="wait until it ends"):
        yield


def _tell(args: argparse.Namespace, config: "EasyRecConfig", out: TextIO, verb: str) -> int:
    from stream.deadletter_marks import Status

    count = 0
    for entry in _selected(args, config):
        if entry.status is Status.OPEN:
            count += 1
            out.write(f"{entry.letter.key}  {entry.letter.reason}  attempts={entry.attempts}\n")
    out.write(f"would {verb} {count} dead letters\n")
    return 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _selected(args: argparse.Namespace, config: "EasyRecConfig") -> "Iterator[Entry]":
    """The letters that are asked for; UsageError where there are letters, but none of this reason or cursor."""
    from headrace.errors import UsageError
    from stream.deadletter_replay import read_entries

    since, until = (since_epoch(at, _now_ms()) for at in (args.since, args.until))
    others: set[str] = set()
    keys = set(args.key or ())
    found = False
    for entry in read_entries(config):
        letter = entry.letter
        if args.reason not in (None, letter.reason):
            others.add(letter.reason)
            continue
        found = True
        keys.discard(letter.key)
        # A letter of an unknown time is not known to be of this one.
        late = since is None or letter.at_ms >= since
        early = until is None or 0 <= letter.at_ms < until
        if late and early and (args.key is None or letter.key in args.key):
            yield entry
    if others and not found:
        raise UsageError(f"no dead letter has reason {args.reason!r}; there are {', '.join(sorted(others))}")
    if keys:
        raise UsageError(f"no dead letter has cursor {min(keys)!r}; headrace dlq show tells them")
