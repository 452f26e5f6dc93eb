"""The nodes of fg_json, kind by kind (models_and_features.md 1.5, 1.6 and 16; feature_generation.md section 8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import Message as ProtoMessage

from features.bucketize import RAW_ID_BUCKETS
from features.choice import configured
from features.encoded import VALUE_SEPARATOR
from features.messages import Message, Numeric, Tokened
from protos import feature_pb2

Json = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
Node = dict[str, Json]
M = TypeVar("M", bound=ProtoMessage)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a feature stands: on its own, or as the step of a sequence, which may be a member of a group."""

    sequence: bool = False
    grouped: bool = False
    asset_name: Callable[[str], str] = str
    """What a file is called in the json."""

    def default(self, text: str) -> str:
        """A sequence has no empty default."""
        return text or ("0" if self.sequence else "")

    def value_dim(self, message: ProtoMessage, unset: int) -> int:
        """Steps hold one value where nothing else is said."""
        given = message.HasField("value_dim")
        return int(getattr(message, "value_dim")) if given else 1 if self.sequence else unset  # noqa: B009


Emit = Callable[[ProtoMessage, Place], list[Node]]


def separator(message: Message) -> Node:
    """The separator, where it is not the standard one."""
    given = "" if isinstance(message, feature_pb2.TokenizeFeature) else message.separator
    return {"separator": given} if given and given != VALUE_SEPARATOR else {}


def normalizer(text: str) -> Node:
    """The normalizer, where there is one."""
    return {"normalizer": text} if text else {}


def boundaries(message: Numeric) -> Node:
    """Boundaries, where there are some."""
    return {"boundaries": [float(bound) for bound in message.boundaries]} if message.boundaries else {}


def bucketizer(message: Tokened, place: Place) -> Node:
    """The bucketizer; a vocabulary without default_bucketize_value gets its two reserved words."""
    which, default = configured(message), place.default(message.default_value)
    missing = message.default_bucketize_value if message.HasField("default_bucketize_value") else None
    match which:
        case "zch" | "dynamicemb":
            return {"hash_bucket_size": RAW_ID_BUCKETS}
        case "hash_bucket_size":
            return {"hash_bucket_size": message.hash_bucket_size}
        case "num_buckets":
            return {} if isinstance(message, feature_pb2.ComboFeature) else {"num_buckets": message.num_buckets}
        case "vocab_list":
            words: list[Json] = [*([default, "<OOV>"] if missing is None else []), *message.vocab_list]
            return {"vocab_list": words, "default_bucketize_value": 1 if missing is None else missing}
        case "vocab_dict":
            table: Node = {word: index for word, index in message.vocab_dict.items()}
            if missing is None and default:
                table[default] = 0
            return {"vocab_dict": table, "default_bucketize_value": 1 if missing is None else missing}
        case "vocab_file":
            found: Node = {"vocab_file": place.asset_name(asset_path(message))}
            return found if missing is None else found | {"default_bucketize_value": missing}
    return {}


def asset_path(message: Tokened | feature_pb2.TokenizeFeature) -> str:
    """Where the feature's vocabulary file is."""
    return f"{message.asset_dir.rstrip('/')}/{message.vocab_file}" if message.asset_dir else message.vocab_file


def of_id(message: ProtoMessage, place: Place) -> list[Node]:
    """An id feature."""
    config = expect(message, feature_pb2.IdFeature)
    node: Node = {
        "feature_type": "id_feature", "feature_name": config.feature_name,
        "default_value": place.default(config.default_value), "expression": config.expression,
        "value_type": config.fg_value_type or "string", "need_prefix": False, "value_dim": place.value_dim(config, 0),
    }  # fmt: skip
    return [node | separator(config) | bucketizer(config, place) | ({"weighted": True} if config.weighted else {})]


def of_raw(message: ProtoMessage, place: Place) -> list[Node]:
    """A raw feature."""
    config = expect(message, feature_pb2.RawFeature)
    wide: Node = {"value_dim": config.value_dim} | separator(config) if config.value_dim > 1 else {}
    node: Node = {
        "feature_type": "raw_feature", "feature_name": config.feature_name,
        "default_value": place.default(config.default_value), "expression": config.expression, "value_type": "float",
    }  # fmt: skip
    return [node | wide | normalizer(config.normalizer) | boundaries(config)]


def of_combo(message: ProtoMessage, place: Place) -> list[Node]:
    """A combo feature."""
    config = expect(message, feature_pb2.ComboFeature)
    node: Node = {
        "feature_type": "combo_feature", "feature_name": config.feature_name,
        "default_value": place.default(config.default_value), "expression": list(config.expression),
        "value_type": "string", "need_prefix": False, "value_dim": place.value_dim(config, 0),
    }  # fmt: skip
    return [node | separator(config) | bucketizer(config, place)]


def of_combine(message: ProtoMessage, place: Place) -> list[Node]:
    """A combine feature."""
    config = expect(message, feature_pb2.CombineFeature)
    node: Node = {
        "feature_type": "combine_feature", "feature_name": config.feature_name,
        "default_value": place.default(config.default_value), "expression": config.expression,
        "value_type": "int64" if config.num_buckets else "float", "need_prefix": False,
        "combiner": config.combiner.lower(),
    }  # fmt: skip
    words: Node = {word: float(value) for word, value in config.value_map.items()}
    sparse: Node = {"num_buckets": config.num_buckets} if config.num_buckets else boundaries(config)
    return [
        node | separator(config) | normalizer(config.normalizer) | ({"value_map": words} if words else {})
        | sparse | ({"value_dim": 1} if sparse else {})
    ]  # fmt: skip


