"""The rows of one table shard on a device: weights and optimizer state read, written, zeroed and drawn anew."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from checkpointer.rows import Column
from recmodels.initializers import RowInit, draw_rows, table_key
from recmodels.zch.arena import Int64s, Shard
from recmodels.zch.memory import table_tensors
from recmodels.zch.transfers import to_device, to_host

_AT_ONCE = 1 << 18
"""Rows that travel together: a copy of a whole table beside it may be more than the device has room for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceMemory:
    """A table shard's weight [n, D] and optimizer columns ([n] or [n, D]); `fresh` is what new state starts from."""

    weight: Tensor
    state: Mapping[str, Tensor]
    fresh: Mapping[str, float]
    init: RowInit
    key: int

    def read(self, rows: Int64s) -> dict[str, Column]:
        """Copies of "weight" and the optimizer state of these rows."""
        found: dict[str, list[Column]] = {name: [] for name in ("weight", *self.state)}
        for part in _parts(rows) or [slice(0, 0)]:
            at = to_device(rows[part], self.weight.device)
            for name, column in {"weight": self.weight, **self.state}.items():
                found[name].append(to_host(column.index_select(0, at)))
        return {name: parts[0] if len(parts) == 1 else np.concatenate(parts) for name, parts in found.items()}

    def write(self, rows: Int64s, columns: Mapping[str, Column]) -> None:
        """Write "weight" and all of the optimizer state of these rows."""
        for part in _parts(rows):
            at = to_device(rows[part], self.weight.device)
            for name, column in {"weight": self.weight, **self.state}.items():
                column[at] = to_device(columns[name][part], column.device).to(column.dtype)

    def reset(self, rows: Int64s, ids: Int64s) -> None:
        """Draw the first weights of these ids anew, on the host and so the same as there, and fresh optimizer state."""
        for part in _parts(rows):
            at = to_device(rows[part], self.weight.device)
            drawn = draw_rows(self.init, self.key, ids[part], self.weight.shape[1])
            self.weight[at] = to_device(drawn, self.weight.device).to(self.weight.dtype)
            self._reset_state(at)

    def zero(self, rows: Tensor) -> None:
        """Make these rows zero, with fresh optimizer state."""
        self.weight.index_fill_(0, rows, 0)
        self._reset_state(rows)

    def zero_all(self) -> None:
        """Make every row zero, with fresh optimizer state."""
        self.weight.zero_()
        for name, column in self.state.items():
            column.fill_(self.fresh[name])

    def _reset_state(self, rows: Tensor) -> None:
        for name, column in self.state.items():
            column.index_fill_(0, rows, self.fresh[name])


def device_memories(shards: tuple[Shard, ...], lookup: Any, seed: int) -> tuple[DeviceMemory, ...]:
    """The memory of each shard behind one of TorchRec's lookups."""
    found = {}
    for name, tensors in table_tensors(lookup):
        weight = tensors.pop("weight")
        found[name] = DeviceMemory(
            weight=weight,
            state=tensors,
            fresh={column: _first(held) for column, held in tensors.items()},
            init=next(shard.table.init for shard in shards if shard.table.name == name),
            key=table_key(seed, name),
        )
    return tuple(found[shard.table.name] for shard in shards)


def _parts(rows: Int64s) -> list[slice]:
    return [slice(start, start + _AT_ONCE) for start in range(0, len(rows), _AT_ONCE)]


def _first(column: Tensor) -> float:
    return float(column.flatten()[0]) if column.numel() else 0.0


def all_rows(rows: int) -> Int64s:
    """Row numbers from 0."""
    return np.arange(rows, dtype=np.int64)


def reserved_rows(rows: int, bucket_rows: int, device: torch.device) -> Tensor:
    """The last row of each bucket."""
    return torch.arange(bucket_rows - 1, rows, bucket_rows, device=device)
