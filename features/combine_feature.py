"""Combine features: the values of a row become one number (models_and_features.md 1.6, feature_generation.md 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from features import kernels
from features.bucketize import Vocabulary
from features.choice import boundaries_of, configured
from features.columns import Columns, Floats, Integers, Lists
from features.combining import COMBINERS, combine
from features.dense_column import number_list
from features.elements import Int32s, Int64s, Reader, Splitting, Tokens, as_tokens
from features.encoded import encoded, separators
from features.errors import FeatureConfigError
from features.generator import Dense, Generator, Kind, Setting, Sparse
from features.inputs import refuse_unsupported
from features.judge import Judge
from features.normalize import parse_normalizer
from features.number_stage import Float32s, Numbers, NumberStage, narrow
from features.pairs import values_as_floats
from features.plain import Plain
from features.shape import number_feature, size_of
from features.spec import Feature
from protos import feature_pb2
from stream.row_errors import Faults

Keep = npt.NDArray[np.bool_] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Combine:
    """Generator of a combine feature. Values that are no number, or no key of `value_map`, do not count."""

    feature: Feature
    splitting: Splitting
    combiner: str
    stage: NumberStage
    words: Vocabulary | None = None
    """Places in `numbers`, the values of `value_map`; -1 for other words."""
    numbers: tuple[float, ...] = ()
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Dense:
        """Compute the numbers, or their buckets, of all rows (features/generator.py)."""
        values, keep, lengths = self._read(columns, faults)
        if keep is not None:
            values, lengths = values[keep], _kept(lengths, keep)
        judge = Judge(columns, self.feature.inputs, faults)
        if lengths is None:
            ones = values if self.combiner != "count" else np.ones_like(values)
            return self.stage(Numbers(np.zeros_like(ones) if self.combiner.startswith("gap") else ones), judge)
        present = lengths > 0
        return self.stage(Numbers(combine(values, lengths, self.combiner)[present], present.astype(np.int32)), judge)

    def _read(self, columns: Columns, faults: Faults | None) -> tuple[Float32s, Keep, Int32s | None]:
        """The numbers, which of them count (None: all), and how many a row has."""
        name = self.feature.inputs[0]
        view = columns[name]
        if self.words is None and isinstance(view, Floats):
            held = view.values if view.valid is None else view.values[view.valid]
            return narrow(held), None, None if view.valid is None else view.valid.astype(np.int32)
        if self.words is None and isinstance(view, Lists) and isinstance(view.child, Floats):
            lengths = np.diff(view.offsets).astype(np.int32)
            return narrow(view.child.values), view.child.valid, lengths
        elements = Reader(columns, name, self.splitting, faults if isinstance(view, Integers) else None).read()
        numbers, keep = self._numbers(elements.values)
        if isinstance(view, Lists) and isinstance(view.child, Integers) and view.child.valid is not None:
            keep = view.child.valid if keep is None else keep & view.child.valid
        return numbers, keep, elements.lengths

    def _numbers(self, values: Int64s | Tokens) -> tuple[Float32s, Keep]:
        if self.words is not None:
            places, _ = self.words(as_tokens(values))
            return np.array(self.numbers, np.float32)[places], places >= 0
        numbers, status = values_as_floats(values)
        return numbers, None if status is None else status == kernels.OK

    def describe(self) -> dict[str, object]:
        """What the values depend on, for the digest."""
        return {
            "separators": sorted({self.splitting.first, self.splitting.second}),
            "combiner": self.combiner,
            "value_map": None if self.words is None else [self.words.describe(), list(self.numbers)],
            **self.stage.describe(),
        }


def _kept(lengths: Int32s | None, keep: npt.NDArray[np.bool_]) -> Int32s:
    return keep.astype(np.int32) if lengths is None else kernels.count_kept(lengths, keep)


def default_number(name: str, text: str) -> float | None:
    """One number, or None for ""."""
    found = number_list(name, "default_value", text, (), 1)
    return found[0] if found else None


def _combiner(message: feature_pb2.CombineFeature) -> str:
    chosen = message.combiner.lower()
    chosen = "mean" if chosen == "avg" else chosen
    if chosen not in COMBINERS:
        raise FeatureConfigError(
            f"feature {message.feature_name!r}: combiner {message.combiner!r} must be one of {', '.join(COMBINERS)}"
        )
    return chosen


def build(message: Message, setting: Setting) -> Generator:
    """Build the generator of a CombineFeature; raise FeatureConfigError."""
    if not isinstance(message, feature_pb2.CombineFeature):
        raise TypeError(f"expected a CombineFeature, got {type(message).__name__}")
    name = message.feature_name
    refuse_unsupported(message, name, setting)
    configured(message)
    buckets = boundaries_of(message)
    rows = message.num_buckets or size_of(buckets)
    feature = number_feature("combine", message, [message.expression], rows, 1, setting)
    combiner = _combiner(message)
    if setting.encoded:
        return encoded(feature, message, setting)
    first, second = separators(name, message.separator, setting)
    stage = NumberStage(
        default=default_number(name, message.default_value), normalizer=parse_normalizer(name, message.normalizer),
        buckets=buckets, size=message.num_buckets,
    )  # fmt: skip
    words = sorted(message.value_map)
    table = Vocabulary({word: place for place, word in enumerate(words)}, missing=-1, size=len(words))
    return Combine(
        feature=feature, splitting=Splitting(first=first, second=second, keep_empty=False, weighted=False),
        combiner=combiner, stage=stage, words=table if words else None,
        numbers=tuple(message.value_map[word] for word in words),
    )  # fmt: skip


KIND = Kind(field="combine_feature", build=build)
