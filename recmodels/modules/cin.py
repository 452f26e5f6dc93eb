"""Compressed interactions: vector-wise feature crosses of growing order."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class CompressedInteractions(nn.Module):
    """Per layer, all products with the input fields, compressed to `sizes[k]` fields. (B, N, D) -> (B, sum of sizes).

    Source: Lian et al., xDeepFM, 2018, equations 6 to 8, with a bias and without an activation.
    """

    def __init__(self, fields: int, sizes: Sequence[int]) -> None:
        super().__init__()
        self.out_features = sum(sizes)
        self.layers = nn.ModuleList(
            nn.Conv1d(fields * before, after, kernel_size=1)
            for before, after in zip((fields, *sizes[:-1]), sizes, strict=True)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        layer_in, sums = inputs, []
        for layer in self.layers:
            products = layer_in.unsqueeze(2) * inputs.unsqueeze(1)
            layer_in = layer(products.flatten(1, 2))
            sums.append(layer_in.sum(dim=2))
        return torch.cat(sums, dim=1)
