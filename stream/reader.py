"""The feed's thread: it alone reads the source, judges what comes, and stops where enough is waiting."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from stream.cursor import Cursor, PartitionKey
from stream.duplicates import PartitionJudge
from stream.judging import ChunkJudge
from stream.segment import Pending
from stream.source import Chunk, Clock, Source
from stream.watermark import StreamWatermark

logger = logging.getLogger(__name__)

_POLL_S = 0.02


class Reader:
    """Fills `pending`, under `changed`. A partition is held while `limit` of its accepted rows wait."""

    def __init__(
        self,
        source: Source,
        judge: ChunkJudge,
        pending: dict[PartitionKey, Pending],
        *,
        limit: int,
        watermark: StreamWatermark,
        clock: Clock,
    ) -> None:
        self.changed = threading.Condition()
        self.pending = pending
        self.ended: set[PartitionKey] = set()
        self.error: BaseException | None = None
        self.waiting_since: float | None = None
        """When the oldest of what is pending came, as far as cuts have told."""
        self.lag: Mapping[PartitionKey, int] = {}
        self.skipped: Mapping[PartitionKey, int] = {}
        self.partitions: tuple[PartitionKey, ...] = tuple(sorted(pending))
        self._source = source
        self._judge = judge
        self._limit = limit
        self._watermark = watermark
        self._clock = clock
        self._open = set(pending)
        self._held: frozenset[PartitionKey] = frozenset()
        self._tasks: list[Callable[[], None]] = []
        self.stopped = False
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """Stop reading and wait for the thread; the source stays open."""
        with self.changed:
            self.stopped = True
            self.changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def post(self, task: Callable[[], None]) -> None:
        """Have the thread do something to the source, soon."""
        with self.changed:
            self._tasks.append(task)
            self.changed.notify_all()

    def add(self, key: PartitionKey, judge: PartitionJudge) -> None:
        """Read one more partition; cuts wait for its rows from now on."""

        def task() -> None:
            self._judge.add(key, judge)
            self._source.add(key)
            self._open.add(key)

        with self.changed:
            self.pending[key] = Pending()
            self._watermark.add(key)
        self.post(task)

    def acknowledge(self, cursors: Mapping[PartitionKey, Cursor]) -> None:
        """Tell the source how far the commits are."""
        self.post(lambda: self._source.acknowledge(cursors))

    def _run(self) -> None:
        try:
            while self._wait_for_room():
                self._step()
        except BaseException as error:  # the thread's boundary: next() raises it, and must not wait for a dead thread
            logger.debug("feed stopped error=%s", error)
            with self.changed:
                self.error = error
                self.changed.notify_all()

    def _wait_for_room(self) -> bool:
        """Do what was posted; wait while every partition is full or ended. False: stop."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.stopped or bool(self._tasks) or self._has_room())
                tasks, self._tasks = self._tasks, []
            for task in tasks:
                task()
            if self.stopped:
                return False
            if not tasks:
                return True

    def _has_room(self) -> bool:
        # Without partitions there are new ones to look out for.
        return not self.pending or not self._full() >= set(self.pending)

    def _full(self) -> set[PartitionKey]:
        return self.ended | {key for key, waiting in self.pending.items() if waiting.available >= self._limit}

    def _step(self) -> None:
        """Read one chunk and judge it; notice partitions that ended."""
        self._hold()
        chunk = self._read()
        segment = None if chunk is None else self._judge.judge(chunk)
        over = [key for key in self._open if key not in self.ended and self._source.ended(key)]
        lag, skipped, partitions = self._source.lag(), self._source.skipped(), self._source.partitions()
        with self.changed:
            self.lag, self.skipped, self.partitions = lag, skipped, partitions
            if segment is not None and chunk is not None:
                self.pending[chunk.key].append(segment)
                if self.waiting_since is None:
                    self.waiting_since = self._clock()
                reached = int(segment.watermarks[-1]) if len(segment.watermarks) else -1
                self._watermark.observe(chunk.key, reached)
            for key in over:
                self.ended.add(key)
                self._watermark.end(key)
            if segment is not None or over:
                self.changed.notify_all()

    def _read(self) -> Chunk | None:
        """Read a chunk; None after a while, also where the source did not wait."""
        deadline = time.monotonic() + _POLL_S
        chunk = self._source.read(_POLL_S)
        left = deadline - time.monotonic()
        if chunk is None and left > 0:
            with self.changed:
                self.changed.wait_for(lambda: self.stopped or bool(self._tasks), left)
        return chunk

    def _hold(self) -> None:
        with self.changed:
            held = frozenset(self._full() - self.ended)
        if held != self._held:
            self._source.hold(held)
            self._held = held
