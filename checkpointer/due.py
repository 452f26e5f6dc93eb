"""When compaction pays: by what a restore reads beyond the state itself, within a share of time (decision 0022)."""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from checkpointer.errors import CheckpointError
from checkpointer.restore import Plan, plan
from checkpointer.store import Store
from protos.checkpoint_pb2 import CheckpointConfig

logger = logging.getLogger(__name__)

# Less than this is read in no time: a new base of a small state would cost more than it saves.
LEAST_BYTES = 4 << 20
# What cannot be read now (retention went on meanwhile, storage is away) is looked at again after so long.
_PAUSE_S = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DueOptions:
    """After how many deltas, or which ratio of their bytes to the base's; which share of time it may take at most."""

    after_commits: int = 240
    after_ratio: float = 0.2
    max_share: float = 0.2
    least_bytes: int = LEAST_BYTES

    @classmethod
    def from_proto(cls, config: CheckpointConfig) -> "DueOptions":
        """Turn the configuration's message."""
        return cls(
            after_commits=max(1, config.compact_after_commits),
            after_ratio=config.compact_after_bytes_ratio,
            max_share=config.compact_max_share,
        )

    def reached(self, commits: int, grown: int, base_bytes: int) -> bool:
        """Whether so many deltas of `grown` bytes on a base of `base_bytes` are to become a new one."""
        return commits >= self.after_commits or grown >= max(self.least_bytes, self.after_ratio * base_bytes)


def base_needed(steps: Plan, options: DueOptions) -> bool:
    """Whether what lies above the newest base is to become a new one; a log without one needs one."""
    return steps.base is None or options.reached(len(steps.commits), steps.grown_bytes, steps.base.bytes)


class CompactionDue:
    """Tells a process that sees the commits when to start compaction beside it.

    It adds up what it is told, and reads the log only where that says that it is time. After a compaction that took
    t seconds there is none for t * (1 / max_share - 1): where commits outrun what compaction may cost, a restore reads
    more instead.
    """

    def __init__(self, store: Store, options: DueOptions, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._options = options
        self._clock = clock
        self._commits, self._grown, self._base_bytes = 0, 0, 0
        self._known = False
        self._found = False
        self._began: float | None = None
        self._not_before = -math.inf

    def add(self, grown_bytes: int, *, commits: int = 1) -> None:
        """Take note of commits that are new, and of their bytes without dense parts (`Commit.grown_bytes`)."""
        self._commits += commits
        self._grown += grown_bytes

    def due(self) -> bool:
        """Whether to start now."""
        if self._began is not None or self._clock() < self._not_before:
            return False
        if self._known and not self._options.reached(self._commits, self._grown, self._base_bytes):
            return False
        # Where it was due and could not begin, reading all manifests again for every commit would tell no more.
        self._found = self._found or self._look()
        return self._found

    def started(self) -> None:
        """Compaction has begun."""
        self._began, self._found = self._clock(), False

    def ended(self) -> None:
        """It has ended, well or not."""
        if self._began is not None:
            now = self._clock()
            self._not_before = now + (now - self._began) * (1 / self._options.max_share - 1)
            self._began, self._known = None, False

    def _look(self) -> bool:
        try:
            steps = plan(self._store, None)
        except CheckpointError as error:
            logger.warning("what a restore would read is not known error=%s", error)
            self._not_before = self._clock() + _PAUSE_S
            return False
        self._known = True
        # Where nothing was compacted yet, the first commit is a base.
        self._base_bytes = steps.base.bytes if steps.base else steps.commits[0].bytes
        self._commits, self._grown = len(steps.commits) - (steps.base is None), steps.grown_bytes
        return self._options.reached(self._commits, self._grown, self._base_bytes)
