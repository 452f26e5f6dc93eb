"""Id features: tokens of one column become rows of a table (models_and_features.md 1.6, feature_generation.md 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from google.protobuf.message import Message

from features.choice import default_ids, token_bucketizer
from features.columns import Columns
from features.elements import Reader, Splitting
from features.encoded import encoded, separators
from features.generator import Generator, Kind, Setting, Sparse, Strings
from features.inputs import refuse_unsupported
from features.judge import Judge
from features.plain import Plain
from features.shape import token_feature
from features.sparse_column import SparseColumn
from features.spec import Feature
from features.token_stage import TokenStage
from protos import feature_pb2
from stream.row_errors import Faults


@dataclass(frozen=True, kw_only=True, slots=True)
class StubTokens:
    """Generator of a stub without a bucketizer: the tokens themselves."""

    feature: Feature
    splitting: Splitting
    stage: TokenStage
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Strings:
        """Read the tokens of all rows (features/generator.py)."""
        elements = Reader(columns, self.feature.inputs[0], self.splitting, faults).read()
        return self.stage(elements.values, elements.lengths, Judge(columns, self.feature.inputs, faults))

    def describe(self) -> dict[str, object]:
        """What the tokens depend on, for the digest."""
        how = self.splitting
        return {"separators": sorted({how.first, how.second}), "limit": how.limit, **self.stage.describe()}


def build(message: Message, setting: Setting) -> Generator:
    """Build the generator of an IdFeature; raise FeatureConfigError."""
    if not isinstance(message, feature_pb2.IdFeature):
        raise TypeError(f"expected an IdFeature, got {type(message).__name__}")
    name = message.feature_name
    refuse_unsupported(message, name, setting)
    bucketizer = token_bucketizer(message, setting)
    feature = token_feature(
        "id", message, [message.expression], bucketizer, message.value_dim, setting, weighted=message.weighted
    )
    if setting.encoded:
        return encoded(feature, message, setting)
    first, second = separators(name, message.separator, setting)
    splitting = Splitting(
        first=first, second=second, keep_empty=False, weighted=message.weighted, limit=message.value_dim
    )
    if bucketizer is None:
        stage = TokenStage.of(name, None, message.default_value)
        return StubTokens(feature=feature, splitting=splitting, stage=stage)
    default = default_ids(name, message.default_value, bucketizer)
    return SparseColumn(feature=feature, splitting=splitting, bucketizer=bucketizer, default=default)


KIND = Kind(field="id_feature", build=build)
