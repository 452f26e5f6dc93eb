"""Where the rows themselves are: views of the weights and optimizer state that TorchRec's fused kernels train."""

# ruff: noqa: SLF001  (TorchRec keeps its lookups and fused kernels private)

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from numba import njit

from recmodels.initializers import RowInit, draw_row, draw_rows, table_key
from recmodels.zch.arena import Int64s, Shard

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """A table shard's weight [n, D] and optimizer columns ([n] or [n, D]).

    `fresh` is what new state starts from; `wholes` are the arrays, of all tables of a kernel, that the columns are of.
    """

    weight: Array
    state: Mapping[str, Array]
    wholes: Mapping[str, Array]
    fresh: Mapping[str, float]
    init: RowInit
    key: int

    def reset(self, rows: Int64s, ids: Int64s) -> None:
        """Draw the first weights of these ids anew, and start their optimizer state afresh."""
        self.weight[rows] = draw_rows(self.init, self.key, ids, self.weight.shape[1])
        self.reset_state(rows)

    def zero(self, rows: Int64s) -> None:
        """Make these rows zero, with fresh optimizer state."""
        self.weight[rows] = 0
        self.reset_state(rows)

    def reset_state(self, rows: Int64s) -> None:
        for name, column in self.state.items():
            column[rows] = self.fresh[name]


def memories(shards: tuple[Shard, ...], lookup: Any, seed: int) -> tuple[Memory, ...]:
    """The memory of each shard behind one of TorchRec's lookups."""
    found = {}
    for name, tensors in table_tensors(lookup):
        columns: dict[str, Array] = {column: tensor.numpy() for column, tensor in tensors.items()}
        weight = columns.pop("weight")
        found[name] = Memory(
            weight=weight,
            state=columns,
            wholes={column: _whole(tensor) for column, tensor in tensors.items()},
            fresh={column: float(held.flat[0]) if held.size else 0.0 for column, held in columns.items()},
            init=next(shard.table.init for shard in shards if shard.table.name == name),
            key=table_key(seed, name),
        )
    return tuple(found[shard.table.name] for shard in shards)


def table_tensors(lookup: Any) -> Iterator[tuple[str, dict[str, torch.Tensor]]]:
    """Each table behind one of TorchRec's lookups: "weight" [n, D], then "momentum1" ... ([n] or [n, D]), as views."""
    for module in lookup._emb_modules:
        kernel = module._emb_module
        weights = kernel.split_embedding_weights()
        states = kernel.split_optimizer_states()
        for at, config in enumerate(module._config.embedding_tables):
            momenta = {f"momentum{k + 1}": tensor for k, tensor in enumerate(states[at] if states else ())}
            tensors = {"weight": weights[at], **momenta}
            yield config.name, {name: _shaped(tensor.detach(), config) for name, tensor in tensors.items()}


def _shaped(tensor: torch.Tensor, config: Any) -> torch.Tensor:
    if tensor.numel() == config.local_rows and tensor.dim() == 1:
        return tensor
    return tensor.view(config.local_rows, config.local_cols)


def _whole(tensor: torch.Tensor) -> Array:
    return np.asarray(torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage()).numpy())


class FreshRows:
    """Resets rows of all tables of a lookup, one call per fused kernel where its memory is float32, else per table."""

    def __init__(self, memories: tuple[Memory, ...]) -> None:
        self._memories = memories
        fast: dict[int, list[int]] = {}
        slow = []
        for number, memory in enumerate(memories):
            if _is_fast(memory):
                fast.setdefault(memory.wholes["weight"].ctypes.data, []).append(number)
            else:
                slow.append(number)
        self._slow = tuple(slow)
        self._fast = tuple(_Flat(memories, numbers) for numbers in fast.values())

    def reset(self, tables: Int64s, rows: Int64s, ids: Int64s) -> None:
        """Start each listed (table, row) afresh for its id."""
        for flat in self._fast:
            _reset_rows(tables, rows, ids, flat.weights, flat.states, flat.places, flat.draws)
        for number in self._slow:
            mine = tables == number
            if mine.any():
                self._memories[number].reset(rows[mine], ids[mine])


class _Flat:
    """The tables that one fused kernel keeps in one float32 array, and the state that belongs to them in another."""

    def __init__(self, memories: tuple[Memory, ...], numbers: list[int]) -> None:
        first = memories[numbers[0]]
        self.weights = first.wholes["weight"]
        self.states = next((first.wholes[name] for name in first.state), np.empty(0, np.float32))
        self.places = np.full((len(memories), 5), -1, np.int64)
        self.draws = np.zeros((len(memories), 4), np.float64)
        for number in numbers:
            memory, init = memories[number], memories[number].init
            column = next(iter(memory.state.values()), None)
            self.places[number] = (
                _offset(memory.weight, self.weights),
                memory.weight.shape[1],
                0 if column is None else _offset(column, self.states),
                0 if column is None else column.size // max(1, len(column)),
                memory.key,
            )
            self.draws[number] = init.kind, init.a, init.b, next(iter(memory.fresh.values()), 0.0)


@njit(cache=True, nogil=True)
def _reset_rows(tables, rows, ids, weights, states, places, draws):  # type: ignore[no-untyped-def]
    for i in range(tables.size):
        place, draw = places[tables[i]], draws[tables[i]]
        if place[0] < 0:
            continue
        dim, width = place[1], place[3]
        draw_row(weights, place[0] + rows[i] * dim, dim, np.int64(draw[0]), draw[1], draw[2], place[4], ids[i])
        at = place[2] + rows[i] * width
        for j in range(width):
            states[at + j] = draw[3]


def _is_fast(memory: Memory) -> bool:
    columns = [memory.weight, *memory.state.values()]
    plain = all(column.dtype == np.float32 and column.flags.c_contiguous and len(column) for column in columns)
    return plain and len(columns) <= 2


def _offset(column: Array, storage: Array) -> int:
    return (column.ctypes.data - storage.ctypes.data) // 4
