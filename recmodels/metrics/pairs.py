"""Evaluation metrics over rows or pairs of rows, which keep the rows until they are computed."""

import abc

import numpy as np
import numpy.typing as npt

from recmodels.errors import ModelConfigError
from recmodels.metrics.base import Floats, Labels, Rows
from recmodels.metrics.means import Average
from recmodels.metrics.ranking import group_aucs

_SEED = 0


class RowsMetric(abc.ABC):
    """A metric that needs all rows at once: 20 bytes each, so for bounded evaluations only."""

    def __init__(self) -> None:
        self.reset()

    @abc.abstractmethod
    def of(self, prediction: Floats, label: Labels, group: npt.NDArray[np.int64]) -> float:
        """The figure over all rows, (n,) each; group ids are 0 where none were given."""

    def update(self, rows: Rows) -> None:
        group = np.zeros(len(rows.label), np.int64) if rows.group is None else rows.group
        self._parts.append((rows.prediction.astype(np.float32), rows.label.astype(np.float64), group))

    def compute(self) -> float:
        state = self.state()
        return self.of(state["prediction"], state["label"], state["group"])

    def reset(self) -> None:
        empty = (np.empty(0, np.float32), np.empty(0), np.empty(0, np.int64))
        self._parts: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float64], npt.NDArray[np.int64]]] = [empty]

    def state(self) -> dict[str, np.ndarray]:
        prediction, label, group = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        return {"prediction": prediction, "label": label, "group": group}

    def merge(self, state: dict[str, np.ndarray]) -> None:
        self._parts.append((state["prediction"], state["label"], state["group"]))


class GroupedAuc(RowsMetric):
    """Unweighted mean of the exact AUC of each group that holds both classes."""

    def of(self, prediction: Floats, label: Labels, group: npt.NDArray[np.int64]) -> float:
        aucs = group_aucs(prediction, label, group)
        return float(aucs.mean()) if len(aucs) else float("nan")


class XAuc(RowsMetric):
    """Share of random pairs of rows ordered by prediction as by label; ties count as wrong.

    `sample_ratio` of all pairs are drawn, without repetition, at most `max_pairs` if that is not 0.
    """

    def __init__(self, *, sample_ratio: float = 1e-3, max_pairs: int = 0) -> None:
        super().__init__()
        if not 0 < sample_ratio <= 1:
            raise ModelConfigError(f"sample_ratio of xauc must lie in (0, 1], got {sample_ratio}")
        self._sample_ratio, self._max_pairs = sample_ratio, max_pairs

    def of(self, prediction: Floats, label: Labels, group: npt.NDArray[np.int64]) -> float:
        pairs = len(label) * (len(label) - 1) // 2
        wanted = min(max(1, int(pairs * self._sample_ratio)), pairs, self._max_pairs or pairs)
        return _ordered_share(prediction, label, wanted)


class InBatchXAuc(Average):
    """Share of ordered pairs among all pairs of a batch, averaged over batches of two rows or more."""

    def update(self, rows: Rows) -> None:
        if len(rows.label) > 1:
            pairs = len(rows.label) * (len(rows.label) - 1) // 2
            self._sums += (_ordered_share(rows.prediction, rows.label, pairs), 1)


class GroupedXAuc(RowsMetric):
    """Share of ordered pairs inside each group of two rows or more, averaged with the groups' sizes as weights."""

    def __init__(self, *, max_pairs_per_group: int = 100) -> None:
        super().__init__()
        if max_pairs_per_group < 1:
            raise ModelConfigError(f"max_pairs_per_group must be at least 1, got {max_pairs_per_group}")
        self._max_pairs = max_pairs_per_group

    def of(self, prediction: Floats, label: Labels, group: npt.NDArray[np.int64]) -> float:
        order = np.argsort(group, kind="stable")
        _, starts = np.unique(group[order], return_index=True)
        members = [rows for rows in np.split(order, starts[1:]) if len(rows) > 1]
        if not members:
            return float("nan")
        shares = [
            _ordered_share(prediction[rows], label[rows], min(self._max_pairs, len(rows) * (len(rows) - 1) // 2))
            for rows in members
        ]
        return float(np.average(shares, weights=[len(rows) for rows in members]))


def _ordered_share(prediction: Floats, label: Labels, wanted: int) -> float:
    """The share of `wanted` pairs, drawn without repetition from a fixed seed, that both sides order alike."""
    pairs = len(label) * (len(label) - 1) // 2
    if pairs == 0:
        return float("nan")
    drawn = (
        np.arange(pairs)
        if wanted == pairs
        else np.random.default_rng(_SEED).choice(pairs, size=wanted, replace=False, shuffle=False)
    )
    # Pair k of the lower triangle in row-major order is (row, k - row (row - 1) / 2) with row > column.
    row = ((1 + np.sqrt(1 + 8 * drawn.astype(np.float64))) / 2).astype(np.int64)
    row -= row * (row - 1) // 2 > drawn
    row += row * (row + 1) // 2 <= drawn
    column = drawn - row * (row - 1) // 2
    gap = (label[row] - label[column]) * (prediction[row] - prediction[column])
    return float((gap > 0).mean())
