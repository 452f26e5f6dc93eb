"""`CommitLog`: reading the log (FORMAT.md, section 7)."""

from collections.abc import Collection, Iterator

from checkpointer import blob as blobs
from checkpointer import chain
from checkpointer.commit import Commit, Role, log_path
from checkpointer.epoch import read_claims
from checkpointer.errors import ChainError, Flaw
from checkpointer.restore import Restored, restore
from checkpointer.rows import Column, TableRows
from checkpointer.store import Store
from protos.commit_pb2 import StreamState

_NO_SUCH = "there is no such commit, or retention removed it"
_LIST = "headrace log ls MODEL_DIR lists what there is"


class CommitLog:
    """The commits of one model directory, for any number of readers beside the writer."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def head(self) -> Commit | None:
        """The newest commit; None where there is none."""
        return chain.latest_by_hint(self.store)

    def get(self, seq: int) -> Commit:
        """Commit `seq`. Raises ChainError."""
        found = chain.read_entry(self.store, seq)
        if found is None:
            raise ChainError(
                Flaw.MISSING, log_path(seq), _NO_SUCH, remedy="headrace log ls MODEL_DIR lists what there is"
            )
        return found

    def commits(self, after: int = 0, *, parent: Commit | None = None) -> Iterator[Commit]:
        """The commits after number `after`, oldest first, each checked against the one before; ends at the head.

        `parent` is commit `after` itself, from whoever has read it already.
        Raises ChainError, with MISSING where retention has removed what should come next: restore instead.
        """
        floor = read_claims(self.store).floor
        if max(after, 1) < floor:
            raise ChainError(
                Flaw.MISSING, log_path(after + 1), f"the log starts at {floor}", remedy="start from restore()"
            )
        known = self.get(after) if after and parent is None else parent
        yield from chain.following(self.store, known)

    def rows(self, commit: Commit, wanted: Collection[str] | None = None) -> Iterator[TableRows]:
        """What the commit does to the tables, a part at a time. DELs and PUTs of one shard come apart.

        `wanted` names the columns that are worth decoding, by default all.
        """
        for blob, part in commit.parts(Role.ROWS, Role.DELETED):
            yield blobs.read_rows(self.store, blob, part, wanted)

    def dense(self, commit: Commit) -> dict[str, Column]:
        """The dense arrays of all ranks."""
        return blobs.read_dense(self.store, commit.parts(Role.DENSE))

    def stream(self, commit: Commit) -> list[StreamState]:
        """The stream state of each rank."""
        return [blobs.read_stream(self.store, blob, part) for blob, part in commit.parts(Role.STREAM)]

    def restore(self, seq: int | None = None) -> Restored:
        """The state at commit `seq`, by default the newest. Raises ChainError."""
        return restore(self.store, seq)
