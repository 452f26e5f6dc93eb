"""One lookup's tables in a device's memory, each hashed one behind TorchRec's own managed collision module.

What is new in a step takes a trip over the host: there it is counted for admission and gets its first weights drawn, so
that both are the same as on CPU. Sorted maps are on the host, their rows on the device. No kernel here is ours.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from checkpointer.rows import Column
from recmodels.zch import admission
from recmodels.zch.arena import (
    ADMIT,
    BIT_BASE,
    BUCKET_ROWS,
    BUCKETS,
    COLLISIONS,
    DIRECT,
    EMPTY,
    EVICTIONS,
    FIRST_BUCKET,
    FIRST_ROW,
    HASHED,
    HITS,
    INSERTS,
    KIND,
    OWN_BUCKETS,
    ROWS,
    SIZE,
    TRACKED,
    UNADMITTED,
    Book,
    Int64s,
    Shard,
)
from recmodels.zch.device_map import DeviceMap, ZchOperator
from recmodels.zch.device_memory import all_rows, device_memories, reserved_rows
from recmodels.zch.hashing import start_rows
from recmodels.zch.lookup import Lookup, with_rows
from recmodels.zch.transfers import to_device, to_host

_IDS, _ROWS, _EVICTED, _COUNTS, _PLACED, _LAPSED, _NEWS = range(7)


class DeviceLookup(Lookup):
    """The shards behind one of TorchRec's lookups, wherever its kernels keep them."""

    def __init__(
        self, shards: tuple[Shard, ...], lookup: Any, seed: int, *, operator: ZchOperator | None = None
    ) -> None:
        super().__init__(Book(shards))
        self.memory = device_memories(shards, lookup, seed)
        self._device = self.memory[0].weight.device if self.memory else torch.device("cpu")
        self.maps = {
            number: DeviceMap(
                self.book.params[number],
                shard.table.name,
                self._device,
                torch.ops.fbgemm.zero_collision_hash if operator is None else operator,
            )
            for number, shard in enumerate(shards)
            if self.book.params[number, KIND] == HASHED
        }
        self._reserved = {
            number: reserved_rows(shard.rows, int(self.book.params[number, BUCKET_ROWS]), self._device)
            for number, shard in enumerate(shards)
            if shard.table.zch is not None
        }
        self._touched, self._in_flight = (
            torch.zeros(self.book.bits, dtype=torch.bool, device=self._device) for _ in range(2)
        )
        self._draw_first_rows()

    def remap(self, features: KeyedJaggedTensor, *, write: bool) -> KeyedJaggedTensor:
        values = features.values()
        if not len(self._tables) or not values.numel():
            return features
        starts = features.offset_per_key()
        parts = {
            number: [slice(starts[f], starts[f + 1]) for f in np.flatnonzero(self._tables == number)]
            for number in range(len(self.book.shards))
        }
        ids = {number: torch.cat([values[part] for part in own]) for number, own in parts.items()}
        self._check(ids, values, starts)
        rows = torch.empty_like(values)
        news: dict[int, Tensor] = {}
        for number, own in parts.items():
            sizes = [part.stop - part.start for part in own]
            found = self._rows(number, ids[number], sizes, news, write=write)
            first = 0
            for part, size in zip(own, sizes, strict=True):
                rows[part] = found[first : first + size]
                first += size
        self._learn(news, {number: len(held) for number, held in ids.items()})
        return with_rows(features, rows)

    def settle(self) -> None:
        for number, reserved in self._reserved.items():
            self.memory[number].zero(reserved)

    def rows_of(self, number: int, ids: Int64s) -> Int64s:
        rows: Int64s = to_host(self.maps[number].find(to_device(ids, self._device))).astype(np.int64)
        return rows

    @contextmanager
    def entries(self, number: int) -> Iterator[Int64s]:
        entries: Int64s = to_host(self.maps[number].entries).astype(np.int64, copy=False)
        yield entries
        self.maps[number].load(to_device(entries, self._device))

    def read_rows(self, number: int, rows: Int64s) -> dict[str, Column]:
        return self.memory[number].read(rows)

    def put_rows(self, number: int, rows: Int64s, columns: Mapping[str, Column]) -> None:
        self.memory[number].write(rows, columns)

    def reset_rows(self, number: int, rows: Int64s, ids: Int64s) -> None:
        self.memory[number].reset(rows, ids)

    def zero_rows(self, number: int) -> None:
        self.memory[number].zero_all()

    def state_shapes(self, number: int) -> dict[str, tuple[int, ...]]:
        return {name: tuple(column.shape[1:]) for name, column in self.memory[number].state.items()}

    def mark(self, number: int, rows: Int64s) -> None:
        self._own(self._touched, number)[to_device(rows, self._device)] = True

    def marked(self, number: int) -> Int64s:
        rows: Int64s = to_host(self._own(self._touched, number).nonzero()[:, 0]).astype(np.int64, copy=False)
        return rows

    def any_marked(self) -> bool:
        return bool(self._touched.any())

    def unmark(self) -> None:
        self._touched.zero_()

    def depart(self) -> None:
        self._in_flight.copy_(self._touched)
        self._touched.zero_()

    def land(self) -> None:
        self._in_flight.zero_()

    def come_back(self) -> None:
        self._touched |= self._in_flight
        self.land()

    def _held_hashed(self, number: int, rows: Int64s) -> tuple[Int64s, Int64s]:
        held = to_host(self.maps[number].entries[to_device(rows, self._device)]).astype(np.int64, copy=False)
        return held[:, 0], held[:, 1]

    def _miss(self, number: int) -> None:
        """Nothing to note: reserved rows are zeroed after every step, as telling which were used means waiting."""

    def _own(self, bits: Tensor, number: int) -> Tensor:
        first = int(self.book.params[number, BIT_BASE])
        return bits[first : first + int(self.book.params[number, ROWS])]

    def _rows(self, number: int, ids: Tensor, sizes: list[int], news: dict[int, Tensor], *, write: bool) -> Tensor:
        p = self.book.params[number]
        if number in self.sorted:
            host: Int64s = to_host(ids).astype(np.int64, copy=False)
            parts = np.split(host, np.cumsum(sizes)[:-1])
            return to_device(np.concatenate(self._remap_sorted(number, parts, write=write)), self._device)
        if p[KIND] == DIRECT:
            rows = ids - int(p[FIRST_ROW])
            if write and p[TRACKED]:
                self._own(self._touched, number)[rows] = True
            return rows
        if not write:
            return self.maps[number].find(ids)
        distinct, inverse, counts = torch.unique(ids, return_inverse=True, return_counts=True)
        rows, news[number] = self._write(number, distinct, counts)
        return rows[inverse]

    def _write(self, number: int, ids: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of distinct ids, those that are absent let in; and what the host has to know of it, int64[_NEWS, n]."""
        rows, known, lapsed = self.maps[number].see(ids, self.now_ms)
        absent = self._admitted(number, ids, counts, ~known)
        placed, evicted = torch.zeros_like(known), torch.full_like(ids, EMPTY)
        rows[absent], placed[absent], evicted[absent] = self.maps[number].place(ids[absent], self.now_ms)
        self._own(self._touched, number)[rows[known | placed]] = True
        news = torch.stack([ids, rows, evicted, counts, placed.long(), lapsed.long()])
        return rows, news[:, ~known | lapsed]

    def _admitted(self, number: int, ids: Tensor, counts: Tensor, absent: Tensor) -> Tensor:
        """Those of the absent ids that have been seen often enough."""
        if self.book.params[number, ADMIT] <= 1:
            return absent
        new, seen = to_host(torch.stack([ids[absent], counts[absent]])).astype(np.int64, copy=False)
        often, dropped = admission.admit(self.book, number, new, seen)
        self.drop(number, dropped)
        admitted = absent.clone()
        admitted[absent] = to_device(often, self._device)
        return admitted

    def _learn(self, news: Mapping[int, Tensor], looked_up: Mapping[int, int]) -> None:
        """Draw rows that have new owners, list the evicted ids, keep the figures."""
        if not news:
            return
        numbers = np.repeat(list(news), [held.shape[1] for held in news.values()])
        told: Int64s = to_host(torch.cat(list(news.values()), dim=1)).astype(np.int64, copy=False)
        for number in news:
            own = told[:, numbers == number]
            fresh = own[:, (own[_PLACED] | own[_LAPSED]) != 0]
            evicted = fresh[_EVICTED][fresh[_EVICTED] != EMPTY]
            self._count(number, own, fresh, looked_up[number])
            self.evict(number, evicted)
            self.reset_rows(number, fresh[_ROWS], fresh[_IDS])
            if self.book.params[number, ADMIT] > 1:
                admission.settle(self.book, number, fresh[_IDS])
                self.drop(number, fresh[_IDS])

    def _count(self, number: int, told: Int64s, fresh: Int64s, looked_up: int) -> None:
        figures, bucket_rows = self.book.figures[number], int(self.book.params[number, BUCKET_ROWS])
        placed = fresh[:, fresh[_PLACED] != 0]
        unadmitted = int(told[_COUNTS].sum() - fresh[_COUNTS].sum())
        gone = int((placed[_EVICTED] != EMPTY).sum())
        figures[SIZE] += placed.shape[1] - gone
        figures[INSERTS] += fresh.shape[1]
        figures[EVICTIONS] += gone + fresh.shape[1] - placed.shape[1]
        figures[COLLISIONS] += int((placed[_ROWS] % bucket_rows != start_rows(placed[_IDS], bucket_rows - 1)).sum())
        figures[UNADMITTED] += unadmitted
        figures[HITS] += looked_up - fresh.shape[1] - unadmitted

    def _check(self, ids: Mapping[int, Tensor], values: Tensor, starts: list[int]) -> None:
        """Refuse ids outside their table, before a kernel reads or writes there."""
        bad = {number: self._outside(number, held) for number, held in ids.items()}
        if not bool(torch.stack([held.any() for held in bad.values()]).any()):
            return
        number = next(number for number, held in bad.items() if held.any())
        wrong = int(ids[number][bad[number]][0])
        features = np.flatnonzero(self._tables == number)
        at = next(
            starts[f] + k
            for f in features.tolist()
            for k in (values[starts[f] : starts[f + 1]] == wrong).nonzero()[:, 0].tolist()
        )
        self._refuse(wrong, at, np.array(starts, np.int64))

    def _outside(self, number: int, ids: Tensor) -> Tensor:
        p = self.book.params[number]
        if p[KIND] == DIRECT:
            return (ids < int(p[FIRST_ROW])) | (ids >= int(p[FIRST_ROW] + p[ROWS]))
        if number in self.sorted or p[OWN_BUCKETS] == p[BUCKETS]:
            return ids < 0
        bucket = ids % int(p[BUCKETS]) - int(p[FIRST_BUCKET])
        return (ids < 0) | (bucket < 0) | (bucket >= int(p[OWN_BUCKETS]))

    def _draw_first_rows(self) -> None:
        for number, shard in enumerate(self.book.shards):
            if shard.table.zch is not None:
                self.zero_rows(number)
            else:
                self.reset_rows(number, all_rows(shard.rows), all_rows(shard.rows) + shard.first_row)
