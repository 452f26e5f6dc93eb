"""Sequences of every kind: cut into steps, generated as rows, nested again (architecture.md section 4, Sequences)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from google.protobuf.message import Message

from features.bucketized import bucketized
from features.columns import Columns
from features.elements import one_byte
from features.errors import FeatureConfigError
from features.generator import Dense, Generator, Kind, Setting, Sparse, Steps, Strings
from features.plain import Plain
from features.sparse_column import NO_IDS
from features.spec import Feature, Side
from features.steps import Cutting, Input, Int32s
from protos import feature_pb2
from stream.row_errors import Faults

NO_STEPS = np.empty(0, np.int32)
PREFIX = "sequence_"
SINGLE_INPUT = ("id_feature", "raw_feature", "tokenize_feature", "combine_feature")
_SEQUENCE_FIELDS = ("sequence_length", "sequence_delim", "sequence_fields")
_ONE_VALUE = ("id_feature", "combo_feature", "bool_mask_feature", "expr_feature")
"""Kinds whose steps hold one value unless `value_dim` says otherwise."""

Find = Callable[[str], Kind | None]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SequenceGenerator:
    """Generates one row for every step."""

    inner: Generator
    feature: Feature
    cutting: Cutting
    single: bool = False
    """In a list of ids each is a step, those of the default too (FG_NONE)."""
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Steps:
        """Compute all steps of all rows (features/generator.py)."""
        if faults is not None and getattr(self.inner, "any_text", False) and self.cutting.is_of_text(columns):
            return Steps(Sparse(NO_IDS), NO_STEPS)
        stepped = self.cutting.cut(columns, faults)
        found = None if faults is None else Faults(stepped.columns.count, faults.spend)
        made = self.inner.generate(stepped.columns, found)
        if faults is not None and found:
            stepped.blame(self.feature.name, found.errors(), faults)
        if not isinstance(made, Sparse | Dense | Strings):
            raise TypeError(f"feature {self.feature.name!r}: a sequence holds no sequences")
        if self.single and stepped.flat and isinstance(made, Sparse) and made.lengths is not None:
            return _one_each(made, made.lengths, stepped.lengths)
        return Steps(made, stepped.lengths)

    def describe(self) -> dict[str, object]:
        """What the values depend on, for the digest."""
        return {"steps": self.cutting.describe(), "step": self.inner.describe()}


def _one_each(made: Sparse, in_step: Int32s, steps: Int32s) -> Steps:
    """Each id as a step of its own."""
    before = np.concatenate(([0], np.cumsum(in_step, dtype=np.int64)))
    ends = np.concatenate(([0], np.cumsum(steps, dtype=np.int64)))
    return Steps(Sparse(made.values, None, made.weights), np.diff(before[ends]).astype(np.int32))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sequence:
    """What a sequence says about itself; `name` is that of its group, "" where it has none."""

    name: str
    length: int
    delimiter: str
    fields: tuple[str, ...]


def build_simple(field: str, message: Message, setting: Setting, find: Find) -> Generator:
    """Build a `sequence_*` feature; raise FeatureConfigError."""
    how = _Sequence(
        name="",
        length=getattr(message, "sequence_length"),  # noqa: B009 - every kind's message has it
        delimiter=getattr(message, "sequence_delim"),  # noqa: B009
        fields=tuple(getattr(message, "sequence_fields")),  # noqa: B009
    )
    return _build(field.removeprefix(PREFIX), message, how, setting, find)


def build_group(group: feature_pb2.SequenceFeature, setting: Setting, find: Find) -> list[Generator]:
    """Build the members of a `sequence_feature`; raise FeatureConfigError."""
    if not group.sequence_name:
        raise FeatureConfigError("a sequence_feature has no sequence_name")
    if not group.features:
        raise FeatureConfigError(f"sequence {group.sequence_name!r} has no features")
    return [_member(group, config, setting, find) for config in group.features]


def _member(
    group: feature_pb2.SequenceFeature, config: feature_pb2.SeqFeatureConfig, setting: Setting, find: Find
) -> Generator:
    set_fields = config.ListFields()
    if len(set_fields) != 1:
        raise FeatureConfigError(f"sequence {group.sequence_name!r}: an entry of features must hold one feature")
    field, message = set_fields[0]
    fields = tuple(message.sequence_fields) if "sequence_fields" in message.DESCRIPTOR.fields_by_name else ()
    how = _Sequence(
        name=group.sequence_name, length=group.sequence_length, delimiter=group.sequence_delim, fields=fields
    )
    return _build(field.full_name if field.is_extension else field.name, message, how, setting, find)


def _build(field: str, message: Message, how: _Sequence, setting: Setting, find: Find) -> Generator:
    kind = find(field)
    bare = getattr(message, "feature_name", "")
    if not bare:
        raise FeatureConfigError(f"a {field} of sequence {how.name!r} has no feature_name")
    name = f"{how.name}__{bare}" if how.name else bare
    if kind is None:
        raise FeatureConfigError(f"feature {name!r}: {field} is not supported in sequences yet")
    _check(name, message, how)
    row = _as_row(field, message, name, setting)
    inner = kind.build(row, setting)
    inner = bucketized(inner, row, setting) if setting.bucketize else inner
    given = setting.encoded or setting.bucketize
    stretch = bool(getattr(inner, "stretch", False))
    inputs = _inputs(field, inner.feature, how, setting, stretch)
    feature = replace(
        inner.feature,
        inputs=tuple(item.column for item in inputs),
        is_sequence=True,
        sequence_name=how.name,
        sequence_length=how.length,
    )
    cutting = Cutting(
        inputs=inputs,
        delimiter=_delimiter(name, how),
        limit=0 if given else how.length,
        stretch=stretch,
        keep_empty_rows=given and feature.is_sparse and not _has_encoded_default(message, setting),
        refuse_empty_steps=setting.encoded,
        width=1 if feature.is_sparse or not setting.encoded else max(feature.value_dim, 1),
    )
    single = feature.is_sparse and _has_encoded_default(message, setting)
    return SequenceGenerator(inner=inner, feature=feature, cutting=cutting, single=single)


def _has_encoded_default(message: Message, setting: Setting) -> bool:
    return setting.encoded and bool(getattr(message, "fg_encoded_default_value", ""))


def _check(name: str, message: Message, how: _Sequence) -> None:
    if getattr(message, "weighted", False):
        raise FeatureConfigError(f"feature {name!r}: a sequence cannot be weighted; leave weighted out")
    if getattr(message, "tokens_as_sequence", False):
        raise FeatureConfigError(
            f"feature {name!r}: tokens_as_sequence makes a sequence of one text; use it in a tokenize_feature"
        )
    if how.name and any(message.HasField(field) for field in ("sequence_length",) if _knows(message, field)):
        raise FeatureConfigError(
            f"feature {name!r}: the length of its steps is that of sequence {how.name!r}; leave sequence_length out"
        )


def _delimiter(name: str, how: _Sequence) -> int:
    try:
        return one_byte(how.delimiter)
    except ValueError as error:
        raise FeatureConfigError(f"feature {name!r}: sequence_delim: {error}") from None


def _knows(message: Message, field: str) -> bool:
    return field in message.DESCRIPTOR.fields_by_name


def _as_row(field: str, message: Message, name: str, setting: Setting) -> Message:
    """The feature of one step: no empty default, and one value where nothing else is said."""
    row = type(message)()
    row.CopyFrom(message)
    for item in _SEQUENCE_FIELDS:
        if _knows(row, item):
            row.ClearField(item)
    setattr(row, "feature_name", name)  # noqa: B010 - every kind's message has it
    if not setting.encoded and _knows(row, "default_value") and not getattr(row, "default_value"):  # noqa: B009
        setattr(row, "default_value", "0")  # noqa: B010
    if field in _ONE_VALUE and not row.HasField("value_dim"):
        setattr(row, "value_dim", 1)  # noqa: B010
    return row


def _inputs(field: str, feature: Feature, how: _Sequence, setting: Setting, stretch: bool) -> tuple[Input, ...]:
    """Which inputs are sequences: those that are named, else by the kind and the side; all with `stretch`."""
    if setting.encoded or setting.bucketize:
        return tuple(Input(name=name, column=name, sequence=True) for name in feature.inputs)
    unknown = sorted(set(how.fields) - set(feature.inputs))
    if unknown:
        raise FeatureConfigError(
            f"feature {feature.name!r}: sequence_fields names {unknown[0]!r}, which is none of its inputs"
        )
    single = field in SINGLE_INPUT or len(feature.inputs) == 1
    found = []
    for name, side in zip(feature.inputs, feature.sides, strict=True):
        by_side = side is not Side.FEATURE if single else side is Side.ITEM
        # A single input that is a feature can only be the sequence.
        sequence = (name in how.fields if how.fields else by_side) or (single and setting.graph)
        # A feature is named as it is.
        prefixed = sequence and how.name and not (side is Side.FEATURE and setting.graph)
        found.append(Input(name=name, column=f"{how.name}__{name}" if prefixed else name, sequence=sequence or stretch))
    if not any(item.sequence for item in found):
        raise FeatureConfigError(
            f"feature {feature.name!r}: none of its inputs is a sequence; name one in sequence_fields"
        )
    return tuple(found)
