"""Batches come in the feed's order and with the same content, however many threads make them."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest

from features import Batch
from stream.errors import SourceError
from stream.feed import Cut
from trainer.prefetch import Prefetcher

CUTS = 40


def cut(number: int) -> Cut:
    rows = pa.record_batch({"n": [number] if number % 7 else pa.array([], pa.int64())})
    times = np.zeros(rows.num_rows, np.int64)
    return Cut(
        rows=rows, event_time_ms=times, broker_time_ms=times, counts=(rows.num_rows,), partitions=(("t", 0),),
        cursors={},
        accounting={},
        watermarks={}, seen={}, append_time=False, dead=(),
    )  # fmt: skip


class Listed:
    """A feed of given cuts, and at its end an error where there is one."""

    def __init__(self, cuts: Sequence[Cut], error: Exception | None = None) -> None:
        self._cuts: Iterator[Cut] = iter(cuts)
        self._error = error
        self.finished = False

    def next(self, timeout_s: float) -> Cut | None:
        found = next(self._cuts, None)
        if found is None:
            if self._error is not None:
                raise self._error
            self.finished = True
        return found


def numbers(prefetcher: Prefetcher) -> list[int]:
    """The first value of each cut, 0 for those without rows."""
    found = []
    deadline = time.monotonic() + 60
    while not prefetcher.finished and time.monotonic() < deadline:
        item = prefetcher.next(0.1)
        if item is not None:
            assert (item.batch is None) == (item.cut.rows.num_rows == 0)
            found.append(item.batch.size if item.batch else 0)
    return found


def of_number(made: Cut) -> Batch:
    number = int(made.rows.column("n")[0].as_py())
    time.sleep(0.002 * (number % 3))
    return Batch(size=number)


@pytest.fixture
def prefetching() -> Iterator[Callable[..., Prefetcher]]:
    opened: list[Prefetcher] = []

    def start(feed: Listed, make: Callable[[Cut], Batch] = of_number, *, threads: int) -> Prefetcher:
        opened.append(Prefetcher(feed, make, depth=3, threads=threads))  # type: ignore[arg-type]
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_order_is_the_feeds(prefetching: Callable[..., Prefetcher], threads: int) -> None:
    feed = Listed([cut(number) for number in range(CUTS)])
    assert numbers(prefetching(feed, threads=threads)) == [number if number % 7 else 0 for number in range(CUTS)]


def test_threads_make_batches_at_once(prefetching: Callable[..., Prefetcher]) -> None:
    together = threading.Barrier(3, timeout=60)

    def make(made: Cut) -> Batch:
        together.wait()
        return of_number(made)

    assert numbers(prefetching(Listed([cut(n) for n in (1, 2, 3)]), make, threads=3)) == [1, 2, 3]


@pytest.mark.parametrize("threads", [1, 4])
def test_what_was_read_before_an_error_comes_before_it(prefetching: Callable[..., Prefetcher], threads: int) -> None:
    prefetcher = prefetching(Listed([cut(1), cut(2), cut(3)], SourceError("gone")), threads=threads)
    found = []
    with pytest.raises(SourceError, match="gone"):
        while True:
            item = prefetcher.next(5.0)
            found += [] if item is None or item.batch is None else [item.batch.size]
    assert found == [1, 2, 3]


def test_a_batch_that_cannot_be_made_comes_in_its_place(prefetching: Callable[..., Prefetcher]) -> None:
    def make(made: Cut) -> Batch:
        batch = of_number(made)
        if batch.size == 3:
            raise ValueError("three")
        return batch

    prefetcher = prefetching(Listed([cut(n) for n in (1, 2, 3, 4)]), make, threads=4)
    found = []
    with pytest.raises(ValueError, match="three"):
        while True:
            item = prefetcher.next(5.0)
            found += [] if item is None or item.batch is None else [item.batch.size]
    assert found == [1, 2]
