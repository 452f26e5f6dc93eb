"""The state of all table shards behind one lookup: what the kernels read and write, in one set of arrays.

Each table shard is a row of `params`; its rows are `[BIT_BASE, BIT_BASE + ROWS)` of the bitmaps, and, for a hashed
table, `[ENTRY_BASE, ENTRY_BASE + ROWS)` of `entries`: (id, last seen ms) pairs, so that a hit touches one cache line.
A `Book` is the part that lies on the host wherever the rows are.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from features.spec import ZchSpec
from recmodels.errors import ShardingError
from recmodels.layout import TableSpec

(
    KIND,
    ROWS,
    BIT_BASE,
    ENTRY_BASE,
    BUCKET_ROWS,
    BUCKETS,
    FIRST_BUCKET,
    MAX_PROBE,
    TTL_MS,
    ADMIT,
    COUNTER_BASE,
    COUNTER_SETS,
    FIRST_ROW,
    MISS_BASE,
    TRACKED,
    OWN_BUCKETS,
    PARAMS,
) = range(17)
DIRECT, HASHED, SORTED = 0, 1, 2

SIZE, HITS, INSERTS, EVICTIONS, COLLISIONS, UNADMITTED, FIGURES = range(7)

EMPTY = -1
WAYS = 8
"""Admission counters live in sets of 8; a set is searched whole, so that taking one out leaves no hole."""

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """The rows [first_row, first_row + rows) of a table, and the number of that shard."""

    table: TableSpec
    number: int
    first_row: int
    rows: int


def bucket_count(spec: ZchSpec) -> int:
    """Buckets of a hashed table: as configured, else the largest power of two up to 32 that leaves 32 rows in each."""
    if spec.buckets:
        count = spec.buckets
    else:
        count = 32
        while count > 1 and (spec.size % count or spec.size // count < 32):
            count //= 2
    if spec.size % count or spec.size // count < 2:
        raise ShardingError(
            f"zch_size {spec.size} does not divide into {count} buckets of at least two rows: "
            "choose a zch_size that is a multiple of buckets"
        )
    return count


class Book:
    """Layout, figures and admission counters of the shards behind one lookup, in the lookup's table order."""

    def __init__(self, shards: tuple[Shard, ...]) -> None:
        self.shards = shards
        self.params: Int64s = np.zeros((len(shards), PARAMS), np.int64)
        self.figures: Int64s = np.zeros((len(shards), FIGURES), np.int64)
        bits = entries = counters = misses = 0
        for number, shard in enumerate(shards):
            row = self.params[number]
            row[[KIND, ROWS, BIT_BASE, FIRST_ROW, TRACKED]] = DIRECT, shard.rows, bits, shard.first_row, 1
            bits += -(-shard.rows // 64) * 64
            if shard.table.zch is None:
                row[TRACKED] = shard.table.trainable
                continue
            self._lay_out_buckets(row, shard, shard.table.zch)
            row[MISS_BASE] = misses
            if shard.table.zch.policy != "hash":
                row[[KIND, BUCKET_ROWS]] = SORTED, shard.rows
                misses += 1
                continue
            self._lay_out_hashed(row, shard.table.zch, entries, counters)
            entries += shard.rows
            counters += int(row[COUNTER_SETS] * WAYS * (shard.rows // row[BUCKET_ROWS]))
            misses += int(shard.rows // row[BUCKET_ROWS])
        self.bits, self.entry_rows, self.misses = bits, entries, misses
        self.counters: Int64s = np.full((counters, 2), EMPTY, np.int64)
        self.counter_touched = np.zeros(counters, np.bool_)

    @staticmethod
    def _lay_out_buckets(row: Int64s, shard: Shard, spec: ZchSpec) -> None:
        buckets = bucket_count(spec)
        bucket_rows = spec.size // buckets
        if shard.first_row % bucket_rows or shard.rows % bucket_rows:
            raise ShardingError(
                f"table {shard.table.name!r}: {buckets} buckets do not divide over the ranks; "
                "make zch buckets a multiple of the world size"
            )
        row[BUCKET_ROWS] = bucket_rows
        row[BUCKETS] = buckets
        row[FIRST_BUCKET] = shard.first_row // bucket_rows
        row[OWN_BUCKETS] = shard.rows // bucket_rows

    @staticmethod
    def _lay_out_hashed(row: Int64s, spec: ZchSpec, entries: int, counters: int) -> None:
        capacity = spec.admission_capacity or spec.size
        row[KIND] = HASHED
        row[ENTRY_BASE] = entries
        row[MAX_PROBE] = min(spec.max_probe, row[BUCKET_ROWS] - 1)
        row[TTL_MS] = -1 if spec.ttl_ms is None else spec.ttl_ms
        row[ADMIT] = spec.admission_count
        row[COUNTER_BASE] = counters
        row[COUNTER_SETS] = -(-capacity // (row[BUCKETS] * WAYS)) if spec.admission_count > 1 else 0


class Arena(Book):
    """A book with the maps and bitmaps that the host's kernels work on."""

    def __init__(self, shards: tuple[Shard, ...]) -> None:
        super().__init__(shards)
        self.entries: Int64s = np.full((self.entry_rows, 2), EMPTY, np.int64)
        self.missed = np.zeros(self.misses, np.uint8)
        self.touched = np.zeros(self.bits // 64, np.uint64)
        self.in_flight = np.zeros(self.bits // 64, np.uint64)
        self.pinned = np.zeros(self.bits // 64, np.uint64)
        self.pinned_words: Int64s = np.empty(1024, np.int64)
        self.pinned_count: Int64s = np.zeros(1, np.int64)

    def mark(self, number: int, rows: Int64s) -> None:
        """Count these rows of a shard as changed."""
        base = int(self.params[number, BIT_BASE])
        marks = np.zeros(-(-int(self.params[number, ROWS]) // 64) * 64, np.bool_)
        marks[rows] = True
        words = np.packbits(marks, bitorder="little").view(np.uint64)
        self.touched[base // 64 : base // 64 + len(words)] |= words

    def reserve_pins(self, values: int) -> None:
        """Make room for one pin per value of the next batch."""
        needed = int(self.pinned_count[0]) + values + 1
        if needed > len(self.pinned_words):
            grown = np.empty(max(needed, 2 * len(self.pinned_words)), np.int64)
            grown[: self.pinned_count[0]] = self.pinned_words[: self.pinned_count[0]]
            self.pinned_words = grown
