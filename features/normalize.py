"""Normalizers of numeric features: "method=zscore,mean=0.1,standard_deviation=2" (feature_generation.md 2.8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from features.errors import FeatureConfigError
from features.expression import Operand, Program, compile_expression

Float = TypeVar("Float", npt.NDArray[np.float32], npt.NDArray[np.float64])


class Normalizer(Protocol):
    """Maps numbers to numbers, in the precision that they come in; parameters are rounded to float32 first."""

    def __call__(self, values: Float) -> Float:
        """The normalised values."""
        ...

    def describe(self) -> dict[str, object]:
        """What the values depend on, for the digest."""
        ...


@dataclass(frozen=True, slots=True)
class Log10:
    """log10 of what is greater than the threshold; `default` for the rest."""

    threshold: float = 1.0
    default: float = 0.0

    def __call__(self, values: Float) -> Float:
        kind = values.dtype.type
        above = values > kind(np.float32(self.threshold))
        logs = np.log10(np.where(above, values, kind(1)))
        return np.where(above, logs, kind(np.float32(self.default)))

    def describe(self) -> dict[str, object]:
        """What the values depend on, for the digest."""
        return {"method": "log10", "threshold": self.threshold, "default": self.default}


@dataclass(frozen=True, slots=True)
class Zscore:
    """(x - mean) / standard deviation."""

    mean: float
    standard_deviation: float

    def __call__(self, values: Float) -> Float:
        kind = values.dtype.type
        return (values - kind(np.float32(self.mean))) / kind(np.float32(self.standard_deviation))

    def describe(self) -> dict[str, object]:
        """What the values depend on, for the digest."""
        return {"method": "zscore", "mean": self.mean, "standard_deviation": self.standard_deviation}


@dataclass(frozen=True, slots=True)
class Minmax:
    """(x - min) / (max - min), not clipped."""

    low: float
    high: float

    def __call__(self, values: Float) -> Float:
        kind = values.dtype.type
        low, high = kind(np.float32(self.low)), kind(np.float32(self.high))
        return (values - low) / (high - low)

    def describe(self) -> dict[str, object]:
        """What the values depend on, for the digest."""
        return {"method": "minmax", "min": self.low, "max": self.high}


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """Any formula of x, computed in double precision."""

    program: Program

    def __call__(self, values: Float) -> Float:
        flat = values.reshape(-1)
        made = self.program([Operand(flat.astype(np.float64, copy=False))], len(flat)).values
        # What float32 cannot hold becomes infinite, and a bad row.
        with np.errstate(over="ignore"):
            return made.astype(values.dtype).reshape(values.shape)

    def describe(self) -> dict[str, object]:
        """What the values depend on, for the digest."""
        return {"method": "expression", "formula": self.program.text}


def _formula(name: str, text: str, rest: str) -> Formula:
    """All that follows expr= is the formula, commas too."""
    key, equals, formula = rest.strip().partition("=")
    if key.strip() not in ("expr", "expression") or not equals:
        raise _error(name, text, "write method=expression,expr=FORMULA with x for the value")
    try:
        return Formula(compile_expression(formula, ("x",)))
    except ValueError as error:
        raise _error(name, text, str(error)) from None


def parse_normalizer(name: str, text: str) -> Normalizer | None:
    """Read a feature's normalizer; None where it has none.

    >>> parse_normalizer("price", "method=minmax,min=0,max=10")
    Minmax(low=0.0, high=10.0)
    """
    if not text:
        return None
    method, _, rest = text.partition(",")
    key, _, method = method.partition("=")
    if key.strip() != "method":
        raise _error(name, text, "it must begin with method=log10, zscore, minmax or expression")
    if method.strip() == "expression":
        return _formula(name, text, rest)
    return _build(name, text, method.strip(), _parameters(name, text, rest))


def _build(name: str, text: str, method: str, given: dict[str, float]) -> Normalizer:
    match method:
        case "log10":
            _expect(name, text, given, (), ("threshold", "default"))
            threshold = given.get("threshold", 1.0)
            if threshold <= 0:
                raise _error(name, text, "threshold must be greater than 0")
            return Log10(threshold, given.get("default", 0.0))
        case "zscore":
            _expect(name, text, given, ("mean", "standard_deviation"), ())
            if np.float32(given["standard_deviation"]) == 0:
                raise _error(name, text, "standard_deviation must not be 0")
            return Zscore(given["mean"], given["standard_deviation"])
        case "minmax":
            _expect(name, text, given, ("min", "max"), ())
            if np.float32(given["min"]) >= np.float32(given["max"]):
                raise _error(name, text, "min must be less than max")
            return Minmax(given["min"], given["max"])
        case _:
            raise _error(name, text, f"unknown method {method!r}; use log10, zscore, minmax or expression")


def _parameters(name: str, text: str, rest: str) -> dict[str, float]:
    given: dict[str, float] = {}
    for part in filter(None, (item.strip() for item in rest.split(","))):
        key, _, value = part.partition("=")
        try:
            number = float(value)
        except ValueError:
            raise _error(name, text, f"{part!r} is not key=number") from None
        if key.strip() in given or not np.isfinite(np.float32(number)):
            raise _error(name, text, f"{part!r} is repeated or not finite")
        given[key.strip()] = number
    return given


def _expect(name: str, text: str, given: dict[str, float], needed: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    missing = [key for key in needed if key not in given]
    unknown = [key for key in given if key not in needed + allowed]
    if missing or unknown:
        raise _error(name, text, f"missing {missing}, unknown {unknown}")


def _error(name: str, text: str, why: str) -> FeatureConfigError:
    return FeatureConfigError(f"feature {name!r}: normalizer {text!r}: {why}")
