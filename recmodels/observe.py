"""What a training step tells the metrics: the progressive ones of the stream, and the model's own decaying ones."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torch import Tensor

from recmodels.base_model import BaseModel
from recmodels.metrics import ProgressiveMetrics
from recmodels.rank_model import first_ids

if TYPE_CHECKING:
    from features.batch import Batch

GROUPED_ROWS = 8192


def progressive_metrics(model: BaseModel, *, window_steps: int = 1000) -> ProgressiveMetrics:
    """Progressive metrics for a model: with a grouped AUC where its configuration has a `grouped_auc` metric."""
    return ProgressiveMetrics(window_steps=window_steps, grouped_rows=GROUPED_ROWS if model.grouping else 0)


def observe(metrics: ProgressiveMetrics, model: BaseModel, predictions: Mapping[str, Tensor], batch: "Batch") -> None:
    """Count the rows of one step, by predictions from before its update; call it at every step, also without rows."""
    model.update_train_metric(predictions, batch)
    if model.probability is None:
        return
    probability = predictions[model.probability].detach().float().cpu().numpy()
    label = batch.labels[model.labels[0]].cpu().numpy()
    group = first_ids(batch, model.grouping).cpu().numpy() if model.grouping else None
    metrics.update(probability, label, group)
