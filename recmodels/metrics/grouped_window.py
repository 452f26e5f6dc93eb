"""Grouped AUC over the latest rows of a stream."""

import numpy as np
import numpy.typing as npt

from recmodels.metrics.base import Floats, Ints, Labels
from recmodels.metrics.ranking import group_aucs

State = dict[str, np.ndarray]


class GroupedWindow:
    """The exact grouped AUC over the last `capacity` rows, 13 bytes each.

    >>> window = GroupedWindow(capacity=4)
    >>> window.update(np.array([0.2, 0.7], np.float32), np.array([0, 1]), np.array([8, 8]))
    >>> window.value()
    1.0
    """

    def __init__(self, *, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity of a grouped window must be at least 1 row, got {capacity}")
        self._capacity = capacity
        self._scores: npt.NDArray[np.float32] = np.empty(0, np.float32)
        self._labels: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self._groups: Ints = np.empty(0, np.int64)
        self._parts: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8], Ints]] = []
        self._pending = 0

    def update(self, score: Floats, label: Labels, group: Ints) -> None:
        """Add rows in order; the oldest beyond the capacity are forgotten."""
        kept = slice(-self._capacity, None)
        part = (score[kept].astype(np.float32), (label[kept] > 0).astype(np.uint8), group[kept].astype(np.int64))
        self._parts.append(part)
        self._pending += len(part[0])
        # Joining at every step would copy the whole window for a handful of rows.
        if self._pending >= self._capacity:
            self._join()

    def value(self) -> float:
        """Unweighted mean of the AUC of each group that holds both classes; NaN if there is none."""
        self._join()
        aucs = group_aucs(self._scores, self._labels, self._groups)
        return float(aucs.mean()) if len(aucs) else float("nan")

    def state(self) -> State:
        self._join()
        return {"scores": self._scores.copy(), "labels": self._labels.copy(), "groups": self._groups.copy()}

    def load(self, state: State) -> None:
        """Replace everything by a saved state, of which the newest rows are kept if it is larger."""
        self._parts, self._pending = [], 0
        kept = slice(-self._capacity, None)
        self._scores = state["scores"][kept].astype(np.float32)
        self._labels = state["labels"][kept].astype(np.uint8)
        self._groups = state["groups"][kept].astype(np.int64)

    def _join(self) -> None:
        if not self._parts:
            return
        kept = slice(-self._capacity, None)
        self._scores = np.concatenate([self._scores, *(part[0] for part in self._parts)])[kept]
        self._labels = np.concatenate([self._labels, *(part[1] for part in self._parts)])[kept]
        self._groups = np.concatenate([self._groups, *(part[2] for part in self._parts)])[kept]
        self._parts, self._pending = [], 0
