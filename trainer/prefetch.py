"""Batches ahead of the trainer: decode, feature generation and transfer run beside the step, in order."""

import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from features import Batch
from stream.feed import Cut, Feed
from trainer.transfer import Sent, Transfer, in_place

_POLL_S = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """A cut and its batch, on the device and in the CPU's memory; a cut without rows has none."""

    cut: Cut
    batch: Batch | None
    host: Batch | None


_Ready = tuple[Cut, Sent | None]
_Making = tuple[Cut, Future[Sent] | None]


class Prefetcher:
    """Hand out the feed's cuts as batches, `depth` ahead, in the feed's order.

    So many `threads` make batches beside each other, and send them to the device. What is ahead is in no commit: only a
    cut that was trained moves the committed position. `next` is called by the thread that learns.
    """

    def __init__(
        self,
        feed: Feed,
        make: Callable[[Cut], Batch],
        *,
        depth: int,
        threads: int = 1,
        transfer: Transfer = in_place,
    ) -> None:
        self._feed = feed
        self._make = make
        self._transfer = transfer
        self._threads = threads
        self._ready: queue.Queue[_Ready | BaseException | None] = queue.Queue(maxsize=max(1, depth))
        self._stop = threading.Event()
        self._finished = False
        self._thread = threading.Thread(target=self._run, name="prefetch", daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        """Whether the source has ended and every batch was handed out."""
        return self._finished

    def next(self, timeout_s: float) -> Prepared | None:
        """Return the next batch, or None when there is none within `timeout_s` or the source has ended."""
        if self._finished:
            return None
        try:
            item = self._ready.get(timeout=timeout_s) if timeout_s > 0 else self._ready.get_nowait()
        except queue.Empty:
            return None
        if isinstance(item, BaseException):
            raise item
        if item is None:
            self._finished = True
            return None
        cut, sent = item
        if sent is None:
            return Prepared(cut=cut, batch=None, host=None)
        return Prepared(cut=cut, batch=sent.receive(), host=sent.host)

    def close(self) -> None:
        """Stop the thread; the feed is closed by its owner."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with ThreadPoolExecutor(self._threads, thread_name_prefix="batches") as pool:
                self._make_batches(pool)
        except BaseException as error:  # the thread's boundary: the trainer raises it from next()
            self._put(error)

    def _make_batches(self, pool: ThreadPoolExecutor) -> None:
        making: deque[_Making] = deque()
        while not self._stop.is_set():
            try:
                cut = self._feed.next(0.0 if making else _POLL_S) if len(making) < self._threads else None
            except BaseException:
                # What was read before the error counts.
                while making:
                    self._hand_out(making.popleft())
                raise
            if cut is not None:
                making.append((cut, pool.submit(self._make_and_send, cut) if cut.rows.num_rows else None))
            elif making:
                self._hand_out(making.popleft())
            elif self._feed.finished:
                self._put(None)
                return

    def _make_and_send(self, cut: Cut) -> Sent:
        return self._transfer(self._make(cut))

    def _hand_out(self, made: _Making) -> None:
        cut, sent = made
        self._put((cut, None if sent is None else sent.result()))

    def _put(self, item: _Ready | BaseException | None) -> None:
        while not self._stop.is_set():
            try:
                self._ready.put(item, timeout=_POLL_S)
                return
            except queue.Full:
                continue
