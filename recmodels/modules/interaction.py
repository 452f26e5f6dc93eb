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
        pairs = torch.triu_indices(fields, fields, offset=1)
        # Constants of the graph, not state: a checkpoint has no business with them.
        self.register_buffer("_rows", pairs[0], persistent=False)
        self.register_buffer("_columns", pairs[1], persistent=False)
        self._rows: Tensor
        self._columns: Tensor

    def forward(self, fields: Tensor) -> Tensor:
        products = torch.bmm(fields, fields.transpose(1, 2))
        return products[:, self._rows, self._columns]
