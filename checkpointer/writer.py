"""Writing commits: any rank stages blobs, rank 0 links the manifest (FORMAT.md, sections 5 and 6)."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from checkpointer import blob as blobs
from checkpointer import chain
from checkpointer.bases import lost_floor
from checkpointer.canonical import sha256
from checkpointer.commit import LOG, START, BlobRef, Commit, Kind, Link, from_bytes, log_path, to_bytes
from checkpointer.epoch import Claim, Standing, claim_epoch, read_claims, seal_claim, still_latest
from checkpointer.errors import (
    ChainError,
    CommitUnknownError,
    ExistsError,
    FencedError,
    NotCommittedError,
    NotStoredError,
    StoreError,
)
from checkpointer.faults import NO_FAULTS, FaultPoints
from checkpointer.rows import Column, TableRows
from checkpointer.store import Content, Store, joined, size_of
from protos.commit_pb2 import StreamState

logger = logging.getLogger(__name__)

HINT_EVERY = 16
BLOBS_PER_FOLDER = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """What the trainer knows of a commit; the writer adds its number, parent, chain and epoch."""

    kind: Kind
    step: int
    event_time_ms: int
    broker_time_ms: int
    world: int
    contract: str
    features: str
    blobs: tuple[BlobRef, ...]
    figures: Mapping[str, float] = field(default_factory=dict)
    kept: bool = False
    from_now: bool = False
    forked: Link | None = None


def stage(
    store: Store,
    *,
    seq: int,
    rank: int,
    rows: Iterable[TableRows],
    dense: Mapping[str, Column] | None = None,
    stream: StreamState | None = None,
) -> tuple[BlobRef, ...]:
    """Make one rank's share of commit `seq` durable, in one blob; it is invisible until a manifest names it.

    Dense arrays of all ranks are read back together, so their names must differ. Raises NotCommittedError.
    """
    pieces = [piece for table in rows for piece in blobs.rows_pieces(table)]
    if dense is not None:
        pieces.append(blobs.dense_piece(dense))
    pieces.append(blobs.stream_piece(stream if stream is not None else StreamState()))
    data, parts = blobs.assemble(pieces)
    name = sha256("".join(part.sha256 for part in parts).encode())[:16]
    path = f"{blob_folder(seq)}/{seq:020d}-r{rank}-{name}.blob"
    put_blob(store, path, data, "commit.blob")
    return (BlobRef(path=path, bytes=size_of(data), rank=rank, parts=parts),)


def put_blob(store: Store, path: str, data: Content, point: str) -> None:
    """Store a blob under a name made from its content; the same blob may be there from before a crash."""
    try:
        store.put_if_absent(path, data, point=point)
    except ExistsError:
        if store.get(path) != joined(data):
            raise NotCommittedError(f"{path} in {store.url} is there with other content; delete it") from None
    except StoreError as error:
        # Even if the blob is there: without a manifest it is nothing.
        raise NotCommittedError(f"the blob {path} is not stored: {error}") from error


def blob_folder(seq: int) -> str:
    """Where blobs of commit `seq` lie; folders stay small, and empty ones are removed."""
    return f"{LOG}/blobs/{seq // BLOBS_PER_FOLDER:017d}"


class Writer:
    """The one producer of a model directory, until a newer one claims it."""

    def __init__(self, store: Store, claim: Claim, head: Commit | None, options: "WriterOptions") -> None:
        self.head = head
        self._store = store
        self._claim = claim
        self._options = options
        self._chain = head.chain if head else options.new_chain()
        self._next = claim.first
        self._unsettled: Commit | None = None
        self._appended = 0

    @classmethod
    def open(cls, store: Store, options: "WriterOptions") -> "Writer":
        """Take over the log: older producers are fenced, whatever counts already is kept.

        1. claim a newer epoch  2. read what counts  3. say from where on older epochs are void
        """
        known = chain.latest(store)
        after, floor = (known.epoch, lost_floor(store)) if known else (0, 0)
        claim = claim_epoch(store, options.token, known.seq if known else 0, after=after, floor=floor)
        head = chain.latest_to_adopt(store, read_claims(store).before(claim.epoch))
        claim = seal_claim(store, claim, (head.seq if head else 0) + 1)
        if head:
            chain.write_hint(store, head)
        logger.info("producer opened url=%s epoch=%s next=%s", store.url, claim.epoch, claim.first)
        return cls(store, claim, head, options)

    @property
    def epoch(self) -> int:
        """The producer epoch that this writer claimed."""
        return self._claim.epoch

    @property
    def next_seq(self) -> int:
        """The number to stage the next commit under."""
        return self._next

    def append(self, draft: Draft) -> Commit:
        """Make a staged commit count.

        1. settle what an earlier append left unknown  2. link the manifest  3. read the epoch again
        Raises NotCommittedError, CommitUnknownError, FencedError.
        """
        self._settle()
        if self.head is None and draft.kind is not Kind.BASE:
            raise NotCommittedError(f"the first commit of {self._store.url} must be a base")
        commit, data = self._manifest(draft, self._next)
        while not self._link(commit, data):
            self._next += 1
            commit, data = self._manifest(draft, self._next)
        self._options.faults.reached("commit.manifest_counted")
        self._advance(commit)
        return commit

    def start_chain(self) -> None:
        """Begin a new chain with the next commit, which must be a base that names the commit it was forked from."""
        self._chain = self._options.new_chain()

    def close(self) -> None:
        """Let the hint name the newest commit: whoever loses that one from now on is told."""
        if self.head is not None and self._appended:
            self._hint(self.head)

    def _manifest(self, draft: Draft, seq: int) -> tuple[Commit, bytes]:
        commit = Commit(
            seq=seq,
            digest="",
            parent=self.head.link if self.head else START,
            chain=self._chain,
            epoch=self._claim.epoch,
            kind=draft.kind,
            step=draft.step,
            event_time_ms=draft.event_time_ms,
            broker_time_ms=draft.broker_time_ms,
            committed_ms=self._options.clock_ms(),
            world=draft.world,
            contract=draft.contract,
            features=draft.features,
            figures=draft.figures,
            blobs=draft.blobs,
            kept=draft.kept,
            from_now=draft.from_now,
            forked=draft.forked,
            writer=self._options.writer,
        )
        data, _ = to_bytes(commit)
        try:
            return from_bytes(commit.path, data), data
        except ChainError as error:
            raise NotCommittedError(f"no reader would accept this commit: {error}") from error

    def _link(self, commit: Commit, data: bytes) -> bool:
        """Link the manifest; False when a fenced producer's entry lies under its number."""
        try:
            self._store.put_if_absent(commit.path, data, point="commit.manifest")
        except ExistsError:
            return self._judge_taken(commit)
        except NotStoredError as error:
            raise NotCommittedError(f"commit {commit.seq} is not in the log: {error}") from error
        except StoreError as error:
            self._unsettled = commit
            raise CommitUnknownError(f"commit {commit.seq} may or may not be in the log: {error}") from error
        self._check_epoch(commit)
        return True

    def _judge_taken(self, commit: Commit) -> bool:
        taken = chain.read_entry(self._store, commit.seq)
        self._check_epoch(commit)
        if taken is not None and taken.digest == commit.digest:
            return True  # our own: the client of an object store repeats a put whose answer was lost
        if taken is not None and read_claims(self._store).judge(taken.seq, taken.epoch) is Standing.VOID:
            logger.warning("stepping over a fenced entry seq=%s epoch=%s", taken.seq, taken.epoch)
            return False
        raise FencedError(
            f"{log_path(commit.seq)} in {self._store.url} was written by another producer; this one must stop"
        )

    def _check_epoch(self, commit: Commit) -> None:
        try:
            latest = still_latest(self._store, self._claim)
        except StoreError as error:
            self._unsettled = commit
            raise CommitUnknownError(f"commit {commit.seq} is linked, but the epoch cannot be read: {error}") from error
        if not latest:
            raise FencedError(
                f"a newer producer took over {self._store.url}; whether commit {commit.seq} counts is for it to say"
            )

    def _settle(self) -> None:
        """Find out what became of an append whose outcome was unknown."""
        if self._unsettled is None:
            return
        pending = self._unsettled
        try:
            found = chain.read_entry(self._store, pending.seq)
        except StoreError as error:
            raise CommitUnknownError(f"commit {pending.seq} may or may not be in the log: {error}") from error
        self._check_epoch(pending)
        self._unsettled = None
        if found is not None and found.digest == pending.digest:
            self._advance(pending)

    def _advance(self, commit: Commit) -> None:
        self.head = commit
        self._next = commit.seq + 1
        self._appended += 1
        if self._appended % HINT_EVERY == 1:
            self._hint(commit)

    def _hint(self, commit: Commit) -> None:
        try:
            chain.write_hint(self._store, commit)
        except StoreError as error:
            logger.warning("no head hint written seq=%s error=%s", commit.seq, error)


@dataclass(frozen=True, kw_only=True, slots=True)
class WriterOptions:
    """Who writes: `token` names this process, `new_chain` draws the id of a new chain."""

    token: str
    clock_ms: Callable[[], int]
    new_chain: Callable[[], str]
    writer: str
    faults: FaultPoints = NO_FAULTS
