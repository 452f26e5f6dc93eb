"""The feed: rows of a source, judged, accounted for and cut into batches (architecture.md sections 3 and 4)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from stream.cursor import Cursor, PartitionKey
from stream.cutting import Cut, Shares, assemble, recorded, share, within_cost
from stream.duplicates import UNKNOWN_TIME, PartitionJudge
from stream.errors import CutReplayError, FeedError
from stream.feed_options import FeedOptions, Filter, TimeUnit
from stream.judging import ChunkJudge
from stream.progress import Progress, RecordedCut
from stream.reader import Reader
from stream.row_errors import Validate
from stream.segment import Pending, Taken
from stream.source import Clock, Source
from stream.watermark import StreamWatermark

__all__ = ["Cut", "Feed", "FeedOptions", "Filter", "TimeUnit"]


class Feed:
    """Judged rows in batches.

    **Judgement.** A row is dead-lettered, else filtered, else late, else duplicate, else accepted; only accepted rows
    are in a batch. What becomes of a row depends on the rows of its partition alone, so that a replay finds the same:
    declare the types of the columns (`input_fields`) where producers may change them, since an undeclared one follows
    from the first chunk read, of whatever partition, and rows that do not go into it are dead.

    **The rule of cuts.** A batch of B rows is shared by the partitions: with P of them in use, each gives B // P rows,
    and the first B mod P one more, where the first are those with the least watermark of the rows handed out, ties in
    the order of (topic, partition). What an ended partition cannot give is shared by the rest by the same rule, until
    the batch is full or all have ended. Rows stand in the batch by partition, sorted. With `linger_ms` 0 a cut waits
    until every partition that has not ended can give its share: a silent one stops the feed, and `next` returns None.
    So cuts depend on rows and positions, never on the time of arrival. With a linger, a batch is also cut short when
    its first row has waited that long, or at once when B rows wait anywhere; each gives what it has, by the same rule.

    **By cost.** With a cost column a batch has as many rows, of at most B, as cost no more than the limit together,
    shared by the same rule; a row that costs more travels alone, and `over_cost` counts it.

    **What is not trained** moves cursors and counters with the next accepted row of its partition; behind the last one
    of an ended partition, or of any partition when the linger ends, with the next cut, which then may hold no rows.

    **Recorded cuts** replace rule and linger; the feed is finished after the last one. Of a bounded source whose rows
    they have used up, one more cut counts what was not trained behind the last rows.
    """

    def __init__(
        self,
        source: Source,
        options: FeedOptions,
        *,
        validate: Validate | None = None,
        progress: Progress | None = None,
        keys: Iterable[PartitionKey] | None = None,
        clock: Clock = time.monotonic,
        cuts: Iterable[RecordedCut | Sequence[int]] | None = None,
    ) -> None:
        """Start `source` at the progress's cursors and read `keys` (all where None) in a thread until `close`.

        `clock` measures how long rows wait and partitions are silent.
        `cuts` are recorded ones, or rows per partition in the order of `partitions`.
        """
        progress = Progress() if progress is None else progress
        chosen = tuple(sorted(source.partitions() if keys is None else keys))
        self._options = options
        self._clock = clock
        self._source = source
        self._watermarks = {key: progress.watermarks.get(key, UNKNOWN_TIME) for key in chosen}
        # A cut without rows counted what was not trained: the next rows of its partition count it again.
        self._cuts = None if cuts is None else deque(cut for cut in cuts if sum(_rows(cut)))
        self._empty = pa.RecordBatch.from_pylist([])
        self._done = False
        self.over_cost = 0
        self._stream_watermark = StreamWatermark(self._watermarks, idle_ms=options.idle_partition_ms, clock=clock)
        source.start(chosen, {key: progress.cursors[key] for key in chosen if key in progress.cursors})
        progress.place({key: source.position(key) for key in chosen})
        judges = {key: _judge(options, progress, key) for key in chosen}
        pending = {key: Pending() for key in chosen}
        # An ended partition may leave a whole batch to another one, so that each may hold one.
        limit = max(options.batch_size, -(-options.batch_size * options.prefetch_batches // max(1, len(chosen))))
        if self._cuts is not None:
            limit = max([limit, *(max(_rows(cut), default=0) for cut in self._cuts)])
        judge = ChunkJudge(options, validate, judges)
        self._reader = Reader(source, judge, pending, limit=limit, watermark=self._stream_watermark, clock=clock)
        self._reader.start()

    @property
    def partitions(self) -> tuple[PartitionKey, ...]:
        """The partitions that are read, sorted: the order of `Cut.counts`."""
        with self._reader.changed:
            return tuple(sorted(self._reader.pending))

    @property
    def finished(self) -> bool:
        """Bounded, and every row was handed out; or every recorded cut was."""
        return self._done

    @property
    def known_partitions(self) -> tuple[PartitionKey, ...]:
        """All partitions of the source, as last seen: those not in `partitions` can be added."""
        return self._reader.partitions

    @property
    def lag(self) -> Mapping[PartitionKey, int]:
        """Messages that the source has not given yet, as last seen."""
        return self._reader.lag

    @property
    def skipped(self) -> Mapping[PartitionKey, int]:
        """Messages that retention took before the source could read them, as last seen."""
        return self._reader.skipped

    def watermark(self) -> int:
        """The event time that all partitions have reached, idle ones aside; of the rows read, not trained."""
        with self._reader.changed:
            return self._stream_watermark.current()

    def add_partition(self, key: PartitionKey) -> None:
        """Read one more partition, from its earliest row; call it at a commit."""
        if key in self._watermarks:
            raise FeedError(f"partition {key} is read already")
        if self._cuts is not None:
            raise CutReplayError(f"partition {key} cannot join a replay of recorded cuts")
        self._watermarks[key] = UNKNOWN_TIME
        self._done = False
        self._reader.add(key, _judge(self._options, Progress(), key))

    def acknowledge(self, cursors: Mapping[PartitionKey, Cursor]) -> None:
        """Tell the source how far the commits are; returns at once."""
        self._reader.acknowledge(cursors)

    def next(self, timeout_s: float) -> Cut | None:
        """The next cut; None where there is none within the time, or the feed is finished.

        Raise what the source or the judgement raised, once the rows before it are handed out.
        """
        deadline = time.monotonic() + timeout_s
        with self._reader.changed:
            while not self._done:
                taken = self._try_take()
                if taken is not None:
                    break
                if self._done:
                    return None
                if self._reader.error is not None:
                    raise self._reader.error
                left = deadline - time.monotonic()
                if left <= 0 or self._reader.stopped:
                    return None
                self._reader.changed.wait(min(left, self._patience()))
            else:
                return None
            self._reader.changed.notify_all()
        return self._assemble(*taken)

    def close(self) -> None:
        """Stop the thread and close the source; a second call does nothing."""
        self._reader.close()
        self._source.close()

    def _patience(self) -> float:
        # The injected clock may move without a notification.
        return 0.01 if self._options.linger_ms else 60.0

    def _try_take(self) -> tuple[list[PartitionKey], list[Taken], bool] | None:
        keys = sorted(self._reader.pending)
        pending = [self._reader.pending[key] for key in keys]
        ended = [key in self._reader.ended for key in keys]
        if self._cuts is not None:
            return self._take_recorded(keys, pending, ended)
        give_up = [True] * len(keys) if self._lingered(pending) else ended
        order = sorted(range(len(keys)), key=lambda index: (self._watermarks[keys[index]], keys[index]))
        shares = share(self._options.batch_size, [part.available for part in pending], give_up, order)
        if shares is None:
            return None
        shares = self._within_cost(shares, pending, give_up, order)
        count, over = sum(shares.rows), all(shares.exhausted)
        if count == 0 and not any(part.has_tail for part in pending):
            self._done = all(ended) and (bool(keys) or not self._options.unbounded)
            return None
        taken = [
            part.take(rows, tail=flush)
            for part, rows, flush in zip(pending, shares.rows, shares.exhausted, strict=True)
        ]
        self._reader.waiting_since = self._clock() if any(part.holds_any for part in pending) else None
        return keys, taken, self._options.drop_remainder and over and all(ended) and count > 0

    def _within_cost(self, shares: Shares, pending: list[Pending], give_up: list[bool], order: list[int]) -> Shares:
        if self._options.cost_column is None:
            return shares
        available = [part.available for part in pending]
        limit = self._options.cost_limit
        fit = within_cost(limit, shares, lambda at, rows: pending[at].cost(rows), available, give_up, order)
        if sum(fit.rows) == 1 and sum(part.cost(rows) for part, rows in zip(pending, fit.rows, strict=True)) > limit:
            self.over_cost += 1
        return fit

    def _take_recorded(
        self, keys: list[PartitionKey], pending: list[Pending], ended: list[bool]
    ) -> tuple[list[PartitionKey], list[Taken], bool] | None:
        if not self._cuts:
            return self._take_tails(keys, pending, ended)
        cut = self._cuts[0]
        wanted = _rows(cut)
        if isinstance(cut, RecordedCut):
            by_key = dict(zip(cut.partitions, cut.rows, strict=True))
            wanted = [by_key.get(key, 0) for key in keys]
        rows = recorded(wanted, [part.available for part in pending], ended, keys)
        if rows is None:
            return None
        self._cuts.popleft()
        taken = [part.take(count, tail=flush) for part, count, flush in zip(pending, rows, ended, strict=True)]
        return keys, taken, False

    def _take_tails(
        self, keys: list[PartitionKey], pending: list[Pending], ended: list[bool]
    ) -> tuple[list[PartitionKey], list[Taken], bool] | None:
        """What follows the last recorded cut; None: nothing, or whether something does is not known yet."""
        over = [end and not part.available for end, part in zip(ended, pending, strict=True)]
        if not self._options.unbounded and not all(
            end or part.available for end, part in zip(ended, pending, strict=True)
        ):
            return None
        if not any(part.has_tail and end for end, part in zip(over, pending, strict=True)):
            self._done = True
            return None
        return keys, [part.take(0, tail=end) for end, part in zip(over, pending, strict=True)], False

    def _lingered(self, pending: list[Pending]) -> bool:
        """Whether a short cut is due, or a full one that ignores shares."""
        if not self._options.linger_ms:
            return False
        waiting = sum(part.available for part in pending)
        if waiting >= self._options.batch_size:
            return True
        since = self._reader.waiting_since
        # A clock that went back must not make rows wait until it is there again.
        return since is not None and not 0 <= (self._clock() - since) * 1000 < self._options.linger_ms

    def _assemble(self, keys: list[PartitionKey], taken: list[Taken], dropped: bool) -> Cut:
        cut = assemble(keys, taken, self._empty, dropped=dropped)
        self._watermarks.update(cut.watermarks)
        self._empty = cut.rows.slice(0, 0)
        return cut


def _judge(options: FeedOptions, progress: Progress, key: PartitionKey) -> PartitionJudge:
    judge = PartitionJudge(
        lateness_ms=options.allowed_lateness_ms,
        window_ms=options.duplicate_window_ms,
        watermark=progress.watermarks.get(key, UNKNOWN_TIME),
    )
    if options.event_id_column is not None and key in progress.window:
        judge.remember(*progress.window[key])
    return judge


def _rows(cut: RecordedCut | Sequence[int]) -> Sequence[int]:
    return cut.rows if isinstance(cut, RecordedCut) else cut
