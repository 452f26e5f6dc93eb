"""A cursor points at a row: the next one to read (persisted as message Cursor of protos/commit.proto)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from protos import commit_pb2

PartitionKey = tuple[str, int]
"""(topic or path, partition)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cursor:
    """The next row to read: `offset` is a message (Kafka), row group (Parquet) or block (CSV), `row` the row inside it.

    >>> Cursor(topic="clicks", partition=3, offset=17, row=5).text
    'clicks//3/17/5'
    >>> Cursor.from_text("clicks//3/17/5") == Cursor(topic="clicks", partition=3, offset=17, row=5)
    True
    """

    topic: str
    partition: int
    topic_id: str = ""
    leader_epoch: int = -1
    offset: int = 0
    row: int = 0

    def __post_init__(self) -> None:
        if self.partition < 0 or self.offset < 0 or self.row < 0:
            raise ValueError(
                f"cursor of {self.topic!r} must not be negative: "
                f"partition {self.partition}, offset {self.offset}, row {self.row}"
            )

    @property
    def key(self) -> PartitionKey:
        """The partition that the cursor belongs to."""
        return self.topic, self.partition

    @property
    def place(self) -> tuple[int, int]:
        """(offset, row), which orders the cursors of one partition."""
        return self.offset, self.row

    @property
    def text(self) -> str:
        """`topic/topic id/partition/offset/row`: unique per row, the key of its dead letter."""
        # The ids that brokers give are base64, which has slashes.
        return f"{self.topic}/{quote(self.topic_id, safe='+=')}/{self.partition}/{self.offset}/{self.row}"

    def at(self, offset: int, row: int = 0, leader_epoch: int | None = None) -> Cursor:
        """The same partition at another place."""
        epoch = self.leader_epoch if leader_epoch is None else leader_epoch
        return replace(self, offset=offset, row=row, leader_epoch=epoch)

    def to_proto(self) -> commit_pb2.Cursor:
        """As a message for the commit log."""
        return commit_pb2.Cursor(
            topic=self.topic,
            topic_id=self.topic_id,
            partition=self.partition,
            leader_epoch=self.leader_epoch,
            offset=self.offset,
            row=self.row,
        )

    @classmethod
    def from_proto(cls, message: commit_pb2.Cursor) -> Cursor:
        """From a message of the commit log; raise ValueError where it cannot be a cursor."""
        return cls(
            topic=message.topic,
            topic_id=message.topic_id,
            partition=message.partition,
            leader_epoch=message.leader_epoch,
            offset=message.offset,
            row=message.row,
        )

    @classmethod
    def from_text(cls, text: str) -> Cursor:
        """The inverse of `text`; raise ValueError where it is none."""
        parts = text.rsplit("/", 4)
        if len(parts) != 5:
            raise ValueError(f"{text!r} is not a cursor: expected topic/topic id/partition/offset/row")
        topic, topic_id, partition, offset, row = parts
        return cls(topic=topic, topic_id=unquote(topic_id), partition=int(partition), offset=int(offset), row=int(row))
