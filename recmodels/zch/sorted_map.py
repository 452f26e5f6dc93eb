"""TorchRec's sorted map (LFU, LRU, DistanceLFU) behind one shard, with what it takes to commit and restore it.

Ids are admitted and evicted every `eviction_interval` batches, from the history of those batches; a batch without ids
of the table does not count. The last row is reserved.
"""

# ruff: noqa: SLF001  (TorchRec keeps the map's history private, and would not save it)

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torchrec.modules.mc_modules import (
    DistanceLFU_EvictionPolicy,
    LFU_EvictionPolicy,
    LRU_EvictionPolicy,
    MCHEvictionPolicy,
    MCHManagedCollisionModule,
)
from torchrec.sparse.jagged_tensor import JaggedTensor

from checkpointer.rows import no_ids
from features.spec import ZchSpec
from recmodels.zch.arena import EMPTY, Int64s

_FREE = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What a batch did to the map: rows given to new ids, the ids that lost them, and all rows whose record changed."""

    fresh_rows: Int64s = field(default_factory=no_ids)
    fresh_ids: Int64s = field(default_factory=no_ids)
    gone: Int64s = field(default_factory=no_ids)
    changed: Int64s = field(default_factory=no_ids)


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """Ids seen since the last admission: how often, and in which batch last."""

    ids: Int64s
    counts: Int64s
    last_iter: Int64s


class SortedMap:
    """Raw ids to the rows [0, rows - 1) of a shard; `ids` is the inverse, -1 where a row is free."""

    def __init__(self, spec: ZchSpec, rows: int) -> None:
        self._spec = spec
        self._map = MCHManagedCollisionModule(
            zch_size=rows,
            device=torch.device("cpu"),
            eviction_policy=_policy(spec),
            eviction_interval=spec.eviction_interval,
        )
        self.ids: Int64s = np.full(rows, EMPTY, np.int64)
        self._records: dict[str, Int64s] = {}
        self.restore(no_ids(), no_ids(), {}, 0, History(ids=no_ids(), counts=no_ids(), last_iter=no_ids()))

    @property
    def iteration(self) -> int:
        """Batches counted so far."""
        return int(self._map._current_iter)

    @property
    def record_names(self) -> tuple[str, ...]:
        """What the policy keeps of each row."""
        return tuple(self._records)

    def find(self, ids: Int64s) -> Int64s:
        """The row of each id; the reserved one for those that have none."""
        found = self._map.remap({"": _jagged(ids)})[""].values()
        return np.asarray(found.numpy())

    def write(self, ids: Int64s) -> Change:
        """Count one batch; admit and evict when the interval is over."""
        self._grow(len(ids))
        due = self._map._current_iter + 1 - self._map._last_eviction_iter == self._spec.eviction_interval
        self._map.profile({"": _jagged(ids)})
        if not due:
            return Change()
        self._map.evict()
        return self._changed()

    def record(self, rows: Int64s) -> dict[str, Int64s]:
        """What the policy keeps of these rows, and the iteration at which it stands."""
        columns = {name: held[rows] for name, held in self._records.items()}
        return {**columns, "iter": np.full(len(rows), self.iteration, np.int64)}

    def history(self) -> History:
        """The ids since the last admission, ascending."""
        end = self._map._current_history_buffer_offset
        if not end:
            return History(ids=no_ids(), counts=no_ids(), last_iter=no_ids())
        seen = self._map._history_accumulator[:end].numpy()
        ids, inverse, counts = np.unique(seen, return_inverse=True, return_counts=True)
        last = np.zeros(len(ids), np.int64)
        for buffer in self._map._history_metadata.values():
            np.maximum.at(last, inverse, buffer[:end].numpy())
        return History(ids=ids, counts=counts.astype(np.int64), last_iter=last)

    def restore(
        self, ids: Int64s, rows: Int64s, records: Mapping[str, Int64s], iteration: int, history: History
    ) -> None:
        """Become the map that has these ids in these rows."""
        size = len(self.ids)
        self.ids[:] = EMPTY
        self.ids[rows] = ids
        raw = np.where(self.ids == EMPTY, _FREE, self.ids)
        order = np.argsort(raw, kind="stable")
        self._map._mch_sorted_raw_ids.copy_(torch.from_numpy(raw[order]))
        self._map._mch_remapped_ids_mapping.copy_(torch.from_numpy(order))
        for name, buffer in self._map._mch_metadata.items():
            by_row = np.zeros(size, np.int64)
            if len(rows):
                by_row[rows] = records[name]
            self._records[name] = by_row
            buffer.copy_(torch.from_numpy(by_row[order]))
        self._map._current_iter = iteration
        self._map._last_eviction_iter = iteration - iteration % self._spec.eviction_interval
        self._map._current_history_buffer_offset = 0
        self._refill(history)

    def scores(self, records: Mapping[str, Int64s], iteration: int) -> np.ndarray:
        """By which rows stay when there are too many; higher ones do."""
        counts = records.get("counts", np.ones(1)).astype(np.float64)
        distance = 1.0 + iteration - records["last_access_iter"] if "last_access_iter" in records else np.ones(1)
        return np.asarray(counts / np.power(distance, self._spec.decay_exponent))

    def _changed(self) -> Change:
        order = self._map._mch_remapped_ids_mapping.numpy()
        raw = self._map._mch_sorted_raw_ids.numpy()
        ids = np.empty_like(self.ids)
        ids[order] = np.where(raw == _FREE, EMPTY, raw)
        moved = ids != self.ids
        changed = moved.copy()
        for name, buffer in self._map._mch_metadata.items():
            by_row = np.empty_like(ids)
            by_row[order] = buffer.numpy()
            changed |= (by_row != self._records[name]) & (ids != EMPTY)
            self._records[name] = by_row
        gone = self.ids[moved]
        self.ids[:] = ids
        if not changed.any():
            # The iteration is committed with rows: one of them has to carry it.
            changed[np.flatnonzero(ids != EMPTY)[:1]] = True
        fresh = np.flatnonzero(moved)
        return Change(fresh_rows=fresh, fresh_ids=ids[fresh], gone=gone[gone != EMPTY], changed=np.flatnonzero(changed))

    def _grow(self, more: int) -> None:
        """TorchRec sizes its history by the first batch, and drops what a larger one has beyond that."""
        needed = self._map._current_history_buffer_offset + more
        if needed <= self._map._input_history_buffer_size:
            return
        if self._map._input_history_buffer_size < 0:
            self._map._init_history_buffers({"": _jagged(no_ids())})
        size = max(needed, 2 * self._map._input_history_buffer_size)
        self._map._history_accumulator = _grown(self._map._history_accumulator, size)
        for name, buffer in self._map._history_metadata.items():
            grown = _grown(buffer, size)
            self._map._history_metadata[name] = grown
            setattr(self._map, f"_history_{name}", grown)
        self._map._input_history_buffer_size = size

    def _refill(self, history: History) -> None:
        seen = np.repeat(history.ids, history.counts)
        self._grow(len(seen))
        self._map._history_accumulator[: len(seen)] = torch.from_numpy(seen)
        for buffer in self._map._history_metadata.values():
            buffer[: len(seen)] = torch.from_numpy(np.repeat(history.last_iter, history.counts))
        self._map._current_history_buffer_offset = len(seen)


def _policy(spec: ZchSpec) -> MCHEvictionPolicy:
    if spec.policy == "lfu":
        return LFU_EvictionPolicy()
    if spec.policy == "lru":
        return LRU_EvictionPolicy(decay_exponent=spec.decay_exponent)
    return DistanceLFU_EvictionPolicy(decay_exponent=spec.decay_exponent)


def _jagged(ids: Int64s) -> JaggedTensor:
    return JaggedTensor(values=torch.from_numpy(ids), lengths=torch.tensor([len(ids)]))


def _grown(buffer: torch.Tensor, size: int) -> torch.Tensor:
    grown = torch.zeros(size, dtype=buffer.dtype)
    grown[: len(buffer)] = buffer
    return grown