def of_lookup(message: ProtoMessage, place: Place) -> list[Node]:
    """A lookup feature; two nodes where it looks up vectors."""
    config = expect(message, feature_pb2.LookupFeature)
    if config.value_dim > 1:
        return _lookup_vector(config, place)
    tokens = bucketizer(config, place)
    text = bool(tokens) or config.fg_value_type == "string"
    plain = text or config.need_discrete
    combiner = "" if plain else config.combiner
    node: Node = {
        "feature_type": "lookup_feature", "feature_name": config.feature_name, "map": config.map, "key": config.key,
        "default_value": place.default(config.default_value),
        "value_type": config.fg_value_type or ("string" if text else "float"),
        "needDiscrete": plain, "needKey": config.need_key, "combiner": combiner,
    }  # fmt: skip
    width: Node = {} if combiner else {"value_dim": config.value_dim if config.HasField("value_dim") else 1}
    return [node | separator(config) | normalizer(config.normalizer) | (tokens or boundaries(config)) | width]


def _lookup_vector(config: feature_pb2.LookupFeature, place: Place) -> list[Node]:
    default, stub = place.default(config.default_value), f"{config.feature_name}__lookup"
    first: Node = {
        "feature_type": "lookup_feature", "feature_name": stub, "map": config.map, "key": config.key,
        "default_value": config.value_separator.join([default] * config.value_dim), "value_type": "string",
        "value_dim": 1, "needDiscrete": True, "needKey": config.need_key, "combiner": "", "stub_type": True,
    }  # fmt: skip
    second: Node = {
        "feature_type": "raw_feature", "feature_name": config.feature_name, "default_value": default,
        "expression": f"feature:{stub}", "separator": config.value_separator, "value_dim": config.value_dim,
        "value_type": "float",
    }  # fmt: skip
    second |= normalizer(config.normalizer) | boundaries(config)
    return [first, second | ({"sequence_fields": [stub]} if place.grouped else {})]


def of_match(message: ProtoMessage, place: Place) -> list[Node]:
    """A match feature."""
    config = expect(message, feature_pb2.MatchFeature)
    tokens = bucketizer(config, place)
    discrete = bool(tokens) or config.need_discrete or config.fg_value_type == "string"
    node: Node = {
        "feature_type": "match_feature", "feature_name": config.feature_name, "user": config.nested_map,
        "category": config.pkey, "item": config.skey,
        "matchType": "multihit" if "ALL" in (config.pkey, config.skey) else "hit",
        "default_value": place.default(config.default_value),
        "value_type": config.fg_value_type or ("string" if tokens else "float"),
        "needDiscrete": discrete, "show_category": config.show_pkey, "show_item": config.show_skey,
    }  # fmt: skip
    width: Node = {"value_dim": config.value_dim if config.HasField("value_dim") else 1} if discrete else {}
    return [node | separator(config) | normalizer(config.normalizer) | (tokens or boundaries(config)) | width]


def of_overlap(message: ProtoMessage, place: Place) -> list[Node]:
    """An overlap feature; its separator is always there, and a default only in a sequence."""
    config = expect(message, feature_pb2.OverlapFeature)
    node: Node = {
        "feature_type": "overlap_feature", "feature_name": config.feature_name, "query": config.query,
        "title": config.title, "method": config.method, "value_type": "float",
        "separator": config.separator or VALUE_SEPARATOR,
    }  # fmt: skip
    default: Node = {"default_value": "0"} if place.sequence else {}
    return [node | default | normalizer(config.normalizer) | boundaries(config)]


def of_kv_dot(message: ProtoMessage, place: Place) -> list[Node]:
    """A dot product of two key-value sets."""
    config = expect(message, feature_pb2.KvDotProduct)
    node: Node = {
        "feature_type": "kv_dot_product", "feature_name": config.feature_name,
        "default_value": place.default(config.default_value), "query": config.query, "document": config.document,
    }  # fmt: skip
    cut: Node = {} if config.kv_separator == ":" else {"kv_delimiter": config.kv_separator}
    return [node | separator(config) | cut | normalizer(config.normalizer) | boundaries(config)]


def of_bool_mask(message: ProtoMessage, place: Place) -> list[Node]:
    """A bool mask feature."""
    config = expect(message, feature_pb2.BoolMaskFeature)
    node: Node = {
        "feature_type": "bool_mask_feature", "feature_name": config.feature_name,
        "default_value": place.default(config.default_value), "expression": list(config.expression),
        "value_dim": config.value_dim,
    }  # fmt: skip
    typed: Node = {"value_type": config.fg_value_type} if config.fg_value_type else {}
    return [node | separator(config) | bucketizer(config, place) | typed]


def expect(message: ProtoMessage, kind: type[M]) -> M:
    """The message as what it is; TypeError for another."""
    if not isinstance(message, kind):
        raise TypeError(f"expected a {kind.__name__}, got {type(message).__name__}")
    return message


NODES: dict[str, Emit] = {
    "id_feature": of_id,
    "raw_feature": of_raw,
    "combo_feature": of_combo,
    "combine_feature": of_combine,
    "lookup_feature": of_lookup,
    "match_feature": of_match,
    "overlap_feature": of_overlap,
    "kv_dot_product": of_kv_dot,
    "bool_mask_feature": of_bool_mask,
}
"""By field of FeatureConfig; others are in features/fg_text_nodes.py."""

BARE = frozenset({"bool_mask_feature", "custom_feature"})
"""Kinds whose type is not prefixed in a sequence: they say themselves that they are one."""
