"""Lookups of vectors: two steps, as the reference has them, a text by key and a raw feature of that text (3.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from features.bucketize import Boundaries
from features.columns import Columns, Text
from features.dense_column import DenseColumn, number_list
from features.elements import one_byte, text_tokens
from features.errors import FeatureConfigError
from features.generator import Dense, Sparse
from features.judge import Judge
from features.normalize import parse_normalizer
from features.pairs import values_as_tokens
from features.plain import Plain
from features.spec import Feature
from features.views import Views
from protos import feature_pb2
from stream.row_errors import Faults

if TYPE_CHECKING:
    from features.lookup_feature import Hits


@dataclass(frozen=True, kw_only=True, slots=True)
class LookupVector:
    """Generator of a vector: that of the first key that the map has. Its default is normalised like any text."""

    feature: Feature
    hits: Hits
    default: str
    numbers: DenseColumn
    plain: ClassVar[Plain | None] = None

    @classmethod
    def of(
        cls, feature: Feature, hits: Hits, message: feature_pb2.LookupFeature, buckets: Boundaries | None
    ) -> LookupVector:
        """Raise FeatureConfigError for a bad separator, default or normalizer."""
        name, separator = feature.name, message.value_separator
        try:
            cut = one_byte(separator)
        except ValueError as error:
            raise FeatureConfigError(f"feature {name!r}: value_separator: {error}") from None
        number_list(name, "default_value", message.default_value, (), 1)
        numbers = DenseColumn(
            feature=replace(feature, inputs=(f"{name}__lookup",)), first=cut, second=cut, keep_empty=False,
            exact_width=True, default=(), normalizer=parse_normalizer(name, message.normalizer), boundaries=buckets,
        )  # fmt: skip
        text = separator.join([message.default_value] * feature.value_dim) if message.default_value else ""
        return cls(feature=feature, hits=hits, default=text, numbers=numbers)

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Dense:
        """Compute the numbers, or their buckets, of all rows (features/generator.py)."""
        judge = Judge(columns, self.feature.inputs, faults)
        values, _, lengths = self.hits(columns, self.feature.inputs, judge)
        tokens, present = values_as_tokens(values), lengths > 0
        fill = text_tokens([self.default])
        data = np.concatenate((tokens.data, fill.data))
        first = (np.cumsum(lengths, dtype=np.int64) - lengths)[present]
        starts = np.full(columns.count, len(tokens.data), np.int64)
        ends = np.full(columns.count, len(data), np.int64)
        starts[present], ends[present] = tokens.starts[first], tokens.ends[first]
        view = {self.numbers.feature.inputs[0]: Text(starts, ends, data, None)}
        return self.numbers.generate(Views(view, columns.count), faults)

    def describe(self) -> dict[str, object]:
        """What the values depend on, for the digest."""
        how = self.hits.splitting
        return {
            "separators": sorted({how.first, how.second}),
            "missing": self.default,
            "numbers": self.numbers.describe(),
        }
