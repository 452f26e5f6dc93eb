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
from recmodels.zch.distinct import Group, Sorting, set_positions
from recmodels.zch.hashing import start_rows
from recmodels.zch.lookup import Lookup, with_rows
from recmodels.zch.transfers import to_device, to_host

_IDS, _ROWS, _EVICTED, _COUNTS, _PRESENT, _EXPIRED = range(6)


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
        sorting = Sorting({number: ids[number] for number in self.maps} if write else {}, self._device)
        outside = torch.stack([self._outside(number, held).any() for number, held in ids.items()])
        bad, sizes = np.split(to_host(torch.cat([outside.long(), sorting.sizes])), [len(ids)])
        if bad.any():
            self._refuse_first(ids, values, starts)
        found = self._hashed_rows(sorting, sizes.tolist(), ids) if write else self._read(ids)
        rows = torch.empty_like(values)
        for number, own in parts.items():
            held = found[number] if number in found else self._other_rows(number, ids[number], own, write=write)
            first = 0
            for part in own:
                size = part.stop - part.start
                rows[part] = held[first : first + size]
                first += size
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

    def _other_rows(self, number: int, ids: Tensor, parts: list[slice], *, write: bool) -> Tensor:
        """The rows of a table that is not hashed."""
        p = self.book.params[number]
        if number in self.sorted:
            host: Int64s = to_host(ids).astype(np.int64, copy=False)
            ends = np.cumsum([part.stop - part.start for part in parts])
            found = self._remap_sorted(number, np.split(host, ends[:-1]), write=write)
            return to_device(np.concatenate(found), self._device)
        rows = ids - int(p[FIRST_ROW])
        if write and p[TRACKED]:
            self._own(self._touched, number)[rows] = True
        return rows

    def _read(self, ids: Mapping[int, Tensor]) -> dict[int, Tensor]:
        return {number: held.find(ids[number]) for number, held in self.maps.items()}

    def _hashed_rows(self, sorting: Sorting, sizes: list[int], ids: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """Let absent ids in and mark what is read; the host waits to know how many are absent, and who they were."""
        groups = sorting.groups(sizes)
        if not groups:
            return {}
        seen = [self.maps[group.number].see(group.ids, self.now_ms) for group in groups]
        counts = to_host(torch.stack([torch.stack([(~known).sum(), lapsed.sum()]) for _, known, lapsed in seen]))
        news = {}
        for group, (rows, known, lapsed), (absent, expired) in zip(groups, seen, counts.tolist(), strict=True):
            at, again = set_positions(~known, absent), set_positions(lapsed, expired)
            news[group.number] = self._let_in(group, rows, known, at, again)
        self._learn(news, {number: len(ids[number]) for number in news})
        return sorting.spread([rows for rows, _, _ in seen])

    def _let_in(self, group: Group, rows: Tensor, known: Tensor, absent: Tensor, lapsed: Tensor) -> Tensor:
        """Fill `rows` in for absent ids, and mark; what the host has to know of them and of expired ones."""
        evicted, present = torch.full_like(rows, EMPTY), known.clone()
        admitted = self._admitted(group, absent)
        if len(admitted):
            placed = self.maps[group.number].place(group.ids[admitted], self.now_ms)
            rows[admitted], present[admitted], evicted[admitted] = placed
        touched = self._own(self._touched, group.number)
        touched[rows] = touched[rows] | present
        told = torch.cat([absent, lapsed])
        expired = torch.cat([torch.zeros_like(absent), torch.ones_like(lapsed)])
        columns = (group.ids, rows, evicted, group.counts, present.long())
        return torch.stack([*(column[told] for column in columns), expired])

    def _admitted(self, group: Group, absent: Tensor) -> Tensor:
        """Those of the absent ids that have been seen often enough."""
        if self.book.params[group.number, ADMIT] <= 1 or not len(absent):
            return absent
        ids, counts = to_host(torch.stack([group.ids[absent], group.counts[absent]])).astype(np.int64, copy=False)
        often, dropped = admission.admit(self.book, group.number, ids, counts)
        self.drop(group.number, dropped)
        return absent[to_device(np.flatnonzero(often), self._device)]

    def _learn(self, news: Mapping[int, Tensor], looked_up: Mapping[int, int]) -> None:
        """Draw rows that have new owners, list the evicted ids, keep the figures."""
        told: Int64s = to_host(torch.cat(list(news.values()), dim=1)).astype(np.int64, copy=False)
        ends = np.cumsum([held.shape[1] for held in news.values()])
        for number, own in zip(news, np.split(told, ends[:-1], axis=1), strict=True):
            fresh = own[:, (own[_PRESENT] | own[_EXPIRED]) != 0]
            self._count(number, own, fresh, looked_up[number])
            if not fresh.shape[1]:
                continue
            self.evict(number, fresh[_EVICTED][fresh[_EVICTED] != EMPTY])
            self.reset_rows(number, fresh[_ROWS], fresh[_IDS])
            if self.book.params[number, ADMIT] > 1:
                admission.settle(self.book, number, fresh[_IDS])
                self.drop(number, fresh[_IDS])

    def _count(self, number: int, told: Int64s, fresh: Int64s, looked_up: int) -> None:
        figures, bucket_rows = self.book.figures[number], int(self.book.params[number, BUCKET_ROWS])
        placed = fresh[:, fresh[_EXPIRED] == 0]
        unadmitted = int(told[_COUNTS].sum() - fresh[_COUNTS].sum())
        gone = int((placed[_EVICTED] != EMPTY).sum())
        figures[SIZE] += placed.shape[1] - gone
        figures[INSERTS] += fresh.shape[1]
        figures[EVICTIONS] += gone + fresh.shape[1] - placed.shape[1]
        figures[COLLISIONS] += int((placed[_ROWS] % bucket_rows != start_rows(placed[_IDS], bucket_rows - 1)).sum())
        figures[UNADMITTED] += unadmitted
        figures[HITS] += looked_up - fresh.shape[1] - unadmitted

    def _refuse_first(self, ids: Mapping[int, Tensor], values: Tensor, starts: list[int]) -> None:
        """Refuse ids outside their table, before a kernel reads or writes there."""
        bad = {number: self._outside(number, held) for number, held in ids.items()}
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
