"""Rows from Kafka topics, by manual assignment from cursors (architecture.md section 3, items 1 and 2).

No group is joined, so a reader may stall for as long as retention allows: it stops fetching when its queue is full and
goes on where it was. `fetch_max_bytes` bounds memory, once for the client's queue and once for what is being decoded.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import OffsetSpec, TopicDescription

from stream.cursor import Cursor, PartitionKey
from stream.decode import Decoder
from stream.errors import LogTruncatedError, OffsetLostError, SourceError, TopicMissingError, TopicRecreatedError
from stream.kafka_client import MISSING, REFUSED, KafkaClient, Topic, topic_of
from stream.kafka_options import KafkaOptions
from stream.kafka_partition import Partition
from stream.source import Chunk, Clock

_log = logging.getLogger(__name__)

_LOST = frozenset({KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET})  # noqa: SLF001
_TRUNCATED = KafkaError._LOG_TRUNCATION  # noqa: SLF001
_MAX_MESSAGES = 10_000
_PENDING_CHUNKS = 4  # of a partition that is held: more are not fetched
_UNREACHABLE_REFRESH_S = 1.0


class KafkaSource:
    """A `Source` over the partitions of one or several topics."""

    def __init__(
        self, options: KafkaOptions, decoder: Decoder, *, clock: Clock = time.time, ticks: Clock = time.monotonic
    ) -> None:
        """`clock` is compared with the stop time; `ticks`, which never jump, measure silence and refreshes."""
        self._options = options
        self._decoder = decoder
        self._clock = clock
        self._ticks = ticks
        self._client = KafkaClient(options)
        self._topics: dict[str, Topic] = self._client.describe()
        self._parts: dict[PartitionKey, Partition] = {}
        self._ready: deque[PartitionKey] = deque()
        self._held: frozenset[PartitionKey] = frozenset()
        self._skipped: dict[PartitionKey, int] = {}
        self._rows_per_message = 1.0
        self._bytes_per_message = 1024.0
        self._silent_since: float | None = None
        self._refreshed = ticks()
        self._question: Mapping[str, Future[TopicDescription]] | None = None
        self._closed = False

    def partitions(self) -> tuple[PartitionKey, ...]:
        """All partitions, sorted, as of the last refresh."""
        return tuple(sorted((topic.name, p) for topic in self._topics.values() for p in topic.partitions))

    def start(self, keys: Iterable[PartitionKey], cursors: Mapping[PartitionKey, Cursor]) -> None:
        """Check cursors against the topics and their logs, resolve where the others start and end, and assign."""
        keys = sorted(keys)
        self._check_known(keys)
        low = self._client.offsets(keys, OffsetSpec.earliest())
        ends = self._client.ends(keys)
        fresh = self._start_offsets([key for key in keys if key not in cursors], low, ends)
        for key in keys:
            cursor = cursors.get(key)
            at = self._cursor(key, fresh[key]) if cursor is None else self._checked(cursor, low[key], ends[key])
            self._open(key, at, ends[key])
            if cursor is None and self._options.start == "TIMESTAMP":
                self._parts[key].from_ms = self._options.start_timestamp_ms
        self._check_epochs(low)
        self._client.consumer.assign([_assignment(self._parts[key].fetched) for key in keys])
        _log.info("event=assigned partitions=%s", len(keys))

    def _open(self, key: PartitionKey, at: Cursor, high: int) -> None:
        end = high if self._options.stop_at_end else None
        self._parts[key] = Partition(fetched=at, given=at, high=high, end=end, stop_ms=self._options.stop_timestamp_ms)

    def add(self, key: PartitionKey) -> None:
        """Read a new partition from its earliest message; under `stop_at_end` it lies behind the end."""
        self._check_known([key])
        at = self._cursor(key, self._client.offsets([key], OffsetSpec.earliest())[key])
        self._open(key, at, at.offset)
        self._client.consumer.incremental_assign([_assignment(at)])

    def read(self, timeout_s: float) -> Chunk | None:
        """The next chunk; fetches and decodes only when nothing decoded is left."""
        if (key := self._next_ready()) is None:
            self._fetch(timeout_s)
            key = self._next_ready()
        return None if key is None else self._parts[key].give()

    def hold(self, keys: Collection[PartitionKey]) -> None:
        """Give nothing of these. What they have decoded stays; fetching of them stops when there is enough."""
        self._held = frozenset(keys)

    def ended(self, key: PartitionKey) -> bool:
        """The end offset or time was reached, or the topics are silent for long enough."""
        part = self._parts[key]
        return part.done or (not part.pending and self._silent_too_long())

    def position(self, key: PartitionKey) -> Cursor:
        """The row after the last one given."""
        return self._parts[key].given

    def lag(self) -> Mapping[PartitionKey, int]:
        """Offsets between what was given and the end of the log (or of the bounded part) as last seen."""
        lags = {}
        for key, part in self._parts.items():
            _, high = self._client.consumer.get_watermark_offsets(TopicPartition(*key), cached=True)
            part.high = max(part.high, high)
            lags[key] = max(0, (part.high if part.end is None else part.end) - part.given.offset)
        return lags

    def skipped(self) -> Mapping[PartitionKey, int]:
        """Messages that retention removed before they were read, under SKIP_TO_EARLIEST."""
        return dict(self._skipped)

    def acknowledge(self, cursors: Mapping[PartitionKey, Cursor]) -> None:
        """Commit group offsets, asynchronously, where a group id is configured."""
        if self._options.group_id is None or not cursors:
            return
        offsets = [TopicPartition(cursor.topic, cursor.partition, cursor.offset) for cursor in cursors.values()]
        try:
            self._client.consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            _log.warning("event=acknowledge_failed detail=%s", error.args[0].str())

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._client.close()

    def _check_known(self, keys: Iterable[PartitionKey]) -> None:
        if unknown := set(keys) - set(self.partitions()):
            names = ", ".join(f"{topic}/{partition}" for topic, partition in sorted(unknown))
            raise SourceError(f"no partition {names} on brokers {self._options.brokers}")

    def _cursor(self, key: PartitionKey, offset: int) -> Cursor:
        return Cursor(topic=key[0], partition=key[1], topic_id=self._topics[key[0]].topic_id, offset=offset)

    def _start_offsets(
        self, keys: list[PartitionKey], low: Mapping[PartitionKey, int], high: Mapping[PartitionKey, int]
    ) -> dict[PartitionKey, int]:
        if self._options.start == "LATEST":
            return {key: high[key] for key in keys}
        if self._options.start == "TIMESTAMP" and self._options.start_timestamp_ms is not None:
            found = self._client.offsets(keys, OffsetSpec.for_timestamp(self._options.start_timestamp_ms))
            return {key: high[key] if found[key] < 0 else max(found[key], low[key]) for key in keys}
        return {key: low[key] for key in keys}

    def _checked(self, cursor: Cursor, low: int, high: int) -> Cursor:
        """The cursor, or the earliest message left where the policy allows it; raise PositionError otherwise."""
        topic_id = self._topics[cursor.topic].topic_id
        if cursor.topic_id not in ("", topic_id):
            raise _recreated(cursor.topic, cursor.topic_id, topic_id)
        if cursor.offset > high:
            raise LogTruncatedError(
                f"topic {cursor.topic} partition {cursor.partition} ends at {high}, before the cursor at "
                f"{cursor.offset}: the broker lost messages; restore them or revert to an older commit"
            )
        return self._skip(cursor, low) if cursor.offset < low else cursor

    def _check_epochs(self, low: Mapping[PartitionKey, int]) -> None:
        """Raise LogTruncatedError where the last message before a cursor was written anew since the cursor was made.

        librdkafka checks the epoch of an assignment only when leaders change.
        """
        places = {}
        for key, part in self._parts.items():
            at = part.fetched.offset if part.fetched.row else part.fetched.offset - 1
            if part.fetched.leader_epoch >= 0 and at >= low[key]:
                places[key] = at
        for key, epoch in self._client.epochs(places).items():
            known = self._parts[key].fetched.leader_epoch
            if epoch > known:
                raise LogTruncatedError(
                    f"topic {key[0]} partition {key[1]}: message {places[key]} was written anew under leader epoch "
                    f"{epoch}, the cursor knows {known}: the broker lost messages; revert to an older commit"
                )

    def _skip(self, cursor: Cursor, low: int) -> Cursor:
        gap = low - cursor.offset
        if self._options.lost_offset != "SKIP_TO_EARLIEST":
            raise OffsetLostError(
                f"topic {cursor.topic} partition {cursor.partition}: retention removed {gap} messages "
                f"({cursor.offset} to {low - 1}) before they were read; lost_offset: SKIP_TO_EARLIEST goes on without"
            )
        self._skipped[cursor.key] = self._skipped.get(cursor.key, 0) + gap
        _log.warning("event=messages_lost topic=%s partition=%s messages=%s", cursor.topic, cursor.partition, gap)
        return cursor.at(low)

    def _next_ready(self) -> PartitionKey | None:
        for _ in range(len(self._ready)):
            key = self._ready.popleft()
            if not self._parts[key].pending:
                continue
            self._ready.append(key)
            if key not in self._held:
                return key
        return None

    def _fetch(self, timeout_s: float) -> None:
        """Wait for one message, then take what else is there, and decode it partition by partition."""
        self._refresh()
        self._pause_and_resume()
        consumer = self._client.consumer
        first = consumer.poll(timeout_s)
        if first is None:
            self._note_silence()
            return
        limit = max(
            1, min(_MAX_MESSAGES, int(self._options.rows_per_read / self._rows_per_message), self._byte_limit())
        )
        runs: dict[PartitionKey, list[Message]] = {}
        for message in [first, *(consumer.consume(limit - 1, 0) if limit > 1 else ())]:
            if (error := message.error()) is None:
                runs.setdefault((message.topic(), message.partition()), []).append(message)
            else:
                self._take(runs)
                self._on_error(error, message)
        self._take(runs)
        self._note_silence()

    def _byte_limit(self) -> int:
        return int(self._options.fetch_max_bytes / self._bytes_per_message)

    def _take(self, runs: dict[PartitionKey, list[Message]]) -> None:
        for key, messages in runs.items():
            part = self._parts[key]
            before = len(part.pending)
            part.take(messages, self._decoder)
            rows = sum(chunk.rows.num_rows for chunk in list(part.pending)[before:])
            size = sum(len(message) for message in messages)
            self._rows_per_message += 0.3 * (max(rows / len(messages), 1.0) - self._rows_per_message)
            self._bytes_per_message += 0.3 * (max(size / len(messages), 64.0) - self._bytes_per_message)
            if part.pending and key not in self._ready:
                self._ready.append(key)
            self._silent_since = None
        runs.clear()

    def _on_error(self, error: KafkaError, message: Message) -> None:
        key = (message.topic(), message.partition())
        code = error.code()
        if code == KafkaError._PARTITION_EOF:  # noqa: SLF001
            self._parts[key].reach(message.offset())
            self._parts[key].caught_up = True
        elif code == _TRUNCATED:
            raise LogTruncatedError(f"topic {key[0]} partition {key[1]}: {error.str()}")
        elif code in _LOST:
            self._recover(key)
        elif code in MISSING:
            self._verify_topics(self._client.describe())
        elif code in REFUSED:
            raise SourceError(f"brokers {self._options.brokers} refuse to serve topic {key[0]}: {error.str()}")
        elif error.fatal():
            raise SourceError(f"the Kafka client cannot go on: {error.str()}")
        else:
            _log.warning("event=fetch_failed topic=%s partition=%s detail=%s", *key, error.str())

    def _recover(self, key: PartitionKey) -> None:
        """The next offset is out of the log's range: retention, truncation, or a new topic."""
        self._verify_topics(self._client.describe())
        part = self._parts[key]
        low = self._client.offsets([key], OffsetSpec.earliest())[key]
        high = self._client.offsets([key], OffsetSpec.latest())[key]
        part.reach(self._checked(part.fetched, low, high).offset)
        self._client.consumer.incremental_unassign([TopicPartition(*key)])
        self._client.consumer.incremental_assign([_assignment(part.fetched)])

    def _pause_and_resume(self) -> None:
        stop: list[TopicPartition] = []
        go: list[TopicPartition] = []
        for key, part in self._parts.items():
            # Fetching takes up again only with the next request: what is pending bridges that.
            paused = part.done or (key in self._held and len(part.pending) >= _PENDING_CHUNKS)
            if paused != part.paused:
                part.paused = paused
                (stop if paused else go).append(TopicPartition(*key))
        if stop:
            self._client.consumer.pause(stop)
        if go:
            self._client.consumer.resume(go)

    def _refresh(self) -> None:
        """Ask for topics and partitions now and then, without waiting for the answer."""
        now = self._ticks()
        every = _UNREACHABLE_REFRESH_S if self._client.unreachable() else self._options.refresh_ms / 1000
        if self._question is None:
            if now - self._refreshed >= every:
                self._question = self._client.ask_topics(5.0)
            return
        self._client.poll()
        if not all(future.done() for future in self._question.values()):
            return
        question, self._question, self._refreshed = self._question, None, now
        try:
            self._verify_topics({name: topic_of(future) for name, future in question.items()})
            self._client.reached()
        except KafkaException as error:
            self._on_refresh_error(error.args[0])

    def _on_refresh_error(self, error: KafkaError) -> None:
        if error.code() in MISSING:
            names = ", ".join(self._options.topics)
            raise TopicMissingError(f"topic {names} was deleted on brokers {self._options.brokers} while it was read")
        self._client.raise_if_refused()
        # An outage has its line already.
        level = logging.DEBUG if self._client.unreachable() else logging.WARNING
        _log.log(level, "event=refresh_failed detail=%s", error.str())

    def _verify_topics(self, topics: dict[str, Topic]) -> None:
        for name, topic in topics.items():
            if topic.topic_id != self._topics[name].topic_id:
                raise _recreated(name, self._topics[name].topic_id, topic.topic_id)
            if new := set(topic.partitions) - set(self._topics[name].partitions):
                _log.info("event=new_partitions topic=%s partitions=%s", name, sorted(new))
        self._topics = topics

    def _note_silence(self) -> None:
        """Silence counts while everything is caught up and brokers are there; a stop time in the past ends then too."""
        waiting = [part for part in self._parts.values() if not part.done]
        quiet = all(part.caught_up and not part.pending for part in waiting) and not self._client.unreachable()
        if not quiet:
            self._silent_since = None
            return
        self._silent_since = self._ticks() if self._silent_since is None else self._silent_since
        for part in waiting:
            if part.stop_ms is not None and self._clock() * 1000 >= part.stop_ms:
                part.end = part.fetched.offset

    def _silent_too_long(self) -> bool:
        if self._options.stop_idle_ms is None or self._silent_since is None:
            return False
        return (self._ticks() - self._silent_since) * 1000 >= self._options.stop_idle_ms


def _assignment(cursor: Cursor) -> TopicPartition:
    if cursor.leader_epoch < 0:
        return TopicPartition(cursor.topic, cursor.partition, cursor.offset)
    return TopicPartition(cursor.topic, cursor.partition, cursor.offset, leader_epoch=cursor.leader_epoch)


def _recreated(topic: str, old: str, new: str) -> TopicRecreatedError:
    return TopicRecreatedError(
        f"topic {topic} was deleted and created anew (id {old} is now {new}): its offsets mean other messages; "
        "start over with `headrace log revert MODEL_DIR SEQ --from-now`, or restore the topic"
    )
