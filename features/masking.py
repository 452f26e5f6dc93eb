"""Sample masks: a feature with `use_mask` sees nulls in the masked rows of a training batch, and so its default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import Message

from features.columns import Columns, column, nested
from features.errors import ColumnTypeError, FeatureConfigError
from features.generator import Generator, Made
from features.plain import Plain
from features.sampling.options import SamplerOptions
from features.spec import Feature, Side
from features.views import Views
from protos import feature_pb2, pipeline_pb2
from stream.row_errors import Faults

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Masked:
    """A generator whose first input that is no map is null where the columns' mask is set."""

    inner: Generator
    plain: ClassVar[Plain | None] = None

    @property
    def feature(self) -> Feature:
        """What is computed."""
        return self.inner.feature

    def generate(self, columns: Columns, faults: Faults | None) -> Made:
        """Compute the feature (features/generator.py); checks see the rows as they are."""
        if faults is not None or columns.mask is None or not columns.mask.any():
            return self.inner.generate(columns, faults)
        return self.inner.generate(_hidden(self.feature, columns, columns.mask), None)

    def describe(self) -> dict[str, object]:
        """What the values of rows without a mask depend on: serving never masks."""
        return self.inner.describe()


def _hidden(feature: Feature, columns: Columns, mask: Bools) -> Columns:
    for name, side in zip(feature.inputs, feature.sides, strict=False):
        array = None if side is Side.CONST else columns.array(name)
        if array is None or pa.types.is_map(array.type):
            continue
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        nulled = pc.if_else(pa.array(mask), pa.scalar(None, array.type), array)
        view = nested(nulled) if feature.is_sequence else column(nulled)
        return Views({name: view}, columns.count, columns)
    return columns


def with_masks(generators: list[Generator], config: pipeline_pb2.EasyRecConfig) -> list[Generator]:
    """The generators, those of features with `use_mask` masked where the configuration masks at all.

    Raise FeatureConfigError where such a feature cannot do without a value.
    """
    data = config.data_config
    for name in ("sample_mask_prob", "negative_sample_mask_prob"):
        if not 0 <= getattr(data, name) <= 1:
            raise FeatureConfigError(f"data_config.{name} must be in 0 ... 1, got {getattr(data, name):g}")
    if not (data.sample_mask_prob or data.negative_sample_mask_prob):
        return generators
    names = _masked_names(config)
    sampler = SamplerOptions.from_proto(config)
    if sampler is not None and sampler.candidates is not None:
        for name in sorted(name for name in names if name.startswith(sampler.candidates.prefix)):
            raise FeatureConfigError(f"feature {name!r}: use_mask would hide all candidates of a row; leave it out")
    return [_masked(made) if made.feature.name in names else made for made in generators]


def _masked(generator: Generator) -> Masked:
    feature = generator.feature
    if not feature.inputs:
        raise FeatureConfigError(f"feature {feature.name!r}: use_mask needs an input to hide; leave it out")
    names = list(dict.fromkeys(feature.inputs))
    nothing = Columns(pa.RecordBatch.from_arrays([pa.array([None], pa.string())] * len(names), names=names))
    faults = Faults(1)
    try:
        generator.generate(nothing, faults)
    except ColumnTypeError:
        return Masked(generator)
    if faults:
        reason = faults.errors().details[0]
        raise FeatureConfigError(f"feature {feature.name!r}: use_mask needs a default value for hidden rows ({reason})")
    return Masked(generator)


def _masked_names(config: pipeline_pb2.EasyRecConfig) -> set[str]:
    names = set()
    for entry in config.feature_configs:
        for _, message in entry.ListFields():
            if isinstance(message, feature_pb2.SequenceFeature):
                inner = [part for member in message.features for _, part in member.ListFields()]
                names |= {f"{message.sequence_name}__{_name(part)}" for part in inner if _uses_mask(part)}
            elif isinstance(message, Message) and _uses_mask(message):
                names.add(_name(message))
    return names


def _uses_mask(message: Message) -> bool:
    return bool(getattr(message, "use_mask", False))


def _name(message: Message) -> str:
    return str(getattr(message, "feature_name", ""))
