"""Feature specs and feature generation: rows in, batches out (docs/interfaces.md, features)."""

from features.batch import Batch
from features.create import create_features, refuse_misfits
from features.errors import FeatureConfigError, FeatureError
from features.feature_set import FeatureSet
from features.spec import BASE, WEIGHTED, EmbeddingSpec, Feature, Side, ZchSpec

__all__ = [
    "BASE",
    "WEIGHTED",
    "Batch",
    "EmbeddingSpec",
    "Feature",
    "FeatureConfigError",
    "FeatureError",
    "FeatureSet",
    "Side",
    "ZchSpec",
    "create_features",
    "refuse_misfits",
]
