"""What every loss offers to a model."""

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor


class Loss(Protocol):
    """One configured loss. `suffix` tells the towers of a multi-task model apart: "" or "_<tower>"."""

    @property
    def name(self) -> str:
        """Its field name in `LossConfig`."""

    @property
    def session(self) -> str | None:
        """The sparse feature whose first value groups rows into sessions, if it needs one."""

    def predictions(self, output: Tensor, suffix: str) -> dict[str, Tensor]:
        """Named predictions from the model's last layer, (B, num_class)."""

    def per_row(self, predictions: Mapping[str, Tensor], label: Tensor, session: Tensor | None, suffix: str) -> Tensor:
        """The loss of each row, (B,)."""


def weighted_mean(per_row: Tensor, weight: Tensor | None) -> Tensor:
    """Mean over rows, each counting weight / mean(weight); zero, with a gradient of zeros, for an empty batch.

    Weights whose mean is zero count as zero.
    """
    rows = max(per_row.shape[0], 1)
    if weight is None:
        return per_row.sum() / rows
    weight = weight.to(per_row.dtype)
    mean = weight.sum() / rows
    scale = torch.where(mean == 0, torch.zeros_like(mean), 1 / torch.where(mean == 0, torch.ones_like(mean), mean))
    return (per_row * weight * scale).sum() / rows
