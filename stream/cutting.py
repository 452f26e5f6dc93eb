"""Cuts: which rows of which partitions make the next batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stream.accounting import Counts
from stream.cursor import Cursor, PartitionKey
from stream.deadletter import DeadLetter
from stream.duplicates import UNKNOWN_TIME
from stream.errors import CutReplayError
from stream.projection import concatenate
from stream.segment import Taken, concatenated

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Cut:
    """One batch of rows, and how far the stream is once it is trained; it may hold no rows."""

    rows: pa.RecordBatch
    event_time_ms: Int64s  # [n], -1 where unknown
    broker_time_ms: Int64s  # [n], -1 where unknown
    counts: tuple[int, ...]  # rows per partition, in the order of Feed.partitions
    partitions: tuple[PartitionKey, ...]  # that order
    cursors: Mapping[PartitionKey, Cursor]  # of the partitions that moved, after this cut
    accounting: Mapping[str, Counts]  # per topic, what this cut adds
    watermarks: Mapping[PartitionKey, int]  # of the partitions that gave rows, after this cut
    seen: Mapping[PartitionKey, tuple[npt.NDArray[np.uint64], Int64s]]  # event-id hashes; the watermark when accepted
    append_time: bool = False  # broker_time_ms is the time of appending for all rows, else of creation for some
    dead: tuple[DeadLetter, ...]  # to be acknowledged before the commit that counts them


@dataclass(frozen=True, slots=True)
class Shares:
    """Rows per partition, and which partitions could not give their share."""

    rows: list[int]
    exhausted: list[bool]


def share(batch_size: int, available: Sequence[int], ended: Sequence[bool], order: Sequence[int]) -> Shares | None:
    """What each partition gives, by the rule in the docstring of `Feed`; None: some must still be waited for.

    >>> share(10, [9, 9, 9], [False] * 3, [0, 1, 2]).rows
    [4, 3, 3]
    >>> share(10, [9, 1, 9], [False, True, False], [0, 1, 2])
    Shares(rows=[5, 1, 4], exhausted=[False, True, False])
    >>> share(10, [9, 1, 9], [False] * 3, [0, 1, 2]) is None
    True
    """
    take, exhausted = [0] * len(available), [False] * len(available)
    remaining, giving = batch_size, list(order)
    while remaining and giving:
        base, extra = divmod(remaining, len(giving))
        for place, index in enumerate(giving):
            wanted, have = base + (place < extra), available[index] - take[index]
            if have < wanted and not ended[index]:
                return None
            exhausted[index] = have < wanted
            take[index] += min(have, wanted)
        remaining = batch_size - sum(take)
        giving = [index for index in giving if not exhausted[index]]
    return Shares(take, exhausted)


def within_cost(
    limit: float,
    shares: Shares,
    cost: Callable[[int, int], float],
    available: Sequence[int],
    ended: Sequence[bool],
    order: Sequence[int],
) -> Shares:
    """The shares of as many rows as cost no more than `limit` together, and at least of one row.

    `cost(index, rows)` is what the first rows of a partition cost; no row costs less than nothing.

    >>> costs = [0, 1, 2, 3]
    >>> within_cost(4, Shares([4], [False]), lambda _, rows: sum(costs[:rows]), [4], [False], [0])
    Shares(rows=[3], exhausted=[False])
    """
    fits, rows = None, sum(shares.rows)
    low, high = 1, rows
    while low <= high:
        middle = (low + high + 1) // 2 if fits else high  # most batches fit as they are
        tried = shares if middle == rows else share(middle, available, ended, order)
        if tried is not None and sum(cost(index, count) for index, count in enumerate(tried.rows)) <= limit:
            fits, low = tried, middle + 1
        else:
            high = middle - 1
            fits = fits or share(1, available, ended, order)
    return fits or shares


def recorded(
    wanted: Sequence[int], available: Sequence[int], ended: Sequence[bool], keys: Sequence[PartitionKey]
) -> list[int] | None:
    """The rows of a recorded cut; None: some must still be waited for. Raise CutReplayError where they cannot come."""
    if len(wanted) != len(keys):
        raise CutReplayError(f"a recorded cut counts {len(wanted)} partitions, the feed has {len(keys)}")
    for want, have, over, key in zip(wanted, available, ended, keys, strict=True):
        if have < want and over:
            raise CutReplayError(f"a recorded cut takes {want} rows of partition {key}, which has only {have} left")
        if have < want:
            return None
    return list(wanted)


def assemble(keys: Sequence[PartitionKey], taken: Sequence[Taken], empty: pa.RecordBatch, *, dropped: bool) -> Cut:
    """One cut of what was taken from each partition; `dropped`: its rows are the remainder, and no cut holds them."""
    pairs = list(zip(keys, taken, strict=True))
    accounting: dict[str, Counts] = {}
    for (topic, _), part in pairs:
        if part.moves:
            accounting[topic] = accounting.get(topic, Counts()) + part.counts(dropped=dropped)
    kept = [] if dropped else [(key, part) for key, part in pairs if part.rows]
    rows = [batch for _, part in kept for batch in part.rows]
    return Cut(
        rows=concatenate(rows) if rows else empty,
        event_time_ms=concatenated([times for _, part in kept for times in part.event_time_ms]),
        broker_time_ms=concatenated([times for _, part in kept for times in part.broker_time_ms]),
        counts=tuple(0 if dropped else part.count for _, part in pairs),
        partitions=tuple(keys),
        cursors={key: part.cursor for key, part in pairs if part.cursor is not None},
        accounting=accounting,
        watermarks={key: int(part.watermarks[-1][-1]) for key, part in kept if part.watermarks[-1][-1] != UNKNOWN_TIME},
        seen={key: (np.concatenate(part.ids), np.concatenate(part.watermarks)) for key, part in kept if part.ids},
        append_time=bool(kept) and all(part.append_time for _, part in kept),
        dead=tuple(letter for _, part in pairs for letter in part.dead),
    )
