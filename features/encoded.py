"""FG_NONE: the column of every kind is named after its feature and holds what the kind would have made."""

from __future__ import annotations

from dataclasses import replace

from features.bucketize import Encoded
from features.dense_column import DenseColumn, number_list
from features.elements import Splitting, one_byte
from features.errors import FeatureConfigError
from features.generator import Generator, Setting
from features.messages import Message
from features.sparse_column import SparseColumn, encoded_default
from features.spec import Feature

VALUE_SEPARATOR = "\x1d"


def separators(name: str, configured: str, setting: Setting) -> tuple[int, int]:
    """The two bytes that separate values: the standard one and the configured one, which is added to it."""
    chosen = (setting.multival_separator,) * 2 if setting.encoded else (VALUE_SEPARATOR, configured or VALUE_SEPARATOR)
    try:
        return one_byte(chosen[0]), one_byte(chosen[1])
    except ValueError as error:
        raise FeatureConfigError(f"feature {name!r}: {error}") from None


def encoded(feature: Feature, message: Message, setting: Setting) -> Generator:
    """Read ids, or numbers, as they are given; of defaults only `fg_encoded_default_value` counts."""
    name, text = feature.name, message.fg_encoded_default_value
    first, second = separators(name, "", setting)
    if feature.embedding is not None:
        zch = feature.embedding.zch
        bucketizer = Encoded(feature.embedding.num_embeddings) if zch is None else Encoded(2**63 - 1)
        splitting = Splitting(first=first, second=second, keep_empty=True, weighted=feature.is_weighted)
        default = encoded_default(name, text, setting.multival_separator, bucketizer.size)
        return SparseColumn(feature=feature, splitting=splitting, bucketizer=bucketizer, default=default)
    # One number where the kind has no value_dim, or 0 (feature_generation.md 6.4).
    sized = replace(feature, value_dim=max(feature.value_dim, 1), dense_dim=max(feature.dense_dim, 1))
    numbers = number_list(name, "fg_encoded_default_value", text, (setting.multival_separator,), sized.value_dim)
    return DenseColumn(
        feature=sized, first=first, second=second, keep_empty=True, exact_width=True, default=numbers or None
    )
