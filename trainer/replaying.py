"""Train again with the batches of an earlier run: the cuts that its commits recorded, step by step."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from checkpointer import CommitLog
from checkpointer.store import Store
from stream.progress import RecordedCut, recorded_cuts
from trainer.errors import TrainerConfigError
from trainer.workers import Workers


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """The cuts of one rank that held rows, in order."""

    cuts: tuple[RecordedCut, ...]

    def steps(self) -> "Schedule":
        """When each of them was trained."""
        return Schedule(cut.step for cut in self.cuts)


class Schedule:
    """Which steps a rank had rows in. Ranks that had none in a step must sit it out again."""

    def __init__(self, steps: Iterable[int]) -> None:
        self._left = deque(steps)

    @property
    def over(self) -> bool:
        """Whether every recorded batch was taken."""
        return not self._left

    def takes(self, step: int) -> bool:
        """Whether a batch is due in `step`; it then counts as taken."""
        if self._left and self._left[0] <= step:
            self._left.popleft()
            return True
        return False


def read_recording(store: Store, workers: Workers) -> Recording:
    """The batches of this rank since the beginning of the log in `store`, but for those that a revert undid.

    Raises TrainerConfigError where they are not all there or were those of another world size.
    """
    log = CommitLog(store)
    found: dict[int, list[RecordedCut]] = {}
    for commit in log.commits():
        if commit.from_now:
            raise TrainerConfigError(
                f"commit {commit.seq} of {store.url} skipped to the ends of the topics (log revert --from-now): what "
                "was trained is no one stretch of them, and cannot be replayed"
            )
        if commit.forked is not None:
            # It holds the state of an older commit, whose cuts are in both.
            found = {seq: cuts for seq, cuts in found.items() if seq <= commit.forked.seq}
            continue
        if commit.world != workers.world_size:
            raise TrainerConfigError(
                f"commit {commit.seq} of {store.url} was made by {commit.world} ranks, this run has "
                f"{workers.world_size}; replay with --nproc {commit.world}"
            )
        states = log.stream(commit)
        if any(state.epoch for state in states):
            raise TrainerConfigError(f"{store.url} passed over its source more than once; one pass can be replayed")
        found[commit.seq] = recorded_cuts(states, workers.rank)
    if not found and log.head() is None:
        raise TrainerConfigError(f"{store.url} holds no commit, and so no recorded cuts")
    return Recording(cuts=tuple(_with_rows([cut for cuts in found.values() for cut in cuts])))


def _with_rows(cuts: Sequence[RecordedCut]) -> list[RecordedCut]:
    # What was only dead or late moved the cursor; the next rows of its partition move it again.
    return [cut for cut in cuts if sum(cut.rows)]
