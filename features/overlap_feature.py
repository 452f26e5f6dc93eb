"""Overlap features: how much of a query is in a title (models_and_features.md 1.6, feature_generation.md 3.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from google.protobuf.message import Message

from features.choice import boundaries_of
from features.columns import Columns
from features.elements import Int64s, Reader, Splitting, Tokens, as_tokens
from features.encoded import encoded, separators
from features.errors import FeatureConfigError
from features.generator import Dense, Generator, Kind, Setting, Sparse
from features.inputs import refuse_unsupported
from features.judge import Judge
from features.normalize import parse_normalizer
from features.number_stage import Numbers, NumberStage
from features.overlap_kernels import METHODS, overlaps
from features.pairs import offsets_of, readonly, refuse_work
from features.plain import Plain
from features.shape import number_feature, size_of
from features.spec import Feature
from protos import feature_pb2
from stream.row_errors import Faults


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlap:
    """Generator of an overlap; a row that lacks a side has 0.0, which is not normalised."""

    feature: Feature
    splitting: Splitting
    method: str
    stage: NumberStage
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Dense:
        """Compute the numbers, or their buckets, of all rows (features/generator.py)."""
        judge = Judge(columns, self.feature.inputs, faults)
        (query, q_rows), (title, t_rows) = (self._terms(columns, name, faults) for name in self.feature.inputs)
        terms = np.diff(q_rows)
        refuse_work(judge, terms * np.maximum(terms, np.diff(t_rows)))
        numbers = overlaps(
            readonly(query.data), query.starts, query.ends, q_rows,
            readonly(title.data), title.starts, title.ends, t_rows, METHODS.index(self.method),
        )  # fmt: skip
        present = (np.diff(q_rows) > 0) & (np.diff(t_rows) > 0)
        if present.all():
            return self.stage(Numbers(numbers), judge)
        return self.stage(Numbers(numbers[present], present.astype(np.int32)), judge)

    def _terms(self, columns: Columns, name: str, faults: Faults | None) -> tuple[Tokens, Int64s]:
        elements = Reader(columns, name, self.splitting, faults).read()
        return as_tokens(elements.values), offsets_of(elements.lengths, columns.count)

    def describe(self) -> dict[str, object]:
        """What the values depend on, for the digest."""
        separate = sorted({self.splitting.first, self.splitting.second})
        return {"separators": separate, "method": self.method, **self.stage.describe()}


def build(message: Message, setting: Setting) -> Generator:
    """Build the generator of an OverlapFeature; raise FeatureConfigError."""
    if not isinstance(message, feature_pb2.OverlapFeature):
        raise TypeError(f"expected an OverlapFeature, got {type(message).__name__}")
    name = message.feature_name
    refuse_unsupported(message, name, setting)
    if message.method not in METHODS:
        raise FeatureConfigError(f"feature {name!r}: method {message.method!r} must be one of {', '.join(METHODS)}")
    buckets = boundaries_of(message)
    feature = number_feature("overlap", message, [message.query, message.title], size_of(buckets), 1, setting)
    if setting.encoded:
        return encoded(feature, message, setting)
    first, second = separators(name, message.separator, setting)
    stage = NumberStage(default=0.0, normalizer=parse_normalizer(name, message.normalizer), buckets=buckets)
    splitting = Splitting(first=first, second=second, keep_empty=False, weighted=False)
    return Overlap(feature=feature, splitting=splitting, method=message.method, stage=stage)


KIND = Kind(field="overlap_feature", build=build)
