"""Match features: values of nested maps at two keys (models_and_features.md 1.6, feature_generation.md 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from features.bucketize import Hashed
from features.choice import boundaries_of, configured, token_bucketizer
from features.columns import Columns, Integers, Maps, Text
from features.combine_feature import default_number
from features.elements import (
    NO_MASK,
    Int32s,
    Int64s,
    Reader,
    Splitting,
    Tokens,
    as_tokens,
    text_tokens,
    to_floats,
    tokens_of,
)
from features.encoded import encoded, separators
from features.errors import ColumnTypeError, FeatureConfigError
from features.generator import Dense, Generator, Kind, Setting, Sparse, Strings
from features.inputs import refuse_unsupported
from features.joining import join_each
from features.judge import Judge
from features.match_kernels import find_all, find_hits, parse_inner, parse_nested
from features.normalize import parse_normalizer
from features.number_stage import Numbers, NumberStage, narrow
from features.pairs import MOST_WORK, offsets_of, readonly, refuse_work, spans_of
from features.plain import Plain
from features.shape import number_feature, size_of, token_feature
from features.spec import Feature
from features.token_stage import TokenStage
from protos import feature_pb2
from stream.row_errors import Faults

ALL = "ALL"
"""In place of a key: every key matches."""


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """Entries of nested maps (features/match_kernels.py): pk in `keys`, sk and value in `data`."""

    keys: npt.NDArray[np.uint8]
    data: npt.NDArray[np.uint8]
    entries: Int64s
    rows: Int64s

    def part(self, picks: Int64s, at: int) -> Tokens:
        """The pk (0), sk (2) or value (4) of entries."""
        return Tokens(self.keys if at == 0 else self.data, self.entries[picks, at], self.entries[picks, at + 1])


def read_nested(columns: Columns, name: str) -> Nested:
    """The nested maps of a column: text, or Arrow maps from pk to text."""
    view = columns[name]
    if isinstance(view, Text):
        data = readonly(view.data)
        valid = NO_MASK if view.valid is None else view.valid
        return Nested(data, data, *parse_nested(data, view.starts, view.ends, valid))
    if not isinstance(view, Maps) or not isinstance(view.items, Text):
        raise ColumnTypeError(f"column {name!r} must hold nested maps: text, or maps whose values are text")
    keys = view.keys
    held = keys.values if isinstance(keys, Integers) else tokens_of(keys)
    tokens, data = as_tokens(held), readonly(view.items.data)
    found = parse_inner(tokens.starts, tokens.ends, view.offsets, data, view.items.starts, view.items.ends)
    return Nested(readonly(tokens.data), data, *found)


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Which entries the keys of a row select; `inputs` are the map and the keys that are columns."""

    splitting: Splitting
    every_pkey: bool
    every_skey: bool

    def __call__(self, columns: Columns, inputs: tuple[str, ...], judge: Judge) -> tuple[Nested, Int64s, Int32s]:
        """The maps, the selected entries and how many a row has."""
        return columns.once((inputs, id(self)), lambda: self._select(columns, inputs, judge))

    def _select(self, columns: Columns, inputs: tuple[str, ...], judge: Judge) -> tuple[Nested, Int64s, Int32s]:
        source, owners = columns.whole(inputs[0])
        nested = source.once((inputs[0], "nested"), lambda: read_nested(source, inputs[0]))
        begins, ends = spans_of(nested.rows, owners)
        sizes = ends - begins
        found = [self._keys(columns, name, judge) for name in inputs[1:]]
        if self.every_pkey or self.every_skey:
            keys, offsets = found[0]
            judge.rows(sizes.astype(np.float64) ** 2 * np.diff(offsets) > MOST_WORK, "too_many_values")
            # Which entries of a map count is found out once, also where rows share it.
            own = sizes**2 if owners is None else 0
            judge.spend(np.minimum(sizes * np.diff(offsets) + own, MOST_WORK))
            column = 2 if self.every_pkey else 0
            picks, lengths = find_all(
                nested.keys, nested.data, nested.entries, begins, ends, column,
                readonly(keys.data), keys.starts, keys.ends, offsets,
            )  # fmt: skip
            return nested, picks, lengths
        (p, p_offsets), (s, s_offsets) = found
        refuse_work(judge, sizes.astype(np.float64) * np.diff(p_offsets) * np.diff(s_offsets))
        picks, lengths = find_hits(
            nested.keys, nested.data, nested.entries, begins, ends,
            readonly(p.data), p.starts, p.ends, p_offsets, readonly(s.data), s.starts, s.ends, s_offsets,
        )  # fmt: skip
        return nested, picks, lengths

    def _keys(self, columns: Columns, name: str, judge: Judge) -> tuple[Tokens, Int64s]:
        elements = Reader(columns, name, self.splitting, judge.faults).read()
        return as_tokens(elements.values), offsets_of(elements.lengths, columns.count)

    def describe(self) -> dict[str, object]:
        """What the selection depends on, for the digest."""
        how = self.splitting
        return {"separators": sorted({how.first, how.second}), "all": [self.every_pkey, self.every_skey]}


