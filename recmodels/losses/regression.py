"""Squared error on one output per row."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class SquaredError:
    """Squared error. Predicts y, (B,)."""

    name: str = "l2_loss"
    session: str | None = None

    def predictions(self, output: Tensor, suffix: str) -> dict[str, Tensor]:
        return {f"y{suffix}": output.squeeze(1)}

    def per_row(self, predictions: Mapping[str, Tensor], label: Tensor, session: Tensor | None, suffix: str) -> Tensor:
        return (predictions[f"y{suffix}"] - label.to(torch.float32)).square()
