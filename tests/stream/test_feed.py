"""The feed's promises: exact accounts, repeatable cuts, resumption at every cut, no deadlock."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream.accounting import Counts
from stream.cursor import Cursor, PartitionKey
from stream.deadletter import DeadLetter
from stream.errors import CutReplayError, DeadLetterRateError, FeedError
from stream.feed import Cut, Feed, FeedOptions, Filter, TimeUnit
from stream.memory import MemorySource
from stream.progress import Progress, recorded_cuts
from stream.row_errors import Faults, RowErrors
from stream.source import Chunk

A: PartitionKey = ("clicks", 0)
B: PartitionKey = ("clicks", 1)
C: PartitionKey = ("views", 0)

LATENESS, WINDOW = 5, 8
OPTIONS = FeedOptions(
    batch_size=4,
    columns=("n",),
    event_time_column="t",
    event_id_column="e",
    allowed_lateness_ms=LATENESS,
    duplicate_window_ms=WINDOW,
    filters=(Filter(column="keep", operator="EQ", value="true"),),
    max_dead_share=1.0,
)


@dataclass(frozen=True)
class Row:
    """An event: its number, time, id, and what is wrong with it."""

    n: int
    t: int | None
    e: str
    keep: bool | None = True
    bad: bool = False


def validate(rows: pa.RecordBatch) -> RowErrors:
    faults = Faults(rows.num_rows)
    bad = np.array([value < 0 for value in rows.column("n").to_pylist()], np.bool_)
    faults.add(bad, "negative", lambda row: f"row {row}")
    return faults.errors()


def batch(rows: Sequence[Row]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "n": pa.array([-row.n - 1 if row.bad else row.n for row in rows], pa.int64()),
            "t": pa.array([row.t for row in rows], pa.int64()),
            "e": pa.array([row.e for row in rows], pa.string()),
            "keep": pa.array([row.keep for row in rows], pa.bool_()),
        }
    )


def source(stream: Mapping[PartitionKey, Sequence[Sequence[Row]]], **options: bool) -> MemorySource:
    return MemorySource({key: [batch(part) for part in parts] for key, parts in stream.items()}, **options)


def drain(feed: Feed, progress: Progress | None = None, limit: int | None = None, timeout_s: float = 5.0) -> list[Cut]:
    """All cuts, or the first `limit`; each is trained at once."""
    cuts: list[Cut] = []
    deadline = time.monotonic() + timeout_s
    while not feed.finished and (limit is None or len(cuts) < limit):
        assert time.monotonic() < deadline, "the feed is stuck"
        cut = feed.next(0.5)
        if cut is not None:
            cuts.append(cut)
            if progress is not None:
                progress.advance(cut, step=len(cuts))
    return cuts


def run(
    stream: Mapping[PartitionKey, Sequence[Sequence[Row]]],
    options: FeedOptions = OPTIONS,
    progress: Progress | None = None,
    limit: int | None = None,
) -> tuple[list[Cut], Progress]:
    progress = Progress() if progress is None else progress
    feed = Feed(source(stream), options, validate=validate, progress=progress, clock=lambda: 0.0)
    try:
        return drain(feed, progress, limit), progress
    finally:
        feed.close()


def expected_fates(rows: Iterable[Row]) -> list[str]:
    """The judgement of one partition, row by row."""
    watermark, seen, fates = -1, {}, []
    for row in rows:
        if row.t is None or row.bad:
            fates.append("dead_lettered")
        elif not row.keep:
            fates.append("filtered")
        elif row.t < watermark - LATENESS:
            fates.append("late")
        elif row.e in seen and seen[row.e] >= max(watermark, row.t) - WINDOW:
            fates.append("duplicate")
        else:
            watermark = max(watermark, row.t)
            seen[row.e] = watermark
            fates.append("trained")
    return fates


def numbers(cut: Cut) -> list[int]:
    return cut.rows.column("n").to_pylist() if cut.rows.num_rows else []


def facts(cut: Cut) -> tuple[object, ...]:
    """All that a cut says, comparable."""
    seen = {key: (ids.tolist(), stamps.tolist()) for key, (ids, stamps) in cut.seen.items()}
    return (
        numbers(cut), cut.event_time_ms.tolist(), cut.counts, dict(cut.cursors), dict(cut.accounting),
        dict(cut.watermarks), seen, [letter.key for letter in cut.dead],
    )  # fmt: skip


def rows_strategy(start: int) -> st.SearchStrategy[list[list[Row]]]:
    row = st.builds(
        Row,
        n=st.integers(start, start + 99),
        t=st.one_of(st.none(), st.integers(0, 40), st.integers(0, 40)),
        e=st.sampled_from("abcdefgh"),
        keep=st.sampled_from([True, True, True, False, None]),
        bad=st.sampled_from([False, False, False, False, True]),
    )
    return st.lists(st.lists(row, min_size=1, max_size=6), max_size=6)


STREAMS = st.fixed_dictionaries({A: rows_strategy(0), B: rows_strategy(100), C: rows_strategy(200)})
SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(stream=STREAMS, size=st.integers(1, 9))
def test_feed_accounts_for_every_row(stream: dict[PartitionKey, list[list[Row]]], size: int) -> None:
    options = FeedOptions(**{**_fields(OPTIONS), "batch_size": size})
    cuts, progress = run(stream, options)
    expected: dict[str, Counts] = {}
    trained: dict[PartitionKey, list[int]] = {}
    for key, parts in stream.items():
        rows = [row for part in parts for row in part]
        fates = expected_fates(rows)
        counts = Counts(**{fate: fates.count(fate) for fate in set(fates)})
        if rows:
            expected[key[0]] = expected.get(key[0], Counts()) + counts
        trained[key] = [row.n for row, fate in zip(rows, fates, strict=True) if fate == "trained"]
    assert progress.accounting == expected
    given: dict[PartitionKey, list[int]] = {key: [] for key in stream}
    for cut in cuts:
        at = 0
        for key, count in zip(cut.partitions, cut.counts, strict=True):
            given[key].extend(numbers(cut)[at : at + count])
            at += count
    assert given == trained
    letters = [letter.key for cut in cuts for letter in cut.dead]
    assert len(set(letters)) == len(letters) == sum(counts.dead_lettered for counts in expected.values())
    for cut in cuts:
        assert all(counts.received == sum(_values(counts)) for counts in cut.accounting.values())


def _fields(options: FeedOptions) -> dict[str, object]:
    return {name: getattr(options, name) for name in FeedOptions.__dataclass_fields__}


def _values(counts: Counts) -> list[int]:
    return [getattr(counts, name) for name in Counts.__dataclass_fields__]


def assert_resumes_identically(
    stream: Mapping[PartitionKey, Sequence[Sequence[Row]]], options: FeedOptions, whole: Sequence[Cut], cut_at: int
) -> None:
    """Stop after `cut_at` cuts, restore what a commit would hold, and get the remaining cuts of the whole run."""
    before, progress = run(stream, options, limit=cut_at)
    state = progress.to_proto()
    restored = Progress.from_proto([type(state).FromString(state.SerializeToString())])
    after, _ = run(stream, options, restored)
    assert [facts(cut) for cut in before + after] == [facts(cut) for cut in whole]
    assert restored.accounting == progress.accounting | _totals(whole)


def _totals(cuts: Sequence[Cut]) -> dict[str, Counts]:
    totals: dict[str, Counts] = {}
    for cut in cuts:
        for topic, counts in cut.accounting.items():
            totals[topic] = totals.get(topic, Counts()) + counts
    return totals


@settings(parent=SETTINGS, max_examples=15)
@given(stream=STREAMS, size=st.integers(1, 7))
def test_feed_resumes_identically_at_every_cut(stream: dict[PartitionKey, list[list[Row]]], size: int) -> None:
    options = FeedOptions(**{**_fields(OPTIONS), "batch_size": size})
    whole, _ = run(stream, options)
    for cut_at in range(len(whole) + 1):
        assert_resumes_identically(stream, options, whole, cut_at)


@settings(parent=SETTINGS, max_examples=15)
@given(stream=STREAMS, size=st.integers(1, 7))
def test_feed_replays_recorded_cuts(stream: dict[PartitionKey, list[list[Row]]], size: int) -> None:
    options = FeedOptions(**{**_fields(OPTIONS), "batch_size": size})
    whole, progress = run(stream, options)
    other = FeedOptions(**{**_fields(OPTIONS), "batch_size": 1000, "linger_ms": 1})
    recorded = recorded_cuts([progress.to_proto()])
    feed = Feed(source(stream), other, validate=validate, progress=Progress(), clock=lambda: 0.0, cuts=recorded)
    replayed = drain(feed)
    feed.close()
    rows = [(numbers(cut), cut.counts) for cut in whole if cut.rows.num_rows]
    assert [(numbers(cut), cut.counts) for cut in replayed if cut.rows.num_rows] == rows
    again = Progress()
    for cut in replayed:
        again.advance(cut)
    assert again.accounting == progress.accounting
    assert all(progress.cursors[key] == cursor for key, cursor in again.cursors.items())


def plain(start: int, count: int, per_message: int = 3) -> list[list[Row]]:
    rows = [Row(n=start + i, t=start + i, e=f"{start + i}") for i in range(count)]
    return [rows[i : i + per_message] for i in range(0, count, per_message)]


class UnevenSource(MemorySource):
    """Partitions come in any order, with pauses between."""

    def arrange(self, seed: int) -> None:
        self._random = random.Random(seed)

    def read(self, timeout_s: float) -> Chunk | None:
        if self._random.random() < 0.3:
            return None
        self._turn.rotate(self._random.randrange(len(self._turn)))
        return super().read(timeout_s)


@settings(parent=SETTINGS, max_examples=30)
@given(stream=STREAMS, size=st.integers(1, 9), seed=st.integers(0, 1000))
def test_cuts_do_not_depend_on_the_order_of_arrival(
    stream: dict[PartitionKey, list[list[Row]]], size: int, seed: int
) -> None:
    options = FeedOptions(**{**_fields(OPTIONS), "batch_size": size, "prefetch_batches": 1})
    whole, _ = run(stream, options)
    uneven = UnevenSource({key: [batch(part) for part in parts] for key, parts in stream.items()})
    uneven.arrange(seed)
    feed = Feed(uneven, options, validate=validate, progress=Progress(), clock=lambda: 0.0)
    cuts = drain(feed)
    feed.close()
    assert [facts(cut) for cut in cuts] == [facts(cut) for cut in whole]


def test_cuts_share_a_batch_and_hand_on_what_an_ended_partition_lacks() -> None:
    cuts, _ = run({A: plain(0, 9), B: plain(0, 3)})
    assert [cut.counts for cut in cuts] == [(2, 2), (3, 1), (4, 0)]


def test_a_cut_divides_a_message_between_batches() -> None:
    cuts, progress = run({A: [plain(0, 10, 10)[0]]})
    assert [cut.cursors[A].place for cut in cuts] == [(0, 4), (0, 8), (1, 0)]
    assert progress.cursors[A].place == (1, 0)


def test_a_cut_of_dead_rows_moves_cursors_and_holds_no_rows() -> None:
    rows = [Row(n=i, t=i, e=str(i), bad=True) for i in range(3)]
    cuts, progress = run({A: [rows]})
    assert [cut.rows.num_rows for cut in cuts] == [0]
    assert progress.cursors[A].place == (1, 0)
    assert progress.accounting["clicks"] == Counts(dead_lettered=3)
    assert [letter.cursor.row for letter in cuts[0].dead] == [0, 1, 2]


def test_a_dead_row_keeps_the_row_as_it_came() -> None:
    cuts, _ = run({A: [[Row(n=7, t=1, e="x", bad=True)]]})
    letter = cuts[0].dead[0]
    assert (letter.reason, letter.format) == ("negative", "ARROW_IPC")
    assert pa.ipc.open_stream(letter.raw).read_all().to_pylist() == [{"n": -8, "t": 1, "e": "x", "keep": True}]


def test_drop_remainder_counts_what_it_drops() -> None:
    options = FeedOptions(**{**_fields(OPTIONS), "drop_remainder": True})
    cuts, progress = run({A: plain(0, 10)}, options)
    assert [cut.rows.num_rows for cut in cuts] == [4, 4, 0]
    assert progress.accounting["clicks"] == Counts(trained=8, remainder=2)
    assert progress.watermarks[A] == 7


def test_a_silent_partition_stops_cuts_by_count_without_deadlock() -> None:
    memory = source({A: plain(0, 40), B: []}, unbounded=True)
    feed = Feed(memory, OPTIONS, validate=validate, clock=lambda: 0.0)
    started = time.monotonic()
    assert feed.next(0.2) is None
    assert time.monotonic() - started < 2
    for part in plain(0, 4):
        memory.append(B, batch(part))
    cut = feed.next(5.0)
    feed.close()
    assert cut is not None and cut.counts == (2, 2)


def test_a_fast_partition_does_not_fill_memory_while_another_is_silent() -> None:
    memory = source({A: plain(0, 3000), B: []}, unbounded=True)
    feed = Feed(memory, OPTIONS, validate=validate, clock=lambda: 0.0)
    assert feed.next(0.3) is None
    feed.close()
    assert memory.position(A).offset <= OPTIONS.batch_size * OPTIONS.prefetch_batches + 3


def test_linger_cuts_short_what_has_waited() -> None:
    now = [100.0]
    options = FeedOptions(**{**_fields(OPTIONS), "linger_ms": 500})
    memory = source({A: plain(0, 3), B: []}, unbounded=True)
    feed = Feed(memory, options, validate=validate, clock=lambda: now[0])
    assert feed.next(0.2) is None
    now[0] += 0.6
    cut = feed.next(5.0)
    feed.close()
    assert cut is not None and cut.counts == (3, 0)


def test_linger_cuts_a_full_batch_at_once_although_a_partition_is_silent() -> None:
    options = FeedOptions(**{**_fields(OPTIONS), "linger_ms": 60_000})
    feed = Feed(source({A: plain(0, 9), B: []}, unbounded=True), options, validate=validate, clock=lambda: 0.0)
    cut = feed.next(5.0)
    feed.close()
    assert cut is not None and cut.counts == (4, 0)


def test_a_new_partition_joins_where_it_is_told() -> None:
    memory = source({A: plain(0, 30)})
    feed = Feed(memory, OPTIONS, validate=validate, clock=lambda: 0.0)
    first = feed.next(5.0)
    for part in plain(0, 5):
        memory.append(B, batch(part))
    feed.add_partition(B)
    second = feed.next(5.0)
    with pytest.raises(FeedError, match="read already"):
        feed.add_partition(B)
    feed.close()
    assert first is not None and first.counts == (4,)
    assert second is not None and second.partitions == (A, B) and second.counts == (2, 2)


def test_a_feed_without_partitions_notices_the_first_one_of_an_unbounded_source() -> None:
    memory = source({A: plain(0, 8)}, unbounded=True)
    options = FeedOptions(**{**_fields(OPTIONS), "unbounded": True})
    feed = Feed(memory, options, validate=validate, clock=lambda: 0.0, keys=())
    assert feed.next(0.05) is None
    assert not feed.finished
    for part in plain(0, 8):
        memory.append(B, batch(part))
    deadline = time.monotonic() + 5
    while B not in feed.known_partitions and time.monotonic() < deadline:
        time.sleep(0.01)
    feed.add_partition(B)
    cut = feed.next(5.0)
    feed.close()
    assert cut is not None and cut.counts == (4,)


def test_a_feed_without_partitions_of_a_bounded_source_is_finished_until_one_is_added() -> None:
    feed = Feed(source({A: plain(0, 4)}), OPTIONS, validate=validate, clock=lambda: 0.0, keys=())
    assert feed.next(5.0) is None
    assert feed.finished
    feed.add_partition(A)
    assert [cut.counts for cut in drain(feed)] == [(4,)]
    feed.close()


class Panic(BaseException):
    """What Rust's panics are in Python: no Exception."""