@dataclass(frozen=True, kw_only=True, slots=True)
class MatchNumber:
    """Generator of a numeric match: the first value, or, with boundaries, the bucket of every value."""

    feature: Feature
    select: Selection
    stage: NumberStage
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Dense:
        """Compute the numbers, or their buckets, of all rows (features/generator.py)."""
        judge = Judge(columns, self.feature.inputs, faults)
        nested, picks, lengths = self.select(columns, self.feature.inputs, judge)
        numbers, status = to_floats(nested.part(picks, 4))
        judge.numbers(status, lengths)
        return self.stage(Numbers(narrow(numbers), lengths), judge)

    def describe(self) -> dict[str, object]:
        """What the values depend on, for the digest."""
        return self.select.describe() | self.stage.describe()


@dataclass(frozen=True, kw_only=True, slots=True)
class MatchToken:
    """Generator of a match whose values become ids. What is hashed is `<feature>[_pk][_sk]_<value>`."""

    feature: Feature
    select: Selection
    stage: TokenStage
    prefix: bool
    show: tuple[int, ...]
    """Parts of the entry (0: pk, 2: sk) between the feature's name and the value."""
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Strings:
        """Compute the ids of all rows (features/generator.py)."""
        judge = Judge(columns, self.feature.inputs, faults)
        nested, picks, lengths = self.select(columns, self.feature.inputs, judge)
        return self.stage(self._label(nested, picks), lengths, judge)

    def _label(self, nested: Nested, picks: Int64s) -> Tokens:
        if not self.prefix:
            return nested.part(picks, 4)
        name = text_tokens([self.feature.name])
        label = Tokens(name.data, np.repeat(name.starts, len(picks)), np.repeat(name.ends, len(picks)))
        for part in (*self.show, 4):
            label = join_each(label, nested.part(picks, part))
        return label

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        label = [self.feature.name, *self.show] if self.prefix else None
        return self.select.describe() | self.stage.describe() | {"label": label}


def build(message: Message, setting: Setting) -> Generator:
    """Build the generator of a MatchFeature; raise FeatureConfigError."""
    if not isinstance(message, feature_pb2.MatchFeature):
        raise TypeError(f"expected a MatchFeature, got {type(message).__name__}")
    name = message.feature_name
    refuse_unsupported(message, name, setting)
    configured(message)
    if message.pkey == ALL and message.skey == ALL:
        raise FeatureConfigError(f"feature {name!r}: pkey and skey are both ALL; name a column in one of them")
    bucketizer, buckets = token_bucketizer(message, setting), boundaries_of(message)
    inputs = [text for text in (message.nested_map, message.pkey, message.skey) if text != ALL]
    value_dim = message.value_dim if message.HasField("value_dim") else 1
    discrete = bucketizer is not None or message.need_discrete or message.fg_value_type == "string"
    if discrete:
        feature = token_feature("match", message, inputs, bucketizer, value_dim, setting)
    else:
        feature = number_feature("match", message, inputs, size_of(buckets), 1, setting)
    if setting.encoded:
        return encoded(feature, message, setting)
    first, second = separators(name, message.separator, setting)
    select = Selection(
        splitting=Splitting(first=first, second=second, keep_empty=False, weighted=False),
        every_pkey=message.pkey == ALL, every_skey=message.skey == ALL,
    )  # fmt: skip
    if not discrete:
        stage = NumberStage(
            default=default_number(name, message.default_value),
            normalizer=parse_normalizer(name, message.normalizer), buckets=buckets,
        )  # fmt: skip
        return MatchNumber(feature=feature, select=select, stage=stage)
    # Only hashes see the name: numbers and words are bare values (feature_generation.md 3.3).
    prefix = bucketizer is None or isinstance(bucketizer, Hashed)
    show = (0,) * message.show_pkey + (2,) * message.show_skey
    tokens = TokenStage.of(name, bucketizer, message.default_value)
    return MatchToken(feature=feature, select=select, stage=tokens, prefix=prefix, show=show)


KIND = Kind(field="match_feature", build=build)
