"""The functions of formulas, of numbers and of whole vectors (feature_generation.md 3.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final

import numpy as np

from features.expression.operand import Float64s, Int32s, Operand, as_vector, per_row, stretched

Scalar = Callable[..., Float64s]
Vector = Callable[[Sequence[Operand], int, float], Float64s]

EARTH_RADIUS_KM: Final = 6371.0
ANY: Final = 1_000


def _round(x: Float64s) -> Float64s:
    """Half away from zero."""
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _roundp(x: Float64s, places: Float64s) -> Float64s:
    scale = 10.0 ** np.asarray(places)
    return _round(x * scale) / scale


def _haversine(lng1: Float64s, lat1: Float64s, lng2: Float64s, lat2: Float64s) -> Float64s:
    a, b = np.radians(lat1), np.radians(lat2)
    half = np.sin((b - a) / 2) ** 2 + np.cos(a) * np.cos(b) * np.sin(np.radians(np.subtract(lng2, lng1)) / 2) ** 2
    angle: Float64s = np.arcsin(np.sqrt(np.minimum(half, 1.0)))
    return np.multiply(2 * EARTH_RADIUS_KM, angle)


def _smallest(*values: Float64s) -> Float64s:
    return reduce(np.minimum, values)


def _largest(*values: Float64s) -> Float64s:
    return reduce(np.maximum, values)


def _sum(*values: Float64s) -> Float64s:
    return reduce(np.add, values)


def _average(*values: Float64s) -> Float64s:
    return np.asarray(_sum(*values) / len(values), np.float64)


def _tangent_of(how: Callable[[Float64s], Float64s]) -> Scalar:
    return lambda x: 1.0 / how(x)


SCALARS: Final[dict[str, tuple[int, int, Scalar]]] = {
    "isnan": (1, 1, lambda x: np.isnan(x).astype(np.float64)),
    **{
        name: (1, 1, how)
        for name, how in (
            ("sin", np.sin), ("cos", np.cos), ("tan", np.tan), ("asin", np.arcsin), ("acos", np.arccos),
            ("atan", np.arctan), ("sinh", np.sinh), ("cosh", np.cosh), ("tanh", np.tanh), ("asinh", np.arcsinh),
            ("acosh", np.arccosh), ("atanh", np.arctanh), ("log2", np.log2), ("log10", np.log10), ("log", np.log),
            ("ln", np.log), ("exp", np.exp), ("sqrt", np.sqrt), ("sign", np.sign), ("abs", np.abs),
            ("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("round", _round),
            ("cot", _tangent_of(np.tan)), ("coth", _tangent_of(np.tanh)),
            ("rint", lambda x: np.floor(x + 0.5)), ("sigmoid", lambda x: 1.0 / (1.0 + np.exp(-x))),
        )
    },
    "atan2": (2, 2, np.arctan2),
    "roundp": (2, 2, _roundp),
    "mod": (2, 2, np.fmod),
    "sphere_dist": (4, 4, _haversine),
    "haversine": (4, 4, _haversine),
    "min": (1, ANY, _smallest),
    "max": (1, ANY, _largest),
    "sum": (1, ANY, _sum),
    "avg": (1, ANY, _average),
}  # fmt: skip
"""Least and most arguments, and what is done to each element."""


def _reduced(how: np.ufunc) -> Vector:
    def run(operands: Sequence[Operand], rows: int, fill: float) -> Float64s:
        return per_row(how, *as_vector(operands[0], rows))

    return run


def _length(operands: Sequence[Operand], rows: int, fill: float) -> Float64s:
    return as_vector(operands[0], rows)[1].astype(np.float64)


def _mean(operands: Sequence[Operand], rows: int, fill: float) -> Float64s:
    values, lengths = as_vector(operands[0], rows)
    return per_row(np.add, values, lengths) / lengths


def _squared_norm(operands: Sequence[Operand], rows: int, fill: float) -> Float64s:
    values, lengths = as_vector(operands[0], rows)
    return per_row(np.add, values * values, lengths)


def _variance(less: int, root: bool) -> Vector:
    def run(operands: Sequence[Operand], rows: int, fill: float) -> Float64s:
        values, lengths = as_vector(operands[0], rows)
        away = values - np.repeat(per_row(np.add, values, lengths) / lengths, lengths)
        found = per_row(np.add, away * away, lengths) / (lengths - less)
        return np.sqrt(found) if root else found

    return run


def _pair(operands: Sequence[Operand], rows: int, fill: float) -> tuple[Float64s, Float64s, Int32s]:
    (_, first), (_, second) = as_vector(operands[0], rows), as_vector(operands[1], rows)
    lengths = np.maximum(first, second)
    wide = (Operand(*as_vector(operand, rows)) for operand in operands)
    one, other = (stretched(operand, lengths, fill) for operand in wide)
    return one, other, lengths


def _dot(operands: Sequence[Operand], rows: int, fill: float) -> Float64s:
    one, other, lengths = _pair(operands, rows, fill)
    return per_row(np.add, one * other, lengths)


def _euclid(operands: Sequence[Operand], rows: int, fill: float) -> Float64s:
    one, other, lengths = _pair(operands, rows, fill)
    return np.sqrt(per_row(np.add, (one - other) ** 2, lengths))


def _correlation(operands: Sequence[Operand], rows: int, fill: float) -> Float64s:
    one, other, lengths = _pair(operands, rows, fill)
    a, b = (values - np.repeat(per_row(np.add, values, lengths) / lengths, lengths) for values in (one, other))
    spread = per_row(np.add, a * a, lengths) * per_row(np.add, b * b, lengths)
    return per_row(np.add, a * b, lengths) / np.sqrt(spread)


VECTORS: Final[dict[str, tuple[int, Vector]]] = {
    "len": (1, _length),
    "l2_norm": (1, lambda operands, rows, fill: np.sqrt(_squared_norm(operands, rows, fill))),
    "squared_norm": (1, _squared_norm),
    "dot": (2, _dot),
    "euclid_dist": (2, _euclid),
    "corr": (2, _correlation),
    "std_dev": (1, _variance(0, True)),
    "pop_std_dev": (1, _variance(1, True)),
    "variance": (1, _variance(0, False)),
    "pop_variance": (1, _variance(1, False)),
    "reduce_min": (1, _reduced(np.minimum)),
    "reduce_max": (1, _reduced(np.maximum)),
    "reduce_sum": (1, _reduced(np.add)),
    "reduce_mean": (1, _mean),
    "reduce_prod": (1, _reduced(np.multiply)),
}
"""Arguments, and what becomes of a row's vectors: one number."""


def draw(operands: Sequence[Operand], rows: int, salt: int) -> Float64s:
    """`rnd()`: uniform in (0, 1), a hash of the row's own numbers.

    So the same row draws the same number in training, offline and in serving.
    """
    state = np.full(rows, np.uint64(salt), np.uint64)
    for operand in operands:
        values, lengths = as_vector(operand, rows)
        mixed = _mixed(np.ascontiguousarray(values + 0.0).view(np.uint64))
        if rows:
            mixed = np.add.reduceat(mixed, np.cumsum(lengths, dtype=np.int64) - lengths)
        state = _mixed(state ^ mixed)
    return ((_mixed(state) >> np.uint64(12)).astype(np.float64) + 0.5) / 2.0**52


def _mixed(bits: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """The finalizer of SplitMix64."""
    z = bits + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
