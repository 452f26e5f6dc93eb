"""Models that score one row at a time: one output layer, one label."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from protos.model_pb2 import ModelConfig
from recmodels.base_model import BaseModel, ModelInputs
from recmodels.errors import ModelConfigError
from recmodels.losses import Loss, create_loss, weighted_mean
from recmodels.metrics import Rows, create_metric, create_train_metric
from recmodels.metrics.create import NamedMetric

if TYPE_CHECKING:
    from features.batch import Batch


class RankModel(BaseModel):
    """A model with one output layer, trained on the first label and weighted by the first sample weight.

    A subclass builds its layers in `__init__` and defines `predict_groups`, ending in `self.to_predictions(output)`.
    """

    def __init__(self, config: ModelConfig, inputs: ModelInputs) -> None:
        super().__init__(config, inputs)
        if not self.labels:
            raise ModelConfigError("a ranking model needs a label: name one in label_fields of data_config")
        self._loss_configs, self._metric_configs = config.losses, config.metrics
        self._train_metric_configs = config.train_metrics
        self.init_loss()
        self.init_metric()

    def need_groups(self, *names: str) -> None:
        """Refuse a configuration without one of these feature groups."""
        missing = [name for name in names if not self.embedding_group.has_group(name)]
        if missing:
            raise ModelConfigError(
                f"{type(self).__name__} needs feature groups named {missing}, got {self.embedding_group.group_names()}"
            )

    def init_loss(self) -> None:
        if not self._loss_configs:
            raise ModelConfigError("model_config has no losses: write one, such as losses { binary_cross_entropy {} }")
        self._losses: tuple[Loss, ...] = tuple(create_loss(loss, self.num_class) for loss in self._loss_configs)
        names = [loss.name for loss in self._losses]
        if len(set(names)) != len(names):
            raise ModelConfigError(f"model_config has the same loss twice: {names}")

    def to_predictions(self, output: Tensor, suffix: str = "") -> dict[str, Tensor]:
        """Name what the configured losses make of the last layer, (B, num_class)."""
        named: dict[str, Tensor] = {}
        for loss in self._losses:
            named.update(loss.predictions(output, suffix))
        return named

    def loss(self, predictions: dict[str, Tensor], batch: "Batch") -> dict[str, Tensor]:
        label = batch.labels[self.labels[0]]
        weight = batch.sample_weights[self.sample_weights[0]] if self.sample_weights else None
        return {
            loss.name: weighted_mean(
                loss.per_row(predictions, label, first_ids(batch, loss.session) if loss.session else None, ""), weight
            )
            for loss in self._losses
        }

    def init_metric(self) -> None:
        made = frozenset(self.to_predictions(torch.zeros(1, self.num_class)))
        self._metrics: tuple[NamedMetric, ...] = tuple(
            create_metric(metric, made, self.num_class) for metric in self._metric_configs
        )
        self._train_metrics: tuple[NamedMetric, ...] = tuple(
            create_train_metric(metric, made, self.num_class) for metric in self._train_metric_configs
        )
        self._loss_sums: dict[str, np.ndarray] = {}

    def update_metric(
        self, predictions: Mapping[str, Tensor], batch: "Batch", losses: Mapping[str, Tensor] | None = None
    ) -> None:
        """Add one batch; `losses`, where given, count by its rows and come out of `compute_metric` as means."""
        self._update(self._metrics, predictions, batch)
        rows = len(batch.labels[self.labels[0]])
        for name, value in (losses or {}).items():
            sums = self._loss_sums.setdefault(name, np.zeros(2))
            sums += (float(value) * rows, rows)

    def compute_metric(self) -> dict[str, float]:
        values = {named.name: named.metric.compute() for named in self._metrics}
        values |= {name: float(total / rows) for name, (total, rows) in self._loss_sums.items() if rows}
        for named in self._metrics:
            named.metric.reset()
        self._loss_sums.clear()
        return values

    def update_train_metric(self, predictions: Mapping[str, Tensor], batch: "Batch") -> None:
        self._update(self._train_metrics, predictions, batch)

    def compute_train_metric(self) -> dict[str, float]:
        return {named.name: named.metric.compute() for named in self._train_metrics}

    def train_metric_state(self) -> dict[str, np.ndarray]:
        """The decaying metrics as flat arrays, `<metric>/<part>`, for the commit."""
        return {
            f"{named.name}/{part}": array
            for named in self._train_metrics
            for part, array in named.metric.state().items()
        }

    def load_train_metric_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over a saved `train_metric_state`; metrics that were not configured then start from nothing."""
        for named in self._train_metrics:
            prefix = f"{named.name}/"
            parts = {key[len(prefix) :]: array for key, array in state.items() if key.startswith(prefix)}
            named.metric.reset()
            if parts:
                named.metric.merge(parts)

    def _update(self, metrics: tuple[NamedMetric, ...], predictions: Mapping[str, Tensor], batch: "Batch") -> None:
        if not metrics:
            return
        label = batch.labels[self.labels[0]].detach().cpu().numpy()
        for named in metrics:
            group = first_ids(batch, named.grouping).cpu().numpy() if named.grouping else None
            prediction = predictions[named.prediction].detach().float().cpu().numpy()
            named.metric.update(Rows(prediction=prediction, label=label, group=group))


def first_ids(batch: "Batch", feature: str) -> Tensor:
    """The first id of a sparse feature in each row, int64 (B,); -1 for a row without one."""
    for tensors in batch.sparse_features.values():
        if feature in tensors.keys():  # noqa: SIM118
            jagged = tensors[feature]
            lengths, values = jagged.lengths(), jagged.values()
            starts = torch.cumsum(lengths, 0) - lengths
            ids = torch.full((lengths.shape[0],), -1, dtype=torch.int64, device=values.device)
            ids[lengths > 0] = values[starts[lengths > 0].long()].long()
            return ids
    raise ModelConfigError(f"no sparse feature {feature!r} in the batch: give it a hash, vocabulary or zch in features")
