"""Models that score one row at a time: one output layer, one label."""

import abc
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor, nn

from protos.model_pb2 import ModelConfig
from recmodels.base_model import BaseModel, ModelInputs
from recmodels.errors import ModelConfigError
from recmodels.losses import Loss, create_loss, weighted_mean
from recmodels.metrics import Rows, create_metric, create_train_metric
from recmodels.metrics.create import NamedMetric
from recmodels.metrics.pairs import GroupedAuc
from recmodels.modules.variational_dropout import VariationalDropout

if TYPE_CHECKING:
    from features.batch import Batch


class RankModel(BaseModel):
    """A model with one output layer, trained on the first label and weighted by the first sample weight.

    A subclass builds its layers in `__init__` and defines `score`. One with several heads names the suffixes of their
    predictions: those that evaluation judges, the first of which is served, and those that training metrics judge.
    """

    judged: tuple[str, ...] = ("",)
    trained: tuple[str, ...] = ("",)

    def __init__(self, config: ModelConfig, inputs: ModelInputs) -> None:
        super().__init__(config, inputs)
        if not self.labels:
            raise ModelConfigError("a ranking model needs a label: name one in label_fields of data_config")
        self._loss_configs, self._metric_configs = config.losses, config.metrics
        self._train_metric_configs = config.train_metrics
        self._penalty = config.variational_dropout.regularization_lambda
        self.dropouts = self._create_dropouts() if config.HasField("variational_dropout") else nn.ModuleDict()
        self.init_loss()
        self.init_metric()

    @abc.abstractmethod
    def score(self, groups: dict[str, Tensor]) -> Tensor:
        """The last layer, (B, num_class), from the group tensors."""

    def predict_groups(self, groups: dict[str, Tensor]) -> dict[str, Tensor]:
        return self.to_predictions(self.score(self.drop(groups)))

    def drop(self, groups: dict[str, Tensor]) -> dict[str, Tensor]:
        """The groups after variational dropout, where it is configured."""
        return {name: self.dropouts[name](group) if name in self.dropouts else group for name, group in groups.items()}

    @property
    def probability(self) -> str | None:
        """The prediction, (B,), that is the probability of a positive label; None where there is none."""
        made = self._made()
        name = "probs1" if "probs1" in made else "probs"
        return name + self.judged[0] if name in made and self.num_class <= 2 else None

    def to_predictions(self, output: Tensor, suffix: str = "") -> dict[str, Tensor]:
        """Name what the configured losses make of the last layer."""
        named: dict[str, Tensor] = {}
        for loss in self._losses:
            named.update(loss.predictions(output, suffix))
        return named

    @property
    def grouping(self) -> str | None:
        named = [metric.grouping for metric in self._metrics if isinstance(metric.metric, GroupedAuc)]
        return named[0] if named else None

    def need_groups(self, *names: str) -> None:
        """Refuse a configuration without one of these feature groups."""
        missing = [name for name in names if not self.embedding_group.has_group(name)]
        if missing:
            raise ModelConfigError(
                f"{type(self).__name__} needs feature groups named {missing}, got {self.embedding_group.group_names()}"
            )

    def first_group(self) -> str:
        """The name of the first feature group, for models that have one input."""
        names = self.embedding_group.group_names()
        if not names:
            raise ModelConfigError(f"{type(self).__name__} needs a feature group: write one in model_config")
        return names[0]

    def init_loss(self) -> None:
        if not self._loss_configs:
            raise ModelConfigError("model_config has no losses: write one, such as losses { binary_cross_entropy {} }")
        self._losses: tuple[Loss, ...] = tuple(create_loss(loss, self.num_class) for loss in self._loss_configs)
        names = [loss.name for loss in self._losses]
        if len(set(names)) != len(names):
            raise ModelConfigError(f"model_config has the same loss twice: {names}")

    def loss(self, predictions: dict[str, Tensor], batch: "Batch") -> dict[str, Tensor]:
        return self.losses_of(predictions, batch) | self.penalties(batch)

    def losses_of(self, predictions: Mapping[str, Tensor], batch: "Batch", suffix: str = "") -> dict[str, Tensor]:
        """The configured losses of one head."""
        label = batch.labels[self.labels[0]]
        weight = batch.sample_weights[self.sample_weights[0]] if self.sample_weights else None
        losses = {}
        for loss in self._losses:
            session = first_ids(batch, loss.session) if loss.session else None
            losses[loss.name + suffix] = weighted_mean(loss.per_row(predictions, label, session, suffix), weight)
        return losses

    def penalties(self, batch: "Batch") -> dict[str, Tensor]:
        """What variational dropout charges for the features that it keeps."""
        rows = len(batch.labels[self.labels[0]])
        dropouts = {name: cast(VariationalDropout, dropout) for name, dropout in self.dropouts.items()}
        return {f"{name}_feature_p_loss": dropout.penalty(rows, self._penalty) for name, dropout in dropouts.items()}

    def init_metric(self) -> None:
        made = self._made()
        self._metrics: tuple[NamedMetric, ...] = tuple(
            create_metric(metric, made, self.num_class, suffix)
            for suffix in self.judged
            for metric in self._metric_configs
        )
        self._train_metrics: tuple[NamedMetric, ...] = tuple(
            create_train_metric(metric, made, self.num_class, suffix)
            for suffix in self.trained
            for metric in self._train_metric_configs
        )
        for named in (self._metrics, self._train_metrics):
            names = [metric.name for metric in named]
            if len(set(names)) != len(names):
                raise ModelConfigError(f"model_config has the same metric twice: {names}")
        self._loss_sums: dict[str, np.ndarray] = {}

    def update_metric(
        self, predictions: Mapping[str, Tensor], batch: "Batch", losses: Mapping[str, Tensor] | None = None
    ) -> None:
        """Add one batch; `losses`, where given, count by its rows and come out of `compute_metric` as means."""
        self._update(self._metrics, predictions, batch)
        rows = len(batch.labels[self.labels[0]])
        for name, value in (losses or {}).items():
            sums = self._loss_sums.setdefault(name, np.zeros(2))
            sums += (float(value.detach()) * rows, rows)

    def compute_metric(self) -> dict[str, float]:
        values = {named.name: named.metric.compute() for named in self._metrics}
        values |= {name: float(total / rows) for name, (total, rows) in self._loss_sums.items() if rows}
        for named in self._metrics:
            named.metric.reset()
        self._loss_sums.clear()
        return values

    def metric_state(self) -> dict[str, np.ndarray]:
        losses = {f"loss/{name}": sums.copy() for name, sums in self._loss_sums.items()}
        return _flat(self._metrics) | losses

    def merge_metric_state(self, state: Mapping[str, np.ndarray]) -> None:
        _merge(self._metrics, state)
        for key, sums in state.items():
            kind, _, name = key.partition("/")
            if kind == "loss":
                self._loss_sums[name] = self._loss_sums.get(name, np.zeros(2)) + sums

    def update_train_metric(self, predictions: Mapping[str, Tensor], batch: "Batch") -> None:
        self._update(self._train_metrics, predictions, batch)

    def compute_train_metric(self) -> dict[str, float]:
        return {named.name: named.metric.compute() for named in self._train_metrics}

    def train_metric_state(self) -> dict[str, np.ndarray]:
        return _flat(self._train_metrics)

    def load_train_metric_state(self, state: Mapping[str, np.ndarray]) -> None:
        for named in self._train_metrics:
            named.metric.reset()
        _merge(self._train_metrics, state)

    def _made(self) -> frozenset[str]:
        """Names of the predictions of a head, without suffix."""
        return frozenset(self.to_predictions(torch.zeros(1, self.num_class)))

    def _create_dropouts(self) -> nn.ModuleDict:
        groups = self.embedding_group
        widths = {name: groups.group_feature_dims(name) for name in groups.group_names()}
        return nn.ModuleDict({name: VariationalDropout(own) for name, own in widths.items() if len(own) > 1})

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
        if feature in tensors.keys():  # noqa: SIM118 - a KeyedJaggedTensor cannot be iterated
            jagged = tensors[feature]
            lengths, values = jagged.lengths().long(), jagged.values()
            starts = torch.cumsum(lengths, 0) - lengths
            # A mask as an index would make the host wait for a device to count it.
            padded = torch.cat([values.long(), values.new_full((1,), -1, dtype=torch.int64)])
            return padded[torch.where(lengths > 0, starts, len(values))]
    raise ModelConfigError(f"no sparse feature {feature!r} in the batch: give it a hash, vocabulary or zch in features")


def _flat(metrics: tuple[NamedMetric, ...]) -> dict[str, np.ndarray]:
    return {f"{named.name}/{part}": array for named in metrics for part, array in named.metric.state().items()}


def _merge(metrics: tuple[NamedMetric, ...], state: Mapping[str, np.ndarray]) -> None:
    for named in metrics:
        prefix = f"{named.name}/"
        parts = {key.removeprefix(prefix): array for key, array in state.items() if key.startswith(prefix)}
        if parts:
            named.metric.merge(parts)
