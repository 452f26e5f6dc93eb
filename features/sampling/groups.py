"""Which features are of the sampled items: they have rows of negatives behind those of the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from features.errors import FeatureConfigError
from features.sampling.options import SamplerOptions
from features.spec import BASE, CROSS, NEGATIVE, Feature


def with_negatives(
    features: Sequence[Feature], leaves: Mapping[str, tuple[str, ...]], options: SamplerOptions | None
) -> list[Feature]:
    """The features in their data groups: `leaves` are the columns that each is made of, through others too.

    Raise FeatureConfigError where a feature needs columns of different numbers of rows.
    """
    if options is None or options.expands or options.candidates is not None:
        return list(features)
    sampled = set(options.attributes)
    return [_placed(feature, leaves[feature.name], sampled, options.kind) for feature in features]


def _placed(feature: Feature, leaves: Sequence[str], sampled: set[str], kind: str) -> Feature:
    inside = [name for name in leaves if name in sampled]
    if not inside:
        return feature
    if len(inside) < len(leaves):
        outside = ", ".join(sorted(set(leaves) - sampled))
        raise FeatureConfigError(
            f"feature {feature.name!r} reads {', '.join(sorted(set(inside)))}, which {kind} extends by negatives, and "
            f"{outside}, which it does not; add those to attr_fields, or split the feature"
        )
    if len(feature.inputs) == 1:
        return replace(feature, data_group=feature.data_group.replace(BASE, NEGATIVE))
    return replace(feature, data_group=feature.data_group.replace(BASE, CROSS))
