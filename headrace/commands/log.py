"""`headrace log ls|show|verify|compact|revert`: the commit log of a model directory."""

import argparse
import json
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TextIO

from headrace.commands.parsing import Commands, add_command, add_family, add_model_dir
from headrace.moments import instant
from protos.arguments import at_least

if TYPE_CHECKING:
    from checkpointer.commit import Commit
    from checkpointer.inspect import Span
    from checkpointer.store import Store
    from checkpointer.verify import Verification

SERVED = "served"


def add(commands: Commands) -> None:
    """Add the parsers."""
    family = add_family(commands, "log", summary="look at the commit log, verify, compact or revert it")
    ls = add_command(family, "ls", run_ls, summary="list the commits", example="headrace log ls runs/model --last 20")
    show = add_command(
        family,
        "show",
        run_show,
        summary="show one commit, by default the newest, and which rows of the stream it learned",
        example="headrace log show runs/model served",
    )
    verify = add_command(
        family,
        "verify",
        run_verify,
        summary="read everything that counts and check every digest; exit code 1 and a line for each flaw, also of "
        "the pointer, the pin and the manifests of served versions",
        example="headrace log verify runs/model",
    )
    compact = add_command(
        family,
        "compact",
        run_compact,
        summary="write a base of the newest commit and remove what retention does not keep",
        example="headrace log compact runs/model --config pipeline.config",
    )
    revert = add_command(
        family,
        "revert",
        run_revert,
        summary="train on from an older commit, on a new chain: its state, and its cursors or the topic's end",
        example="headrace log revert runs/model 42 --from-now",
    )
    for parser in (ls, show, verify, compact, revert):
        add_model_dir(parser)
    for parser in (ls, show, verify, compact):
        parser.add_argument("--json", action="store_true", help="for programs")
    ls.add_argument("--last", type=at_least(1), help="only that many, the newest")
    show.add_argument("seq", metavar="SEQ", type=_number_or_served, nargs="?", help="a number, or `served`")
    compact.add_argument("--config", metavar="CONFIG", help="take retention from its checkpoint_config")
    revert.add_argument("seq", metavar="SEQ", type=at_least(1))
    revert.add_argument("--from-now", action="store_true", help="skip to the topic's end instead of its cursors")


def run_ls(args: argparse.Namespace, out: TextIO) -> int:
    """List commits, oldest first."""
    from dataclasses import asdict

    from checkpointer.inspect import list_log
    from headrace.model_dir import no_commits, open_model_dir

    lines = list(list_log(open_model_dir(args), newest=args.last))
    if not lines:
        raise no_commits(args.model_dir)
    if args.json:
        out.write(json.dumps([asdict(line) for line in lines], indent=2) + "\n")
        return 0
    out.write(f"{'seq':>8}  {'kind':5}  {'step':>10}  {'put':>9}  {'deleted':>9}  {'bytes':>12}  committed\n")
    for line in lines:
        notes = [note for note, holds in (("kept", line.kept), ("compacted", line.base)) if holds]
        notes += [note for note in (line.standing, line.flaw) if note not in ("", "counts")]
        figures = f"{line.step:>10}  {line.put:>9}  {line.deleted:>9}  {line.bytes:>12}  {instant(line.committed_ms)}"
        out.write(f"{line.seq:>8}  {line.kind:5}  {figures}  {' '.join(notes)}".rstrip() + "\n")
    return 0


def run_show(args: argparse.Namespace, out: TextIO) -> int:
    """Show a commit: tables, positions, accounting, figures."""
    from checkpointer.inspect import show
    from checkpointer.log import CommitLog
    from headrace.model_dir import no_commits, open_model_dir

    store = open_model_dir(args)
    head = CommitLog(store).head()
    if head is None:
        raise no_commits(args.model_dir)
    detail = show(store, _served(store) if args.seq == SERVED else args.seq or head.seq)
    shown: dict[str, object] = {
        **_summary(detail.commit),
        "standing": detail.standing,
        "tables": {name: {"put": rows.put, "deleted": rows.deleted} for name, rows in detail.tables.items()},
        "dense": {name: f"{kind}{list(shape)}" for name, (kind, shape) in detail.dense.items()},
        "figures": dict(detail.commit.figures),
        "learned": {f"{span.topic}/{span.partition}": _span(span) for span in detail.learned},
        "stream": [_positions(state) for state in detail.stream],
    }
    if args.json:
        out.write(json.dumps(shown, indent=2) + "\n")
    else:
        out.writelines(f"{line}\n" for line in _readable(shown))
    return 0


