"""Where training stands: trained rows, step, clock of event time. It moves when a batch is trained, never at decode."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from protos.commit_pb2 import StreamState
from stream.deadletter import DeadLetter
from stream.feed import Cut
from stream.progress import Progress
from trainer.marks import Instant, Marks

_EACH = 1000  # of a letter, beside its raw bytes


@dataclass(kw_only=True, slots=True)
class Position:
    """The trained position of one rank; `event_time_ms` is the greatest event time that any rank trained."""

    progress: Progress
    rank: int = 0
    step: int = 0
    event_time_ms: int = -1
    event_times_ms: tuple[int, ...] = ()  # the greatest that each rank trained since the process started
    quorum_ms: int = -1
    broker_time_ms: int = -1
    moves: int = 0
    epoch: int = 0
    from_now: bool = False
    dead: list[DeadLetter] = field(default_factory=list)
    dead_bytes: int = 0  # about what `dead` takes in memory

    @property
    def instant(self) -> Instant:
        """Where training stands, for marks."""
        return Instant(step=self.step, epoch=self.epoch, quorum_ms=self.quorum_ms)

    def observe(self, event_times_ms: Sequence[int], marks: Marks) -> int:
        """Move the clocks of event time, by the newest of each rank's batch; they never go back."""
        before = self.event_times_ms or (-1,) * len(event_times_ms)
        self.event_times_ms = tuple(map(max, before, event_times_ms))
        self.event_time_ms = max(self.event_time_ms, *event_times_ms)
        if marks.by_time:
            self.quorum_ms = max(self.quorum_ms, marks.quorum_ms(self.event_times_ms))
        return self.event_time_ms

    def advance(self, cut: Cut) -> None:
        """Count `cut` as done: its rows are trained, its dead letters wait for the next commit."""
        self.progress.advance(cut, step=self.step, rank=self.rank)
        self.moves += 1
        self.dead.extend(cut.dead)
        self.dead_bytes += _bytes(cut.dead)
        if len(cut.broker_time_ms):
            self.broker_time_ms = max(self.broker_time_ms, int(cut.broker_time_ms.max()))

    def next_epoch(self) -> None:
        """Begin the next pass over a bounded source: counters go on, cursors and watermarks start anew."""
        self.epoch += 1
        self.progress.cursors.clear()
        self.progress.watermarks.clear()
        self.moves += 1

    def seal(self) -> StreamState:
        """What a commit records of the stream; cuts and seen ids start anew for the next one."""
        state = self.progress.to_proto()
        state.epoch = self.epoch
        self.progress.clear_increment()
        return state

    def take_dead(self) -> tuple[DeadLetter, ...]:
        """Hand over the dead letters that no commit counts yet."""
        dead, self.dead, self.dead_bytes = tuple(self.dead), [], 0
        return dead

    def put_back(self, dead: Sequence[DeadLetter]) -> None:
        """Take back the dead letters of a commit that failed."""
        self.dead[:0] = dead
        self.dead_bytes += _bytes(dead)


def _bytes(dead: Sequence[DeadLetter]) -> int:
    return sum(_EACH + len(letter.raw) for letter in dead)