@pytest.mark.parametrize("kind", [ZeroDivisionError, Panic])
def test_an_error_of_the_validation_is_raised(kind: type[BaseException]) -> None:
    def broken(rows: pa.RecordBatch) -> RowErrors:
        raise kind(str(rows.num_rows))

    feed = Feed(source({A: plain(0, 3)}), OPTIONS, validate=broken, clock=lambda: 0.0)
    with pytest.raises(kind):
        feed.next(5.0)
    feed.close()


def test_recorded_cuts_that_do_not_fit_are_refused() -> None:
    feed = Feed(source({A: plain(0, 3)}), OPTIONS, validate=validate, clock=lambda: 0.0, cuts=[(5,)])
    with pytest.raises(CutReplayError, match="takes 5 rows"):
        drain(feed)
    feed.close()


class BrokenSource(MemorySource):
    """Gives one message, then breaks."""

    def read(self, timeout_s: float) -> Chunk | None:
        if self.position(A).offset == 1:
            raise OSError("cable cut")
        return super().read(timeout_s)


def test_an_error_of_the_source_is_raised_after_what_came_before_it() -> None:
    broken = BrokenSource({A: [batch(plain(0, 9, 9)[0]), batch(plain(9, 9, 9)[0])]})
    feed = Feed(broken, OPTIONS, validate=validate, clock=lambda: 0.0)
    assert [numbers(cut) for cut in drain(feed, limit=2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(OSError, match="cable cut"):
        feed.next(5.0)
    feed.close()


def test_too_many_dead_letters_stop_the_feed() -> None:
    options = FeedOptions(**{**_fields(OPTIONS), "max_dead_share": 0.2, "dead_window_rows": 10})
    rows = [Row(n=i, t=i, e=str(i), bad=i % 2 == 1) for i in range(20)]
    with pytest.raises(DeadLetterRateError, match=r"5 of the last 10 rows are bad.*negative at clicks//0/0"):
        run({A: [rows]}, options)


def test_a_few_dead_letters_do_not_stop_the_feed() -> None:
    options = FeedOptions(**{**_fields(OPTIONS), "max_dead_share": 0.2, "dead_window_rows": 10})
    rows = [Row(n=i, t=i, e=str(i), bad=i % 10 == 1) for i in range(100)]
    _, progress = run({A: [rows]}, options)
    assert progress.accounting["clicks"] == Counts(trained=90, dead_lettered=10)


class MixedSource(MemorySource):
    """One chunk with undecodable messages at its head, middle and end."""

    def read(self, timeout_s: float) -> Chunk | None:
        if self.position(A).offset:
            return None
        super().read(timeout_s)
        start = Cursor(topic="clicks", partition=0)
        dead = tuple(
            DeadLetter(cursor=start.at(offset), reason="undecodable", detail="", raw=b"?", format="JSON")
            for offset in (0, 2, 3, 5)
        )
        return Chunk(
            key=A, rows=batch([Row(1, 1, "1"), Row(4, 4, "4")]), offsets=np.array([1, 4]),
            row_in_message=np.zeros(2, np.int32), broker_time_ms=np.full(2, -1),
            start=start, end=start.at(6), dead=dead,
        )  # fmt: skip


def test_undecodable_messages_are_counted_between_the_rows_they_stand_between() -> None:
    options = FeedOptions(**{**_fields(OPTIONS), "batch_size": 1})
    feed = Feed(MixedSource({A: [batch([Row(0, 0, "0")])]}), options, validate=validate, clock=lambda: 0.0)
    cuts = drain(feed)
    feed.close()
    assert [[letter.cursor.offset for letter in cut.dead] for cut in cuts] == [[0], [2, 3], [5]]
    assert [cut.cursors[A].place for cut in cuts] == [(2, 0), (5, 0), (6, 0)]
    assert [cut.accounting["clicks"].dead_lettered for cut in cuts] == [1, 2, 1]


class AppendTimeSource(MemorySource):
    """The first partition's topic has LogAppendTime, the second's has not."""

    def read(self, timeout_s: float) -> Chunk | None:
        chunk = super().read(timeout_s)
        return chunk and replace(chunk, append_time=chunk.key == A)


def test_a_cut_says_whether_all_its_times_are_of_appending() -> None:
    stream = {A: [batch(part) for part in plain(0, 6)], B: [batch(part) for part in plain(0, 2)]}
    feed = Feed(AppendTimeSource(stream), OPTIONS, validate=validate, clock=lambda: 0.0)
    cuts = drain(feed)
    feed.close()
    assert [(cut.counts, cut.append_time) for cut in cuts] == [((2, 2), False), ((4, 0), True)]


def test_close_ends_the_thread_also_while_next_waits() -> None:
    feed = Feed(source({A: []}, unbounded=True), OPTIONS, validate=validate, clock=lambda: 0.0)
    results: deque[Cut | None] = deque()
    waiting = threading.Thread(target=lambda: results.append(feed.next(30.0)))
    waiting.start()
    feed.close()
    feed.close()
    waiting.join(5)
    assert list(results) == [None]
    assert not any(thread.name == "feed" and thread.is_alive() for thread in threading.enumerate())


def test_event_time_units_are_scaled() -> None:
    for unit, value in ((TimeUnit.SECONDS, 3), (TimeUnit.MILLISECONDS, 3000), (TimeUnit.MICROSECONDS, 3_000_000)):
        options = FeedOptions(batch_size=1, event_time_column="t", event_time_unit=unit)
        feed = Feed(MemorySource({A: [pa.record_batch({"t": [value]})]}), options, clock=lambda: 0.0)
        assert drain(feed)[0].event_time_ms.tolist() == [3000]
        feed.close()


def test_without_an_event_time_column_the_messages_time_counts() -> None:
    memory = MemorySource({A: [pa.record_batch({"n": [1]})]}, broker_time_ms=77)
    feed = Feed(memory, FeedOptions(batch_size=1), clock=lambda: 0.0)
    cut = drain(feed)[0]
    feed.close()
    assert (cut.event_time_ms.tolist(), cut.watermarks) == ([77], {A: 77})


def test_rows_without_any_time_are_dead_where_lateness_is_judged() -> None:
    options = FeedOptions(batch_size=1, allowed_lateness_ms=0, max_dead_share=1.0)
    feed = Feed(MemorySource({A: [pa.record_batch({"n": [1]})]}), options, clock=lambda: 0.0)
    assert [letter.reason for letter in drain(feed)[0].dead] == ["no_event_time"]
    feed.close()


def test_the_streams_watermark_waits_for_partitions_that_are_not_idle() -> None:
    now = [0.0]
    options = FeedOptions(**{**_fields(OPTIONS), "idle_partition_ms": 5000, "linger_ms": 1})
    memory = source({A: plain(0, 3), B: []}, unbounded=True)
    feed = Feed(memory, options, validate=validate, clock=lambda: now[0])
    feed.next(0.2)
    now[0] = 1.0
    assert feed.next(5.0) is not None
    assert feed.watermark() == -1
    now[0] = 5.5
    assert feed.watermark() == 2
    feed.close()
