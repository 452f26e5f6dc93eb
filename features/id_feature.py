"""Id features: tokens of one column become rows of a table (models_and_features.md 1.6, feature_generation.md 2)."""

from __future__ import annotations

from google.protobuf.message import Message

from features.bucketize import (
    RAW_ID_BUCKETS,
    Bucketizer,
    Encoded,
    Hashed,
    Numbered,
    listed,
    mapped,
    read_vocabulary,
)
from features.elements import Splitting, one_byte, text_tokens
from features.errors import FeatureConfigError
from features.generator import Generator, Kind, Setting
from features.inputs import read_embedding, read_zch, refuse_unsupported, single_input
from features.kernels import OK
from features.sparse_column import SparseColumn, encoded_default
from features.spec import Feature, ZchSpec
from protos import feature_pb2

VALUE_SEPARATOR = "\x1d"


def _bucketizer(config: feature_pb2.IdFeature, zch: ZchSpec | None, setting: Setting) -> Bucketizer:
    """The one that is configured; the order is the reference's."""
    name = config.feature_name
    missing = config.default_bucketize_value if config.HasField("default_bucketize_value") else None
    words = bool(config.vocab_list) or bool(config.vocab_dict) or bool(config.vocab_file)
    if words and config.num_buckets:
        raise FeatureConfigError(f"feature {name!r}: a vocabulary and num_buckets exclude each other; leave one out")
    if zch is not None:
        return Hashed(RAW_ID_BUCKETS)
    if config.hash_bucket_size:
        return Hashed(config.hash_bucket_size)
    if config.vocab_list:
        return listed(name, list(config.vocab_list), config.default_value, missing)
    if config.vocab_dict:
        return mapped(name, dict(config.vocab_dict), config.default_value, missing)
    if config.vocab_file:
        return _vocab_file(config, missing, setting)
    if config.num_buckets:
        return Numbered(config.num_buckets)
    raise FeatureConfigError(
        f"feature {name!r}: one of zch, hash_bucket_size, num_buckets, vocab_list, vocab_dict, vocab_file must be set"
    )


def _vocab_file(config: feature_pb2.IdFeature, missing: int | None, setting: Setting) -> Bucketizer:
    name = config.feature_name
    path = f"{config.asset_dir.rstrip('/')}/{config.vocab_file}" if config.asset_dir else config.vocab_file
    if missing is None:
        raise FeatureConfigError(
            f"feature {name!r}: vocab_file needs default_bucketize_value, the row of unknown words"
        )
    try:
        text = setting.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise FeatureConfigError(f"feature {name!r}: vocab_file {path!r} cannot be read: {error}") from error
    return read_vocabulary(name, text, missing)


def _default_ids(name: str, text: str, bucketizer: Bucketizer) -> tuple[int, ...]:
    """The default is one token, never split."""
    if not text:
        return ()
    ids, status = bucketizer(text_tokens([text]))
    if status is not None and status[0] != OK:
        raise FeatureConfigError(f"feature {name!r}: default_value {text!r} is not an integer")
    return (int(ids[0]),)


def _splitting(config: feature_pb2.IdFeature, setting: Setting) -> Splitting:
    name = config.feature_name
    configured = config.separator or VALUE_SEPARATOR
    try:
        # The configured separator is added to the standard one.
        separators = (setting.multival_separator,) * 2 if setting.encoded else (VALUE_SEPARATOR, configured)
        first, second = (one_byte(separator) for separator in separators)
    except ValueError as error:
        raise FeatureConfigError(f"feature {name!r}: {error}") from None
    limit = 0 if setting.encoded else config.value_dim
    return Splitting(first=first, second=second, keep_empty=setting.encoded, weighted=config.weighted, limit=limit)


def build(message: Message, setting: Setting) -> Generator:
    """Build the generator of an IdFeature; raise FeatureConfigError."""
    if not isinstance(message, feature_pb2.IdFeature):
        raise TypeError(f"expected an IdFeature, got {type(message).__name__}")
    name = message.feature_name
    refuse_unsupported(message, name)
    inputs, sides = single_input(name, message.expression, setting)
    zch = read_zch(name, message.zch) if message.HasField("zch") else None
    bucketizer = _bucketizer(message, zch, setting)
    embedding = read_embedding(name, message, bucketizer.size if zch is None else zch.size, zch)
    feature = Feature(
        name=name, kind="id", inputs=inputs, sides=sides, is_sparse=True, is_weighted=message.weighted,
        value_dim=message.value_dim, embedding=embedding,
    )  # fmt: skip
    if setting.encoded:
        default = encoded_default(name, message.fg_encoded_default_value, setting.multival_separator, bucketizer.size)
        bucketizer = Encoded(bucketizer.size)
    else:
        default = _default_ids(name, message.default_value, bucketizer)
    return SparseColumn(feature=feature, splitting=_splitting(message, setting), bucketizer=bucketizer, default=default)


KIND = Kind(field="id_feature", build=build)
