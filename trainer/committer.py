"""The background writer of commits: one in flight, sealed copies in, an outcome out."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from checkpointer import Commit, TableRows
from protos.commit_pb2 import StreamState
from stream.deadletter import DeadLetter

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """What one rank hands over for one commit: copies, so that training goes on while they are written."""

    step: int
    event_time_ms: int
    broker_time_ms: int  # newest broker time trained, -1: none known
    full: bool
    keep: bool
    tables: tuple[TableRows, ...]
    dense: dict[str, np.ndarray]
    metrics: dict[str, np.ndarray]
    stream: StreamState
    dead: tuple[DeadLetter, ...] = ()
    sealed_at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a commit ended; `commit` is None when it failed."""

    snapshot: Snapshot
    commit: Commit | None
    error: BaseException | None
    seconds: float


class Committer:
    """Write snapshots on a thread of its own, one at a time.

    `write` makes one snapshot durable and returns its commit; the same commit on every rank.
    """

    def __init__(self, write: Callable[[Snapshot], Commit]) -> None:
        self._write = write
        self._inbox: queue.Queue[Snapshot | None] = queue.Queue(maxsize=1)
        self._outbox: queue.Queue[Outcome] = queue.Queue()
        self._in_flight = False
        self._thread = threading.Thread(target=self._run, name="committer", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a commit is in flight, its outcome not yet taken."""
        return self._in_flight

    def submit(self, snapshot: Snapshot) -> None:
        """Hand over a snapshot; only when not busy."""
        if self._in_flight:
            raise RuntimeError("a commit is in flight; take its outcome first")
        self._in_flight = True
        self._inbox.put(snapshot)

    def outcome(self, timeout_s: float | None = 0.0) -> Outcome | None:
        """Take the outcome of the commit in flight; None when it is not known within `timeout_s` (None: wait)."""
        if not self._in_flight:
            return None
        try:
            outcome = self._outbox.get(block=timeout_s != 0.0, timeout=timeout_s or None)
        except queue.Empty:
            return None
        self._in_flight = False
        return outcome

    def close(self) -> None:
        """Finish what is in flight and stop."""
        self._inbox.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (snapshot := self._inbox.get()) is not None:
            started = time.monotonic()
            commit: Commit | None = None
            failure: BaseException | None = None
            try:
                commit = self._write(snapshot)
            except BaseException as error:  # the thread's boundary: the trainer decides what a failed commit means
                failure = error
                logger.error("commit failed step=%d error=%s", snapshot.step, error)
            self._outbox.put(
                Outcome(snapshot=snapshot, commit=commit, error=failure, seconds=time.monotonic() - started)
            )
