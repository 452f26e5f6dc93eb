"""Raw features: numbers of one column, or their buckets (models_and_features.md 1.6, feature_generation.md 2.8)."""

from __future__ import annotations

from google.protobuf.message import Message

from features.bucketize import Boundaries
from features.choice import boundaries_of
from features.dense_column import DenseColumn, number_list
from features.encoded import VALUE_SEPARATOR, encoded, separators
from features.errors import FeatureConfigError
from features.generator import Generator, Kind, Setting
from features.inputs import read_dense_embedding, read_embedding, refuse_unsupported, single_input
from features.normalize import parse_normalizer
from features.spec import Feature
from protos import feature_pb2


def _feature(config: feature_pb2.RawFeature, setting: Setting, boundaries: Boundaries | None) -> Feature:
    name = config.feature_name
    if config.value_dim < 1:
        raise FeatureConfigError(f"feature {name!r}: value_dim must be at least 1")
    inputs, sides = single_input(name, config.expression, setting)
    sparse = boundaries is not None
    return Feature(
        name=name, kind="raw", inputs=inputs, sides=sides, is_sparse=sparse, value_dim=config.value_dim,
        dense_dim=0 if sparse else config.value_dim,
        embedding=None if boundaries is None else read_embedding(name, config, boundaries.size, None),
        dense_embedding=None if sparse else read_dense_embedding(config, config.value_dim),
    )  # fmt: skip


def build(message: Message, setting: Setting) -> Generator:
    """Build the generator of a RawFeature; raise FeatureConfigError."""
    if not isinstance(message, feature_pb2.RawFeature):
        raise TypeError(f"expected a RawFeature, got {type(message).__name__}")
    name = message.feature_name
    refuse_unsupported(message, name, setting)
    boundaries = boundaries_of(message)
    feature = _feature(message, setting, boundaries)
    if setting.encoded:
        return encoded(feature, message, setting)
    first, second = separators(name, message.separator, setting)
    texts = tuple({VALUE_SEPARATOR, message.separator or VALUE_SEPARATOR})
    return DenseColumn(
        feature=feature, first=first, second=second, keep_empty=False, exact_width=feature.value_dim > 1,
        default=number_list(name, "default_value", message.default_value, texts, feature.value_dim),
        normalizer=parse_normalizer(name, message.normalizer), boundaries=boundaries,
    )  # fmt: skip


KIND = Kind(field="raw_feature", build=build)
