"""Custom features: built-in operators, and users' own in Python (feature_generation.md 3.8)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from features import kernels
from features.bucketize import Boundaries
from features.choice import boundaries_of, configured, token_bucketizer
from features.columns import Columns
from features.dense_column import number_list
from features.distinct import spread_tokens
from features.elements import Int32s, Tokens, to_floats
from features.encoded import VALUE_SEPARATOR, encoded, separators
from features.errors import FeatureConfigError
from features.expr_feature import Formula, formula
from features.generator import Dense, Generator, Kind, Setting, Sparse, Strings
from features.inputs import parse_expression, refuse_unsupported
from features.judge import Judge
from features.normalize import Normalizer, parse_normalizer
from features.number_stage import narrow
from features.operator_calls import Calls, Made
from features.operators import (
    SEQUENCE_FORMULA,
    Described,
    operator_name,
    parameters_of,
    read_operator,
)
from features.plain import Plain
from features.shape import number_feature, size_of, token_feature
from features.spec import Feature
from features.token_stage import TokenStage
from protos import feature_pb2
from stream.row_errors import Faults

Int64s = npt.NDArray[np.int64]
Float32s = npt.NDArray[np.float32]
NO_IDS = np.empty(0, np.int64)

SPHERICAL = "spherical_distance"
"""In place of a formula: the distance in km of lng1, lat1, lng2, lat2."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CustomNumber:
    """Generator of the numbers of an operator, or of their buckets."""

    feature: Feature
    calls: Calls
    what: dict[str, object]
    default: tuple[float, ...]
    normalizer: Normalizer | None
    boundaries: Boundaries | None
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Dense:
        """Compute the numbers, or their buckets, of all rows (features/generator.py)."""
        judge = Judge(columns, self.feature.inputs, faults)
        made, of_row = self.calls(columns, self.feature.inputs, judge)
        values = self._values(made, of_row, judge)
        if faults is not None:
            return Sparse(NO_IDS)
        missing = of_row < 0
        judge.missing((~missing).astype(np.int32), bool(self.default))
        if self.boundaries is None:
            fill = np.array(self.default or (0.0,) * values.shape[1], np.float32)
            shaped = np.where(missing[:, None], fill[None, :], values)
            return Dense(shaped.reshape(-1) if values.shape[1] == 1 else shaped)
        return self._buckets(values, missing, self.boundaries)

    def _values(self, made: Made, of_row: Int64s, judge: Judge) -> Float32s:
        """[rows, dim]; where a row has none, anything."""
        if isinstance(made, list):
            tokens, lengths = spread_tokens(made, np.arange(len(made)))
            parsed, status = to_floats(tokens)
            found = np.zeros(len(made))
            found[lengths > 0] = parsed
            bad = lengths == 0
            bad[lengths > 0] |= status != kernels.OK
            judge.rows((of_row >= 0) & np.append(bad, False)[of_row], "not_a_number")
            numbers = found.reshape(-1, 1)
        else:
            numbers = made
        values = narrow(numbers if self.normalizer is None else self.normalizer(numbers))
        finite = np.append(np.isfinite(values).all(axis=1), True)
        judge.rows(~finite[of_row], "not_finite")
        return np.concatenate((values, np.zeros((1, values.shape[1]), np.float32)))[of_row]

    def _buckets(self, values: Float32s, missing: npt.NDArray[np.bool_], boundaries: Boundaries) -> Sparse:
        dim = values.shape[1]
        if not self.default:
            return Sparse(boundaries.of(values[~missing].reshape(-1)), (~missing).astype(np.int32) * np.int32(dim))
        fill = np.array(self.default, np.float32)
        filled = np.where(missing[:, None], fill[None, :], values)
        return Sparse(boundaries.of(filled.reshape(-1)), np.full(len(missing), dim, np.int32))

    def describe(self) -> dict[str, object]:
        """What the values depend on, for the digest."""
        return {
            **self.what,
            "value_dim": self.feature.value_dim,
            "default": list(self.default),
            "normalizer": None if self.normalizer is None else self.normalizer.describe(),
            "bucketizer": None if self.boundaries is None else self.boundaries.describe(),
        }


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CustomToken:
    """Generator of ids of what an operator makes."""

    feature: Feature
    calls: Calls
    what: dict[str, object]
    stage: TokenStage
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Strings:
        """Compute the ids of all rows (features/generator.py)."""
        judge = Judge(columns, self.feature.inputs, faults)
        made, of_row = self.calls(columns, self.feature.inputs, judge)
        values, lengths = _tokens(made, of_row)
        return self.stage(values, lengths, judge)

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        return self.what | self.stage.describe()


