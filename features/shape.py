"""The frozen spec of a feature: sparse with a table, dense with a width, or a stub that hands tokens on."""

from __future__ import annotations

from collections.abc import Sequence

from features.bucketize import Boundaries, Bucketizer
from features.choice import need, table_of
from features.errors import FeatureConfigError
from features.generator import Setting
from features.inputs import read_dense_embedding, read_embedding, several_inputs
from features.messages import Message, Numeric, Tokened
from features.spec import DenseEmbeddingSpec, EmbeddingSpec, Feature


def token_feature(
    kind: str, message: Tokened, expressions: Sequence[str], bucketizer: Bucketizer | None, value_dim: int,
    setting: Setting, *, weighted: bool = False,
) -> Feature:  # fmt: skip
    """A feature whose tokens become ids; only a stub of a graph may go without a bucketizer."""
    stub = bucketizer is None and message.stub_type and setting.graph
    embedding = None if stub else _table(message, need(message, bucketizer))
    return _feature(kind, message, expressions, value_dim, setting, embedding, 0, weighted)


def _table(message: Tokened, bucketizer: Bucketizer) -> EmbeddingSpec:
    zch = table_of(message)
    return read_embedding(message.feature_name, message, bucketizer.size if zch is None else zch.size, zch)


def number_feature(
    kind: str, message: Numeric, expressions: Sequence[str], rows: int, value_dim: int, setting: Setting
) -> Feature:
    """A feature of `value_dim` numbers, or, with `rows`, of their buckets."""
    name, which = message.feature_name, message.WhichOneof("dense_emb")
    if not rows:
        embedded = read_dense_embedding(message, value_dim)
        return _feature(kind, message, expressions, value_dim, setting, None, value_dim, dense=embedded)
    if which is not None:
        raise FeatureConfigError(f"feature {name!r}: {which} is for numbers, and its buckets have a table; keep one")
    return _feature(kind, message, expressions, value_dim, setting, read_embedding(name, message, rows, None), 0)


def _feature(
    kind: str, message: Message, expressions: Sequence[str], value_dim: int, setting: Setting,
    embedding: EmbeddingSpec | None, dense_dim: int, weighted: bool = False, dense: DenseEmbeddingSpec | None = None,
) -> Feature:  # fmt: skip
    inputs, sides = several_inputs(message.feature_name, expressions, setting)
    return Feature(
        name=message.feature_name, kind=kind, inputs=inputs, sides=sides, is_sparse=dense_dim == 0,
        is_weighted=weighted, value_dim=value_dim, dense_dim=dense_dim, embedding=embedding, dense_embedding=dense,
    )  # fmt: skip


def size_of(buckets: Boundaries | None) -> int:
    """The rows of a table of buckets."""
    return 0 if buckets is None else buckets.size
