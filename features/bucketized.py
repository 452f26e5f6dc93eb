"""FG_BUCKETIZE: columns named after features hold what would be bucketized (feature_generation.md section 7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from google.protobuf.message import Message

from features.bucketize import Encoded
from features.choice import boundaries_of, token_bucketizer
from features.columns import Columns
from features.dense_column import DenseColumn
from features.elements import Splitting
from features.encoded import separators
from features.errors import FeatureConfigError
from features.generator import Dense, Generator, Setting, Sparse
from features.judge import Judge
from features.messages import Numeric, Tokened
from features.number_input import read_numbers
from features.number_stage import Numbers, NumberStage, narrow
from features.plain import Plain
from features.sparse_column import SparseColumn
from features.spec import Feature
from features.tokenize_feature import TokensAsSteps
from protos import feature_pb2
from stream.row_errors import Faults


@dataclass(frozen=True, kw_only=True, slots=True)
class BucketizedNumbers:
    """Generator of the buckets of given numbers; a row without one has no id."""

    feature: Feature
    separators: tuple[int, int]
    stage: NumberStage
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Dense:
        """Compute the ids of all rows (features/generator.py)."""
        judge = Judge(columns, self.feature.inputs, faults)
        given = read_numbers(columns, self.feature.inputs[0], self.separators, judge)
        return self.stage(Numbers(narrow(given.values), given.lengths), judge)

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        return {"separators": sorted(set(self.separators)), **self.stage.describe()}


def bucketized(made: Generator, message: Message, setting: Setting) -> Generator:
    """What only bucketizes, in place of the generator of a kind; raise FeatureConfigError."""
    if getattr(message, "stub_type", False):
        return made  # which nobody asks for: what stubs were for is in the columns
    feature = _renamed(made.feature)
    split = separators(feature.name, getattr(message, "separator", ""), setting)
    if isinstance(message, feature_pb2.TokenizeFeature):
        return _tokens(feature, split)
    if not feature.is_sparse:
        return DenseColumn(
            feature=feature, first=split[0], second=split[1], keep_empty=False, exact_width=True, default=None
        )
    if isinstance(message, Tokened):
        bucketizer = token_bucketizer(message, setting)
        if bucketizer is not None:
            return SparseColumn(feature=feature, splitting=_splitting(split, feature), bucketizer=bucketizer)
    if isinstance(message, Numeric):
        size = message.num_buckets if isinstance(message, feature_pb2.CombineFeature) else 0
        stage = NumberStage(default=None, buckets=boundaries_of(message), size=size)
        return BucketizedNumbers(feature=feature, separators=split, stage=stage)
    raise FeatureConfigError(f"feature {feature.name!r}: FG_BUCKETIZE does not know how {feature.kind} bucketizes")


def _renamed(feature: Feature) -> Feature:
    return replace(feature, inputs=(feature.name,), sides=feature.sides[:1])


def _splitting(split: tuple[int, int], feature: Feature) -> Splitting:
    return Splitting(first=split[0], second=split[1], keep_empty=False, weighted=feature.is_weighted)


def _tokens(feature: Feature, split: tuple[int, int]) -> Generator:
    """Token ids are final."""
    size = 0 if feature.embedding is None else feature.embedding.num_embeddings
    inner = SparseColumn(feature=feature, splitting=_splitting(split, feature), bucketizer=Encoded(size))
    return TokensAsSteps(inner=inner, feature=feature) if feature.is_sequence else inner
