"""Reading what every feature message has: expressions, tables, fields that no code honours yet."""

from __future__ import annotations

from google.protobuf.message import Message

from features.errors import FeatureConfigError
from features.generator import Setting
from features.spec import EmbeddingSpec, Side, ZchSpec
from protos import feature_pb2

_LATER = ("use_mask", "dynamicemb", "autodis", "mlp", "stub_type", "fg_value_type")
_POLICIES = {"lfu": "lfu", "lru": "lru", "distance_lfu": "distance_lfu", "hash": "hash"}


def refuse_unsupported(message: Message, name: str) -> None:
    """Raise FeatureConfigError where a field is set that changes values and is not honoured."""
    set_fields = {field.name: value for field, value in message.ListFields()}
    for field in _LATER:
        if set_fields.get(field):
            raise FeatureConfigError(f"feature {name!r}: {field} is not supported yet; leave it out")


def parse_expression(name: str, text: str) -> tuple[str, Side]:
    """Split "side:column".

    >>> parse_expression("age", "user:age")
    ('age', <Side.USER: 'user'>)
    """
    side, colon, column = text.partition(":")
    try:
        if not colon or not column:
            raise ValueError(text)
        return column, Side(side)
    except ValueError:
        sides = ", ".join(item.value for item in Side)
        raise FeatureConfigError(
            f"feature {name!r}: expression {text!r} must be side:column with one of {sides}"
        ) from None


def single_input(name: str, expression: str, setting: Setting) -> tuple[tuple[str, ...], tuple[Side, ...]]:
    """The column and side of a feature with one expression; under FG_NONE the column is named after the feature."""
    if not setting.encoded:
        column, side = parse_expression(name, expression)
        return (column,), (side,)
    # FG_NONE configurations may leave the expression out; the side then says nothing.
    side = parse_expression(name, expression)[1] if expression else Side.CONTEXT
    return (name,), (side,)


def read_zch(name: str, message: feature_pb2.ZeroCollisionHash) -> ZchSpec:
    """The zero-collision table of a feature; the hash policy where none is named."""
    if message.zch_size < 2:
        raise FeatureConfigError(
            f"feature {name!r}: zch_size {message.zch_size} must be at least 2 (one row is reserved)"
        )
    policy = message.WhichOneof("eviction_policy") or "hash"
    decay = getattr(message, policy).decay_exponent if policy in ("lru", "distance_lfu") else 1.0
    return ZchSpec(
        size=message.zch_size,
        policy=_POLICIES[policy],
        eviction_interval=message.eviction_interval,
        threshold_filtering_func=message.threshold_filtering_func,
        decay_exponent=decay,
        ttl_ms=message.hash.ttl_ms if message.hash.HasField("ttl_ms") else None,
        admission_count=message.hash.admission_count,
        admission_capacity=message.hash.admission_capacity,
        buckets=message.hash.buckets,
        max_probe=message.hash.max_probe,
    )


def read_embedding(
    name: str, message: feature_pb2.IdFeature | feature_pb2.RawFeature, rows: int, zch: ZchSpec | None
) -> EmbeddingSpec:
    """The table that a sparse feature looks up."""
    if message.embedding_dim == 0:
        raise FeatureConfigError(f"feature {name!r}: embedding_dim must be greater than 0")
    if message.pooling not in ("sum", "mean"):
        raise FeatureConfigError(f"feature {name!r}: pooling {message.pooling!r} must be sum or mean")
    if message.data_type not in ("FP32", "FP16"):
        raise FeatureConfigError(f"feature {name!r}: data_type {message.data_type!r} must be FP32 or FP16")
    constraints = message.embedding_constraints if isinstance(message, feature_pb2.IdFeature) else None
    return EmbeddingSpec(
        name=message.embedding_name or f"{name}_emb",
        num_embeddings=rows,
        dim=message.embedding_dim,
        pooling=message.pooling,
        init_fn=message.init_fn,
        data_type=message.data_type,
        trainable=message.trainable,
        zch=zch,
        sharding_types=tuple(constraints.sharding_types) if constraints is not None and zch is None else (),
        compute_kernels=tuple(constraints.compute_kernels) if constraints is not None and zch is None else (),
    )