def _tokens(made: Made, of_row: Int64s) -> tuple[Tokens | Int64s, Int32s]:
    """One value for each row that has one: texts as they are, numbers truncated towards zero."""
    if isinstance(made, list):
        return spread_tokens(made, of_row)
    numbers = np.trunc(made.reshape(-1))
    whole = np.where(np.abs(numbers) < 2.0**63, numbers, -1.0).astype(np.int64)
    present = of_row >= 0
    return whole[of_row[present]], present.astype(np.int32)


def build(message: Message, setting: Setting) -> Generator:
    """Build the generator of a CustomFeature; raise FeatureConfigError."""
    if not isinstance(message, feature_pb2.CustomFeature):
        raise TypeError(f"expected a CustomFeature, got {type(message).__name__}")
    name = message.feature_name
    refuse_unsupported(message, name, setting)
    configured(message)
    operator = operator_name(message)
    if not message.expression and not setting.encoded:
        raise FeatureConfigError(f"feature {name!r}: expression is empty; name the columns, e.g. user:age")
    dim = message.value_dim if message.HasField("value_dim") else 1
    bucketizer, boundaries = token_bucketizer(message, setting), boundaries_of(message)
    tokened = bucketizer is not None or (message.stub_type and not boundaries and operator == "RegexReplace")
    if tokened:
        feature = token_feature("custom", message, message.expression, bucketizer, dim, setting)
    else:
        feature = number_feature("custom", message, message.expression, size_of(boundaries), dim, setting)
    if setting.encoded:
        return encoded(feature, message, setting)
    if operator == SEQUENCE_FORMULA:
        return _formula(feature, message, boundaries, tokened, setting)
    made = read_operator(message, len(feature.inputs))
    calls = Calls(name, made, 1 if tokened else max(feature.value_dim, 1))
    what: dict[str, object] = {
        "operator": operator or message.operator_lib_file, "parameters": parameters_of(message),
    }  # fmt: skip
    if isinstance(made, Described):
        what["own"] = dict(made.describe())
    if tokened:
        stage = TokenStage.of(name, bucketizer, message.default_value)
        return CustomToken(feature=feature, calls=calls, what=what, stage=stage)
    return CustomNumber(
        feature=feature, calls=calls, what=what, default=_default(message, dim),
        normalizer=parse_normalizer(name, message.normalizer), boundaries=boundaries,
    )  # fmt: skip


def _default(message: feature_pb2.CustomFeature, dim: int) -> tuple[float, ...]:
    known = tuple({VALUE_SEPARATOR, message.separator or VALUE_SEPARATOR})
    return number_list(message.feature_name, "default_value", message.default_value, known, max(dim, 1))


def _formula(
    feature: Feature, message: feature_pb2.CustomFeature, boundaries: Boundaries | None, tokened: bool, setting: Setting
) -> Generator:
    """SeqExpr: a formula, of steps where it is in a sequence."""
    name, text = message.feature_name, parameters_of(message).get("formula")
    if not isinstance(text, str) or not text:
        raise FeatureConfigError(f"feature {name!r}: operator SeqExpr needs operator_params with a formula")
    if tokened or message.normalizer:
        raise FeatureConfigError(f"feature {name!r}: operator SeqExpr makes numbers; use boundaries and no normalizer")
    variables = tuple(parse_expression(name, item)[0] for item in message.expression)
    if text == SPHERICAL:
        if len(variables) != 4:
            raise FeatureConfigError(f"feature {name!r}: {SPHERICAL} takes lng1, lat1, lng2, lat2")
        text = f"sphere_dist({', '.join(variables)})"
    return Formula(
        feature=feature,
        program=formula(name, "operator_params.formula", text, variables),
        separators=separators(name, message.separator, setting),
        fill=math.nan,
        default=_default(message, max(feature.value_dim, 1)),
        boundaries=boundaries,
        stretch=True,
    )


KIND = Kind(field="custom_feature", build=build)
