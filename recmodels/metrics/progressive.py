"""Progressive (prequential) metrics: every event is judged by the prediction made before it was trained on."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from recmodels.errors import StateError
from recmodels.metrics.base import Floats, Ints, Labels
from recmodels.metrics.grouped_window import GroupedWindow
from recmodels.metrics.ranking import binned_auc

BINS = 2000
LOW, HIGH = -12.0, 8.0
_WIDTH = (HIGH - LOW) / BINS
# Keeps the logit finite; float32 probabilities are never nearer to 1 than this unless they are 1.
_EDGE = 2.0**-26
_ADDED = ("all", "panes", "sums")
_GROUPED = "grouped."
State = dict[str, np.ndarray]


class ProgressiveMetrics:
    """AUC, log loss, normalised entropy and calibration of a stream: over all of it, and over a moving window.

    With `grouped_rows`, also the grouped AUC (`gauc_window`) over that many latest rows of each rank.

    Rows are counted by logit in bins of 0.01 from -12 to 8, so the AUC is exact up to ties inside a bin, the state is
    64 KB whatever the stream's length, and the states of ranks add up. The window is the pane being filled and the full
    one before it; a pane is `window_steps` updates, because steps, unlike rows, are the same on every rank.

    >>> metrics = ProgressiveMetrics(window_steps=100)
    >>> metrics.update(np.array([0.1, 0.4, 0.35, 0.8], np.float32), np.array([0, 0, 1, 1]))
    >>> metrics.values()["auc"]
    0.75
    """

    def __init__(self, *, window_steps: int = 1000, grouped_rows: int = 0) -> None:
        if window_steps < 1:
            raise ValueError(f"window_steps must be at least 1, got {window_steps}")
        self._grouped = GroupedWindow(capacity=grouped_rows) if grouped_rows else None
        self._window_steps = window_steps
        self._steps = 0
        self._all = np.zeros((2, BINS), np.int64)
        self._panes = np.zeros((2, 2, BINS), np.uint32)
        self._sums = np.zeros((3, len(_SUMS)), np.float64)

    def update(self, probability: Floats, label: Labels, group: Ints | None = None) -> None:
        """Count one step's rows: probabilities from before the update, labels > 0 for the positive class.

        Call it at every step, also without rows. A probability that is not a number is counted as `non_finite` only.
        Without `group` (ids of users, say), rows take no part in the grouped AUC.
        """
        if self._steps and self._steps % self._window_steps == 0:
            self._roll()
        self._steps += 1
        finite = np.isfinite(probability)
        prob, positive = probability[finite].astype(np.float64), label[finite] > 0
        clipped = np.clip(prob, _EDGE, 1 - _EDGE)
        logit = np.log(clipped) - np.log1p(-clipped)
        bins = np.clip((logit - LOW) / _WIDTH, 0, BINS - 1).astype(np.int64)
        counts = np.bincount(bins + BINS * positive, minlength=2 * BINS).reshape(2, BINS)
        loss = -np.where(positive, np.log(clipped), np.log1p(-clipped)).sum()
        sums = (len(prob), positive.sum(), prob.sum(), loss, len(probability) - len(prob))
        self._all += counts
        self._panes[0] += counts.astype(np.uint32)
        self._sums[0] += sums
        self._sums[1] += sums
        if self._grouped is not None and group is not None:
            self._grouped.update(probability[finite], label[finite], group[finite])

    def _roll(self) -> None:
        self._panes[1] = self._panes[0]
        self._panes[0] = 0
        self._sums[2] = self._sums[1]
        self._sums[1] = 0

    def values(self) -> dict[str, float]:
        """The figures by name, those over the window with `_window` behind; NaN where undefined."""
        window = self._panes.sum(axis=0, dtype=np.int64)
        return {
            **_figures(self._all, self._sums[0], ""),
            **_figures(window, self._sums[1] + self._sums[2], "_window"),
            **({"gauc_window": self._grouped.value()} if self._grouped else {}),
        }

    def auc_since(self, earlier: State) -> float:
        """AUC of the rows counted after `earlier` was taken from this stream's `state()`."""
        negatives, positives = self._all - earlier["all"]
        return binned_auc(positives, negatives)

    def state(self) -> State:
        """Everything counted, as arrays of the caller's own; 64 KB, and 13 bytes for each grouped row."""
        grouped = self._grouped.state() if self._grouped else {}
        return {
            **{_GROUPED + name: array for name, array in grouped.items()},
            "all": self._all.copy(),
            "panes": self._panes.copy(),
            "sums": self._sums.copy(),
            "steps": np.array([self._steps, self._window_steps], np.int64),
        }

    def load(self, state: State) -> None:
        """Take over a saved state. After a restart with several ranks, one of them takes it, the others `blank(state)`.

        Raises `StateError` if it was gathered with other bins; another `window_steps` starts from this state's steps.
        """
        for name, mine in self.state().items():
            if name.startswith(_GROUPED):
                continue
            if name not in state or state[name].shape != mine.shape or state[name].dtype != mine.dtype:
                raise StateError(
                    f"progressive metrics {name!r} does not fit: saved by another version of headrace, start without it"
                )
        self._all, self._panes, self._sums = (state[name].copy() for name in ("all", "panes", "sums"))
        self._steps = int(state["steps"][0])
        grouped = {name.removeprefix(_GROUPED): array for name, array in state.items() if name.startswith(_GROUPED)}
        if self._grouped is not None and grouped:
            self._grouped.load(grouped)


def blank(state: State) -> State:
    """The state of a rank that has counted nothing, at the same step."""
    empty = {name: array[:0].copy() for name, array in state.items() if name.startswith(_GROUPED)}
    zeros = {name: np.zeros_like(state[name]) for name in _ADDED}
    return {**empty, **zeros, "steps": state["steps"].copy()}


def merge(states: Sequence[State]) -> State:
    """One state from those of all ranks, which must stand at the same step.

    Float sums are added in the order given, so give ranks in order.
    """
    if not states:
        raise StateError("cannot merge the progressive metrics of no ranks")
    steps = states[0]["steps"]
    if any(not np.array_equal(state["steps"], steps) for state in states):
        raise StateError(f"ranks stand at different steps: {[state['steps'].tolist() for state in states]}")
    total = {"steps": steps.copy()}
    for name in _ADDED:
        total[name] = states[0][name].copy()
        for state in states[1:]:
            total[name] += state[name]
    for name in states[0]:
        if name.startswith(_GROUPED):
            total[name] = np.concatenate([state[name] for state in states])
    return total


_SUMS = ("rows", "positives", "probability", "log_loss", "non_finite")


def _figures(counts: npt.NDArray[np.int64], sums: npt.NDArray[np.float64], suffix: str) -> dict[str, float]:
    rows, positives, probability, loss, non_finite = sums.tolist()
    figures = {
        "auc": binned_auc(counts[1], counts[0]),
        "log_loss": loss / rows if rows else float("nan"),
        "normalized_entropy": loss / _entropy(rows, positives) if 0 < positives < rows else float("nan"),
        "calibration": probability / positives if positives else float("nan"),
        "rows": rows,
        "positives": positives,
        "non_finite": non_finite,
    }
    return {name + suffix: value for name, value in figures.items()}


def _entropy(rows: float, positives: float) -> float:
    """Log loss of predicting the mean rate for every row, summed."""
    rate = positives / rows
    return float(-(positives * np.log(rate) + (rows - positives) * np.log1p(-rate)))
