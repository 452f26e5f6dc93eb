"""What the server asks of a loaded version; `model.Side` is the real one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from publisher.replica.request import InputColumn

Predictions = Mapping[str, npt.NDArray[np.generic]]


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorSpec:
    """One tensor in a model's metadata; -1 stands for the rows, or for what all rows of a ragged column hold."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    column: str = ""
    """The column that it is a part of, where that takes several tensors."""
    user: bool = False
    """Its column may have one row for N items."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Freshness:
    """How far the served version has learned, in milliseconds since the epoch; `basis` says by whose clock."""

    until_ms: int
    basis: str

    def staleness_s(self, now_s: float) -> float:
        """Age of the newest event learned.

        >>> Freshness(until_ms=1_000, basis="broker").staleness_s(3.5)
        2.5
        """
        return max(0.0, now_s - self.until_ms / 1000)


class Servable(Protocol):
    """A version that can answer requests; safe to call from several threads while nobody changes it."""

    @property
    def number(self) -> int:
        """The version's number."""

    @property
    def freshness(self) -> Freshness | None:
        """How far it has learned; None where nothing is known."""

    @property
    def columns(self) -> tuple[InputColumn, ...]:
        """What requests must carry."""

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The input tensors, for metadata."""

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """The output tensors, for metadata."""

    def predict(self, items: pa.RecordBatch, user: pa.RecordBatch | None = None) -> Predictions:
        """Predict rows, `user` being one row of the columns that `items` lack; RequestError names what is bad."""

    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """(rows, bytes) of each table."""

    def lookups(self) -> Mapping[str, tuple[int, int]]:
        """(lookups, hits) of each table."""

    def feature_counts(self) -> Mapping[tuple[str, str], int]:
        """What features counted of the requests' values, by feature and outcome."""
