"""One column of the events that producers must send, and the type that fits what features make of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from features import Feature, create_features
from protos.data_pb2 import FG_BUCKETIZE, FG_NONE
from protos.feature_members import Member, Read, columns_read, members
from protos.pipeline_pb2 import EasyRecConfig

STRING, INT64, FLOAT = "STRING", "INT64", "FLOAT"
PAIRS, NESTED = "key:value", "key^key:value,key:value|key^key:value"
"""How a text holds a map, and a map of maps."""
VECTORS = "key:number,number"
"""How a text holds a map of vectors, and a map's text a vector."""

_TOKENS: Final = ("hash_bucket_size", "num_buckets", "vocab_list", "vocab_dict", "vocab_file", "zch", "dynamicemb")


@dataclass(frozen=True, kw_only=True, slots=True)
class EventColumn:
    """One column: `type` is a FieldType's name, `declared` says whether the configuration fixes it.

    Ids lie below `below` where it is not 0; texts are among `words` where there are any, and written as `form` says;
    `width` is how many values a list has, where that matters.
    """

    name: str
    type: str
    declared: bool = False
    used_by: tuple[str, ...] = ("nothing",)
    optional: bool = True
    below: int = 0
    words: tuple[str, ...] = ()
    form: str = ""
    width: int = 2


def feature_columns(config: EasyRecConfig) -> Iterator[EventColumn]:
    """The columns that features read, intermediate ones of a graph too; a user's own kinds say theirs when built."""
    built = {feature.name: feature for feature in create_features(config).features}
    known = tuple(members(config))
    for member in known:
        for read in columns_read(config, member):
            yield _column(config, member, read, built.get(member.name))
    ours = {member.name for member in known}
    for name in (name for name in built if name not in ours):
        for column in built[name].inputs:
            yield EventColumn(name=column, type=_given(built[name]), used_by=(f"feature {name}",))


def _column(config: EasyRecConfig, member: Member, read: Read, built: Feature | None) -> EventColumn:
    mode = config.data_config.fg_mode
    below = member.number("num_buckets")
    if mode == FG_NONE and built is not None:
        below = built.embedding.num_embeddings if built.embedding else 0
        element, form = _given(built), ""
    elif mode == FG_BUCKETIZE:
        element, form = _bucketized(member), ""
        if member.kind == "tokenize_feature" and built is not None and built.embedding is not None:
            below = built.embedding.num_embeddings
    else:
        element, form = _raw(member, read)
    words = member.texts("vocab_list") + member.texts("vocab_dict") + member.texts("value_map")
    return EventColumn(
        name=read.column,
        type=_stepped(element) if read.stepped else element,
        used_by=(f"feature {member.name}",),
        below=below,
        words=words,
        form=form,
        width=max(member.number("value_dim"), 2),
    )


def _given(feature: Feature) -> str:
    """The type of ids or numbers that are the feature as it stands, in a sequence of a step."""
    if feature.is_weighted:
        return "MAP_INT64_FLOAT"
    if feature.is_sparse:
        return INT64
    return FLOAT if feature.value_dim == 1 else "ARRAY_FLOAT"


def _bucketized(member: Member) -> str:
    """The type of what is left to bucketize: tokens, or numbers."""
    if member.kind == "tokenize_feature":
        return INT64
    if any(name in _TOKENS for name in member.set_fields()):
        return INT64 if member.number("num_buckets") else STRING
    return "ARRAY_FLOAT" if member.number("value_dim") > 1 else FLOAT


def _raw(member: Member, read: Read) -> tuple[str, str]:
    """The type of one value, and how a text is written."""
    tokens = any(name in _TOKENS for name in member.set_fields())
    match member.kind, read.field:
        case "id_feature", _ if member.number("weighted"):
            return ("MAP_INT64_FLOAT" if member.number("num_buckets") else "MAP_STRING_FLOAT"), PAIRS
        case "id_feature", _:
            return (INT64 if member.number("num_buckets") else STRING), ""
        case "raw_feature", _:
            return (FLOAT if member.number("value_dim") == 1 else "ARRAY_FLOAT"), ""
        case "combine_feature", _:
            return ("ARRAY_STRING" if member.texts("value_map") else "ARRAY_FLOAT"), ""
        case "expr_feature", _:
            return FLOAT, ""
        case "lookup_feature", "map":
            if member.number("value_dim") > 1 and not tokens:
                return "MAP_STRING_STRING", VECTORS
            return ("MAP_STRING_STRING" if tokens else "MAP_STRING_FLOAT"), PAIRS
        case "match_feature", "nested_map":
            return STRING, NESTED
        case "kv_dot_product", _:
            return "MAP_STRING_FLOAT", PAIRS
        case "bool_mask_feature", _:
            ids = "ARRAY_INT64" if member.number("num_buckets") else "ARRAY_STRING"
            return (ids if read.at == 0 else "ARRAY_INT32"), ""
    return STRING, ""


def _stepped(element: str) -> str:
    """The type of a sequence of such values; what no list holds travels as text."""
    return STRING if element.startswith(("MAP_", "ARRAY_ARRAY_")) else f"ARRAY_{element}"
