"""Restoring a commit: the newest base until then and the deltas since, table by table (FORMAT.md, section 7)."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from checkpointer import blob as blobs
from checkpointer import chain
from checkpointer.bases import Base, newest_base
from checkpointer.commit import BlobRef, Commit, Kind, Part, Role
from checkpointer.epoch import read_claims
from checkpointer.errors import ChainError, Flaw
from checkpointer.resolve import Overlay, merge, overlay
from checkpointer.rows import Column, TableRows
from checkpointer.seen import with_seen
from checkpointer.store import Store
from protos.commit_pb2 import StreamState

ROWS_AT_ONCE = 262_144
TABLES_AHEAD, PARTS_AHEAD = 4, 2
_GROWING = (Role.ROWS, Role.DELETED, Role.STREAM)

_Asked = TypeVar("_Asked")
_Made = TypeVar("_Made")


@dataclass(frozen=True, kw_only=True, slots=True)
class Restored:
    """The state at one commit. `tables` reads from the store as it goes, once; ids ascend within a table and kind.

    `shard` of what it yields is 0 and means nothing: tables place rows by id, or by slot in the same geometry.
    """

    commit: Commit
    tables: Iterator[TableRows]
    dense: dict[str, Column]
    stream: list[StreamState]  # one per rank of the commit; `seen` of all the commits since the base, on the first


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a restore reads: a compacted base, or none and a commit that is one, then the deltas, oldest first."""

    base: Base | None
    commits: tuple[Commit, ...]

    @property
    def target(self) -> Commit:
        """The commit that is restored."""
        if self.commits:
            return self.commits[-1]
        if self.base is None:
            raise ValueError("a plan has a base or commits")
        return self.base.commit

    @property
    def grown_bytes(self) -> int:
        """What is read of the commits on top of the base beside the newest dense part, which takes the base's place."""
        return sum(commit.grown_bytes for commit in self.commits if commit.kind is Kind.DELTA)

    @property
    def read_bytes(self) -> int:
        """What a restore reads of blobs."""
        newest = self.base if self.base and not self.commits else self.target
        dense = sum(part.bytes for _, part in newest.parts(Role.DENSE))
        rows = sum(part.bytes for _, part in self.base.parts(*_GROWING)) if self.base else 0
        return dense + rows + sum(commit.grown_bytes for commit in self.commits)


def restore(store: Store, seq: int | None) -> Restored:
    """The state at commit `seq`, by default the newest. Raises ChainError."""
    return read_plan(store, plan(store, seq))


def read_plan(store: Store, steps: Plan) -> Restored:
    """The state that a plan leads to."""
    newest = steps.base if steps.base and not steps.commits else steps.target
    return Restored(
        commit=steps.target,
        tables=resolved(store, steps),
        dense=blobs.read_dense(store, newest.parts(Role.DENSE)),
        stream=_stream(store, steps),
    )


def plan(store: Store, seq: int | None) -> Plan:
    """Walk back from the target to a base, each step verified by the digest its child names. Raises ChainError."""
    target = _target(store, seq)
    base = newest_base(store, target.seq)
    commits: list[Commit] = []
    commit = target
    while base is None or commit.seq > base.seq:
        commits.append(commit)
        if commit.kind is Kind.BASE:
            return Plan(base=None, commits=tuple(reversed(commits)))
        if commit.parent.seq == 0:
            raise ChainError(Flaw.MALFORMED, commit.path, "a delta that starts the log")
        if base is not None and commit.parent.seq <= base.seq:
            base.check(commit.parent)
            break
        parent = chain.read_counted(store, commit.parent)
        chain.check_child(parent, commit)
        commit = parent
    else:
        base.check(target.link)
    return Plan(base=base, commits=tuple(reversed(commits)))


def resolved(store: Store, steps: Plan) -> Iterator[TableRows]:
    """All tables, in order of name and kind.

    In memory: of each of TABLES_AHEAD + 1 tables the rows that deltas touch, and of one of them the next parts of its
    base. Reading, digests and Parquet leave the interpreter to other threads, whoever takes the rows too.
    """
    base = _by_table(steps.base.parts(Role.ROWS)) if steps.base else {}
    deltas = [_by_table(commit.parts(Role.ROWS, Role.DELETED)) for commit in steps.commits]
    keys = sorted(base.keys() | {key for delta in deltas for key in delta})

    def over(key: tuple[str, str]) -> Overlay:
        changes = [delta[key] for delta in reversed(deltas) if key in delta]
        return overlay([blobs.read_rows(store, *found) for found in change] for change in changes)

    def part(found: tuple[BlobRef, Part]) -> TableRows:
        return blobs.read_rows(store, *found)

    with ThreadPoolExecutor(TABLES_AHEAD, "restore") as overlays, ThreadPoolExecutor(PARTS_AHEAD, "restore") as parts:
        rows = ahead(parts, part, [found for key in keys for found in base.get(key, [])], PARTS_AHEAD)
        for key, changes in zip(keys, ahead(overlays, over, keys, TABLES_AHEAD), strict=True):
            mine = islice(rows, len(base.get(key, [])))
            yield from merge(mine, changes, ROWS_AT_ONCE)
            deque(mine, maxlen=0)  # what a RESET made void


def ahead(
    pool: ThreadPoolExecutor, make: Callable[[_Asked], _Made], asked: Iterable[_Asked], depth: int
) -> Iterator[_Made]:
    """What `make` makes, in order, while the pool makes at most `depth` more.

    >>> with ThreadPoolExecutor(2) as pool:
    ...     list(ahead(pool, str, [1, 2, 3], 2))
    ['1', '2', '3']
    """
    waiting: deque[Future[_Made]] = deque()
    for one in asked:
        waiting.append(pool.submit(make, one))
        if len(waiting) > depth:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _by_table(parts: Iterable[tuple[BlobRef, Part]]) -> dict[tuple[str, str], list[tuple[BlobRef, Part]]]:
    tables: defaultdict[tuple[str, str], list[tuple[BlobRef, Part]]] = defaultdict(list)
    for blob, part in parts:
        tables[part.key].append((blob, part))
    return dict(tables)


def _target(store: Store, seq: int | None) -> Commit:
    if seq is None:
        found = chain.latest(store)
        if found is None:
            raise ChainError(Flaw.MISSING, store.url, "there is no commit to restore")
        return found
    entry = chain.read_entry(store, seq) if seq >= read_claims(store).floor else None
    if entry is not None:
        chain.check_counts(store, entry)
        return entry
    base = newest_base(store, seq)
    if base is None or base.seq != seq:
        raise ChainError(Flaw.MISSING, store.url, f"there is no commit {seq}, or retention removed it")
    return base.commit


def _stream(store: Store, steps: Plan) -> list[StreamState]:
    sources: Sequence[Commit | Base] = [*([steps.base] if steps.base else []), *steps.commits]
    states = [[blobs.read_stream(store, blob, part) for blob, part in source.parts(Role.STREAM)] for source in sources]
    return with_seen(states)
