"""Lookup features: the values of a map at the keys of a row (models_and_features.md 1.6, feature_generation.md 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from features.bucketize import Boundaries, Bucketizer
from features.choice import boundaries_of, configured, token_bucketizer
from features.columns import Columns
from features.combine_feature import default_number
from features.combining import COMBINERS, combine
from features.elements import Int64s, Reader, Splitting, Tokens
from features.encoded import encoded, separators
from features.errors import FeatureConfigError
from features.generator import Dense, Generator, Kind, Setting, Sparse, Strings
from features.inputs import refuse_unsupported
from features.joining import join_each
from features.judge import Judge
from features.lookup_vector import LookupVector
from features.normalize import parse_normalizer
from features.number_stage import Numbers, NumberStage
from features.pairs import (
    PairSplitting,
    Values,
    count_hits,
    find,
    offsets_of,
    read_pairs,
    refuse_work,
    spans_of,
    take,
    values_as_floats,
    values_as_tokens,
)
from features.plain import Plain
from features.shape import number_feature, size_of, token_feature
from features.spec import Feature
from features.token_stage import TokenStage
from protos import feature_pb2
from stream.row_errors import Faults

MAP_SPLITTING = PairSplitting(first=29, second=29, cut=58, keep_bare=False)
"""Pairs of a map end at \\x1d and are cut at ":", whatever separator is configured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hits:
    """Finds the values of the keys that a map has, in the order of the keys."""

    splitting: Splitting

    def __call__(
        self, columns: Columns, inputs: tuple[str, ...], judge: Judge
    ) -> tuple[Values, Int64s | Tokens, npt.NDArray[np.int32]]:
        """Values and keys of the hits, and how many a row has."""
        return columns.once((inputs, id(self)), lambda: self._find(columns, inputs, judge))

    def _find(
        self, columns: Columns, inputs: tuple[str, ...], judge: Judge
    ) -> tuple[Values, Int64s | Tokens, npt.NDArray[np.int32]]:
        source, owners = columns.whole(inputs[0])
        over = judge.over(source, inputs[:1], owners)
        pairs = source.once((inputs[0], "pairs"), lambda: read_pairs(source, inputs[0], MAP_SPLITTING, over))
        keys = Reader(columns, inputs[1], self.splitting, judge.faults).read()
        offsets = offsets_of(keys.lengths, columns.count)
        spans = spans_of(pairs.offsets, owners)
        refuse_work(judge, (spans[1] - spans[0]) * np.diff(offsets))
        places = find(pairs, keys.values, offsets, spans)
        hit = places >= 0
        found = keys.values.keep(hit) if isinstance(keys.values, Tokens) else keys.values[hit]
        return take(pairs.values, places[hit]), found, count_hits(hit, offsets)


@dataclass(frozen=True, kw_only=True, slots=True)
class LookupNumber:
    """Generator of a numeric lookup; without a combiner there is one bucket for every hit."""

    feature: Feature
    hits: Hits
    combiner: str
    stage: NumberStage
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Dense:
        """Compute the numbers, or their buckets, of all rows (features/generator.py)."""
        judge = Judge(columns, self.feature.inputs, faults)
        values, _, lengths = self.hits(columns, self.feature.inputs, judge)
        numbers, status = values_as_floats(values)
        if status is not None:
            judge.numbers(status, lengths)
        if not self.combiner:
            return self.stage(Numbers(numbers, lengths), judge)
        present = lengths > 0
        folded = combine(numbers, lengths, self.combiner)
        if present.all():
            return self.stage(Numbers(folded), judge)
        return self.stage(Numbers(folded[present], present.astype(np.int32)), judge)

    def describe(self) -> dict[str, object]:
        """What the values depend on, for the digest."""
        how = self.hits.splitting
        return {"separators": sorted({how.first, how.second}), "combiner": self.combiner, **self.stage.describe()}


@dataclass(frozen=True, kw_only=True, slots=True)
class LookupToken:
    """Generator of a lookup whose values become ids, one for every hit; `need_key` puts the key in front."""

    feature: Feature
    hits: Hits
    need_key: bool
    stage: TokenStage
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Strings:
        """Compute the ids of all rows (features/generator.py)."""
        judge = Judge(columns, self.feature.inputs, faults)
        values, keys, lengths = self.hits(columns, self.feature.inputs, judge)
        if isinstance(values, np.ndarray) and values.dtype == np.int64 and not self.need_key:
            return self.stage(np.asarray(values, np.int64), lengths, judge)
        tokens = values_as_tokens(values)
        return self.stage(join_each(values_as_tokens(keys), tokens) if self.need_key else tokens, lengths, judge)

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        how = self.hits.splitting
        return {"separators": sorted({how.first, how.second}), "need_key": self.need_key, **self.stage.describe()}


def build(message: Message, setting: Setting) -> Generator:
    """Build the generator of a LookupFeature; raise FeatureConfigError."""
    if not isinstance(message, feature_pb2.LookupFeature):
        raise TypeError(f"expected a LookupFeature, got {type(message).__name__}")
    name = message.feature_name
    refuse_unsupported(message, name, setting)
    configured(message)
    bucketizer, buckets = token_bucketizer(message, setting), boundaries_of(message)
    value_dim = message.value_dim if message.HasField("value_dim") else 1
    if value_dim > 1 and (bucketizer is not None or message.need_key or message.stub_type):
        raise FeatureConfigError(
            f"feature {name!r}: value_dim {value_dim} looks up vectors of numbers; leave id bucketizers, need_key and "
            "stub_type out"
        )
    feature = _feature(message, bucketizer, buckets, value_dim, setting)
    if setting.encoded:
        return encoded(feature, message, setting)
    first, second = separators(name, message.separator, setting)
    hits = Hits(splitting=Splitting(first=first, second=second, keep_empty=False, weighted=False))
    if value_dim > 1:
        return LookupVector.of(feature, hits, message, buckets)
    if feature.is_sparse and buckets is None:
        stage = TokenStage.of(name, bucketizer, message.default_value)
        return LookupToken(feature=feature, hits=hits, need_key=message.need_key, stage=stage)
    number = NumberStage(
        default=default_number(name, message.default_value), normalizer=parse_normalizer(name, message.normalizer),
        buckets=buckets,
    )  # fmt: skip
    return LookupNumber(feature=feature, hits=hits, combiner=_combiner(message), stage=number)


def _feature(
    message: feature_pb2.LookupFeature, bucketizer: Bucketizer | None, buckets: Boundaries | None, value_dim: int,
    setting: Setting,
) -> Feature:  # fmt: skip
    discrete = bucketizer is not None or message.need_discrete or message.fg_value_type == "string"
    inputs = [message.map, message.key]
    if not discrete:
        return number_feature("lookup", message, inputs, size_of(buckets), max(value_dim, 1), setting)
    if buckets is not None:
        raise FeatureConfigError(
            f"feature {message.feature_name!r}: boundaries are for numbers; leave need_discrete and fg_value_type out"
        )
    return token_feature("lookup", message, inputs, bucketizer, value_dim, setting)


def _combiner(message: feature_pb2.LookupFeature) -> str:
    chosen = message.combiner.lower()
    chosen = "mean" if chosen == "avg" else chosen
    if chosen and chosen not in COMBINERS:
        raise FeatureConfigError(
            f"feature {message.feature_name!r}: combiner {message.combiner!r} must be one of {', '.join(COMBINERS)}, "
            'or "" for every value'
        )
    return chosen


KIND = Kind(field="lookup_feature", build=build)
