"""Rules for features: names, inputs, bucketizers, dimensions, tables that several share."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from protos.data_pb2 import FG_BUCKETIZE, FG_DAG, FG_NONE
from protos.feature_pb2 import IdFeature, RawFeature
from protos.findings import Finding
from protos.nearest import suggestion
from protos.pipeline_pb2 import EasyRecConfig
from protos.sources import declared_columns

SIDES = ("user", "item", "context", "feature", "const")
BUCKETIZERS = ("hash_bucket_size", "num_buckets", "vocab_list", "vocab_dict", "vocab_file", "zch", "dynamicemb")

Scalar = IdFeature | RawFeature


def scalars(config: EasyRecConfig) -> Iterator[tuple[str, Scalar]]:
    """The id and raw features with their paths; the other kinds are refused elsewhere."""
    for index, feature in enumerate(config.feature_configs):
        kind = feature.WhichOneof("feature")
        if kind in ("id_feature", "raw_feature"):
            yield f"feature_configs[{index}].{kind}", getattr(feature, kind)


def feature_names(config: EasyRecConfig) -> list[str]:
    """The names of all features, of whatever kind has one."""
    kinds = [(feature, feature.WhichOneof("feature")) for feature in config.feature_configs]
    parts = [getattr(feature, kind) for feature, kind in kinds if kind is not None]
    return [part.feature_name for part in parts if "feature_name" in part.DESCRIPTOR.fields_by_name]


def findings(config: EasyRecConfig) -> Iterator[Finding]:
    """What contradicts itself about features."""
    if not config.feature_configs:
        yield Finding(path="feature_configs", text="is empty; declare at least one feature")
    for name, count in Counter(feature_names(config)).items():
        if name and count > 1:
            text = f"is the name of {count} features; rename all but one"
            yield Finding(path="feature_configs", value=repr(name), text=text)
    declared = {column.name for column in declared_columns(config)}
    for path, feature in scalars(config):
        if not feature.feature_name:
            yield Finding(path=f"{path}.feature_name", text="is not set; every feature needs a name")
        yield from _inputs(config, path, feature, declared)
        stub = feature.stub_type and config.data_config.fg_mode in (FG_DAG, FG_BUCKETIZE)
        yield from () if stub else _bucketizer(path, feature)
        yield from _dimension(path, feature)
    yield from _shared_tables(config)


def input_column(config: EasyRecConfig, feature: Scalar) -> str:
    """The column `feature` reads, "" for none: what follows the side, unless columns have the names of features."""
    mode = config.data_config.fg_mode
    if mode in (FG_NONE, FG_BUCKETIZE):
        return "" if feature.stub_type else feature.feature_name
    side, _, column = feature.expression.partition(":")
    return "" if mode == FG_DAG and side in ("feature", "const") else column


def _inputs(config: EasyRecConfig, path: str, feature: Scalar, declared: set[str]) -> Iterator[Finding]:
    if config.data_config.fg_mode != FG_NONE:
        side, colon, name = feature.expression.partition(":")
        if not feature.expression:
            yield _about(path, feature, "expression", "is not set; write side:column, e.g. user:age")
            return
        if not colon or not name or side not in SIDES:
            text = f"is {feature.expression!r}; write side:column with a side of {', '.join(SIDES)}"
            yield _about(path, feature, "expression", text)
            return
    column = input_column(config, feature)
    if declared and column and column not in declared:
        text = f"reads column {column!r}, which is not among input_fields; {suggestion(column, declared)}"
        yield _about(path, feature, "expression", text)


def _bucketizer(path: str, feature: Scalar) -> Iterator[Finding]:
    if isinstance(feature, RawFeature):
        if list(feature.boundaries) != sorted(feature.boundaries):
            yield _about(path, feature, "boundaries", "do not ascend; sort them")
        return
    named = [name for name, _ in ((field.name, value) for field, value in feature.ListFields()) if name in BUCKETIZERS]
    if len(named) > 1:
        yield _about(path, feature, named[1], f"is a second bucketizer beside {named[0]}; keep one")
    if not named:
        yield _about(
            path, feature, "zch", f"is not set and no other bucketizer is; write one of {', '.join(BUCKETIZERS)}"
        )
    sizes = {
        "hash_bucket_size": feature.hash_bucket_size,
        "num_buckets": feature.num_buckets,
        "zch": feature.zch.zch_size,
    }
    for name in named:
        if sizes.get(name) == 0:
            yield _about(path, feature, name, "holds 0 rows; give it a size")
    if feature.zch.zch_size == 1:
        yield _about(path, feature, "zch", "holds 1 row, which is reserved; give it at least 2")
    for token, count in Counter(feature.vocab_list).items():
        if count > 1:
            yield _about(path, feature, "vocab_list", f"holds {token!r} {count} times; keep one")


def _dimension(path: str, feature: Scalar) -> Iterator[Finding]:
    has_table = isinstance(feature, IdFeature) or bool(feature.boundaries)
    if has_table and feature.embedding_dim == 0:
        yield _about(path, feature, "embedding_dim", "is not set; give the length of its embedding, e.g. 16")
    if feature.pooling not in ("sum", "mean"):
        yield _about(path, feature, "pooling", f"is {feature.pooling!r}; write sum or mean")
    if feature.data_type not in ("FP32", "FP16"):
        yield _about(path, feature, "data_type", f"is {feature.data_type!r}; write FP32 or FP16")


def rows_of(feature: Scalar) -> int:
    """The rows of the feature's table."""
    if isinstance(feature, RawFeature):
        return len(feature.boundaries) + 1 if feature.boundaries else 0
    if feature.HasField("zch"):
        return feature.zch.zch_size
    if feature.HasField("dynamicemb"):
        return feature.dynamicemb.max_capacity
    reserved = 0 if feature.HasField("default_bucketize_value") else 2
    listed = len(feature.vocab_list) + reserved if feature.vocab_list else 0
    mapped = max(feature.vocab_dict.values()) + 1 if feature.vocab_dict else 0
    return feature.hash_bucket_size or feature.num_buckets or listed or mapped


