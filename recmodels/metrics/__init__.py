"""Metrics: progressive ones over the stream, decaying ones for training logs, and those of an evaluation."""

from recmodels.metrics.base import Metric, Rows
from recmodels.metrics.create import create_metric, create_train_metric
from recmodels.metrics.progressive import ProgressiveMetrics

__all__ = ["Metric", "ProgressiveMetrics", "Rows", "create_metric", "create_train_metric"]
