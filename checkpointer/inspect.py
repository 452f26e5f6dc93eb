"""What a person asks about a log: `headrace log ls`, `headrace log show`, and the log's share of `headrace status`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from google.protobuf.json_format import MessageToDict

from checkpointer import chain
from checkpointer.bases import list_bases
from checkpointer.commit import Commit, TableCounts
from checkpointer.digest import merged_counters
from checkpointer.epoch import Standing, read_claims
from checkpointer.errors import ChainError
from checkpointer.log import CommitLog
from checkpointer.restore import plan
from checkpointer.store import Store


@dataclass(frozen=True, kw_only=True, slots=True)
class LogLine:
    """One line of `headrace log ls`; `flaw` is "" where the manifest is sound."""

    seq: int
    kind: str
    standing: str  # counts, void, undecided
    step: int
    event_time_ms: int
    committed_ms: int
    put: int
    deleted: int
    bytes: int
    base: bool  # compaction wrote a base of it
    kept: bool
    flaw: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """The rows of one partition that a commit added: from (offset, row), included, to (offset, row), excluded.

    `since` is the commit before, 0 where the commit is the first, or where retention removed the one before: the span
    then starts where nothing is known, and only its end counts.
    """

    topic: str
    partition: int
    since: int
    start: tuple[int, int] | None
    end: tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class LogDetail:
    """What `headrace log show` shows; `tables` by "table/kind", `dense` as type and shape, `stream` by rank."""

    commit: Commit
    standing: str
    tables: Mapping[str, TableCounts]
    dense: Mapping[str, tuple[str, tuple[int, ...]]]
    stream: tuple[Mapping[str, object], ...]
    learned: tuple[Span, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class LogStatus:
    """The log's share of `headrace status`. Times are those of the writer's clock; -1 and 0 mean none."""

    url: str
    head: int
    chain: str
    epoch: int
    producer: str
    step: int
    event_time_ms: int
    committed_ms: int
    log_from: int
    commits: int
    newest_base: int
    deltas_since_base: int
    restore_bytes: int
    figures: Mapping[str, float]
    counters: Mapping[str, list[list[int | str]]]  # cursors, watermarks, accounting, over all ranks


def list_log(store: Store, *, newest: int | None = None) -> Iterator[LogLine]:
    """The entries, oldest first; with `newest` only so many of the last."""
    bases = set(list_bases(store))
    claims = read_claims(store)
    seqs = chain.live_seqs(store)
    for seq in seqs if newest is None else seqs[max(0, len(seqs) - newest) :]:
        try:
            entry = chain.read_entry(store, seq)
        except ChainError as error:
            yield _flawed(seq, f"{error.path}: {error.flaw.value}: {error.detail}")
            continue
        if entry is not None:
            yield _line(entry, claims.judge(seq, entry.epoch), seq in bases)


def show(store: Store, seq: int) -> LogDetail:
    """One commit in full. Raises ChainError."""
    log = CommitLog(store)
    commit = log.get(seq)
    dense = {name: (array.dtype.name, array.shape) for name, array in log.dense(commit).items()}
    return LogDetail(
        commit=commit,
        standing=read_claims(store).judge(seq, commit.epoch).name.lower(),
        tables=commit.tables,
        dense=dense,
        stream=tuple(MessageToDict(state, preserving_proto_field_name=True) for state in log.stream(commit)),
        learned=tuple(_learned(log, commit)),
    )


def _learned(log: CommitLog, commit: Commit) -> Iterator[Span]:
    """Partition by partition, what lies between the commit before and this one."""
    try:
        parent = log.get(commit.parent.seq) if commit.parent.seq else None
    except ChainError:
        parent = None  # retention removed it
    before = _positions(log, parent) if parent is not None else {}
    for (topic, partition), end in sorted(_positions(log, commit).items()):
        start = before.get((topic, partition))
        yield Span(topic=topic, partition=partition, since=parent.seq if parent else 0, start=start, end=end)


def _positions(log: CommitLog, commit: Commit) -> dict[tuple[str, int], tuple[int, int]]:
    cursors = [cursor for state in log.stream(commit) for cursor in state.cursors]
    return {(cursor.topic, cursor.partition): (cursor.offset, cursor.row) for cursor in cursors}


def status(store: Store) -> LogStatus | None:
    """Where the log stands; None where there is no commit yet. Raises ChainError."""
    log = CommitLog(store)
    if log.head() is None:
        return None
    steps = plan(store, None)
    head = steps.target
    latest = read_claims(store).latest
    seqs = chain.live_seqs(store)
    return LogStatus(
        url=store.url,
        head=head.seq,
        chain=head.chain,
        epoch=latest.epoch if latest else 0,
        producer=latest.token if latest else "",
        step=head.step,
        event_time_ms=head.event_time_ms,
        committed_ms=head.committed_ms,
        log_from=seqs[0],
        commits=len(seqs),
        newest_base=steps.base.seq if steps.base else steps.commits[0].seq,
        deltas_since_base=len(steps.commits) - (0 if steps.base else 1),
        restore_bytes=steps.read_bytes,
        figures=head.figures,
        counters=merged_counters(log.stream(head)),
    )


def _line(entry: Commit, standing: Standing, base: bool) -> LogLine:
    tables = entry.tables.values()
    return LogLine(
        seq=entry.seq,
        kind=entry.kind.value,
        standing=standing.name.lower(),
        step=entry.step,
        event_time_ms=entry.event_time_ms,
        committed_ms=entry.committed_ms,
        put=sum(counts.put for counts in tables),
        deleted=sum(counts.deleted for counts in tables),
        bytes=entry.bytes,
        base=base,
        kept=entry.kept,
    )


def _flawed(seq: int, flaw: str) -> LogLine:
    return LogLine(
        seq=seq,
        kind="",
        standing="refused",
        step=0,
        event_time_ms=-1,
        committed_ms=-1,
        put=0,
        deleted=0,
        bytes=0,
        base=False,
        kept=False,
        flaw=flaw,
    )
