"""From a formula's tree to closures over NumPy blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from lark import Token, Tree

from features.expression.functions import SCALARS, VECTORS, draw
from features.expression.grammar import parse
from features.expression.operand import Float64s, Operand, elementwise

BLOCK_ROWS: Final = 8192
"""Rows computed at a time: intermediate results stay in the cache."""

CONSTANTS: Final = {"_pi": math.pi, "_e": math.e}


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """What a closure is given: the variables of some rows."""

    operands: Sequence[Operand]
    rows: int
    fill: float


Step = Callable[[_Frame], Operand]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Program:
    """A formula that is ready to run; `variables` in the order in which `__call__` takes them."""

    text: str
    variables: tuple[str, ...]
    used: frozenset[str]
    run: Step

    def __call__(self, operands: Sequence[Operand], rows: int, fill: float = math.nan) -> Operand:
        """Compute the formula of all rows; division by zero and the like give infinities and NaN, as in IEEE 754."""
        with np.errstate(all="ignore"):
            if rows <= BLOCK_ROWS or any(operand.lengths is not None for operand in operands):
                return _full(self.run(_Frame(operands, rows, fill)), rows)
            out = np.empty(rows, np.float64)
            for start in range(0, rows, BLOCK_ROWS):
                block = slice(start, min(start + BLOCK_ROWS, rows))
                parts = [Operand(operand.values[block]) for operand in operands]
                out[block] = self.run(_Frame(parts, block.stop - block.start, fill)).values
            return Operand(out)


def _full(operand: Operand, rows: int) -> Operand:
    """One value for each row, also where the formula is a constant."""
    if operand.lengths is not None or operand.values.shape == (rows,):
        return operand
    return Operand(np.broadcast_to(operand.values, (rows,)))


def compile_expression(text: str, variables: Sequence[str]) -> Program:
    """Make a formula ready; raise ValueError that says what is wrong with it.

    >>> program = compile_expression("a > 1 ? a^2 : -a", ["a"])
    >>> program([Operand(np.array([0.5, 3.0]))], 2).values.tolist()
    [-0.5, 9.0]
    """
    compiler = _Compiler({name: at for at, name in enumerate(variables)})
    run = compiler.compile(parse(text))
    return Program(text=text, variables=tuple(variables), used=frozenset(compiler.used), run=run)


def _truth(values: Float64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.not_equal(values, 0)


def _integers(values: Float64s) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Truncated; what no int64 holds becomes 0."""
    whole = np.trunc(values)
    return np.where(np.abs(whole) < 2.0**63, whole, 0.0).astype(np.int64)


BINARY: Final[dict[str, Callable[..., Float64s]]] = {
    "||": lambda a, b: (_truth(a) | _truth(b)).astype(np.float64),
    "&&": lambda a, b: (_truth(a) & _truth(b)).astype(np.float64),
    "|": lambda a, b: (_integers(a) | _integers(b)).astype(np.float64),
    "&": lambda a, b: (_integers(a) & _integers(b)).astype(np.float64),
    "<=": lambda a, b: np.less_equal(a, b).astype(np.float64),
    ">=": lambda a, b: np.greater_equal(a, b).astype(np.float64),
    "==": lambda a, b: np.equal(a, b).astype(np.float64),
    "!=": lambda a, b: np.not_equal(a, b).astype(np.float64),
    "<": lambda a, b: np.less(a, b).astype(np.float64),
    ">": lambda a, b: np.greater(a, b).astype(np.float64),
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "^": np.power,
}


def _choose(condition: Float64s, then: Float64s, otherwise: Float64s) -> Float64s:
    return np.where(_truth(condition), then, otherwise)


class _Compiler:
    """Goes down a tree once; `used` are the variables that were met."""

    def __init__(self, places: dict[str, int]) -> None:
        self._places = places
        self._draws = 0
        self.used: set[str] = set()

    def compile(self, node: Tree[Token] | Token) -> Step:
        if isinstance(node, Token):
            raise ValueError(f"unexpected {node!s}")
        children = node.children
        match node.data:
            case "number":
                return _constant(float(str(children[0])))
            case "name":
                return self._name(str(children[0]))
            case "unary":
                return self._unary(str(children[0]), self.compile(children[1]))
            case "binary":
                how = BINARY[str(children[1])]
                return _apply(how, [self.compile(children[0]), self.compile(children[2])])
            case "choice":
                return _apply(_choose, [self.compile(child) for child in children])
            case _:
                return self._call(str(children[0]), [self.compile(child) for child in children[1:]])

    def _name(self, name: str) -> Step:
        if name in self._places:
            place = self._places[name]
            self.used.add(name)
            return lambda frame: frame.operands[place]
        if name in CONSTANTS:
            return _constant(CONSTANTS[name])
        known = ", ".join(self._places) or "none"
        raise ValueError(f"{name!r} is no variable; there are {known}")

    @staticmethod
    def _unary(sign: str, operand: Step) -> Step:
        return operand if sign == "+" else _apply(np.negative, [operand])

    def _call(self, name: str, arguments: list[Step]) -> Step:
        if name == "rnd":
            _expect(name, arguments, 0, 0)
            self._draws += 1
            salt = self._draws
            return lambda frame: Operand(draw(frame.operands, frame.rows, salt))
        if name in SCALARS:
            least, most, how = SCALARS[name]
            _expect(name, arguments, least, most)
            return _apply(how, arguments)
        if name in VECTORS:
            count, reduce = VECTORS[name]
            _expect(name, arguments, count, count)
            return lambda frame: Operand(reduce([step(frame) for step in arguments], frame.rows, frame.fill))
        raise ValueError(f"{name!r} is no function; there are {', '.join(sorted([*SCALARS, *VECTORS, 'rnd']))}")


def _expect(name: str, arguments: list[Step], least: int, most: int) -> None:
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"{least} or more"
        raise ValueError(f"{name} takes {wanted} arguments, not {len(arguments)}")


def _constant(value: float) -> Step:
    operand = Operand(np.array(value, np.float64))
    return lambda frame: operand


def _apply(how: Callable[..., Float64s], steps: list[Step]) -> Step:
    return lambda frame: elementwise(how, [step(frame) for step in steps], frame.fill)
