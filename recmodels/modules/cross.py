"""Explicit feature crosses of bounded degree."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn


class CrossNet(nn.Module):
    """Rank-one crosses: `x <- x0 (w . x) + b + x`, once per layer. (B, D) -> (B, D).

    Source: Wang et al., Deep & Cross Network for Ad Click Predictions, 2017, equation 3.
    """

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(layers, width))
        self.bias = nn.Parameter(torch.empty(layers, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for index in range(len(self.weight)):
            nn.init.xavier_uniform_(self.weight[index].unsqueeze(1))
        nn.init.zeros_(self.bias)

    def forward(self, inputs: Tensor) -> Tensor:
        crossed = inputs
        for weight, bias in self._layers():
            crossed = inputs * (crossed @ weight).unsqueeze(1) + bias + crossed
        return crossed

    def _layers(self) -> Iterator[tuple[Tensor, Tensor]]:
        return zip(self.weight.unbind(), self.bias.unbind(), strict=True)


class LowRankCrossNet(nn.Module):
    """Full crosses of low rank: `x <- x0 * (V U x + b) + x`, once per layer. (B, D) -> (B, D).

    Source: Wang et al., DCN V2: Improved Deep & Cross Network, 2021, equation 2, without a non-linearity.
    """

    def __init__(self, width: int, layers: int, rank: int) -> None:
        super().__init__()
        self.down = nn.ModuleList(nn.Linear(width, rank, bias=False) for _ in range(layers))
        self.up = nn.ModuleList(nn.Linear(rank, width) for _ in range(layers))

    def forward(self, inputs: Tensor) -> Tensor:
        crossed = inputs
        for down, up in zip(self.down, self.up, strict=True):
            crossed = inputs * up(down(crossed)) + crossed
        return crossed
