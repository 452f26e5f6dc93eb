"""The kinds of features: ours, one module each, and those that a user's plugins register."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.message import Message

from features import (
    bool_mask_feature,
    combine_feature,
    combo_feature,
    custom_feature,
    expr_feature,
    id_feature,
    kv_dot_feature,
    lookup_feature,
    match_feature,
    overlap_feature,
    raw_feature,
    sequence,
    tokenize_feature,
)
from features.bucketized import bucketized
from features.errors import FeatureConfigError
from features.generator import Generator, Kind, Setting
from protos import feature_pb2

BUILT_IN = (
    id_feature.KIND,
    raw_feature.KIND,
    combo_feature.KIND,
    combine_feature.KIND,
    lookup_feature.KIND,
    match_feature.KIND,
    overlap_feature.KIND,
    kv_dot_feature.KIND,
    bool_mask_feature.KIND,
    expr_feature.KIND,
    tokenize_feature.KIND,
    custom_feature.KIND,
)


class Kinds:
    """Finds the kind of a feature configuration."""

    def __init__(self, kinds: Iterable[Kind] = BUILT_IN) -> None:
        self._kinds: dict[str, Kind] = {}
        for kind in kinds:
            self.register(kind)

    def register(self, kind: Kind) -> Kind:
        """Add a kind; raise ValueError where another has its field."""
        if kind.field in self._kinds:
            raise ValueError(f"feature kind {kind.field!r} is registered twice")
        self._kinds[kind.field] = kind
        return kind

    def build(self, config: feature_pb2.FeatureConfig, setting: Setting) -> list[Generator]:
        """Build the generators of one entry of `feature_configs`, several of a group; raise FeatureConfigError."""
        set_fields = config.ListFields()
        if len(set_fields) != 1:
            raise FeatureConfigError("an entry of feature_configs must hold exactly one feature")
        field, message = set_fields[0]
        key = field.full_name if field.is_extension else field.name
        if isinstance(message, feature_pb2.SequenceFeature):
            return sequence.build_group(message, setting, self._kinds.get)
        if key.startswith(sequence.PREFIX):
            return [sequence.build_simple(key, message, setting, self._kinds.get)]
        kind = self._kinds.get(key)
        if kind is None:
            name = getattr(message, "feature_name", getattr(message, "sequence_name", "?"))
            raise FeatureConfigError(
                f"feature {name!r}: {key} is not supported yet; supported are {', '.join(sorted(self._kinds))}"
            )
        return [_named(message, kind, setting)]


def _named(message: Message, kind: Kind, setting: Setting) -> Generator:
    if not getattr(message, "feature_name", ""):
        raise FeatureConfigError(f"a {kind.field} has no feature_name")
    made = kind.build(message, setting)
    return bucketized(made, message, setting) if setting.bucketize else made


REGISTRY = Kinds()
"""What `create_features` uses; plugins register theirs here."""
