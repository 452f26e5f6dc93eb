"""Metrics from their configuration."""

from dataclasses import dataclass

from protos.metric_pb2 import MetricConfig, TrainMetricConfig
from recmodels.errors import ModelConfigError
from recmodels.metrics.base import Metric
from recmodels.metrics.binary import Auc, MulticlassAuc, NormalizedEntropy
from recmodels.metrics.decay import DecayAuc, DecayMean
from recmodels.metrics.means import Accuracy, MeanAbsoluteError, MeanSquaredError
from recmodels.metrics.pairs import GroupedAuc, GroupedXAuc, InBatchXAuc, XAuc


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedMetric:
    """A configured metric: which prediction it judges, and which sparse feature's first value groups its rows."""

    name: str
    prediction: str
    metric: Metric
    grouping: str | None = None


def create_metric(config: MetricConfig, predictions: frozenset[str], num_class: int, suffix: str = "") -> NamedMetric:
    """Build the metric that `config` names for a model that makes these predictions (names without suffix)."""
    kind = config.WhichOneof("metric")
    grouping = None
    if kind == "grouped_auc":
        metric: Metric = GroupedAuc()
        grouping = config.grouped_auc.grouping_key
    elif kind == "grouped_xauc":
        metric = GroupedXAuc(max_pairs_per_group=config.grouped_xauc.max_pairs_per_group)
        grouping = config.grouped_xauc.grouping_key
    elif kind == "multiclass_auc":
        options = config.multiclass_auc
        metric = MulticlassAuc(classes=num_class, thresholds=options.thresholds, average=options.average)
    elif kind == "normalized_entropy":
        metric = NormalizedEntropy(eta=config.normalized_entropy.eta)
    elif kind == "auc":
        metric = Auc(thresholds=config.auc.thresholds)
    else:
        metric = _shared(config)
    prediction = _prediction(str(kind), predictions, num_class)
    return NamedMetric(name=f"{kind}{suffix}", prediction=prediction + suffix, metric=metric, grouping=grouping)


def create_train_metric(
    config: TrainMetricConfig, predictions: frozenset[str], num_class: int, suffix: str = ""
) -> NamedMetric:
    """Build the decaying form of the metric that `config` names."""
    kind = config.WhichOneof("metric")
    rate, step = config.decay_rate, config.decay_step
    if kind == "auc":
        metric: Metric = DecayAuc(thresholds=config.auc.thresholds, decay_rate=rate, decay_step=step)
    else:
        metric = DecayMean(_shared(config), decay_rate=rate, decay_step=step)
    prediction = _prediction(str(kind), predictions, num_class)
    return NamedMetric(name=f"{kind}{suffix}", prediction=prediction + suffix, metric=metric)


def _shared(config: MetricConfig | TrainMetricConfig) -> Metric:
    """The kinds that evaluation and training have in common, besides auc."""
    kind = config.WhichOneof("metric")
    if kind == "mean_absolute_error":
        return MeanAbsoluteError()
    if kind == "mean_squared_error":
        return MeanSquaredError()
    if kind == "accuracy":
        return Accuracy(threshold=config.accuracy.threshold, top_k=config.accuracy.top_k)
    if kind == "xauc":
        xauc = config.xauc
        return InBatchXAuc() if xauc.in_batch else XAuc(sample_ratio=xauc.sample_ratio, max_pairs=xauc.max_pairs)
    raise ModelConfigError(
        f"{kind or 'an empty metrics entry'} is not a metric of ranking models: write one of auc, multiclass_auc, "
        "grouped_auc, accuracy, mean_absolute_error, mean_squared_error, xauc, grouped_xauc, normalized_entropy"
    )


_REGRESSION = ("mean_absolute_error", "mean_squared_error", "xauc", "grouped_xauc")


def _prediction(kind: str, predictions: frozenset[str], num_class: int) -> str:
    """Which prediction a metric judges: `y` for regression metrics where there is one, else a probability."""
    if kind in _REGRESSION and "y" in predictions:
        return "y"
    if kind == "multiclass_auc" or (kind == "accuracy" and num_class > 1):
        wanted = "probs"
    else:
        wanted = "probs" if num_class == 1 else "probs1"
    if wanted not in predictions or (kind == "multiclass_auc" and num_class == 1):
        raise ModelConfigError(
            f"metric {kind} needs {'classes' if kind == 'multiclass_auc' else 'a probability'}, but with num_class "
            f"{num_class} the configured losses predict {sorted(predictions)}: change losses or num_class, or drop it"
        )
    return wanted
