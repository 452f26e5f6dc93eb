"""Evaluation metrics of binary and multi-class probabilities."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from recmodels.errors import ModelConfigError
from recmodels.metrics.base import Rows
from recmodels.metrics.ranking import binned_auc


def score_histogram(score: npt.NDArray[np.floating], positive: npt.NDArray[np.bool_], thresholds: int) -> np.ndarray:
    """Negatives and positives counted by the highest of `thresholds` equal steps from 0 to 1 that the score reaches."""
    steps = np.linspace(0, 1, thresholds, dtype=np.float32)
    bins = np.clip(np.searchsorted(steps, score.astype(np.float32), side="right") - 1, 0, thresholds - 1)
    return np.bincount(bins + thresholds * positive, minlength=2 * thresholds).reshape(2, thresholds)


@dataclass(kw_only=True, slots=True)
class Auc:
    """AUC with scores rounded down to one of `thresholds` equal steps from 0 to 1, ties counting one half."""

    thresholds: int = 200
    _counts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        if self.thresholds < 2:
            raise ModelConfigError(f"auc needs at least 2 thresholds, got {self.thresholds}")
        self.reset()

    def update(self, rows: Rows) -> None:
        self._counts += score_histogram(rows.prediction, rows.label > 0, self.thresholds)

    def compute(self) -> float:
        return binned_auc(self._counts[1], self._counts[0])

    def reset(self) -> None:
        self._counts = np.zeros((2, self.thresholds), np.int64)

    def state(self) -> dict[str, np.ndarray]:
        return {"counts": self._counts.copy()}

    def merge(self, state: dict[str, np.ndarray]) -> None:
        self._counts += state["counts"]


@dataclass(kw_only=True, slots=True)
class MulticlassAuc:
    """One-against-the-rest AUC of each class, averaged over classes (macro) or by their rows (weighted).

    Classes without both kinds of rows are left out.
    """

    classes: int
    thresholds: int = 200
    average: str = "macro"
    _counts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        if self.average not in ("macro", "weighted"):
            raise ModelConfigError(f"average of multiclass_auc must be macro or weighted, got {self.average!r}")
        self.reset()

    def update(self, rows: Rows) -> None:
        for index in range(self.classes):
            self._counts[index] += score_histogram(rows.prediction[:, index], rows.label == index, self.thresholds)

    def compute(self) -> float:
        aucs = np.array([binned_auc(positives, negatives) for negatives, positives in self._counts])
        weight = self._counts[:, 1].sum(axis=1) if self.average == "weighted" else np.ones(self.classes)
        known = ~np.isnan(aucs)
        return float(np.average(aucs[known], weights=weight[known])) if known.any() else float("nan")

    def reset(self) -> None:
        self._counts = np.zeros((self.classes, 2, self.thresholds), np.int64)

    def state(self) -> dict[str, np.ndarray]:
        return {"counts": self._counts.copy()}

    def merge(self, state: dict[str, np.ndarray]) -> None:
        self._counts += state["counts"]


@dataclass(kw_only=True, slots=True)
class NormalizedEntropy:
    """Log loss over that of predicting the mean rate for every row; `eta` keeps logarithms finite.

    Source: He et al., Practical Lessons from Predicting Clicks on Ads at Facebook, 2014, equation 2.
    """

    eta: float = 1e-12
    _sums: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.reset()

    def update(self, rows: Rows) -> None:
        label = rows.label.astype(np.float64)
        prob = np.clip(rows.prediction.astype(np.float64), self.eta, 1 - self.eta)
        loss = -(label * np.log(prob) + (1 - label) * np.log1p(-prob)).sum()
        self._sums += (len(label), label.sum(), loss)

    def compute(self) -> float:
        rows, positives, loss = self._sums
        if rows == 0:
            return float("nan")
        rate = np.clip(positives / rows, self.eta, 1 - self.eta)
        return float(loss / -(positives * np.log(rate) + (rows - positives) * np.log1p(-rate)))

    def reset(self) -> None:
        self._sums = np.zeros(3)

    def state(self) -> dict[str, np.ndarray]:
        return {"sums": self._sums.copy()}

    def merge(self, state: dict[str, np.ndarray]) -> None:
        self._sums += state["sums"]
