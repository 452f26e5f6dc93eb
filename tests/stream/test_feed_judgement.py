"""Late and duplicate rows, filters, and the dead-letter rate."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream.duplicates import ACCEPTED, DUPLICATE, FILTERED, LATE, PartitionJudge
from stream.errors import DeadLetterRateError, FeedError
from stream.feed_options import FeedOptions, Filter, TimeUnit
from stream.filters import rejected
from stream.judging import DeadLetterRate
from stream.row_errors import Faults
from stream.row_times import event_ids, event_times


def naive(times: list[int], ids: list[int], lateness: int | None, window: int) -> list[int]:
    watermark, seen, fates = -1, {}, []
    for time, key in zip(times, ids, strict=True):
        clock = max(watermark, time)
        if lateness is not None and time < watermark - lateness:
            fates.append(LATE)
        elif key in seen and seen[key] >= clock - window:
            fates.append(DUPLICATE)
        else:
            watermark = seen[key] = clock
            fates.append(ACCEPTED)
    return fates


@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), max_size=300),
    lateness=st.none() | st.integers(0, 50),
    window=st.integers(0, 100),
    cut=st.integers(1, 60),
)
def test_judge_equals_a_plain_loop_however_rows_are_chunked(
    rows: list[tuple[int, int]], lateness: int | None, window: int, cut: int
) -> None:
    times, ids = [row[0] for row in rows], [row[1] for row in rows]
    judge = PartitionJudge(lateness_ms=lateness, window_ms=window)
    fates: list[int] = []
    for at in range(0, len(rows), cut):
        part = np.zeros(len(times[at : at + cut]), np.uint8)
        judge.judge(part, np.array(times[at : at + cut], np.int64), np.array(ids[at : at + cut], np.uint64))
        fates.extend(part.tolist())
    assert fates == naive(times, ids, lateness, window)


def test_judge_forgets_what_left_the_window_and_stays_small() -> None:
    judge = PartitionJudge(lateness_ms=None, window_ms=100)
    for start in range(0, 200_000, 1000):
        times = np.arange(start, start + 1000)
        judge.judge(np.zeros(1000, np.uint8), times, times.astype(np.uint64))
    assert len(judge._keys) <= 8192


def test_judge_goes_on_from_what_is_remembered() -> None:
    first = PartitionJudge(lateness_ms=None, window_ms=100)
    ids = np.array([1, 2, 3], np.uint64)
    stamps = first.judge(np.zeros(3, np.uint8), np.array([10, 20, 30]), ids)
    second = PartitionJudge(lateness_ms=None, window_ms=100, watermark=first.watermark)
    second.remember(ids[::-1].copy(), stamps[::-1].copy())
    status = np.zeros(3, np.uint8)
    second.judge(status, np.array([40, 41, 42]), np.array([2, 9, 3], np.uint64))
    assert status.tolist() == [DUPLICATE, ACCEPTED, DUPLICATE]


def test_judge_leaves_rows_that_are_judged_already() -> None:
    judge = PartitionJudge(lateness_ms=0, window_ms=100)
    status = np.array([FILTERED, ACCEPTED], np.uint8)
    judge.judge(status, np.array([500, 10]), np.array([7, 7], np.uint64))
    assert (status.tolist(), judge.watermark) == ([FILTERED, ACCEPTED], 10)


@pytest.mark.parametrize(
    ("operator", "value", "kept"),
    [
        ("EQ", "2", [2]),
        ("NE", "2", [1, 3]),
        ("LT", "2", [1]),
        ("LE", "2", [1, 2]),
        ("GT", "2", [3]),
        ("GE", "2", [2, 3]),
    ],
)
def test_filters_keep_what_holds_and_never_a_null(operator: str, value: str, kept: list[int]) -> None:
    rows = pa.record_batch({"a": pa.array([1, 2, None, 3], pa.int32())})
    drop = rejected(rows, [Filter(column="a", operator=operator, value=value)])
    assert drop is not None
    assert rows.filter(pa.array(~drop)).column("a").to_pylist() == kept


def test_filters_compare_text_and_booleans_and_all_must_hold() -> None:
    rows = pa.record_batch({"a": ["x", "y", "x"], "b": [True, True, False]})
    drop = rejected(
        rows, [Filter(column="a", operator="EQ", value="x"), Filter(column="b", operator="EQ", value="true")]
    )
    assert drop is not None and drop.tolist() == [False, True, True]


def test_a_filter_whose_value_does_not_compare_is_an_error() -> None:
    with pytest.raises(FeedError, match="filter a EQ 'two'"):
        rejected(pa.record_batch({"a": [1]}), [Filter(column="a", operator="EQ", value="two")])


def test_no_filters_reject_nothing() -> None:
    assert rejected(pa.record_batch({"a": [1]}), []) is None


def test_the_rate_counts_one_window_after_another() -> None:
    rate = DeadLetterRate(0.5, 10)
    rate.observe(np.array([True] * 5 + [False] * 5), "")
    rate.observe(np.array([True] * 5), "")
    with pytest.raises(DeadLetterRateError, match="6 of the last 6 rows"):
        rate.observe(np.array([True]), "broken")


def times_of(column: pa.Array, unit: TimeUnit = TimeUnit.MILLISECONDS) -> tuple[list[int], dict[int, str]]:
    options = FeedOptions(batch_size=1, event_time_column="t", event_time_unit=unit)
    faults = Faults(len(column))
    found = event_times(pa.record_batch({"t": column}), np.full(len(column), -1), options, faults).tolist()
    errors = faults.errors()
    return found, dict(zip(errors.rows.tolist(), errors.reasons, strict=True))


def test_event_times_are_read_from_numbers_and_timestamps() -> None:
    assert times_of(pa.array([1, 2])) == ([1, 2], {})
    assert times_of(pa.array([1.5]), TimeUnit.SECONDS) == ([1500], {})
    assert times_of(pa.array([5, 6], pa.timestamp("s"))) == ([5000, 6000], {})
    assert times_of(pa.array([7], pa.uint32()), TimeUnit.SECONDS) == ([7000], {})


def test_event_times_that_are_none_are_bad_rows() -> None:
    assert times_of(pa.array([None, -1, 2**62, 3]))[1] == {
        0: "null_event_time",
        1: "bad_event_time",
        2: "bad_event_time",
    }
    assert times_of(pa.array([float("nan"), float("inf")]))[1] == {0: "bad_event_time", 1: "bad_event_time"}
    assert times_of(pa.array([2**64 - 1], pa.uint64()), TimeUnit.MICROSECONDS)[1] == {0: "bad_event_time"}
    assert times_of(pa.array(["x"]))[1] == {0: "wrong_type"}
    assert times_of(pa.array([None], pa.null()))[1] == {0: "null_event_time"}


def test_event_times_too_far_ahead_of_their_message_are_bad_rows() -> None:
    rows = pa.record_batch({"at": pa.array([1_000, 1_011, 9_999, 9_999], pa.int64())})
    broker = np.array([1_000, 1_000, 1_000, -1])
    for limit, bad in ((10, [1, 2]), (0, [])):
        options = FeedOptions(batch_size=1, event_time_column="at", max_future_ms=limit)
        faults = Faults(4)
        event_times(rows, broker, options, faults)
        errors = faults.errors()
        assert errors.rows.tolist() == bad
        assert set(errors.reasons) <= {"time_in_future"}


def test_event_ids_hash_text_of_any_make_alike_and_refuse_nulls() -> None:
    options = FeedOptions(batch_size=1, event_id_column="e")
    words = pa.array(["zz", "ab", None, "cd"])
    found = []
    for column in (words, words.cast(pa.large_string()), pa.concat_arrays([pa.array(["x"]), words]).slice(1)):
        faults = Faults(4)
        hashes = event_ids(pa.record_batch({"e": column}), options, faults)
        assert hashes is not None
        found.append(hashes[[0, 1, 3]].tolist())
        assert faults.errors().reasons == ("null_event_id",)
    assert found[0] == found[1] == found[2]
    assert len(set(found[0])) == 3


def test_detail_of_a_bad_row_stays_short() -> None:
    faults = Faults(2)
    faults.add_all("wrong_type", "x" * 20_000)
    assert [len(detail) for detail in faults.errors().details] == [500, 500]
