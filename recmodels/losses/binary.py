"""Losses on one logit per row: binary cross entropy and its focal form."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from recmodels.errors import ModelConfigError


def _one_logit(output: Tensor, suffix: str) -> dict[str, Tensor]:
    logits = output.squeeze(1)
    return {f"logits{suffix}": logits, f"probs{suffix}": torch.sigmoid(logits)}


@dataclass(frozen=True, kw_only=True, slots=True)
class BinaryCrossEntropy:
    """Binary cross entropy of labels pulled towards one half: `y(1-e) + e/2`. Predicts logits and probs, (B,)."""

    label_smoothing: float = 0.0
    name: str = "binary_cross_entropy"
    session: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.label_smoothing < 1:
            raise ModelConfigError(f"label_smoothing must lie in [0, 1), got {self.label_smoothing}")

    def predictions(self, output: Tensor, suffix: str) -> dict[str, Tensor]:
        return _one_logit(output, suffix)

    def per_row(self, predictions: Mapping[str, Tensor], label: Tensor, session: Tensor | None, suffix: str) -> Tensor:
        target = label.to(torch.float32)
        if self.label_smoothing:
            target = target * (1 - self.label_smoothing) + 0.5 * self.label_smoothing
        return F.binary_cross_entropy_with_logits(predictions[f"logits{suffix}"], target, reduction="none")


@dataclass(frozen=True, kw_only=True, slots=True)
class BinaryFocal:
    """Binary cross entropy weighted by `a y (1-p)^g + (1-a)(1-y) p^g`, a weight without gradient.

    Source: Lin et al., Focal Loss for Dense Object Detection, 2017, equation 5.
    """

    gamma: float = 2.0
    alpha: float = 0.5
    name: str = "binary_focal_loss"
    session: str | None = None

    def __post_init__(self) -> None:
        if self.gamma < 0 or not 0 < self.alpha < 1:
            raise ModelConfigError(
                f"binary_focal_loss needs gamma >= 0 and 0 < alpha < 1, got gamma {self.gamma}, alpha {self.alpha}"
            )

    def predictions(self, output: Tensor, suffix: str) -> dict[str, Tensor]:
        return _one_logit(output, suffix)

    def per_row(self, predictions: Mapping[str, Tensor], label: Tensor, session: Tensor | None, suffix: str) -> Tensor:
        logits, target = predictions[f"logits{suffix}"], label.to(torch.float32)
        p = torch.sigmoid(logits.detach())
        weight = self.alpha * target * (1 - p) ** self.gamma + (1 - self.alpha) * (1 - target) * p**self.gamma
        return F.binary_cross_entropy_with_logits(logits, target, weight=weight, reduction="none")
