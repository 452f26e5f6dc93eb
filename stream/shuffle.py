"""A seeded shuffle of one file, whose cursor is a place in the shuffled order: any row of it resumes exactly.

The units (row groups, blocks) of the file, or of a rank's part of it, are put in a random order; neighbours in that
order are pooled until a pool has `rows` rows, and the rows of a pool are put in a random order. A cursor's offset is
then the number of a pool and its row the place in it. Both orders follow from (seed, epoch, partition) alone. A pool
is in memory as a whole: as many rows as asked for, and at least a row group or block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stream.cursor import Cursor
from stream.deadletter import DeadLetter
from stream.decode import no_rows
from stream.projection import concatenate
from stream.source import Chunk

_ROWS_PER_CHUNK = 65_536

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shuffle:
    """How far rows move: at least `rows` of them are in one pool, where the file has them."""

    seed: int
    epoch: int
    rows: int

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise ValueError(f"a shuffle needs a pool of at least one row, got {self.rows}")

    @property
    def tag(self) -> str:
        """What the meaning of a cursor depends on."""
        return f"-shuffle{self.seed}.{self.epoch}.{self.rows}"

    def order(self, purpose: str, count: int) -> Int64s:
        """A permutation."""
        text = f"{self.seed}\n{self.epoch}\n{purpose}"
        key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
        return np.random.Generator(np.random.Philox(key=key)).permutation(count).astype(np.int64)


class Units(Protocol):
    """What is shuffled: see `stream.files.FileReader`."""

    def read(self, start: Cursor) -> Chunk:
        """A chunk from a place."""
        ...

    def rows_of(self, unit: int) -> int | None:
        """How many rows a unit has; None: unknown without reading."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    number: int
    rows: pa.RecordBatch
    dead: Sequence[DeadLetter]
    order: Int64s  # place -> row, or number of rows + dead message


class ShuffledReader:
    """Reads the pools of one partition."""

    def __init__(self, reader: Units, units: range, shuffle: Shuffle, partition: int) -> None:
        self._reader = reader
        self._shuffle = shuffle
        self._partition = partition
        self._pools = _pools(reader, units, shuffle, partition)
        self._current: _Pool | None = None

    @property
    def units(self) -> int:
        """Pools."""
        return len(self._pools)

    def rows_of(self, unit: int) -> int | None:
        """How many rows a pool has."""
        sizes = [self._reader.rows_of(inner) for inner in self._pools[unit]]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def read(self, start: Cursor) -> Chunk:
        """Some rows of the pool that the cursor points into."""
        pool = self._load(start)
        stop = min(start.row + _ROWS_PER_CHUNK, len(pool.order))
        ended = stop >= len(pool.order)
        part = pool.order[start.row : stop]
        alive = part < pool.rows.num_rows
        places = (start.row + np.flatnonzero(alive)).astype(np.int32)
        dead = [
            replace(pool.dead[int(part[at]) - pool.rows.num_rows], cursor=start.at(start.offset, start.row + at))
            for at in np.flatnonzero(~alive).tolist()
        ]
        rows = pool.rows.take(pa.array(part[alive])) if pool.rows.num_columns else pool.rows
        return Chunk(
            key=start.key,
            rows=rows,
            offsets=np.full(len(places), start.offset, np.int64),
            row_in_message=places,
            broker_time_ms=np.full(len(places), -1, np.int64),
            start=start,
            end=start.at(start.offset + 1) if ended else start.at(start.offset, stop),
            dead=tuple(dead),
        )

    def _load(self, start: Cursor) -> _Pool:
        number = start.offset
        if self._current is None or self._current.number != number:
            rows: list[pa.RecordBatch] = []
            dead: list[DeadLetter] = []
            for unit in self._pools[number]:
                at = start.at(unit)
                while at.offset == unit:
                    chunk = self._reader.read(at)
                    rows += [chunk.rows] if chunk.rows.num_rows else []
                    dead += chunk.dead
                    at = chunk.end
            made = concatenate(rows) if rows else no_rows()
            order = self._shuffle.order(f"rows {self._partition} {number}", made.num_rows + len(dead))
            self._current = _Pool(number, made, dead, order)
        return self._current

    def close(self) -> None:
        """Close the file and let go of the pool."""
        self._current = None
        self._reader.close()


def _pools(reader: Units, units: range, shuffle: Shuffle, partition: int) -> list[list[int]]:
    pools: list[list[int]] = []
    size = shuffle.rows
    for at in shuffle.order(f"units {partition}", len(units)).tolist():
        unit = units[at]
        if size >= shuffle.rows:
            pools.append([])
            size = 0
        pools[-1].append(unit)
        rows = reader.rows_of(unit)
        # Of unknown size: a block of some megabytes, which is a pool by itself.
        size += shuffle.rows if rows is None else rows
    return pools
