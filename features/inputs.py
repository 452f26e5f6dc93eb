"""Reading what every feature message has: expressions, tables, fields that no code honours yet."""

from __future__ import annotations

import math
from collections.abc import Sequence

from google.protobuf.message import Message

from features.errors import FeatureConfigError
from features.generator import Setting
from features.messages import Message as FeatureMessage
from features.messages import Numeric
from features.spec import DenseEmbeddingSpec, EmbeddingSpec, Side, ZchSpec
from protos import feature_pb2

_LATER: tuple[str, ...] = ()
_STATIC = (
    feature_pb2.RawFeature, feature_pb2.CombineFeature, feature_pb2.ExprFeature, feature_pb2.OverlapFeature,
    feature_pb2.KvDotProduct, feature_pb2.TokenizeFeature,
)  # fmt: skip
"""Messages without `dynamicemb`."""
_POLICIES = {"lfu": "lfu", "lru": "lru", "distance_lfu": "distance_lfu", "hash": "hash"}


def refuse_unsupported(message: Message, name: str, setting: Setting) -> None:
    """Raise FeatureConfigError where a field is set that changes values and is not honoured."""
    set_fields = {field.name: value for field, value in message.ListFields()}
    if set_fields.get("stub_type") and not setting.graph:
        raise FeatureConfigError(f"feature {name!r}: stub_type belongs to the feature graph; use fg_mode FG_DAG")
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


def several_inputs(name: str, expressions: Sequence[str], setting: Setting) -> tuple[tuple[str, ...], tuple[Side, ...]]:
    """The columns and sides of a feature with several expressions; under FG_NONE one column of its name."""
    if not setting.encoded:
        pairs = [parse_expression(name, expression) for expression in expressions]
        return tuple(column for column, _ in pairs), tuple(side for _, side in pairs)
    sides = [parse_expression(name, expression)[1] for expression in expressions if expression]
    other = [side for side in sides if side is not Side.USER] or sides or [Side.CONTEXT]
    return (name,), (other[0],)


def read_dynamic(name: str, message: feature_pb2.DynamicEmbedding) -> ZchSpec:
    """`dynamicemb` without CUDA: a hash table of its capacity, with its admission (feature_generation.md 9)."""
    if message.max_capacity < 2:
        raise FeatureConfigError(
            f"feature {name!r}: max_capacity {message.max_capacity} must be at least 2 (one row is reserved)"
        )
    strategy = message.frequency_admission_strategy
    admission = message.HasField("frequency_admission_strategy")
    return ZchSpec(
        size=message.max_capacity,
        admission_count=max(int(strategy.threshold), 1) if admission else 1,
        admission_capacity=int(strategy.counter_capacity) if admission else 0,
    )


def initializer(message: FeatureMessage) -> str:
    """`init_fn`; of a dynamic embedding what its `initializer_args` say, uniform where they say nothing."""
    if isinstance(message, _STATIC) or not message.HasField("dynamicemb"):
        return message.init_fn
    dynamic = message.dynamicemb
    given = dynamic.initializer_args
    if message.init_fn and not dynamic.HasField("initializer_args"):
        return message.init_fn
    bound, deviation = 1 / math.sqrt(max(dynamic.max_capacity, 1)), 1 / math.sqrt(max(message.embedding_dim, 1))
    spread = given.std_dev if given.HasField("std_dev") else deviation
    low = given.lower if given.HasField("lower") else -bound
    high = given.upper if given.HasField("upper") else bound
    match given.mode:
        case "" | "UNIFORM":
            return f"nn.init.uniform_,a={low!r},b={high!r}"
        case "NORMAL":
            return f"nn.init.normal_,mean={given.mean!r},std={spread!r}"
        case "TRUNCATED_NORMAL":
            return f"nn.init.trunc_normal_,mean={given.mean!r},std={spread!r}"
        case "CONSTANT":
            return f"nn.init.constant_,val={given.value!r}"
    raise FeatureConfigError(
        f"feature {message.feature_name!r}: initializer mode {given.mode!r} must be NORMAL, TRUNCATED_NORMAL, UNIFORM "
        "or CONSTANT"
    )


def read_dense_embedding(message: Numeric, value_dim: int) -> DenseEmbeddingSpec | None:
    """What makes a vector of a number, if anything; only features without a table have it."""
    which = message.WhichOneof("dense_emb")
    if which is None:
        return None
    name = message.feature_name
    if message.embedding_dim == 0:
        raise FeatureConfigError(f"feature {name!r}: {which} needs an embedding_dim greater than 0")
    if which == "mlp":
        return DenseEmbeddingSpec(method="mlp", dim=message.embedding_dim)
    autodis = message.autodis
    if value_dim > 1 or autodis.num_channels == 0 or autodis.temperature <= 0:
        raise FeatureConfigError(
            f"feature {name!r}: autodis needs value_dim 1, num_channels and temperature greater than 0"
        )
    return DenseEmbeddingSpec(
        method="autodis", dim=message.embedding_dim, channels=autodis.num_channels,
        temperature=autodis.temperature, keep_prob=autodis.keep_prob,
    )  # fmt: skip


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


def read_embedding(name: str, message: FeatureMessage, rows: int, zch: ZchSpec | None) -> EmbeddingSpec:
    """The table that a sparse feature looks up."""
    if message.embedding_dim == 0:
        raise FeatureConfigError(f"feature {name!r}: embedding_dim must be greater than 0")
    if message.pooling not in ("sum", "mean"):
        raise FeatureConfigError(f"feature {name!r}: pooling {message.pooling!r} must be sum or mean")
    if message.data_type not in ("FP32", "FP16"):
        raise FeatureConfigError(f"feature {name!r}: data_type {message.data_type!r} must be FP32 or FP16")
    # A table of buckets is laid out by the planner, a zero-collision one by the trainer.
    constraints = (
        None if isinstance(message, feature_pb2.RawFeature) or zch is not None else message.embedding_constraints
    )
    return EmbeddingSpec(
        name=message.embedding_name or f"{name}_emb",
        num_embeddings=rows,
        dim=message.embedding_dim,
        pooling=message.pooling,
        init_fn=initializer(message),
        data_type=message.data_type,
        trainable=message.trainable,
        zch=zch,
        sharding_types=() if constraints is None else tuple(constraints.sharding_types),
        compute_kernels=() if constraints is None else tuple(constraints.compute_kernels),
    )
