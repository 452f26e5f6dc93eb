"""Expression features: a formula over several columns (feature_generation.md 3.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from features.bucketize import Boundaries
from features.choice import boundaries_of
from features.columns import Columns
from features.dense_column import number_list
from features.encoded import VALUE_SEPARATOR, encoded, separators
from features.errors import FeatureConfigError
from features.expression import Operand, Program, compile_expression
from features.generator import Dense, Generator, Kind, Setting, Sparse
from features.inputs import parse_expression, refuse_unsupported
from features.judge import Judge
from features.number_input import NumberInput, read_numbers
from features.plain import Plain
from features.shape import number_feature, size_of
from features.spec import Feature
from protos import feature_pb2
from stream.row_errors import Faults

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Float32s = npt.NDArray[np.float32]

NO_IDS = np.empty(0, np.int64)


@dataclass(frozen=True, kw_only=True, slots=True)
class Formula:
    """Computes a formula of several columns, and what stands for rows that miss one of them."""

    feature: Feature
    program: Program
    separators: tuple[int, int]
    fill: float
    default: tuple[float, ...]
    """() for "": 0.0 in a dense feature, no ids in one with boundaries."""
    boundaries: Boundaries | None
    stretch: bool = False
    """In a sequence every input is one; an input of one step goes with all steps (SeqExpr)."""
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Dense:
        """Compute the formula of all rows (features/generator.py)."""
        judge = Judge(columns, self.feature.inputs, faults)
        inputs, present, rows, result = columns.once(id(self), lambda: self._computed(columns, judge))
        shaped, lengths = self._shape(result, rows, judge, present)
        if present is not None:
            judge.missing(present.astype(np.int32), bool(self.default))
        if self.boundaries is None:
            return Dense(self._dense(shaped, present, judge))
        if faults is not None:
            return Sparse(NO_IDS)
        return self._sparse(shaped, lengths, present, all(item.numeric for item in inputs))

    def _computed(self, columns: Columns, judge: Judge) -> tuple[list[NumberInput], Bools | None, int, Operand]:
        """The columns' numbers, which rows have all of them, how many those are, and what the formula gives."""
        inputs = [read_numbers(columns, name, self.separators, judge) for name in self.feature.inputs]
        present = _present(inputs)
        rows = columns.count if present is None else int(np.count_nonzero(present))
        return inputs, present, rows, self.program([_operand(item, present) for item in inputs], rows, self.fill)

    def _shape(self, result: Operand, rows: int, judge: Judge, present: Bools | None) -> tuple[Float32s, Int32s | None]:
        """The first value of each row, or `value_dim` of them, or all; what is not a number is the default."""
        with np.errstate(over="ignore"):
            values = result.values.astype(np.float32)
        nothing = np.isnan(values)
        if nothing.any():
            values[nothing] = self.default[0] if self.default else 0.0
        lengths, dim = result.lengths, self.feature.value_dim
        if self.boundaries is not None and dim == 0:
            return values, lengths
        dim = max(dim, 1)
        if lengths is None:
            if dim > 1:
                judge.rows(np.ones(len(values), np.bool_) if present is None else present, "wrong_width")
                return np.repeat(values, dim), np.full(rows, dim, np.int32)
            return values, None
        wrong = lengths != dim if dim > 1 else np.zeros(rows, np.bool_)
        judge.rows(_spread(wrong, present), "wrong_width")
        starts = np.cumsum(lengths, dtype=np.int64) - lengths
        picks = starts[:, None] + np.minimum(np.arange(dim), lengths[:, None] - 1)
        return values[picks].reshape(-1), None if dim == 1 else np.full(rows, dim, np.int32)

    def _dense(self, values: Float32s, present: Bools | None, judge: Judge) -> Float32s:
        dim = max(self.feature.value_dim, 1)
        shaped = values if dim == 1 else values.reshape(-1, dim)
        if judge.faults is not None:
            bad = np.asarray((~np.isfinite(shaped.reshape(-1, dim))).any(axis=1))
            judge.rows(_spread(bad, present), "not_finite")
        if present is None:
            return shaped
        fill = np.array(self.default or (0.0,) * dim, np.float32)
        out = np.empty((len(present), dim), np.float32)
        out[:] = fill
        out[present] = shaped.reshape(-1, dim)
        return out.reshape(-1) if dim == 1 else out

    def _sparse(self, values: Float32s, lengths: Int32s | None, present: Bools | None, numeric: bool) -> Sparse:
        ids = (self.boundaries or Boundaries(())).of(values)
        if present is None:
            return Sparse(ids, lengths)
        # Columns of numbers with an empty default give the bucket of 0.0 (feature_generation.md 1).
        fill = self.default or ((0.0,) * max(self.feature.value_dim, 1) if numeric else ())
        counts = np.full(len(present), len(fill), np.int32)
        counts[present] = 1 if lengths is None else lengths
        out = np.empty(int(counts.sum()), np.int64)
        own = np.repeat(present, counts)
        out[own] = ids
        filled = (self.boundaries or Boundaries(())).of(np.array(fill, np.float32))
        out[~own] = np.tile(filled, int(np.count_nonzero(~present)))
        return Sparse(out, counts)

    def describe(self) -> dict[str, object]:
        """What the values depend on, for the digest."""
        return {
            "formula": self.program.text,
            "separators": sorted(set(self.separators)),
            "fill": None if math.isnan(self.fill) else self.fill,
            "default": list(self.default),
            "value_dim": self.feature.value_dim,
            "bucketizer": None if self.boundaries is None else self.boundaries.describe(),
        }


