"""One Kafka partition that is being read: where it stands, where it ends, and its messages turned into chunks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Message

from stream.cursor import Cursor
from stream.deadletter import DeadLetter
from stream.decode import Decoder, Failure, Segment
from stream.errors import LogTruncatedError
from stream.source import Chunk


@dataclass(kw_only=True, slots=True)
class Partition:
    """`fetched` is the next row to decode, `given` the next row to give: `pending` is between them."""

    fetched: Cursor
    given: Cursor
    end: int | None = None  # the offset at which reading stops
    stop_ms: int | None = None  # or the message time
    from_ms: int | None = None  # pass over what comes before the first message of that time
    caught_up: bool = False  # no message is known to follow
    paused: bool = False
    high: int = 0  # the log's end as last seen
    pending: deque[Chunk] = field(default_factory=deque)

    @property
    def done(self) -> bool:
        """Everything up to the end was given."""
        return self.end is not None and not self.pending and self.given.offset >= self.end

    def take(self, messages: Sequence[Message], decoder: Decoder) -> None:
        """Decode consecutive messages into pending chunks."""
        self.caught_up = False
        offsets = np.fromiter((message.offset() for message in messages), np.int64, len(messages))
        if offsets[0] < self.fetched.offset:
            raise LogTruncatedError(
                f"{self._name}: message {offsets[0]} came after {self.fetched.offset - 1}: the log was rewritten"
            )
        times = np.fromiter((message.timestamp()[1] for message in messages), np.int64, len(messages))
        if self.from_ms is not None:
            early = self._early(self.from_ms, offsets, times)
            messages, offsets, times = messages[early:], offsets[early:], times[early:]
            if not messages:
                return
        count = self._cut(offsets, times)
        self.high = max(self.high, int(offsets[-1]) + 1)
        for run in _by_epoch(messages[:count]):
            self._decode(run, offsets, times, decoder)
            offsets, times = offsets[len(run) :], times[len(run) :]
        if count < len(messages):
            self.reach(int(self.end or 0))

    @property
    def _name(self) -> str:
        return f"topic {self.fetched.topic} partition {self.fetched.partition}"

    def _early(self, from_ms: int, offsets: npt.NDArray[np.int64], times: npt.NDArray[np.int64]) -> int:
        """How many messages to pass over: Tansu answers every question for a time with the log's start."""
        found = np.flatnonzero(times >= from_ms)
        early = int(found[0]) if len(found) else len(offsets)
        self.reach(int(offsets[early]) if len(found) else int(offsets[-1]) + 1)
        if len(found):
            self.from_ms = None
        return early

    def _cut(self, offsets: npt.NDArray[np.int64], times: npt.NDArray[np.int64]) -> int:
        """How many of the messages lie before the end; a message at or after the stop time sets it."""
        if self.stop_ms is not None and self.end is None:
            late = np.flatnonzero(times >= self.stop_ms)
            if len(late):
                self.end = int(offsets[late[0]])
        return len(offsets) if self.end is None else int(np.searchsorted(offsets, self.end))

    def reach(self, offset: int) -> None:
        """No message lies between what was fetched and `offset`: aborted ones and markers are passed over."""
        if offset <= self.fetched.offset:
            return
        self.fetched = self.fetched.at(offset)
        if self.pending:
            last = self.pending.pop()
            self.pending.append(_with_end(last, last.end.at(offset)))
        else:
            self.given = self.given.at(offset)

    def give(self) -> Chunk:
        """The next pending chunk."""
        chunk = self.pending.popleft()
        self.given = chunk.end
        return chunk

    def _decode(
        self, run: Sequence[Message], offsets: npt.NDArray[np.int64], times: npt.NDArray[np.int64], decoder: Decoder
    ) -> None:
        epoch = run[0].leader_epoch()
        epoch = -1 if epoch is None else int(epoch)
        if epoch < self.fetched.leader_epoch and epoch >= 0:
            raise LogTruncatedError(
                f"{self._name}: the leader epoch fell from {self.fetched.leader_epoch} to {epoch} at "
                f"{offsets[0]}: the log was rewritten"
            )
        payloads = [message.value() for message in run]
        decoded = decoder.decode(payloads)
        append_time = run[0].timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME
        failures = deque(decoded.failures)
        for segment in decoded.segments:
            dead: list[DeadLetter] = []
            while failures and failures[0].index < segment.stop:
                failure = failures.popleft()
                at = self.fetched.at(int(offsets[failure.index]), 0, epoch)
                dead.append(_letter(failure, at, payloads[failure.index], decoder.format))
            self._append(segment, offsets, times, epoch, tuple(dead), append_time)

    def _append(
        self,
        segment: Segment,
        offsets: npt.NDArray[np.int64],
        times: npt.NDArray[np.int64],
        epoch: int,
        dead: tuple[DeadLetter, ...],
        append_time: bool,
    ) -> None:
        rows, message, row = segment.rows, segment.message, segment.row
        start = self.fetched
        if start.row and offsets[segment.first] == start.offset:
            # The cursor points into the first message: its rows up to there were given before.
            skip = int(np.searchsorted(row[message == segment.first], start.row))
            rows, message, row = rows.slice(skip), message[skip:], row[skip:]
        end = start.at(int(offsets[segment.stop - 1]) + 1, 0, epoch)
        self.fetched = end
        chunk = Chunk(
            key=start.key,
            rows=rows,
            offsets=offsets[message],
            row_in_message=row,
            broker_time_ms=times[message],
            start=start.at(start.offset, start.row, epoch),
            end=end,
            dead=dead,
            append_time=append_time,
        )
        self.pending.append(chunk)


def _by_epoch(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """Runs of one leader epoch: a cursor must carry the epoch of the messages around it."""
    if not messages:
        return []
    if messages[0].leader_epoch() == messages[-1].leader_epoch():
        return [messages]
    epochs = [message.leader_epoch() for message in messages]
    cuts = [0] + [i for i in range(1, len(epochs)) if epochs[i] != epochs[i - 1]] + [len(epochs)]
    return [messages[cuts[i] : cuts[i + 1]] for i in range(len(cuts) - 1)]


def _letter(failure: Failure, at: Cursor, payload: bytes | None, form: str) -> DeadLetter:
    return DeadLetter(cursor=at, reason=failure.reason, detail=failure.detail, raw=payload or b"", format=form)


def _with_end(chunk: Chunk, end: Cursor) -> Chunk:
    return Chunk(
        key=chunk.key,
        rows=chunk.rows,
        offsets=chunk.offsets,
        row_in_message=chunk.row_in_message,
        broker_time_ms=chunk.broker_time_ms,
        start=chunk.start,
        end=end,
        dead=chunk.dead,
        append_time=chunk.append_time,
    )
