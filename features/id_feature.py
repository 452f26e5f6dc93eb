"""Id features: tokens of one column become rows of a table (models_and_features.md 1.6, feature_generation.md 2)."""

from __future__ import annotations

from google.protobuf.message import Message

from features.choice import default_ids, need, table_of, token_bucketizer
from features.elements import Splitting
from features.encoded import encoded, separators
from features.generator import Generator, Kind, Setting
from features.inputs import read_embedding, refuse_unsupported, single_input
from features.sparse_column import SparseColumn
from features.spec import Feature
from protos import feature_pb2


def build(message: Message, setting: Setting) -> Generator:
    """Build the generator of an IdFeature; raise FeatureConfigError."""
    if not isinstance(message, feature_pb2.IdFeature):
        raise TypeError(f"expected an IdFeature, got {type(message).__name__}")
    name = message.feature_name
    refuse_unsupported(message, name, setting)
    inputs, sides = single_input(name, message.expression, setting)
    zch = table_of(message)
    bucketizer = need(message, token_bucketizer(message, setting))
    embedding = read_embedding(name, message, bucketizer.size if zch is None else zch.size, zch)
    feature = Feature(
        name=name, kind="id", inputs=inputs, sides=sides, is_sparse=True, is_weighted=message.weighted,
        value_dim=message.value_dim, embedding=embedding,
    )  # fmt: skip
    if setting.encoded:
        return encoded(feature, message, setting)
    first, second = separators(name, message.separator, setting)
    splitting = Splitting(
        first=first, second=second, keep_empty=False, weighted=message.weighted, limit=message.value_dim
    )
    default = default_ids(name, message.default_value, bucketizer)
    return SparseColumn(feature=feature, splitting=splitting, bucketizer=bucketizer, default=default)


KIND = Kind(field="id_feature", build=build)
