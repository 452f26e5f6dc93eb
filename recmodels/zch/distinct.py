"""The distinct ids of a batch, found without waits for the device beyond those that the caller makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """A table's distinct ids, ascending, and how often each was looked up."""

    number: int
    ids: Tensor
    counts: Tensor


class Sorting:
    """Ids by table, sorted; `sizes` int64[tables] counts the distinct ones and is on the device."""

    def __init__(self, ids: Mapping[int, Tensor], device: torch.device) -> None:
        self._numbers = tuple(ids)
        self._lengths = [len(held) for held in ids.values()]
        values = torch.cat([torch.empty(0, dtype=torch.int64, device=device), *ids.values()])
        tables = torch.cat(
            [torch.full_like(held, at) for at, held in enumerate(ids.values())] or [torch.empty_like(values)]
        )
        by_id = torch.argsort(values, stable=True)
        order = by_id[torch.argsort(tables[by_id], stable=True)]
        self._values, tables = values[order], tables[order]
        first = torch.ones_like(order, dtype=torch.bool)
        first[1:] = (self._values[1:] != self._values[:-1]) | (tables[1:] != tables[:-1])
        self._place = first.cumsum(0) - 1
        self._inverse = torch.empty_like(order)
        self._inverse[order] = self._place
        self.sizes = torch.zeros(len(ids), dtype=torch.int64, device=device).index_add_(0, tables, first.long())

    def groups(self, sizes: Sequence[int]) -> list[Group]:
        """The distinct ids of each table, now that the host knows how many they are."""
        total = sum(sizes)
        ids = self._values.new_empty(total)
        ids[self._place] = self._values
        counts = torch.zeros_like(ids).index_add_(0, self._place, torch.ones_like(self._place))
        return [
            Group(number=number, ids=own, counts=counted)
            for number, own, counted in zip(
                self._numbers, torch.split(ids, list(sizes)), torch.split(counts, list(sizes)), strict=True
            )
        ]

    def spread(self, rows: Sequence[Tensor]) -> dict[int, Tensor]:
        """What was found for the ids of each group, for every lookup of the table's."""
        if not rows:
            return {}
        every = torch.cat(list(rows))[self._inverse]
        return dict(zip(self._numbers, torch.split(every, self._lengths), strict=True))


def set_positions(mask: Tensor, total: int) -> Tensor:
    """Where a mask is set, which is so often; `nonzero` would wait to find that out."""
    found = torch.empty(total + 1, dtype=torch.int64, device=mask.device)
    found[torch.where(mask, mask.cumsum(0) - 1, total)] = torch.arange(len(mask), device=mask.device)
    return found[:total]
