"""Which commits retention keeps: the `save_checkpoints_*` of a configuration, by steps, passes and event time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from protos.train_pb2 import TrainConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class Instant:
    """Where training stood; `quorum_ms` is the event time that enough ranks had reached, -1: not known yet."""

    step: int
    epoch: int
    quorum_ms: int = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class Marks:
    """What the first commit after a mark is kept for. Passes replace steps; 0 and () mark nothing.

    >>> marks = Marks(steps=10, epochs=0, interval_ms=60_000, timestamps_ms=(90_000,), quorum=0.5)
    >>> at = Instant(step=8, epoch=0, quorum_ms=61_000)
    >>> marks.crossed(at, Instant(step=9, epoch=0, quorum_ms=89_999))
    False
    >>> marks.crossed(at, Instant(step=9, epoch=0, quorum_ms=90_000))
    True
    >>> marks.crossed(at, Instant(step=10, epoch=0, quorum_ms=61_000))
    True
    """

    steps: int = 0
    epochs: int = 0
    interval_ms: int = 0
    timestamps_ms: tuple[int, ...] = ()
    quorum: float = 0.5

    @classmethod
    def from_proto(cls, train: TrainConfig) -> "Marks":
        """Event times of the configuration are seconds, as in the peer's.

        The peer's default of 1000 steps marks nothing: each mark costs a whole base, and every commit of the log
        restores as it is.
        """
        by_steps = train.HasField("save_checkpoints_steps") and not train.save_checkpoints_epochs
        return cls(
            steps=train.save_checkpoints_steps if by_steps else 0,
            epochs=train.save_checkpoints_epochs,
            interval_ms=train.save_checkpoints_timestamp_interval * 1000,
            timestamps_ms=tuple(sorted(second * 1000 for second in train.save_checkpoints_timestamps)),
            quorum=train.save_checkpoints_timestamp_quorum,
        )

    @property
    def by_time(self) -> bool:
        """Whether event time marks anything."""
        return bool(self.interval_ms or self.timestamps_ms)

    def crossed(self, before: Instant, now: Instant) -> bool:
        """Whether a mark lies between the two, the second included."""
        return (
            _passed(self.steps, before.step, now.step)
            or _passed(self.epochs, before.epoch, now.epoch)
            or (
                before.quorum_ms >= 0
                and (
                    _passed(self.interval_ms, before.quorum_ms, now.quorum_ms)
                    or any(before.quorum_ms < mark <= now.quorum_ms for mark in self.timestamps_ms)
                )
            )
        )

    def quorum_ms(self, reached: Sequence[int]) -> int:
        """The latest event time that a quorum of the ranks has reached; -1 while fewer have any.

        >>> Marks(quorum=0.5).quorum_ms([5, 9, 7]), Marks(quorum=1.0).quorum_ms([5, -1])
        (7, -1)
        """
        enough = max(1, math.ceil(self.quorum * len(reached)))
        return sorted(reached, reverse=True)[enough - 1]


def _passed(every: int, before: int, now: int) -> bool:
    return every > 0 and now // every > before // every
