"""Tables that keep up with the log of another trainer, so that a takeover only adds the commits of the last moment."""

import logging
from collections.abc import Callable

from checkpointer import Commit, CommitLog, Restored
from checkpointer.commit import Kind
from checkpointer.errors import CheckpointError
from recmodels.tables import ShardedTables
from trainer.errors import RestoreError

logger = logging.getLogger(__name__)

_SKIPPED_AFTER_ERROR = 50


class Follower:
    """Takes commits that count into loaded tables, one by one; it reads the log and writes nothing.

    Which commit is right is said at the takeover, by who holds the lock and the newest producer epoch. `bring_to` then
    adds the missing commits, and loads all anew where those do not lead to it. Dense half, metrics and position are
    small: they are restored only then. `check` refuses the commits of another model as soon as there are some.
    """

    def __init__(self, log: CommitLog, tables: ShardedTables, check: Callable[[Commit], None]) -> None:
        self._log = log
        self._tables = tables
        self._check = check
        self._at: Commit | None = None
        self._loaded = False
        self._skip = 0

    def follow(self) -> None:
        """Take in the next commit, if there is one; first the whole state at the newest."""
        if self._skip:
            self._skip -= 1
            return
        try:
            if self._at is None:
                head = self._log.head()
                if head is not None:
                    self._check(head)
                    self._load(self._log.restore(head.seq))
                    logger.info("stage=following seq=%d in_place=%s", head.seq, self._tables.in_place)
            elif self._tables.in_place:
                self._take_next(self._at)
        except CheckpointError as error:
            # The other trainer may be out of its storage, too; what is broken for good is told at the takeover.
            logger.warning("the log cannot be followed, trying again later error=%s", error)
            self._at, self._skip = None, _SKIPPED_AFTER_ERROR

    def bring_to(self, restored: Restored) -> None:
        """Put the tables at exactly `restored`, whatever they hold now."""
        target, before = restored.commit, self._at
        try:
            while self._at is not None and self._at.seq < target.seq and self._tables.in_place:
                if not self._take_next(self._at):
                    break
        except CheckpointError as error:
            logger.warning("the last commits cannot be followed, all is read again error=%s", error)
            self._at = None
        if self._at is None or self._at.link != target.link:
            self._load(restored)
        elif before is not None:
            logger.info("stage=caught_up seq=%d commits=%d", target.seq, target.seq - before.seq)

    def begin(self) -> None:
        """Start without any commit; RestoreError where the tables hold one that is not in the log any more."""
        if self._loaded:
            raise RestoreError(
                f"{self._log.store.url} has no commits any more, but this standby has followed some: start it again"
            )

    def _load(self, restored: Restored) -> None:
        self._at, self._loaded = None, True
        self._tables.load(restored.tables)
        self._at = restored.commit

    def _take_next(self, at: Commit) -> bool:
        commit = next(iter(self._log.commits(after=at.seq)), None)
        if commit is None:
            return False
        self._at = None
        # A base voids what was before it, and so does the commit that a revert has put another one on top of.
        if commit.parent == at.link and commit.kind is Kind.DELTA and self._tables.follow(self._log.rows(commit)):
            self._at = commit
        return self._at is not None
