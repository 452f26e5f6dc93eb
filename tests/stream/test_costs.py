"""Batches by cost: never above the limit, at least one row, every row once."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protos.pipeline_pb2 import EasyRecConfig
from stream.cursor import PartitionKey
from stream.errors import FeedError
from stream.feed import Cut, Feed, FeedOptions
from stream.memory import MemorySource
from stream.progress import Progress


def _feed(costs: list[list[float | None]], limit: float, batch_size: int, progress: Progress | None = None) -> Feed:
    messages: dict[PartitionKey, list[pa.RecordBatch]] = {}
    number = 0
    for partition, part in enumerate(costs):
        batches = []
        for at in range(0, len(part), 3):
            values = part[at : at + 3]
            ids = list(range(number, number + len(values)))
            number += len(values)
            batches.append(pa.record_batch({"id": ids, "cost": pa.array(values, pa.float64())}))
        messages["m", partition] = batches
    options = FeedOptions(
        batch_size=batch_size, columns=("id",), cost_column="cost", cost_limit=limit, max_dead_share=1.0
    )
    return Feed(MemorySource(messages), options, progress=progress)


def _cuts(feed: Feed) -> list[Cut]:
    cuts = []
    while not feed.finished:
        cut = feed.next(5.0)
        if cut is not None:
            cuts.append(cut)
    feed.close()
    return cuts


def test_costs_of_the_reference() -> None:
    cuts = _cuts(_feed([[0, 1, 2, 3]], 4, 10))
    assert [cut.rows.num_rows for cut in cuts] == [3, 1]


def test_row_above_the_limit_travels_alone_and_is_counted() -> None:
    feed = _feed([[1, 9, 1, 1]], 4, 10)
    assert [cut.rows.num_rows for cut in _cuts(feed)] == [1, 1, 2]
    assert feed.over_cost == 1


def test_batch_size_still_bounds_a_batch() -> None:
    assert [cut.rows.num_rows for cut in _cuts(_feed([[0] * 7], 4, 3))] == [3, 3, 1]


@settings(deadline=None, max_examples=40)
@given(
    costs=st.lists(st.lists(st.integers(0, 6), max_size=9), min_size=1, max_size=3),
    limit=st.integers(1, 8),
    batch_size=st.integers(1, 6),
)
def test_cost_cuts_keep_the_limit_and_every_row(costs: list[list[float | None]], limit: int, batch_size: int) -> None:
    feed = _feed(costs, limit, batch_size)
    cuts = _cuts(feed)
    above = 0
    for cut in cuts:
        total = sum(cut.rows.column("cost").to_pylist()) if cut.rows.num_rows else 0
        assert cut.rows.num_rows <= batch_size
        assert total <= limit or cut.rows.num_rows == 1
        above += total > limit
    ids = [value for cut in cuts if cut.rows.num_rows for value in cut.rows.column("id").to_pylist()]
    assert sorted(ids) == list(range(sum(map(len, costs))))
    assert feed.over_cost == above


def test_cost_cuts_are_the_same_after_a_resume() -> None:
    costs: list[list[float | None]] = [[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]]
    whole = _cuts(_feed(costs, 8, 4))
    progress = Progress()
    for number, cut in enumerate(whole[:-1]):
        progress.advance(cut)
        resumed = Progress.from_proto([progress.to_proto()])
        rest = _cuts(_feed(costs, 8, 4, resumed))
        assert [c.rows.to_pydict() for c in rest] == [c.rows.to_pydict() for c in whole[number + 1 :]]


def test_bad_costs_are_dead_letters() -> None:
    cuts = _cuts(_feed([[1, None, -1, float("nan"), 2]], 4, 10))
    assert [cut.rows.column("id").to_pylist() for cut in cuts if cut.rows.num_rows] == [[0, 4]]
    assert [letter.reason for cut in cuts for letter in cut.dead] == ["bad_cost"] * 3


def test_cost_size_needs_a_cost_field() -> None:
    config = EasyRecConfig()
    config.data_config.batch_cost_size = 5
    with pytest.raises(FeedError, match="needs sample_cost_field"):
        FeedOptions.from_proto(config)
    config.data_config.sample_cost_field = "c"
    options = FeedOptions.from_proto(config, columns=["a"])
    assert (options.cost_column, options.cost_limit, options.all_columns) == ("c", 5.0, ("a", "c"))
