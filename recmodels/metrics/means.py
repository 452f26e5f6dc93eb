"""Evaluation metrics that are a mean, of rows or of batches."""

import abc

import numpy as np
import numpy.typing as npt

from recmodels.errors import ModelConfigError
from recmodels.metrics.base import Rows


class Average(abc.ABC):
    """The mean of figures that `update` adds, as their sum and number; NaN without any."""

    def __init__(self) -> None:
        self.reset()

    @abc.abstractmethod
    def update(self, rows: Rows) -> None:
        """Add the figures of a batch to `_sums`."""

    def compute(self) -> float:
        total, count = self._sums
        return float(total / count) if count else float("nan")

    def reset(self) -> None:
        self._sums = np.zeros(2)

    def state(self) -> dict[str, np.ndarray]:
        return {"sums": self._sums.copy()}

    def merge(self, state: dict[str, np.ndarray]) -> None:
        self._sums += state["sums"]


class MeanMetric(Average):
    """The mean of a figure that each row has."""

    @abc.abstractmethod
    def per_row(self, rows: Rows) -> npt.NDArray[np.float64]:
        """The figure of each row, (n,)."""

    def update(self, rows: Rows) -> None:
        figures = self.per_row(rows)
        self._sums += (figures.sum(), len(figures))


class MeanAbsoluteError(MeanMetric):
    """Mean of |prediction - label|."""

    def per_row(self, rows: Rows) -> npt.NDArray[np.float64]:
        return np.abs(rows.prediction.astype(np.float64) - rows.label.astype(np.float64))


class MeanSquaredError(MeanMetric):
    """Mean of (prediction - label) squared."""

    def per_row(self, rows: Rows) -> npt.NDArray[np.float64]:
        return np.square(rows.prediction.astype(np.float64) - rows.label.astype(np.float64))


class Accuracy(MeanMetric):
    """Share of rows predicted right: probability >= threshold, or label among the `top_k` likeliest classes."""

    def __init__(self, *, threshold: float = 0.5, top_k: int = 1) -> None:
        super().__init__()
        if top_k < 1:
            raise ModelConfigError(f"top_k of accuracy must be at least 1, got {top_k}")
        self._threshold, self._top_k = threshold, top_k

    def per_row(self, rows: Rows) -> npt.NDArray[np.float64]:
        if rows.prediction.ndim == 1:
            return np.asarray((rows.prediction >= self._threshold) == (rows.label > 0), np.float64)
        best = np.argsort(-rows.prediction, axis=1, kind="stable")[:, : self._top_k]
        return np.asarray((best == rows.label[:, None]).any(axis=1), np.float64)
