"""Rules for features: names, inputs, bucketizers, dimensions, tables that several share."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from protos.data_pb2 import FG_BUCKETIZE, FG_DAG, FG_NONE
from protos.feature_members import Member, columns_read, members
from protos.feature_pb2 import IdFeature, RawFeature
from protos.findings import Finding
from protos.nearest import suggestion
from protos.pipeline_pb2 import EasyRecConfig
from protos.sources import declared_columns

SIDES = ("user", "item", "context", "feature", "const")
BUCKETIZERS = ("hash_bucket_size", "num_buckets", "vocab_list", "vocab_dict", "vocab_file", "zch", "dynamicemb")
_WITH_TABLE = ("id_feature", "combo_feature", "bool_mask_feature", "tokenize_feature")

Scalar = IdFeature | RawFeature


def findings(config: EasyRecConfig) -> Iterator[Finding]:
    """What contradicts itself about features."""
    if not config.feature_configs:
        yield Finding(path="feature_configs", text="is empty; declare at least one feature")
    known = tuple(members(config))
    for name, count in Counter(member.name for member in known).items():
        if name and count > 1:
            text = f"is the name of {count} features; rename all but one"
            yield Finding(path="feature_configs", value=repr(name), text=text)
    declared = {column.name for column in declared_columns(config)}
    for member in known:
        if not member.text("feature_name"):
            yield Finding(path=f"{member.path}.feature_name", text="is not set; every feature needs a name")
        yield from _inputs(config, member, declared)
        stub = member.number("stub_type") and config.data_config.fg_mode in (FG_DAG, FG_BUCKETIZE)
        yield from () if stub else _bucketizer(member)
        yield from _dimension(member)
    yield from _shared_tables(known)


def _inputs(config: EasyRecConfig, member: Member, declared: set[str]) -> Iterator[Finding]:
    if config.data_config.fg_mode != FG_NONE:
        found = list(_expressions(member))
        if found:
            yield from found
            return
    for read in columns_read(config, member):
        if declared and read.column not in declared:
            hint = suggestion(read.column, declared)
            text = f"reads column {read.column!r}, which is not among input_fields; {hint}"
            yield _about(member, read.field, text)


def _expressions(member: Member) -> Iterator[Finding]:
    for field, texts in member.expressions():
        if not any(texts):
            yield _about(member, field, "is not set; write side:column, e.g. user:age")
            continue
        for text in texts:
            side, colon, column = text.partition(":")
            if not colon or not column or side not in SIDES:
                said = f"is {text!r}; write side:column with a side of {', '.join(SIDES)}"
                yield _about(member, field, said)


def _bucketizer(member: Member) -> Iterator[Finding]:
    bounds = member.numbers("boundaries")
    if not all(map(math.isfinite, bounds)):
        yield _about(member, "boundaries", "are not all finite; take out what is not")
    elif list(bounds) != sorted(bounds):
        yield _about(member, "boundaries", "do not ascend; sort them")
    named = [name for name in member.set_fields() if name in (*BUCKETIZERS, "boundaries")]
    if len(named) > 1:
        yield _about(member, named[1], f"is a second bucketizer beside {named[0]}; keep one")
    if not named and member.kind == "id_feature":
        yield _about(member, "zch", f"is not set and no other bucketizer is; write one of {', '.join(BUCKETIZERS)}")
    sizes = {
        "hash_bucket_size": member.number("hash_bucket_size"),
        "num_buckets": member.number("num_buckets"),
        "zch": member.nested("zch", "zch_size"),
        "dynamicemb": member.nested("dynamicemb", "max_capacity"),
    }
    for name in named:
        if sizes.get(name) == 0:
            yield _about(member, name, "holds 0 rows; give it a size")
        elif sizes.get(name) == 1 and name in ("zch", "dynamicemb"):
            yield _about(member, name, "holds 1 row, which is reserved; give it at least 2")
    for token, count in Counter(member.texts("vocab_list")).items():
        if count > 1:
            yield _about(member, "vocab_list", f"holds {token!r} {count} times; keep one")


def _dimension(member: Member) -> Iterator[Finding]:
    bucketized = any(name in (*BUCKETIZERS, "boundaries") for name in member.set_fields())
    has_table = (member.kind in _WITH_TABLE and not member.number("stub_type")) or bucketized
    if has_table and member.number("embedding_dim") == 0:
        yield _about(member, "embedding_dim", "is not set; give the length of its embedding, e.g. 16")
    if member.text("pooling") not in ("sum", "mean"):
        yield _about(member, "pooling", f"is {member.text('pooling')!r}; write sum or mean")
    if member.text("data_type") not in ("FP32", "FP16"):
        yield _about(member, "data_type", f"is {member.text('data_type')!r}; write FP32 or FP16")


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


def _shared_tables(known: Iterable[Member]) -> Iterator[Finding]:
    """Of id and raw features; how many rows other kinds have is only known when they are built."""
    sharing: dict[str, list[tuple[Member, Scalar]]] = defaultdict(list)
    for member in known:
        feature = member.message
        if isinstance(feature, Scalar) and rows_of(feature):
            sharing[feature.embedding_name or f"{member.name}_emb"].append((member, feature))
    for table, users in sharing.items():
        first, one = users[0]
        for member, other in users[1:]:
            for what, ours, theirs in _differences(one, other):
                text = f"shares table {table!r} with {first.name!r}, but its {what} is {ours}, not {theirs}"
                yield _about(member, "embedding_name", f"{text}; make them equal, or rename one table")


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


def _about(member: Member, field: str, text: str) -> Finding:
    return Finding(path=f"{member.path}.{field}", value=f"(feature {member.name!r})", text=text)