def table_name(feature: Scalar) -> str:
    """The name of the feature's table; features with equal names share it."""
    return feature.embedding_name or f"{feature.feature_name}_emb"


def _shared_tables(config: EasyRecConfig) -> Iterator[Finding]:
    sharing: dict[str, list[tuple[str, Scalar]]] = defaultdict(list)
    for path, feature in scalars(config):
        if rows_of(feature):
            sharing[table_name(feature)].append((path, feature))
    for table, users in sharing.items():
        _, first = users[0]
        for path, feature in users[1:]:
            for what, ours, theirs in _differences(first, feature):
                text = f"shares table {table!r} with {first.feature_name!r}, but its {what} is {ours}, not {theirs}"
                yield _about(path, feature, "embedding_name", f"{text}; make them equal, or rename one table")


def _differences(first: Scalar, other: Scalar) -> Iterator[tuple[str, object, object]]:
    pairs: list[tuple[str, object, object]] = [
        ("number of rows", rows_of(other), rows_of(first)),
        ("embedding_dim", other.embedding_dim, first.embedding_dim),
        ("init_fn", repr(other.init_fn), repr(first.init_fn)),
        ("data_type", other.data_type, first.data_type),
        ("trainable", other.trainable, first.trainable),
        ("pooling", other.pooling, first.pooling),
    ]
    if isinstance(first, IdFeature) and isinstance(other, IdFeature):
        pairs.append(("zch", _zch(other), _zch(first)))
    yield from (pair for pair in pairs if pair[1] != pair[2])


def _zch(feature: IdFeature) -> str:
    return " ".join(str(feature.zch).split()) if feature.HasField("zch") else "unset"


def _about(path: str, feature: Scalar, field: str, text: str) -> Finding:
    return Finding(path=f"{path}.{field}", value=f"(feature {feature.feature_name!r})", text=text)
