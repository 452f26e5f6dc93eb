"""First values of embedding rows: `init_fn` strings parsed into `RowInit`, and the function that draws rows.

A row is a function of (seed, table, id) alone, so that a restore, a replay and any world size draw the same bits.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit

from recmodels.errors import ModelConfigError

UNIFORM, NORMAL, TRUNCATED_NORMAL, CONSTANT = range(4)


@dataclass(frozen=True, kw_only=True, slots=True)
class RowInit:
    """A distribution of row elements: uniform on [a, b), normal with mean a and deviation b, the same cut at two
    deviations, or the constant a.

    >>> RowInit(kind=UNIFORM, a=-0.1, b=0.1).kind
    0
    """

    kind: int
    a: float
    b: float = 0.0


def _uniform(rows: int, dim: int, a: float = 0.0, b: float = 1.0) -> RowInit:
    if a > b:
        raise ValueError(f"a must not exceed b, got {a} > {b}")
    return RowInit(kind=UNIFORM, a=a, b=b)


def _normal(rows: int, dim: int, mean: float = 0.0, std: float = 1.0) -> RowInit:
    return RowInit(kind=NORMAL, a=mean, b=std)


def _truncated_normal(rows: int, dim: int, mean: float = 0.0, std: float = 1.0) -> RowInit:
    return RowInit(kind=TRUNCATED_NORMAL, a=mean, b=std)


def _constant(rows: int, dim: int, val: float) -> RowInit:
    return RowInit(kind=CONSTANT, a=val)


def _zeros(rows: int, dim: int) -> RowInit:
    return RowInit(kind=CONSTANT, a=0.0)


def _ones(rows: int, dim: int) -> RowInit:
    return RowInit(kind=CONSTANT, a=1.0)


def _xavier_uniform(rows: int, dim: int, gain: float = 1.0) -> RowInit:
    bound = gain * math.sqrt(6.0 / (rows + dim))
    return RowInit(kind=UNIFORM, a=-bound, b=bound)


def _xavier_normal(rows: int, dim: int, gain: float = 1.0) -> RowInit:
    return RowInit(kind=NORMAL, a=0.0, b=gain * math.sqrt(2.0 / (rows + dim)))


_DRAWS: dict[str, Callable[..., RowInit]] = {
    "nn.init.uniform_": _uniform,
    "nn.init.normal_": _normal,
    "nn.init.trunc_normal_": _truncated_normal,
    "nn.init.constant_": _constant,
    "nn.init.zeros_": _zeros,
    "nn.init.ones_": _ones,
    "nn.init.xavier_uniform_": _xavier_uniform,
    "nn.init.xavier_normal_": _xavier_normal,
}


def parse_init_fn(text: str, *, rows: int, dim: int) -> RowInit:
    """Read `name,key=number,...`; an empty text is TorchRec's default, uniform within 1/sqrt(rows).

    >>> parse_init_fn("nn.init.uniform_,a=-0.01,b=0.01", rows=10, dim=4)
    RowInit(kind=0, a=-0.01, b=0.01)
    """
    if not text.strip():
        bound = math.sqrt(1.0 / rows)
        return RowInit(kind=UNIFORM, a=-bound, b=bound)
    name, *settings = (part.strip() for part in text.split(","))
    draw = _DRAWS.get(name.removeprefix("torch."))
    if draw is None:
        raise ModelConfigError(f"init_fn {text!r}: unknown function {name!r}, use one of {', '.join(sorted(_DRAWS))}")
    numbers: dict[str, float] = {}
    for setting in settings:
        key, _, value = setting.partition("=")
        try:
            numbers[key.strip()] = float(value)
        except ValueError:
            raise ModelConfigError(f"init_fn {text!r}: {setting!r} is not of the form name=number") from None
    try:
        return draw(rows, dim, **numbers)
    except (TypeError, ValueError) as error:
        raise ModelConfigError(f"init_fn {text!r}: {error}") from None


def table_key(seed: int, table: str) -> int:
    """The 63-bit key of a table's draws."""
    digest = hashlib.blake2b(f"{seed}/{table}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


@njit(cache=True, nogil=True)
def _mix(x):  # type: ignore[no-untyped-def]
    x = np.uint64(x)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


@njit(cache=True, nogil=True)
def _gauss(bits):  # type: ignore[no-untyped-def]
    u = (np.float64(bits >> np.uint64(32)) + 1.0) / 4294967296.0
    v = np.float64(bits & np.uint64(0xFFFFFFFF)) / 4294967296.0
    return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)


@njit(cache=True, nogil=True)
def draw_row(out, at, dim, kind, a, b, key, row_id):  # type: ignore[no-untyped-def]
    """Write `dim` elements at `out[at:]` as the pure function of (key, row_id) that the distribution names."""
    state = _mix(np.uint64(key) ^ _mix(np.uint64(row_id) + np.uint64(0x9E3779B97F4A7C15)))
    for j in range(dim):
        bits = _mix(state + np.uint64(j + 1) * np.uint64(0x9E3779B97F4A7C15))
        if kind == 0:
            out[at + j] = a + (b - a) * (np.float64(bits >> np.uint64(40)) / 16777216.0)
        elif kind == 1:
            out[at + j] = a + b * _gauss(bits)
        elif kind == 2:
            z = _gauss(bits)
            while abs(z) > 2.0:
                bits = _mix(bits + np.uint64(0xD1B54A32D192ED03))
                z = _gauss(bits)
            out[at + j] = a + b * z
        else:
            out[at + j] = a


@njit(cache=True, nogil=True)
def _draw_rows(out, dim, kind, a, b, key, ids):  # type: ignore[no-untyped-def]
    for i in range(ids.size):
        draw_row(out, i * dim, dim, kind, a, b, key, ids[i])


def draw_rows(init: RowInit, key: int, ids: np.ndarray, dim: int) -> np.ndarray:
    """Rows float32[n, dim] of the given ids (int64)."""
    out = np.empty(len(ids) * dim, dtype=np.float32)
    _draw_rows(out, dim, init.kind, init.a, init.b, key, np.ascontiguousarray(ids, dtype=np.int64))
    return out.reshape(len(ids), dim)
