"""Resuming from several commits, each with its own part of the seen ids, as the checkpointer gathers them."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from checkpointer.seen import with_seen
from protos.commit_pb2 import StreamState
from stream.accounting import Counts
from stream.cursor import PartitionKey
from stream.feed import Cut, Feed, FeedOptions
from stream.memory import MemorySource
from stream.progress import Progress

A: PartitionKey = ("clicks", 0)
B: PartitionKey = ("clicks", 1)
OPTIONS = FeedOptions(
    batch_size=7,
    columns=("n",),
    event_time_column="t",
    event_id_column="e",
    duplicate_window_ms=40,
    allowed_lateness_ms=15,
)


def messages(seed: int, count: int = 240) -> list[pa.RecordBatch]:
    """Rows whose times wander and whose ids come back."""
    rng = random.Random(seed)
    rows = [
        {"n": i, "t": max(0, i + rng.randint(-20, 5)), "e": f"{max(0, i - rng.choice([0, 0, 0, 5, 25, 60]))}"}
        for i in range(count)
    ]
    return [pa.RecordBatch.from_pylist(rows[at : at + 11]) for at in range(0, count, 11)]


STREAM = {A: messages(1), B: messages(2)}


def read(progress: Progress, limit: int | None = None) -> list[tuple[list[int], tuple[int, ...], dict[str, Counts]]]:
    """Train up to `limit` cuts."""
    feed = Feed(MemorySource(STREAM), OPTIONS, progress=progress, clock=lambda: 0.0)
    made: list[Cut] = []
    while not feed.finished and (limit is None or len(made) < limit):
        cut = feed.next(5.0)
        if cut is not None:
            made.append(cut)
            progress.advance(cut)
    feed.close()
    return [(cut.rows.column("n").to_pylist(), cut.counts, dict(cut.accounting)) for cut in made]


@pytest.mark.parametrize("every", [1, 3, 8])
def test_resuming_from_many_commits_gives_the_uninterrupted_run(every: int) -> None:
    whole_progress = Progress()
    whole = read(whole_progress)
    assert whole_progress.accounting["clicks"].duplicate > 10
    assert whole_progress.accounting["clicks"].late > 0
    commits: list[list[StreamState]] = []
    progress, got = Progress(), []
    while len(got) < len(whole):
        got += read(progress, limit=every)
        commits.append([progress.to_proto()])
        progress = Progress.from_proto(with_seen(commits))
    assert got == whole
    assert progress.accounting == whole_progress.accounting


def test_a_second_pass_over_the_same_rows_trains_them_again() -> None:
    progress = Progress()
    first = read(progress)
    again = Progress.from_proto([progress.to_proto()])
    again.cursors.clear()
    again.watermarks.clear()
    assert read(again) == first
