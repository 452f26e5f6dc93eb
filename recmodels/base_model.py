"""The contract of a model, and what it is built on."""

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from torch import Tensor, nn

from protos.model_pb2 import ModelConfig
from recmodels.errors import ModelConfigError
from recmodels.modules.dense_embedding import DenseEmbeddings, Embedded

if TYPE_CHECKING:
    from features.batch import Batch


class Groups(Protocol):
    """The embedding layer as a model sees it: a tensor per feature group; `EmbeddingGroup` is the real one."""

    def group_names(self) -> list[str]:
        """Names in layout order: the order of `DenseHalf`'s inputs."""

    def has_group(self, name: str) -> bool: ...

    def group_dims(self, name: str) -> list[int]:
        """Width of each feature of the group, in order."""

    def group_total_dim(self, name: str) -> int:
        """Sum of `group_dims`."""

    def group_feature_dims(self, name: str) -> dict[str, int]:
        """Width by feature name, in order."""

    def __call__(self, batch: "Batch") -> dict[str, Tensor]:
        """Group name to (B, group_total_dim)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelInputs:
    """What a model is built on besides its own configuration."""

    embedding_group: Groups
    labels: tuple[str, ...]
    sample_weights: tuple[str, ...] = ()
    embedded: tuple[Embedded, ...] = ()
    """Dense features that get a vector."""
    numbers: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    """Features and widths of each group's tensor, before dense features get their vectors."""


class BaseModel(nn.Module, abc.ABC):
    """A model from embedded groups to predictions, losses and metrics.

    `predict(batch)` is `predict_groups(dense_embedding(embedding_group(batch)))`, so that the part behind the embedding
    layer can be exported and served on its own.
    """

    def __init__(self, config: ModelConfig, inputs: ModelInputs) -> None:
        super().__init__()
        self.embedding_group = inputs.embedding_group
        self.dense_embedding = DenseEmbeddings(inputs.embedded, inputs.numbers)
        self.labels = inputs.labels
        self.sample_weights = inputs.sample_weights
        self.num_class = config.num_class
        if self.num_class < 1:
            raise ModelConfigError(f"num_class must be at least 1, got {self.num_class}")

    @abc.abstractmethod
    def predict_groups(self, groups: dict[str, Tensor]) -> dict[str, Tensor]:
        """The dense half: group tensors to named predictions."""

    def predict(self, batch: "Batch") -> dict[str, Tensor]:
        """Named predictions, each (B, ...)."""
        return self.predict_embedded(self.embedding_group(batch))

    def predict_embedded(self, groups: dict[str, Tensor]) -> dict[str, Tensor]:
        """`predict_groups`, after dense features got their vectors: all that is behind the embedding layer."""
        return self.predict_groups(self.dense_embedding(groups))

    def forward(self, batch: "Batch") -> dict[str, Tensor]:
        return self.predict(batch)

    @abc.abstractmethod
    def init_loss(self) -> None:
        """Build the losses of the configuration."""

    @abc.abstractmethod
    def loss(self, predictions: dict[str, Tensor], batch: "Batch") -> dict[str, Tensor]:
        """Named scalar losses; their sum is what is minimised."""

    @abc.abstractmethod
    def init_metric(self) -> None:
        """Build the metrics of the configuration."""

    @abc.abstractmethod
    def update_metric(
        self, predictions: Mapping[str, Tensor], batch: "Batch", losses: Mapping[str, Tensor] | None = None
    ) -> None:
        """Add one batch to the evaluation metrics."""

    @abc.abstractmethod
    def compute_metric(self) -> dict[str, float]:
        """The evaluation metrics since the last call; starts over."""

    @abc.abstractmethod
    def update_train_metric(self, predictions: Mapping[str, Tensor], batch: "Batch") -> None:
        """Add one batch to the decaying training metrics."""

    @abc.abstractmethod
    def compute_train_metric(self) -> dict[str, float]:
        """The decaying training metrics as they stand."""

    @abc.abstractmethod
    def metric_state(self) -> dict[str, np.ndarray]:
        """The evaluation metrics as flat arrays, `<metric>/<part>`: what a rank sends to another."""

    @abc.abstractmethod
    def merge_metric_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Add another rank's `metric_state`."""

    @abc.abstractmethod
    def train_metric_state(self) -> dict[str, np.ndarray]:
        """The training metrics as flat arrays, `<metric>/<part>`, for the commit."""

    @abc.abstractmethod
    def load_train_metric_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over a saved `train_metric_state`; metrics that were not configured then start from nothing."""

    @property
    def probability(self) -> str | None:
        """The prediction, (B,), that progressive metrics judge and the gate watches; None where there is none."""
        return None

    @property
    def grouping(self) -> str | None:
        """The sparse feature whose first id groups rows in the progressive grouped AUC; None where there is none."""
        return None

    def on_train_end(self) -> None:  # noqa: B027
        """Called once after the last step; nothing to do for most models."""
