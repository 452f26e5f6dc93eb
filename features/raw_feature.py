"""Raw features: numbers of one column, or their buckets (models_and_features.md 1.6, feature_generation.md 2.8)."""

from __future__ import annotations

import numpy as np
from google.protobuf.message import Message

from features.bucketize import Boundaries, Encoded
from features.dense_column import DenseColumn, number_list
from features.elements import Splitting, one_byte
from features.errors import FeatureConfigError
from features.generator import Generator, Kind, Setting
from features.id_feature import VALUE_SEPARATOR
from features.inputs import read_embedding, refuse_unsupported, single_input
from features.normalize import parse_normalizer
from features.sparse_column import SparseColumn, encoded_default
from features.spec import Feature
from protos import feature_pb2


def _boundaries(config: feature_pb2.RawFeature) -> Boundaries | None:
    if not config.boundaries:
        return None
    bounds = np.array(config.boundaries, np.float32)
    if not np.isfinite(bounds).all() or (np.diff(bounds) < 0).any():
        raise FeatureConfigError(f"feature {config.feature_name!r}: boundaries must be finite and ascending")
    return Boundaries(tuple(float(bound) for bound in bounds))


def _feature(config: feature_pb2.RawFeature, setting: Setting, boundaries: Boundaries | None) -> Feature:
    name = config.feature_name
    if config.value_dim < 1:
        raise FeatureConfigError(f"feature {name!r}: value_dim must be at least 1")
    inputs, sides = single_input(name, config.expression, setting)
    embedding = None if boundaries is None else read_embedding(name, config, boundaries.size, None)
    return Feature(
        name=name, kind="raw", inputs=inputs, sides=sides, is_sparse=boundaries is not None,
        value_dim=config.value_dim, dense_dim=0 if boundaries else config.value_dim, embedding=embedding,
    )  # fmt: skip


def _separators(config: feature_pb2.RawFeature, setting: Setting) -> tuple[int, int]:
    configured = config.separator or VALUE_SEPARATOR
    chosen = (setting.multival_separator,) * 2 if setting.encoded else (VALUE_SEPARATOR, configured)
    try:
        return one_byte(chosen[0]), one_byte(chosen[1])
    except ValueError as error:
        raise FeatureConfigError(f"feature {config.feature_name!r}: {error}") from None


def _encoded(config: feature_pb2.RawFeature, setting: Setting, feature: Feature) -> Generator:
    """FG_NONE: normalizer, boundaries and default were applied before."""
    name, separator = feature.name, setting.multival_separator
    first, second = _separators(config, setting)
    text = config.fg_encoded_default_value
    if feature.embedding is not None:
        size = feature.embedding.num_embeddings
        splitting = Splitting(first=first, second=second, keep_empty=True, weighted=False)
        default = encoded_default(name, text, separator, size)
        return SparseColumn(feature=feature, splitting=splitting, bucketizer=Encoded(size), default=default)
    numbers = number_list(name, "fg_encoded_default_value", text, (separator,), feature.value_dim)
    return DenseColumn(
        feature=feature, first=first, second=second, keep_empty=True, exact_width=True, default=numbers or None
    )


def build(message: Message, setting: Setting) -> Generator:
    """Build the generator of a RawFeature; raise FeatureConfigError."""
    if not isinstance(message, feature_pb2.RawFeature):
        raise TypeError(f"expected a RawFeature, got {type(message).__name__}")
    name = message.feature_name
    refuse_unsupported(message, name)
    boundaries = _boundaries(message)
    feature = _feature(message, setting, boundaries)
    if setting.encoded:
        return _encoded(message, setting, feature)
    first, second = _separators(message, setting)
    separators = tuple({VALUE_SEPARATOR, message.separator or VALUE_SEPARATOR})
    default = number_list(name, "default_value", message.default_value, separators, feature.value_dim)
    return DenseColumn(
        feature=feature, first=first, second=second, keep_empty=False, exact_width=feature.value_dim > 1,
        default=default, normalizer=parse_normalizer(name, message.normalizer), boundaries=boundaries,
    )  # fmt: skip


KIND = Kind(field="raw_feature", build=build)