def run_verify(args: argparse.Namespace, out: TextIO) -> int:
    """Verify the log."""
    from dataclasses import asdict

    from headrace.model_dir import no_commits, open_model_dir
    from headrace.verify import verify_model

    found = verify_model(open_model_dir(args))
    flaws = found.flaws
    if not flaws and not found.log.commits:
        raise no_commits(args.model_dir)
    if args.json:
        out.write(json.dumps({**asdict(found.log), "findings": [asdict(flaw) for flaw in flaws]}, indent=2) + "\n")
    else:
        out.writelines(f"{flaw.flaw:12} {flaw.path}: {flaw.detail}\n" for flaw in flaws)
        told = "sound" if not flaws else f"{len(flaws)} flaw{'s' if len(flaws) > 1 else ''}"
        out.write(f"{_read(found.log)}: {told}\n")
    return 0 if not flaws else 1


def run_compact(args: argparse.Namespace, out: TextIO) -> int:
    """Compact now, then collect garbage."""
    from headrace.maintain import compact_now
    from headrace.model_dir import open_model_dir
    from protos.load import load_config
    from protos.pipeline_pb2 import EasyRecConfig

    config = load_config(args.config) if args.config else EasyRecConfig()
    done = compact_now(open_model_dir(args), config, now_ms=time.time_ns() // 1_000_000)
    if args.json:
        out.write(json.dumps(done, indent=2) + "\n")
    else:
        out.write(" ".join(f"{name}={value}" for name, value in done.items()) + "\n")
    return 0


def run_revert(args: argparse.Namespace, out: TextIO) -> int:
    """Append a commit that is the older one's state."""
    from headrace.maintain import revert_to
    from headrace.model_dir import open_model_dir

    commit = revert_to(open_model_dir(args), args.seq, from_now=args.from_now)
    out.write(f"commit {commit.seq} is commit {args.seq} again, on chain {commit.chain}; training goes on from it\n")
    return 0


def _read(log: "Verification") -> str:
    staged = f", commit {log.staged} staged but without a manifest (at work, killed, or lost)" if log.staged else ""
    return f"{log.commits} commits, {log.bases} compacted bases, {log.bytes} bytes{staged}"


def _number_or_served(text: str) -> int | str:
    return text if text == SERVED else at_least(1)(text)


def _served(store: "Store") -> int:
    """The commit of the version in service: versions have their commit's number."""
    from headrace.errors import UsageError
    from publisher.versions import read_current

    current = read_current(store)
    if current is None:
        raise UsageError(f"{store.url} serves no version yet; start headrace publish")
    return current.version


def _span(span: "Span") -> dict[str, object]:
    """Offsets of messages and rows inside them, for people: the last row is the one before `until`."""
    start = "the start" if span.start is None else f"{span.start[0]}:{span.start[1]}"
    return {"from": start, "until": f"{span.end[0]}:{span.end[1]}", "since_commit": span.since}


def _summary(commit: "Commit") -> dict[str, object]:
    return {
        "seq": commit.seq,
        "kind": commit.kind.value,
        "step": commit.step,
        "committed": instant(commit.committed_ms),
        "event_time_ms": commit.event_time_ms,
        "bytes": commit.bytes,
        "world": commit.world,
        "epoch": commit.epoch,
        "chain": commit.chain,
        "parent": commit.parent.seq,
        "forked": commit.forked.seq if commit.forked else None,
        "digest": commit.digest,
    }


def _readable(shown: Mapping[str, object]) -> Iterator[str]:
    """A line for each value; what holds several is a heading, with a line for each of them."""
    for key, value in shown.items():
        if key == "stream" and isinstance(value, list):
            for state in value:
                yield from (f"{kind}\n  " + "\n  ".join(map(_fields, rows)) for kind, rows in state.items() if rows)
        elif isinstance(value, dict):
            yield key
            yield from (f"  {name}  {_fields(held)}" for name, held in value.items())
        else:
            yield f"{key:14} {value}"


def _fields(held: object) -> str:
    return " ".join(f"{name}={value}" for name, value in held.items()) if isinstance(held, dict) else str(held)


def _positions(state: Mapping[str, object]) -> dict[str, object]:
    return {key: state.get(key, []) for key in ("cursors", "watermarks", "accounting")}
