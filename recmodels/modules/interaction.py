"""Interactions between fields: widths that must agree, and pairwise inner products."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from recmodels.errors import ModelConfigError


def equal_width(dims: Sequence[int], *, group: str) -> int:
    """The one width of the features of a group whose features are multiplied with each other."""
    if len(set(dims)) != 1:
        raise ModelConfigError(
            f"feature group {group!r} needs features of equal embedding_dim for interactions, got widths {list(dims)}"
        )
    return dims[0]


class PairwiseProducts(nn.Module):
    """Inner products of all pairs of fields, in row-major order. (B, N, D) -> (B, N(N-1)/2).

    Source: Naumov et al., Deep Learning Recommendation Model for Personalization and Recommendation Systems, 2019.
    """

    def __init__(self, fields: int) -> None:
        super().__init__()
        self._fields = fields

    def forward(self, fields: Tensor) -> Tensor:
        products = torch.bmm(fields, fields.transpose(1, 2))
        # Not a buffer: compiled models swap all constants that they hold, and this one is in no state dict.
        pairs = torch.triu_indices(self._fields, self._fields, offset=1, device=fields.device)
        return products[:, pairs[0], pairs[1]]
