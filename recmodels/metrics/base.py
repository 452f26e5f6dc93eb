"""What every metric takes and offers."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.int64]
Labels = npt.NDArray[np.floating] | npt.NDArray[np.integer]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """One batch to judge: (n,) or (n, classes) predictions, (n,) labels, (n,) group ids where asked for."""

    prediction: Floats
    label: Labels
    group: Ints | None = None

    def __post_init__(self) -> None:
        if self.label.shape != self.prediction.shape[:1]:
            raise ValueError(f"labels of shape {self.label.shape} do not fit predictions {self.prediction.shape}")


class Metric(Protocol):
    """A figure that is gathered batch by batch. What cannot be computed yet (one class only, no rows) is NaN."""

    def update(self, rows: Rows) -> None: ...

    def compute(self) -> float: ...

    def reset(self) -> None: ...

    def state(self) -> dict[str, np.ndarray]:
        """Everything gathered so far; arrays of the caller's own."""

    def merge(self, state: dict[str, np.ndarray]) -> None:
        """Add what another rank has gathered."""
