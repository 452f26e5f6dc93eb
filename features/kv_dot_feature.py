"""Dot products of two sets of weighted keys (models_and_features.md 1.6, feature_generation.md 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numba as nb
import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from features.choice import boundaries_of
from features.columns import Columns
from features.combine_feature import default_number
from features.elements import one_byte
from features.encoded import encoded, separators
from features.errors import FeatureConfigError
from features.generator import Dense, Generator, Kind, Setting, Sparse
from features.inputs import refuse_unsupported
from features.judge import Judge
from features.normalize import parse_normalizer
from features.number_stage import Float32s, Int64s, Numbers, NumberStage
from features.pairs import Pairs, PairSplitting, find, read_pairs, refuse_work, values_as_floats
from features.plain import Plain
from features.shape import number_feature, size_of
from features.spec import Feature
from protos import feature_pb2
from stream.row_errors import Faults


@nb.njit(nogil=True, cache=True)
def _sum_products(hits: Int64s, offsets: Int64s, left: Float32s, right: Float32s) -> Float32s:
    """Sums over the hits of every row, in double."""
    out = np.zeros(len(offsets) - 1, np.float32)
    for row in range(len(out)):
        total = 0.0
        for i in range(offsets[row], offsets[row + 1]):
            if hits[i] >= 0:
                total += np.float64(left[i]) * np.float64(right[hits[i]])
        out[row] = np.float32(total)
    return out


@dataclass(frozen=True, kw_only=True, slots=True)
class KvDot:
    """Generator of a dot product; a row that lacks a side gets the default. Of equal keys the last one counts."""

    feature: Feature
    splitting: PairSplitting
    stage: NumberStage
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Dense:
        """Compute the numbers, or their buckets, of all rows (features/generator.py)."""
        judge = Judge(columns, self.feature.inputs, faults)
        query, document = (read_pairs(columns, name, self.splitting, judge) for name in self.feature.inputs)
        left, right = _weights(query, judge), _weights(document, judge)
        keys = np.diff(query.offsets)
        refuse_work(judge, keys * np.maximum(keys, np.diff(document.offsets)))
        hits = find(document, query.keys, query.offsets)
        own = find(query, query.keys, query.offsets)
        hits[own != np.arange(len(own))] = -1
        present = (query.lengths > 0) & (document.lengths > 0)
        sums = _sum_products(hits, query.offsets, left, right)
        if present.all():
            return self.stage(Numbers(sums), judge)
        return self.stage(Numbers(sums[present], present.astype(np.int32)), judge)

    def describe(self) -> dict[str, object]:
        """What the values depend on, for the digest."""
        how = self.splitting
        return {"separators": sorted({how.first, how.second}), "cut": how.cut, **self.stage.describe()}


def _weights(pairs: Pairs, judge: Judge) -> Float32s:
    """float32, 1 for a bare key."""
    weights, status = values_as_floats(pairs.values)
    bare: npt.NDArray[np.bool_] | None = pairs.bare
    if status is not None:
        if bare is not None:
            weights = np.where(bare, np.float32(1), weights)
            status[bare] = 0
        judge.numbers(status, pairs.lengths)
    elif bare is not None and bare.any():
        weights = np.where(bare, np.float32(1), weights)
    if judge.faults is not None:
        judge.elements(~np.isfinite(weights), pairs.lengths, "not_finite")
    return np.ascontiguousarray(weights)


def build(message: Message, setting: Setting) -> Generator:
    """Build the generator of a KvDotProduct; raise FeatureConfigError."""
    if not isinstance(message, feature_pb2.KvDotProduct):
        raise TypeError(f"expected a KvDotProduct, got {type(message).__name__}")
    name = message.feature_name
    refuse_unsupported(message, name, setting)
    buckets = boundaries_of(message)
    feature = number_feature("kv_dot", message, [message.query, message.document], size_of(buckets), 1, setting)
    if setting.encoded:
        return encoded(feature, message, setting)
    first, second = separators(name, message.separator, setting)
    try:
        cut = one_byte(message.kv_separator)
    except ValueError as error:
        raise FeatureConfigError(f"feature {name!r}: kv_separator: {error}") from None
    # An empty default stands for 0.0, also in front of boundaries (feature_generation.md 2.6).
    stage = NumberStage(
        default=default_number(name, message.default_value) or 0.0,
        normalizer=parse_normalizer(name, message.normalizer), buckets=buckets,
    )  # fmt: skip
    splitting = PairSplitting(first=first, second=second, cut=cut, keep_bare=True)
    return KvDot(feature=feature, splitting=splitting, stage=stage)


KIND = Kind(field="kv_dot_product", build=build)
