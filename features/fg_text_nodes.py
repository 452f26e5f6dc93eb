"""The nodes of fg_json for expressions, texts and operators (feature_generation.md section 8)."""

from __future__ import annotations

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message as ProtoMessage

from features.fg_nodes import Json, Node, Place, boundaries, bucketizer, expect, normalizer, separator
from protos import feature_pb2

_BITS = {
    feature_pb2.TEXT_LOWER2UPPER: 2,
    feature_pb2.TEXT_UPPER2LOWER: 4,
    feature_pb2.TEXT_SBC2DBC: 8,
    feature_pb2.TEXT_CHT2CHS: 16,
    feature_pb2.TEXT_FILTER: 32,
    feature_pb2.TEXT_SPLITCHRS: 512,
}


def of_expr(message: ProtoMessage, place: Place) -> list[Node]:
    """An expr feature; keys that the configuration leaves out are left out."""
    config = expect(message, feature_pb2.ExprFeature)
    node: Node = {
        "feature_type": "expr_feature", "feature_name": config.feature_name,
        "default_value": place.default(config.default_value), "expression": config.expression,
        "variables": list(config.variables), "value_type": "float",
    }  # fmt: skip
    missing: Node = {"fill_missing": config.fill_missing} if config.HasField("fill_missing") else {}
    width: Node = {"value_dim": config.value_dim} if config.HasField("value_dim") else {}
    return [node | separator(config) | missing | boundaries(config) | width]


def of_tokenize(message: ProtoMessage, place: Place) -> list[Node]:
    """A tokenize feature, behind a stub that normalises its text, where that is configured."""
    config = expect(message, feature_pb2.TokenizeFeature)
    if config.tokens_as_sequence:
        place = Place(sequence=True, grouped=place.grouped, asset_name=place.asset_name)
    path = f"{config.asset_dir.rstrip('/')}/{config.vocab_file}" if config.asset_dir else config.vocab_file
    stub = f"{config.feature_name}__text_norm"
    normalised = config.HasField("text_normalizer")
    node: Node = {
        "feature_type": "tokenize_feature", "feature_name": config.feature_name,
        "default_value": place.default(config.default_value), "vocab_file": place.asset_name(path),
        "expression": f"feature:{stub}" if normalised else config.expression,
        "tokenizer_type": config.tokenizer_type, "output_type": "word_id",
    }  # fmt: skip
    if not normalised:
        return [node]
    fields: Node = {"sequence_fields": [stub]} if place.grouped else {}
    return [_text_normalizer(config, stub, place), node | fields]


def _text_normalizer(config: feature_pb2.TokenizeFeature, stub: str, place: Place) -> Node:
    how = config.text_normalizer
    node: Node = {
        "feature_type": "text_normalizer", "feature_name": stub, "expression": config.expression,
        "is_gbk_input": False, "is_gbk_output": False, "stub_type": True,
    }  # fmt: skip
    # A repeated option counts once: the peer's sum would be another set of options.
    bits = sum(_BITS[option] for option in set(how.norm_options) if option in _BITS)
    optional: dict[str, Json] = {
        "max_length": how.max_length,
        "stop_char_file": place.asset_name(how.stop_char_file) if how.stop_char_file else "",
        "parameter": bits,
        "remove_space": feature_pb2.TEXT_REMOVE_SPACE in how.norm_options,
    }
    default: Node = {"default_value": "0"} if place.sequence else {}
    return node | default | {key: value for key, value in optional.items() if value}


def of_custom(message: ProtoMessage, place: Place) -> list[Node]:
    """A custom feature; the operator's parameters stand beside its other keys."""
    config = expect(message, feature_pb2.CustomFeature)
    tokens = bucketizer(config, place)
    kind = "int64" if "num_buckets" in tokens else "string" if tokens else "float"
    node: Node = {
        "feature_type": "custom_feature", "feature_name": config.feature_name,
        "default_value": place.default(config.default_value), "operator_name": config.operator_name,
        "operator_lib_file": place.asset_name(config.operator_lib_file),
        "is_op_thread_safe": config.is_op_thread_safe, "expression": list(config.expression), "value_type": kind,
    }  # fmt: skip
    parameters: Node = MessageToDict(config.operator_params) if config.HasField("operator_params") else {}
    rest: Node = {"value_dim": config.value_dim if config.HasField("value_dim") else 1}
    steps: Node = {"is_sequence": True} if place.sequence else {}
    return [
        node | parameters | separator(config) | normalizer(config.normalizer) | (tokens or boundaries(config))
        | rest | steps
    ]  # fmt: skip
