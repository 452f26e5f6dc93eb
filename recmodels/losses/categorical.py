"""Losses on several logits per row: softmax cross entropy, and its joint form with ranking inside sessions."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from recmodels.errors import ModelConfigError

# Large enough to vanish in a softmax, small enough to stay finite in float32 sums.
_MASKED = -1e9


def _classes(output: Tensor, suffix: str) -> dict[str, Tensor]:
    probs = torch.softmax(output, dim=1)
    named = {f"logits{suffix}": output, f"probs{suffix}": probs}
    if output.shape[1] == 2:
        named[f"probs1{suffix}"] = probs[:, 1]
    return named


@dataclass(frozen=True, kw_only=True, slots=True)
class SoftmaxCrossEntropy:
    """Cross entropy over classes. Predicts logits and probs (B, C), and probs1 (B,) for two classes."""

    label_smoothing: float = 0.0
    name: str = "softmax_cross_entropy"
    session: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.label_smoothing < 1:
            raise ModelConfigError(f"label_smoothing must lie in [0, 1), got {self.label_smoothing}")

    def predictions(self, output: Tensor, suffix: str) -> dict[str, Tensor]:
        return _classes(output, suffix)

    def per_row(self, predictions: Mapping[str, Tensor], label: Tensor, session: Tensor | None, suffix: str) -> Tensor:
        logits = predictions[f"logits{suffix}"]
        return F.cross_entropy(logits, label.long(), label_smoothing=self.label_smoothing, reduction="none")


@dataclass(frozen=True, kw_only=True, slots=True)
class JointRankingCalibration:
    """`a CE + (1-a) GE`: calibration by cross entropy, ranking by a softmax over the rows of one session.

    A positive row competes, by its positive logit, with the negatives of its session; a negative row, by its negative
    logit, with the positives. Source: Sheng et al., Joint Optimization of Ranking and Calibration with Contextualized
    Hybrid Model, 2023, equation 7.
    """

    session: str | None
    alpha: float = 0.5
    name: str = "jrc_loss"

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise ModelConfigError(f"alpha of jrc_loss must lie in [0, 1], got {self.alpha}")

    def predictions(self, output: Tensor, suffix: str) -> dict[str, Tensor]:
        return _classes(output, suffix)

    def per_row(self, predictions: Mapping[str, Tensor], label: Tensor, session: Tensor | None, suffix: str) -> Tensor:
        if session is None:
            raise ModelConfigError(f"jrc_loss needs the session feature {self.session!r} in the batch")
        logits, target = predictions[f"logits{suffix}"], label.long()
        calibration = F.cross_entropy(logits, target, reduction="none")
        return self.alpha * calibration + (1 - self.alpha) * _rank_in_session(logits, target, session)


def _rank_in_session(logits: Tensor, target: Tensor, session: Tensor) -> Tensor:
    """The generative term of each row: minus its log-softmax among itself and the other class of its session, (B,)."""
    rows = target.shape[0]
    own = torch.eye(rows, dtype=torch.bool, device=logits.device)
    rival = (session[:, None] == session[None, :]) & (target[:, None] != target[None, :])
    # Row i compares by the column of its own class.
    scores = torch.where(target[:, None] == 1, logits[None, :, 1], logits[None, :, 0])
    masked = scores.masked_fill(~(rival | own), _MASKED)
    return torch.logsumexp(masked, dim=1) - scores.diagonal()
