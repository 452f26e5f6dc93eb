"""Who reads each column: for errors about columns that are not there."""

from __future__ import annotations

from features.feature_set import FeatureSet


def readers(features: FeatureSet) -> dict[str, list[str]]:
    """Features, labels and sample weights, by column."""
    found: dict[str, list[str]] = {}
    for feature in features.features:
        for name in feature.inputs:
            found.setdefault(name, []).append(f"feature {feature.name}")
    for name in features.labels:
        found.setdefault(name, []).append("label")
    for name in features.weights:
        found.setdefault(name, []).append("sample weight")
    return found
