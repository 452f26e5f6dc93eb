"""Counts of rows by what became of them: received is always their sum (architecture.md section 3, item 11)."""

from __future__ import annotations

from dataclasses import dataclass, fields

from protos import commit_pb2


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """Rows of one topic; an undecodable message counts as one.

    >>> (Counts(trained=3, late=1) + Counts(trained=2)).received
    6
    """

    trained: int = 0
    late: int = 0
    dead_lettered: int = 0
    filtered: int = 0
    duplicate: int = 0
    remainder: int = 0

    @property
    def received(self) -> int:
        """All rows that came in."""
        return self.trained + self.late + self.dead_lettered + self.filtered + self.duplicate + self.remainder

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{item.name: getattr(self, item.name) + getattr(other, item.name) for item in fields(Counts)})

    def to_proto(self, topic: str) -> commit_pb2.Accounting:
        """As a message for the commit log."""
        counts = {item.name: getattr(self, item.name) for item in fields(Counts)}
        return commit_pb2.Accounting(topic=topic, received=self.received, **counts)

    @classmethod
    def from_proto(cls, message: commit_pb2.Accounting) -> Counts:
        """From a message of the commit log; raise ValueError where it does not add up."""
        counts = cls(**{item.name: int(getattr(message, item.name)) for item in fields(cls)})
        if counts.received != message.received:
            raise ValueError(
                f"accounting of topic {message.topic!r} does not add up: received {message.received}, "
                f"but the sum of what became of the rows is {counts.received}"
            )
        return counts
