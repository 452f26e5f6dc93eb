"""Tokenize features: the tokens of a text become rows of a table (feature_generation.md 3.7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from google.protobuf.message import Message

from features.columns import Columns
from features.distinct import distinct_texts, spread
from features.encoded import encoded
from features.errors import FeatureConfigError
from features.generator import Generator, Kind, Made, Setting, Sparse, Steps
from features.inputs import read_embedding, refuse_unsupported, single_input
from features.judge import Judge
from features.number_stage import NO_IDS
from features.plain import Plain
from features.spec import Feature
from features.text_normalizer import TextNormalizer, read_normalizer
from features.tokenizers import Tokenizer, read_tokenizer
from protos import feature_pb2
from stream.row_errors import Faults


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TokenizedText:
    """Generator of the tokens of a text; `default` are those of a row without one."""

    feature: Feature
    tokenizer: Tokenizer
    normalizer: TextNormalizer | None
    default: tuple[int, ...]
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse:
        """Tokenize each distinct text of a batch once (features/generator.py)."""
        judge = Judge(columns, self.feature.inputs, faults)
        found = distinct_texts(columns, self.feature.inputs[0], judge)
        if faults is not None:
            return Sparse(NO_IDS)
        judge.missing((found.of_row >= 0).astype(np.int32), bool(self.default))
        texts = found.texts if self.normalizer is None else [self.normalizer(text) for text in found.texts]
        return Sparse(*spread(self.tokenizer.encode(texts), found.of_row, list(self.default)))

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        return {
            **self.tokenizer.describe(),
            "normalizer": None if self.normalizer is None else self.normalizer.describe(),
            "default": list(self.default),
        }


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TokensAsSteps:
    """Each token is one step of a sequence."""

    inner: Generator
    feature: Feature
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Made:
        """The tokens of all rows (features/generator.py)."""
        made = self.inner.generate(columns, faults)
        if not isinstance(made, Sparse):
            raise TypeError(f"feature {self.feature.name!r}: tokens are ids")
        lengths = np.ones(len(made.values), np.int32) if made.lengths is None else made.lengths
        return Steps(Sparse(made.values), lengths)

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        return {"tokens_as_sequence": True, "tokens": self.inner.describe()}


def build(message: Message, setting: Setting) -> Generator:
    """Build the generator of a TokenizeFeature; raise FeatureConfigError."""
    if not isinstance(message, feature_pb2.TokenizeFeature):
        raise TypeError(f"expected a TokenizeFeature, got {type(message).__name__}")
    name = message.feature_name
    refuse_unsupported(message, name, setting)
    tokenizer = read_tokenizer(message, setting)
    inputs, sides = single_input(name, message.expression, setting)
    feature = Feature(
        name=name, kind="tokenize", inputs=inputs, sides=sides, is_sparse=True, is_stub=message.stub_type,
        value_dim=0, embedding=read_embedding(name, message, tokenizer.size, None),
    )  # fmt: skip
    made = _generator(feature, tokenizer, message, setting)
    if not message.tokens_as_sequence:
        return made
    if not message.sequence_length:
        raise FeatureConfigError(f"feature {name!r}: tokens_as_sequence needs sequence_length")
    sequence = replace(feature, is_sequence=True, sequence_length=message.sequence_length, value_dim=1)
    return TokensAsSteps(inner=made, feature=sequence)


def _generator(
    feature: Feature, tokenizer: Tokenizer, message: feature_pb2.TokenizeFeature, setting: Setting
) -> Generator:
    if setting.encoded:
        return encoded(feature, message, setting)
    # A sequence has no empty default.
    default = message.default_value or ("0" if message.tokens_as_sequence else "")
    return TokenizedText(
        feature=feature,
        tokenizer=tokenizer,
        normalizer=(
            read_normalizer(feature.name, message.text_normalizer, setting)
            if message.HasField("text_normalizer")
            else None
        ),
        default=tuple(tokenizer.encode([default])[0]) if default else (),
    )


KIND = Kind(field="tokenize_feature", build=build)
