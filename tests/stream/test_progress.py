"""Progress: what a commit records of the stream, and what a restart makes of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from protos import commit_pb2
from stream.accounting import Counts
from stream.cursor import Cursor, PartitionKey
from stream.cutting import Cut
from stream.progress import Progress, RecordedCut, recorded_cuts

A: PartitionKey = ("clicks", 0)
B: PartitionKey = ("clicks", 1)


def cut(key: PartitionKey, offset: int, *, partitions: tuple[PartitionKey, ...] = (A,), rows: int = 2) -> Cut:
    """A cut of `rows` rows of one partition."""
    return Cut(
        rows=pa.record_batch({"n": list(range(rows))}),
        event_time_ms=np.arange(rows), broker_time_ms=np.full(rows, -1),
        counts=tuple(rows if partition == key else 0 for partition in partitions), partitions=partitions,
        cursors={key: Cursor(topic=key[0], partition=key[1], offset=offset)},
        accounting={key[0]: Counts(trained=rows, late=1)},
        watermarks={key: 10 * offset},
        seen={key: (np.array([offset], np.uint64), np.array([10 * offset], np.int64))},
        dead=(),
    )  # fmt: skip


def test_progress_survives_its_message() -> None:
    progress = Progress()
    progress.advance(cut(A, 3), step=7)
    progress.advance(cut(A, 5), step=8)
    restored = Progress.from_proto([progress.to_proto()])
    assert restored.cursors == progress.cursors == {A: Cursor(topic="clicks", partition=0, offset=5)}
    assert restored.watermarks == {A: 50}
    assert restored.accounting == {"clicks": Counts(trained=4, late=2)}
    assert [part.tolist() for part in restored.window[A]] == [[3, 5], [30, 50]]
    assert recorded_cuts([progress.to_proto()]) == [
        RecordedCut(step=7, rank=0, partitions=(A,), rows=(2,)),
        RecordedCut(step=8, rank=0, partitions=(A,), rows=(2,)),
    ]


def test_to_proto_changes_nothing_and_clear_increment_keeps_totals() -> None:
    progress = Progress()
    progress.advance(cut(A, 3))
    assert progress.to_proto() == progress.to_proto()
    progress.clear_increment()
    state = progress.to_proto()
    assert (len(state.cuts), len(state.seen), state.accounting[0].trained) == (0, 0, 2)


def test_restore_increment_puts_a_failed_commit_before_what_followed() -> None:
    progress = Progress()
    progress.advance(cut(A, 3), step=1)
    failed = progress.to_proto()
    progress.clear_increment()
    progress.advance(cut(A, 5), step=2)
    progress.restore_increment(failed)
    state = progress.to_proto()
    assert [item.step for item in state.cuts] == [1, 2]
    assert list(state.seen[0].ids) == [3, 5]


def test_ranks_are_joined_and_parted_again() -> None:
    ranks = [Progress(), Progress()]
    ranks[0].advance(cut(A, 3))
    ranks[1].advance(cut(B, 4, partitions=(B,)))
    whole = Progress.from_proto([rank.to_proto() for rank in ranks])
    assert whole.accounting == {"clicks": Counts(trained=4, late=2)}
    parts = [whole.only([key], accounting=key == A) for key in (A, B)]
    assert [list(part.cursors) for part in parts] == [[A], [B]]
    assert [list(part.window) for part in parts] == [[A], [B]]
    assert [part.accounting for part in parts] == [whole.accounting, {}]
    assert Progress.from_proto([part.to_proto() for part in parts]).accounting == whole.accounting


def test_cuts_from_before_a_partition_joined_count_none_of_it() -> None:
    progress = Progress()
    progress.advance(cut(A, 3))
    progress.advance(cut(B, 4, partitions=(A, B)))
    assert [item.rows for item in recorded_cuts([progress.to_proto()])] == [(2, 0), (0, 2)]


def test_place_sets_only_what_has_no_cursor() -> None:
    progress = Progress()
    progress.advance(cut(A, 3))
    progress.place({A: Cursor(topic="clicks", partition=0), B: Cursor(topic="clicks", partition=1, offset=9)})
    assert (progress.cursors[A].offset, progress.cursors[B].offset) == (3, 9)


@pytest.mark.parametrize(
    "state",
    [
        commit_pb2.StreamState(accounting=[commit_pb2.Accounting(topic="t", received=2, trained=1)]),
        commit_pb2.StreamState(seen=[commit_pb2.SeenIds(topic="t", ids=[1, 2], event_time_ms=[1])]),
        commit_pb2.StreamState(cursors=[commit_pb2.Cursor(topic="t", offset=-1)]),
    ],
)
def test_malformed_states_are_refused(state: commit_pb2.StreamState) -> None:
    with pytest.raises(ValueError):
        Progress.from_proto([state])


def test_recorded_cuts_that_count_other_partitions_are_refused() -> None:
    state = commit_pb2.StreamState(cuts=[commit_pb2.BatchCut(step=1, rows=[1, 2])])
    with pytest.raises(ValueError, match="counts 2 partitions"):
        recorded_cuts([state])
