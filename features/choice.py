"""Which bucketizer a feature is configured with; two of them are an error (reference: feature_generation.md 2.5)."""

from __future__ import annotations

from features.bucketize import (
    RAW_ID_BUCKETS,
    Boundaries,
    Bucketizer,
    Hashed,
    HashedFloats,
    HashedIntegers,
    Numbered,
    ascending,
    listed,
    mapped,
    read_vocabulary,
)
from features.elements import text_tokens
from features.errors import FeatureConfigError
from features.generator import Setting
from features.inputs import read_dynamic, read_zch
from features.kernels import OK
from features.messages import Numeric, Tokened
from features.spec import ZchSpec
from protos import feature_pb2

BUCKETIZERS = (
    "zch", "dynamicemb", "hash_bucket_size", "num_buckets", "vocab_list", "vocab_dict", "vocab_file", "boundaries",
)  # fmt: skip


def configured(message: Tokened | Numeric) -> str:
    """The name of the one bucketizer that is set, "" for none; raise FeatureConfigError for two."""
    fields = {field.name for field, value in message.ListFields() if value}
    found = [name for name in BUCKETIZERS if name in fields]
    if len(found) > 1:
        raise FeatureConfigError(
            f"feature {message.feature_name!r}: {' and '.join(found)} are set, and a feature has one bucketizer"
        )
    return found[0] if found else ""


def table_of(message: Tokened) -> ZchSpec | None:
    """The zero-collision table, if that is what the feature has."""
    if message.HasField("zch"):
        return read_zch(message.feature_name, message.zch)
    if message.HasField("dynamicemb"):
        return read_dynamic(message.feature_name, message.dynamicemb)
    return None


def token_bucketizer(message: Tokened, setting: Setting) -> Bucketizer | None:
    """What turns tokens into ids; None where none is configured, or only boundaries are."""
    name, typed = message.feature_name, _value_type(message)
    missing = message.default_bucketize_value if message.HasField("default_bucketize_value") else None
    which = configured(message)
    match which:
        case "zch" | "dynamicemb":
            return Hashed(RAW_ID_BUCKETS, setting.farm_hash)
        case "hash_bucket_size":
            return _hashed(message.hash_bucket_size, typed, setting)
        case "num_buckets":
            return None if isinstance(message, feature_pb2.ComboFeature) else Numbered(message.num_buckets, bool(typed))
        case "vocab_list":
            return listed(name, list(message.vocab_list), message.default_value, missing)
        case "vocab_dict":
            return mapped(name, dict(message.vocab_dict), message.default_value, missing)
        case "vocab_file":
            return _vocab_file(message, missing, setting)
    return None


def need(message: Tokened, bucketizer: Bucketizer | None) -> Bucketizer:
    """The bucketizer of a feature that must have one."""
    if bucketizer is None:
        raise FeatureConfigError(
            f"feature {message.feature_name!r}: one of zch, hash_bucket_size, num_buckets, vocab_list, vocab_dict, "
            "vocab_file must be set"
        )
    return bucketizer


def _hashed(size: int, typed: str, setting: Setting) -> Bucketizer:
    if typed == "float":
        return HashedFloats(size)
    return HashedIntegers(size) if typed == "int" else Hashed(size, setting.farm_hash)


def _value_type(message: Tokened) -> str:
    """ "float", "int", or "" for strings."""
    if isinstance(message, feature_pb2.ComboFeature | feature_pb2.CustomFeature):
        return ""
    kinds = {"": "", "string": "", "float": "float", "double": "float", "int32": "int", "int64": "int"}
    if message.fg_value_type not in kinds:
        raise FeatureConfigError(
            f"feature {message.feature_name!r}: fg_value_type {message.fg_value_type!r} must be one of "
            f"{', '.join(filter(None, kinds))}"
        )
    return kinds[message.fg_value_type]


def _vocab_file(message: Tokened, missing: int | None, setting: Setting) -> Bucketizer:
    name = message.feature_name
    path = f"{message.asset_dir.rstrip('/')}/{message.vocab_file}" if message.asset_dir else message.vocab_file
    if missing is None:
        raise FeatureConfigError(
            f"feature {name!r}: vocab_file needs default_bucketize_value, the row of unknown words"
        )
    try:
        text = setting.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise FeatureConfigError(f"feature {name!r}: vocab_file {path!r} cannot be read: {error}") from error
    return read_vocabulary(name, text, missing)


def default_ids(name: str, text: str, bucketizer: Bucketizer) -> tuple[int, ...]:
    """The ids of a default: one token, never split; none for ""."""
    if not text:
        return ()
    ids, status = bucketizer(text_tokens([text]))
    if status is not None and status[0] != OK:
        raise FeatureConfigError(f"feature {name!r}: default_value {text!r} is not an integer")
    return (int(ids[0]),)


def boundaries_of(message: Numeric) -> Boundaries | None:
    """Boundaries, if set; raise FeatureConfigError where they do not ascend."""
    return ascending(message.feature_name, list(message.boundaries)) if message.boundaries else None
