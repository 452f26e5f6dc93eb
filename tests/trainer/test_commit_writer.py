"""What ranks tell each other about a commit is understood whatever it holds."""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import numpy as np
import pytest

from checkpointer import CommitLog, TableRows, Writer, WriterOptions
from checkpointer.errors import NotCommittedError
from checkpointer.memory_store import MemoryStore
from protos.commit_pb2 import StreamState
from recmodels.metrics.progressive import ProgressiveMetrics
from stream.cursor import Cursor
from stream.deadletter import DeadLetter, DeadLetterSink
from stream.errors import DeadLetterError, DeadLettersWaitError
from trainer.commit_writer import CommitWriter, Identity
from trainer.committer import Snapshot
from trainer.workers import Rank, Workers

LETTER = DeadLetter(cursor=Cursor(topic="t", partition=0), reason="r", detail="d", raw=b"", format="JSON")


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


class PatientSink:
    """Takes letters when brokers were away for so many turns; `turns` counts those that are left."""

    def __init__(self, turns: int, then: Callable[[], object] = lambda: None) -> None:
        self.turns, self.then = turns, then
        self.taken: list[str] = []

    def write(self, letters: tuple[DeadLetter, ...]) -> None:
        if self.turns:
            self.turns -= 1
            self.then()
            raise DeadLettersWaitError("brokers did not take them")
        self.taken += [letter.key for letter in letters]

    def close(self) -> None:
        """Nothing to close."""


class Room:
    """Ranks as threads of this process: what they gather, they leave on a table and read when all have come."""

    world_size = 2

    def __init__(self, rank: int, table: list[bytes], door: threading.Barrier) -> None:
        self.rank, self._table, self._door = rank, table, door

    def gather(self, payload: bytes) -> list[bytes]:
        self._table[self.rank] = payload
        self._door.wait(30)
        seen = list(self._table)
        self._door.wait(30)
        return seen


def write_as_two(
    store: MemoryStore, sinks: Sequence[DeadLetterSink], stopping: Sequence[Callable[[], bool]]
) -> list[object]:
    """What each of two ranks makes of a commit with dead letters on both: the commit, or the error."""
    door, table = threading.Barrier(2), [b"", b""]
    options = WriterOptions(token="t", clock_ms=lambda: 0, new_chain=lambda: "chain", writer="test")
    ends: list[object] = [None, None]

    def work(rank: int) -> None:
        commits = CommitWriter(
            store,
            writer=Writer.open(store, options) if rank == 0 else None,
            workers=cast(Workers, Room(rank, table, door)),
            sink=sinks[rank],
            identity=Identity(contract="c", features="f"),
            stopping=stopping[rank],
        )
        try:
            ends[rank] = commits.write(snapshot(f"of rank {rank}", 1, (LETTER,))).digest
        except NotCommittedError as error:
            ends[rank] = error

    ranks = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(60)
    return ends


def writer_of(
    store: MemoryStore, workers: Workers, sink: DeadLetterSink | None = None, stopping: Callable[[], bool] = bool
) -> CommitWriter:
    clock = itertools.count()
    options = WriterOptions(token="t", clock_ms=lambda: next(clock), new_chain=lambda: "chain", writer="test")
    identity = Identity(contract="c", features="f")
    writer = Writer.open(store, options)
    return CommitWriter(
        store, writer=writer, workers=workers, sink=sink or Sink(), identity=identity, stopping=stopping
    )


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


def test_a_commit_waits_for_its_dead_letters_for_as_long_as_brokers_are_away(workers: Workers) -> None:
    """Two hours of turns of five seconds, one after the other."""
    sink = PatientSink(turns=1440)
    assert writer_of(MemoryStore(), workers, sink).write(snapshot("a", 1, (LETTER,))).seq == 1
    assert sink.taken == [LETTER.key] and sink.turns == 0


def test_a_run_that_is_to_end_does_not_wait_for_brokers(workers: Workers) -> None:
    stop = threading.Event()
    store = MemoryStore()
    commits = writer_of(store, workers, PatientSink(turns=10**9, then=stop.set), stop.is_set)
    with pytest.raises(NotCommittedError, match="the run is to end, and brokers did not take them"):
        commits.write(snapshot("a", 1, (LETTER,)))
    assert CommitLog(store).head() is None


@pytest.mark.parametrize("turns", [(0, 5), (5, 0), (3, 7)])
def test_ranks_wait_for_the_one_whose_brokers_are_away(turns: tuple[int, int]) -> None:
    sinks = [PatientSink(turns=count) for count in turns]
    ends = write_as_two(MemoryStore(), sinks, [bool, bool])
    assert isinstance(ends[0], str) and ends[0] == ends[1]
    assert [sink.taken for sink in sinks] == [[LETTER.key]] * 2, "each letter is written once"


@pytest.mark.parametrize("stopped", [0, 1])
def test_all_ranks_give_up_when_one_that_waits_is_to_end(stopped: int) -> None:
    stop = threading.Event()
    sinks = [PatientSink(turns=10**9, then=stop.set), PatientSink(turns=10**9)]
    store = MemoryStore()
    ends = write_as_two(store, sinks, [stop.is_set if rank == stopped else bool for rank in range(2)])
    assert all(isinstance(end, NotCommittedError) for end in ends), ends
    assert f"rank {stopped}: the run is to end" in str(ends[0]) and CommitLog(store).head() is None
