"""Bool mask features: the values whose mask is true become ids (feature_generation.md 3.9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numba as nb
import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from features import kernels
from features.choice import token_bucketizer
from features.columns import Columns
from features.elements import Int32s, Int64s, Reader, Splitting, Tokens, to_floats
from features.encoded import encoded, separators
from features.errors import FeatureConfigError
from features.generator import Generator, Kind, Setting, Sparse, Strings
from features.inputs import refuse_unsupported
from features.judge import Judge
from features.number_stage import NO_IDS
from features.plain import Plain
from features.shape import token_feature
from features.spec import Feature
from features.token_stage import TokenStage
from protos import feature_pb2
from stream.row_errors import Faults

Bools = npt.NDArray[np.bool_]
_FALSE, _TRUE, _OTHER = 0, 1, 2


@nb.njit(nogil=True, cache=True)
def _words(data: npt.NDArray[np.uint8], starts: Int64s, ends: Int64s) -> npt.NDArray[np.uint8]:
    """Which tokens say true or false, in any case, or are one digit; the others may be numbers."""
    out = np.full(len(starts), _OTHER, np.uint8)
    for i in range(len(starts)):
        size = ends[i] - starts[i]
        if size == 1 and 48 <= data[starts[i]] <= 57:
            out[i] = data[starts[i]] != 48
            continue
        for word in range(2):
            text = "true" if word else "false"
            if size != len(text):
                continue
            equal = True
            for k in range(size):
                equal = equal and (data[starts[i] + k] | 32) == ord(text[k])
            if equal:
                out[i] = word
    return out


def truths(values: Int64s | Tokens) -> tuple[Bools, Bools]:
    """Which values are true, and which are neither true nor false.

    >>> from features.elements import text_tokens
    >>> [flags.tolist() for flags in truths(text_tokens(["True", "0", "2.5", "x"]))]
    [[True, False, True, False], [False, False, False, True]]
    """
    if not isinstance(values, Tokens):
        return values != 0, np.zeros(len(values), np.bool_)
    said = _words(values.data, values.starts, values.ends)
    true, unknown = said == _TRUE, said == _OTHER
    places = np.flatnonzero(unknown)
    if len(places):
        numbers, status = to_floats(Tokens(values.data, values.starts[places], values.ends[places]))
        unknown[places] = (status != kernels.OK) | np.isnan(numbers)
        true[places] = ~unknown[places] & (numbers != 0)
    return true, unknown


@dataclass(frozen=True, kw_only=True, slots=True)
class BoolMask:
    """Generator of a bool mask feature. Only rows without values get the default: those that are masked stay empty."""

    feature: Feature
    splitting: Splitting
    stage: TokenStage
    plain: ClassVar[Plain | None] = None

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse | Strings:
        """Compute the ids of all rows (features/generator.py)."""
        judge = Judge(columns, self.feature.inputs, faults)
        values, mask = (Reader(columns, name, self.splitting, faults).read() for name in self.feature.inputs)
        lengths, widths = _lengths(values.lengths, columns.count), _lengths(mask.lengths, columns.count)
        unequal = lengths != widths
        judge.rows(unequal, "unequal_lengths")
        keep, unknown = truths(mask.values)
        judge.elements(unknown, widths, "not_a_bool")
        if faults is not None:
            # Masked values too: where one row is unequal, the others' masks do not line up with their values.
            self.stage.check(values.values, lengths, judge)
            return Sparse(NO_IDS)
        kept = values.values.keep(keep) if isinstance(values.values, Tokens) else values.values[keep]
        return self.stage(kept, kernels.count_kept(lengths, keep), judge, lengths == 0)

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        return {"separators": sorted({self.splitting.first, self.splitting.second}), **self.stage.describe()}


def _lengths(lengths: Int32s | None, count: int) -> Int32s:
    return np.ones(count, np.int32) if lengths is None else lengths


def build(message: Message, setting: Setting) -> Generator:
    """Build the generator of a BoolMaskFeature; raise FeatureConfigError."""
    if not isinstance(message, feature_pb2.BoolMaskFeature):
        raise TypeError(f"expected a BoolMaskFeature, got {type(message).__name__}")
    name = message.feature_name
    refuse_unsupported(message, name, setting)
    if len(message.expression) != 2 and not setting.encoded:
        raise FeatureConfigError(f"feature {name!r}: a bool mask needs two expressions, the values and the mask")
    bucketizer = token_bucketizer(message, setting)
    feature = token_feature("bool_mask", message, message.expression, bucketizer, message.value_dim, setting)
    if setting.encoded:
        return encoded(feature, message, setting)
    first, second = separators(name, message.separator, setting)
    splitting = Splitting(first=first, second=second, keep_empty=False, weighted=False)
    stage = TokenStage.of(name, bucketizer, message.default_value, message.value_dim)
    return BoolMask(feature=feature, splitting=splitting, stage=stage)


KIND = Kind(field="bool_mask_feature", build=build)
