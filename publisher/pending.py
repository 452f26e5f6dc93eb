"""Commits that are in no version yet: their net rows, or the finding that only a base can catch up."""

import logging
from collections.abc import Sequence
from itertools import islice

from checkpointer.commit import Commit, Kind, log_path
from checkpointer.errors import ChainError, Flaw, NotFoundError
from checkpointer.log import CommitLog
from checkpointer.store import Store
from publisher.changes import WEIGHT, Changes, NetRows
from publisher.errors import ContractError, LogReplacedError
from publisher.manifest import Table

logger = logging.getLogger(__name__)

_POLLS_PER_CHECK = 20
_LOOKS_UNTIL_REPLACED = 10


class Pending:
    """Reads the log from commit `after` on. `base_due`: there is no version that deltas could extend."""

    def __init__(self, store: Store, tables: Sequence[Table], *, after: int, base_due: bool, max_bytes: int) -> None:
        self.after = after
        self._store = store
        self._log = CommitLog(store)
        self._tables = tuple(tables)
        self._max_bytes = max_bytes
        self._idle = -1
        self._behind = 0
        self._changes = None if base_due else Changes(self._tables)
        self._newest: Commit | None = None

    @property
    def base_due(self) -> bool:
        """Whether the next version needs a base of its own."""
        return self._changes is None

    def net(self) -> list[NetRows]:
        """What changed since the last version; only where no base is due."""
        return [] if self._changes is None else list(self._changes.net())

    def settle(self) -> None:
        """Everything read so far is in a version now."""
        self._changes = Changes(self._tables)

    def behind(self) -> int:
        """How many numbers the head of the log is ahead of what was read."""
        if not self._follows():
            return 0
        head = self._head()
        return head[0].seq - self.after if head else 0

    def read(self, limit: int) -> Commit | None:
        """Read up to `limit` new commits and collect their rows; the newest one, None where there is none."""
        commits = self._next(limit)
        for commit in commits:
            self._collect(commit)
            self.after, self._newest = commit.seq, commit
        return commits[-1] if commits else None

    def _next(self, limit: int) -> list[Commit]:
        if not self._worth_a_look():
            return []
        if self.base_due:
            return self._head()
        try:
            return list(islice(self._log.commits(after=self.after, parent=self._newest), limit))
        except ChainError as error:
            self._need_base(error)
            return self._head()

    def _worth_a_look(self) -> bool:
        """One read per poll; first and now and then a real look: retention may have removed the next commit."""
        self._idle += 1
        if self._follows():
            return True
        if self._idle % _POLLS_PER_CHECK:
            return False
        head = self._head()
        if head and head[0].seq != self.after + 1:
            self._changes = None
        return bool(head)

    def _follows(self) -> bool:
        """Whether an entry lies under the next number."""
        try:
            self._store.get(log_path(self.after + 1), length=1)
        except NotFoundError:
            return False
        return True

    def _head(self) -> list[Commit]:
        head = self._log.head()
        self._check_head(head)
        return [head] if head is not None and head.seq > self.after else []

    def _check_head(self, head: Commit | None) -> None:
        """Refuse to wait for numbers that another log will reach some day."""
        behind = head is not None and head.seq < self.after
        # For a moment after a trainer takes over, the last commits are undecided.
        self._behind = self._behind + 1 if behind else 0
        if head is not None and self._behind >= _LOOKS_UNTIL_REPLACED:
            raise LogReplacedError(
                f"version {self.after} is newer than the newest commit, {head.seq}, in {self._store.url}: the log was "
                "replaced; move versions/ and current.json away, or use a new model_dir"
            )

    def _collect(self, commit: Commit) -> None:
        if self._changes is None:
            return
        if commit.kind is Kind.BASE:
            logger.info("commit is a base seq=%d chain=%s", commit.seq, commit.chain)
            self._changes = None
            return
        try:
            self._changes.add(self._log.rows(commit, wanted=(WEIGHT,)))
        except ChainError as error:
            self._need_base(error)
            return
        except ContractError as error:
            # The gate names it by the digest in the manifest; here it only means that these rows cannot be merged.
            logger.error("commit has rows outside the contract seq=%d error=%s", commit.seq, error)
            self._changes = None
            return
        if self._changes.bytes > self._max_bytes:
            logger.warning("more than %d bytes behind, starting from a base seq=%d", self._max_bytes, commit.seq)
            self._changes = None

    def _need_base(self, error: ChainError) -> None:
        """Retention may take what is behind; everything else is damage, and is refused by name."""
        if error.flaw is not Flaw.MISSING:
            raise error
        logger.warning("commits after %d are gone, starting from a base: %s", self.after, error)
        self._changes = None
