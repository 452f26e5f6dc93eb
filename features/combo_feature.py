"""Combo features: the product of the values of several columns, joined by "_" (models_and_features.md 1.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from google.protobuf.message import Message

from features.budget import PRODUCT
from features.choice import token_bucketizer
from features.columns import Columns
from features.elements import Reader, Splitting, as_tokens
from features.encoded import encoded, separators
from features.errors import FeatureConfigError
from features.generator import Generator, Kind, Setting, Sparse, Strings
from features.inputs import refuse_unsupported
from features.joining import product
from features.judge import Judge
from features.number_stage import NO_IDS
from features.pairs import offsets_of
from features.plain import Plain
from features.shape import token_feature
from features.spec import Feature
from features.token_stage import TokenStage
from protos import feature_pb2
from stream.row_errors import Faults

MOST_VALUES = 1 << 16
"""Products of one row: a row with more is refused, since a request must not take all memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Combo:
    """Generator of a combo feature; a row that lacks any of the values has none."""

    feature: Feature
    splitting: Splitting
    stage: TokenStage
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Strings:
        """Compute the ids of all rows (features/generator.py)."""
        read = [Reader(columns, name, self.splitting, faults).read() for name in self.feature.inputs]
        judge = Judge(columns, self.feature.inputs, faults)
        if faults is not None and all(one.lengths is None for one in read):
            return Sparse(NO_IDS)
        if faults is not None:
            sizes = [np.diff(offsets_of(one.lengths, columns.count)).astype(np.float64) for one in read]
            products = np.prod(sizes, axis=0)
            judge.rows(products > MOST_VALUES, "too_many_values")
            judge.spend(np.minimum(products, MOST_VALUES) * PRODUCT)
            return Sparse(NO_IDS)
        joined, lengths = as_tokens(read[0].values), read[0].lengths
        for other in read[1:]:
            joined, lengths = product(
                joined, offsets_of(lengths, columns.count),
                as_tokens(other.values), offsets_of(other.lengths, columns.count),
            )  # fmt: skip
        return self.stage(joined, lengths, judge)

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        return {"separators": sorted({self.splitting.first, self.splitting.second}), **self.stage.describe()}


def build(message: Message, setting: Setting) -> Generator:
    """Build the generator of a ComboFeature; raise FeatureConfigError."""
    if not isinstance(message, feature_pb2.ComboFeature):
        raise TypeError(f"expected a ComboFeature, got {type(message).__name__}")
    name = message.feature_name
    refuse_unsupported(message, name, setting)
    if len(message.expression) < 2 and not setting.encoded:
        raise FeatureConfigError(f"feature {name!r}: a combo needs at least two expressions")
    bucketizer = token_bucketizer(message, setting)
    feature = token_feature("combo", message, message.expression, bucketizer, message.value_dim, setting)
    if setting.encoded:
        return encoded(feature, message, setting)
    first, second = separators(name, message.separator, setting)
    splitting = Splitting(first=first, second=second, keep_empty=False, weighted=False)
    stage = TokenStage.of(name, bucketizer, message.default_value, message.value_dim)
    return Combo(feature=feature, splitting=splitting, stage=stage)


KIND = Kind(field="combo_feature", build=build)
