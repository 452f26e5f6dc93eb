"""What ranks tell each other about a commit is understood whatever it holds."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from checkpointer import CommitLog, TableRows, Writer, WriterOptions
from checkpointer.errors import NotCommittedError
from checkpointer.memory_store import MemoryStore
from protos.commit_pb2 import StreamState
from recmodels.metrics.progressive import ProgressiveMetrics
from stream.cursor import Cursor
from stream.deadletter import DeadLetter
from stream.errors import DeadLetterError
from trainer.commit_writer import CommitWriter, Identity
from trainer.committer import Snapshot
from trainer.workers import Rank, Workers


class Sink:
    """Takes no letters."""

    def write(self, letters: tuple[DeadLetter, ...]) -> None:
        raise DeadLetterError("the topic is away")

    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture
def workers() -> Iterator[Workers]:
    alone = Workers(Rank())
    yield alone
    alone.close()


def writer_of(store: MemoryStore, workers: Workers) -> CommitWriter:
    clock = itertools.count()
    options = WriterOptions(token="t", clock_ms=lambda: next(clock), new_chain=lambda: "chain", writer="test")
    identity = Identity(contract="c", features="f")
    return CommitWriter(store, writer=Writer.open(store, options), workers=workers, sink=Sink(), identity=identity)


def snapshot(table: str, step: int, dead: tuple[DeadLetter, ...] = ()) -> Snapshot:
    nothing = np.empty(0, np.int64)
    rows = TableRows(
        table=table, shard=0, kind="direct", ids=np.array([3]), slots=np.array([3]),
        columns={"weight": np.ones((1, 2), np.float32)}, deleted=nothing,
    )  # fmt: skip
    return Snapshot(
        step=step, event_time_ms=0, broker_time_ms=-1, full=step == 1, keep=False, tables=(rows,), dense={},
        metrics=ProgressiveMetrics().state(), stream=StreamState(), dead=dead,
    )  # fmt: skip


def test_blobs_of_every_length_of_description_are_committed(workers: Workers) -> None:
    store = MemoryStore()
    commits = writer_of(store, workers)
    # A byte of the length is any of 256 values.
    for step in range(1, 258):
        assert commits.write(snapshot("t" * step, step)).seq == step
    head = CommitLog(store).head()
    assert head is not None and head.seq == 257


def test_a_rank_that_cannot_keep_its_dead_letters_says_why(workers: Workers) -> None:
    letter = DeadLetter(cursor=Cursor(topic="t", partition=0), reason="r", detail="d", raw=b"", format="JSON")
    commits = writer_of(MemoryStore(), workers)
    with pytest.raises(NotCommittedError, match="rank 0: the topic is away"):
        commits.write(snapshot("a", 1, (letter,)))
    assert commits.write(snapshot("a", 1)).seq == 1
