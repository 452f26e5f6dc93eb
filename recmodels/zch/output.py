"""Sums row-wise partial results over ranks that have different numbers of rows, which gloo's collectives refuse."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torchrec.distributed.embedding_sharding import EmbeddingShardingContext
from torchrec.distributed.types import Awaitable, NoWait


class _SumToOwners(torch.autograd.Function):
    """(Σ rows, D) partial sums on every rank → (own rows, D) sums; gradients are averaged, as in TorchRec."""

    @staticmethod
    def forward(context: Any, partial: Tensor, rows: list[int], group: dist.ProcessGroup) -> Tensor:
        rank, world_size = dist.get_rank(group), dist.get_world_size(group)
        own = rows[rank]
        context.rows, context.group = rows, group
        received = partial.new_empty(world_size * own, partial.shape[1])
        dist.all_to_all_single(received, partial.contiguous(), [own] * world_size, rows, group=group)
        return received.view(world_size, own, partial.shape[1]).sum(0)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = gradients
        rows, world_size = context.rows, dist.get_world_size(context.group)
        own = len(gradient)
        whole = gradient.new_empty(sum(rows), gradient.shape[1])
        sent = (gradient / world_size).repeat(world_size, 1)
        dist.all_to_all_single(whole, sent, rows, [own] * world_size, group=context.group)
        return whole, None, None


class RowWiseOutput(nn.Module):
    """Takes the place of TorchRec's reduce-scatter, whose backward gathers tensors of one size."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        super().__init__()
        self._group = group

    def forward(self, partial: Tensor, context: EmbeddingShardingContext) -> Awaitable[Tensor]:
        rows = context.batch_size_per_rank
        summed: Tensor = _SumToOwners.apply(partial, rows, self._group)  # type: ignore[no-untyped-call]
        return NoWait(summed)
