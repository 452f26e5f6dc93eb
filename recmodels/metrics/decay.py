"""Training metrics that forget: the figures of the peer's `train_metrics`."""

import math

import numpy as np

from recmodels.errors import ModelConfigError
from recmodels.metrics.base import Metric, Rows
from recmodels.metrics.binary import score_histogram
from recmodels.metrics.ranking import binned_auc


class DecayAuc:
    """AUC of counts that decay: every `decay_step` updates, counts become `rate * counts + (1 - rate) * new`.

    The first time they become `new`; until then the figure is that of the counts so far.
    """

    _decayed: np.ndarray
    _new: np.ndarray
    _updates: int

    def __init__(self, *, thresholds: int = 200, decay_rate: float = 0.9, decay_step: int = 100) -> None:
        _check(decay_rate, decay_step)
        if thresholds < 2:
            raise ModelConfigError(f"auc needs at least 2 thresholds, got {thresholds}")
        self._thresholds, self._rate, self._step = thresholds, decay_rate, decay_step
        self.reset()

    def update(self, rows: Rows) -> None:
        self._new += score_histogram(rows.prediction, rows.label > 0, self._thresholds)
        self._updates += 1
        if self._updates % self._step == 0:
            first = self._updates == self._step
            self._decayed = self._new if first else self._rate * self._decayed + (1 - self._rate) * self._new
            self._new = np.zeros_like(self._decayed)

    def compute(self) -> float:
        counts = self._new if self._updates < self._step else self._decayed
        return binned_auc(counts[1], counts[0])

    def reset(self) -> None:
        self._decayed, self._new = np.zeros((2, self._thresholds)), np.zeros((2, self._thresholds))
        self._updates = 0

    def state(self) -> dict[str, np.ndarray]:
        return {
            "decayed": self._decayed.copy(),
            "new": self._new.copy(),
            "updates": np.array([self._updates], np.int64),
        }

    def merge(self, state: dict[str, np.ndarray]) -> None:
        """Add another rank's counts; after `reset()`, load them. Updates are per rank, so they are taken, not added."""
        self._decayed += state["decayed"]
        self._new += state["new"]
        self._updates = max(self._updates, int(state["updates"][0]))


class DecayMean:
    """Any other metric, decaying: every `decay_step` updates, value becomes `rate * value + (1 - rate) * new`."""

    _value: float
    _updates: int

    def __init__(self, metric: Metric, *, decay_rate: float = 0.9, decay_step: int = 100) -> None:
        _check(decay_rate, decay_step)
        self._metric, self._rate, self._step = metric, decay_rate, decay_step
        self.reset()

    def update(self, rows: Rows) -> None:
        self._metric.update(rows)
        self._updates += 1
        if self._updates % self._step == 0:
            self._fold(self._metric.compute())
            self._metric.reset()

    def _fold(self, new: float) -> None:
        """Mix in a new value; one of a time without rows, which is NaN, changes nothing."""
        if not math.isnan(new):
            self._value = new if math.isnan(self._value) else self._rate * self._value + (1 - self._rate) * new

    def compute(self) -> float:
        return self._metric.compute() if self._updates < self._step else self._value

    def reset(self) -> None:
        self._metric.reset()
        self._value, self._updates = float("nan"), 0

    def state(self) -> dict[str, np.ndarray]:
        return {
            "value": np.array([self._value]),
            "updates": np.array([self._updates], np.int64),
            **{f"metric.{name}": array for name, array in self._metric.state().items()},
        }

    def merge(self, state: dict[str, np.ndarray]) -> None:
        """Add another rank's rows since the last decay; of two decayed values the mean is kept."""
        other = float(state["value"][0])
        known = [value for value in (self._value, other) if not math.isnan(value)]
        self._value = sum(known) / len(known) if known else float("nan")
        self._updates = max(self._updates, int(state["updates"][0]))
        prefix = "metric."
        self._metric.merge({name[len(prefix) :]: array for name, array in state.items() if name.startswith(prefix)})


def _check(rate: float, step: int) -> None:
    if not 0 <= rate <= 1 or step < 1:
        raise ModelConfigError(
            f"train_metrics need decay_rate in [0, 1] and decay_step of at least 1, got {rate} and {step}"
        )
