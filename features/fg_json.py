"""The configuration of features as fg_json, in its three dialects: full, stripped of bucketizers, and RTP's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import PurePosixPath

from google.protobuf.message import Message

from features.errors import FeatureConfigError
from features.fg_nodes import BARE, NODES, Emit, Json, Node, Place
from features.fg_text_nodes import of_custom, of_expr, of_tokenize
from protos import feature_pb2, pipeline_pb2

_NODES: dict[str, Emit] = NODES | {
    "expr_feature": of_expr,
    "tokenize_feature": of_tokenize,
    "custom_feature": of_custom,
}
_PREFIX = "sequence_"
_BUCKETIZERS = ("hash_bucket_size", "vocab_dict", "vocab_list", "boundaries", "num_buckets")
_RTP = ("id_feature", "raw_feature", "combo_feature", "match_feature", "lookup_feature", "overlap_feature")


class Dialect(Enum):
    """Who reads the json."""

    FULL = "full"
    STRIPPED = "stripped"
    """What makes the columns of FG_BUCKETIZE: no bucketizers."""
    RTP = "rtp"


def fg_json(
    config: pipeline_pb2.EasyRecConfig, dialect: Dialect = Dialect.FULL, *, reserves: Sequence[str] = (),
    asset_name: Callable[[str], str] = str,
) -> dict[str, Json]:  # fmt: skip
    """All features, in their order; `asset_name` says what a file is called. Raise FeatureConfigError."""
    nodes: list[Json] = []
    for entry in config.feature_configs:
        nodes += _entry(entry, dialect, asset_name)
    made: dict[str, Json] = {"features": nodes}
    return made | {"reserves": list(reserves)} if reserves else made


def hashed_name(path: str, content: bytes) -> str:
    """What a copy of a file is called: `<stem>_<md5>.<ext>`.

    >>> hashed_name("/data/words.txt", b"a")
    'words_0cc175b9c0f1b6a831c399e269772661.txt'
    """
    name = PurePosixPath(path)
    return f"{name.stem}_{hashlib.md5(content, usedforsecurity=False).hexdigest()}{name.suffix}"


def _entry(entry: feature_pb2.FeatureConfig, dialect: Dialect, asset_name: Callable[[str], str]) -> list[Node]:
    field, message = _one(entry)
    if isinstance(message, feature_pb2.SequenceFeature):
        return [_group(message, dialect, asset_name)]
    sequence = field.startswith(_PREFIX)
    kind = field.removeprefix(_PREFIX)
    place = Place(sequence=sequence, asset_name=asset_name)
    nodes = _nodes(kind, message, place)
    if sequence:
        nodes = [_stepped(node, kind, message) for node in nodes]
    return [_in_dialect(node, message, dialect, "") for node in nodes]


def _one(entry: feature_pb2.FeatureConfig | feature_pb2.SeqFeatureConfig) -> tuple[str, Message]:
    found = entry.ListFields()
    if len(found) != 1:
        raise FeatureConfigError("an entry of feature_configs must hold exactly one feature")
    return found[0][0].name, found[0][1]


def _nodes(kind: str, message: Message, place: Place) -> list[Node]:
    emit = _NODES.get(kind)
    if emit is None:
        raise FeatureConfigError(f"fg_json knows no {kind}; it has {', '.join(sorted(_NODES))}")
    nodes = emit(message, place)
    if getattr(message, "stub_type", False):
        nodes[-1]["stub_type"] = True
    fields = list(getattr(message, "sequence_fields", ()))
    if place.sequence and fields:
        nodes[0]["sequence_fields"] = fields
    return nodes


def _stepped(node: Node, kind: str, message: Message) -> Node:
    """A sequence on its own says how long it may be and how its text is cut."""
    bare = kind in BARE or kind == "tokenize_feature" and getattr(message, "tokens_as_sequence", False)
    return node | {
        "feature_type": str(node["feature_type"]) if bare else f"{_PREFIX}{node['feature_type']}",
        "sequence_delim": getattr(message, "sequence_delim"),  # noqa: B009 - every kind's message has it
        "sequence_length": getattr(message, "sequence_length"),  # noqa: B009
    }


def _group(group: feature_pb2.SequenceFeature, dialect: Dialect, asset_name: Callable[[str], str]) -> Node:
    members: list[Json] = []
    for entry in group.features:
        kind, message = _one(entry)
        place = Place(sequence=True, grouped=True, asset_name=asset_name)
        for node in _nodes(kind, message, place):
            members.append(_in_dialect(node, message, dialect, f"{group.sequence_name}_"))
    made: Node = {
        "sequence_name": group.sequence_name, "sequence_length": group.sequence_length,
        "sequence_delim": group.sequence_delim,
        "sequence_pk": group.sequence_pk or f"user:{group.sequence_name}", "features": members,
    }  # fmt: skip
    return made | {"sequence_table": "item"} if dialect is Dialect.RTP else made


def _in_dialect(node: Node, message: Message, dialect: Dialect, prefix: str) -> Node:
    if dialect is Dialect.STRIPPED:
        return _stripped(node)
    return _rtp(node, message, prefix) if dialect is Dialect.RTP else node


def _stripped(node: Node) -> Node:
    kept = node["feature_type"] in ("tokenize_feature", "sequence_tokenize_feature")
    gone = _BUCKETIZERS if kept else (*_BUCKETIZERS, "vocab_file")
    return {key: value for key, value in node.items() if key not in gone}


def _rtp(node: Node, message: Message, prefix: str) -> Node:
    """What RTP calls the same; it knows six kinds and no vocabularies."""
    name = str(node["feature_name"])
    if node["feature_type"] not in _RTP:
        raise FeatureConfigError(f"feature {name!r}: RTP knows no {node['feature_type']}; it has {', '.join(_RTP)}")
    if any(key.startswith("vocab_") for key in node):
        raise FeatureConfigError(f"feature {name!r}: RTP knows no vocabularies; use hash_bucket_size or num_buckets")
    made = dict(node)
    for ours, theirs in (("value_dim", "value_dimension"), ("need_discrete", "needDiscrete")):
        if ours in made:
            made[theirs] = made.pop(ours)
    bounds = made.get("boundaries")
    if isinstance(bounds, list):
        made |= {"boundaries": ",".join(f"{bound:g}" for bound in bounds), "gen_key_type": "boundary"}
    elif "hash_bucket_size" in made:
        made["gen_key_type"] = "hash"
    elif "num_buckets" in made:
        made |= {"hash_bucket_size": made.pop("num_buckets"), "gen_key_type": "mod"}
    else:
        made["gen_key_type"] = "idle"
    return made | _rtp_table(made, message, f"{prefix}{name}")


def _rtp_table(node: Mapping[str, Json], message: Message, name: str) -> Node:
    if node["gen_key_type"] == "idle":
        return {"gen_val_type": "idle"}
    return {
        "shared_name": getattr(message, "embedding_name", "") or f"{name}_emb",
        "embedding_dimension": getattr(message, "embedding_dim"),  # noqa: B009 - a kind with a table has it
        "gen_val_type": "lookup",
    }