def _present(inputs: list[NumberInput]) -> Bools | None:
    """The rows of which no input is missing; None: all."""
    masks = [item.lengths > 0 for item in inputs if item.lengths is not None and not item.lengths.all()]
    return np.logical_and.reduce(masks) if masks else None


def _operand(item: NumberInput, present: Bools | None) -> Operand:
    """The values of the present rows."""
    if present is None:
        return Operand(item.values, item.lengths)
    if item.lengths is None:
        return Operand(item.values[present])
    lengths = item.lengths[present]
    values = item.values[np.repeat(present, item.lengths)]
    return Operand(values, None if bool((lengths == 1).all()) else lengths)


def _spread(bad: Bools, present: Bools | None) -> Bools:
    """A mask of present rows as one of all rows."""
    if present is None:
        return bad
    out = np.zeros(len(present), np.bool_)
    out[present] = bad
    return out


def formula(name: str, field: str, text: str, variables: tuple[str, ...]) -> Program:
    """A feature's formula; raise FeatureConfigError."""
    try:
        return compile_expression(text, variables)
    except ValueError as error:
        raise FeatureConfigError(f"feature {name!r}: {field} {text!r}: {error}") from None


def build(message: Message, setting: Setting) -> Generator:
    """Build the generator of an ExprFeature; raise FeatureConfigError."""
    if not isinstance(message, feature_pb2.ExprFeature):
        raise TypeError(f"expected an ExprFeature, got {type(message).__name__}")
    name = message.feature_name
    refuse_unsupported(message, name, setting)
    if not message.variables and not setting.encoded:
        raise FeatureConfigError(f"feature {name!r}: variables is empty; name the columns, e.g. user:age")
    boundaries = boundaries_of(message)
    dim = message.value_dim if boundaries is not None else max(message.value_dim, 1)
    feature = number_feature("expr", message, list(message.variables), size_of(boundaries), dim, setting)
    if setting.encoded:
        return encoded(feature, message, setting)
    variables = tuple(parse_expression(name, text)[0] for text in message.variables)
    known = tuple({VALUE_SEPARATOR, message.separator or VALUE_SEPARATOR})
    return Formula(
        feature=feature,
        program=formula(name, "expression", message.expression, variables),
        separators=separators(name, message.separator, setting),
        fill=message.fill_missing if message.HasField("fill_missing") else math.nan,
        default=number_list(name, "default_value", message.default_value, known, max(message.value_dim, 1)),
        boundaries=boundaries,
    )


KIND = Kind(field="expr_feature", build=build)
