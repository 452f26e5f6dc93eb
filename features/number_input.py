"""Columns as numbers in double precision: the inputs of formulas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from features.columns import Column, Columns, Floats, Integers, Lists, Maps, Text
from features.elements import Float64s, Int32s, Tokens, split_text, to_floats, tokens_of
from features.errors import ColumnTypeError
from features.judge import Judge


@dataclass(frozen=True, slots=True, eq=False)
class NumberInput:
    """Numbers of all rows, flat; rows without one have length 0. `lengths` None means one in every row."""

    values: Float64s
    lengths: Int32s | None
    numeric: bool
    """The column holds one number a row."""


def read_numbers(columns: Columns, name: str, separators: tuple[int, int], judge: Judge) -> NumberInput:
    """Read a column; raise ColumnTypeError where it holds no numbers."""
    view = columns[name]
    match view:
        case Integers() | Floats():
            values = _floats(view)
            if view.valid is None:
                return NumberInput(values, None, True)
            return NumberInput(values[view.valid], view.valid.astype(np.int32), True)
        case Text():
            tokens, lengths = split_text(view, *separators, False)
            return _parsed(tokens, lengths, judge)
        case Lists():
            return _list(view, judge)
        case Maps():
            raise ColumnTypeError(f"column {name!r} is a map, which is no number")


def _list(view: Lists, judge: Judge) -> NumberInput:
    lengths = np.diff(view.offsets).astype(np.int32)
    child = view.child
    if child.valid is not None:
        judge.elements(~child.valid, lengths, "null_element")
    if isinstance(child, Text):
        return _parsed(tokens_of(child), lengths, judge)
    return NumberInput(_floats(child), _or_none(lengths), False)


def _parsed(tokens: Tokens, lengths: Int32s | None, judge: Judge) -> NumberInput:
    values, status = to_floats(tokens)
    judge.numbers(status, lengths)
    return NumberInput(values, _or_none(lengths), False)


def _or_none(lengths: Int32s | None) -> Int32s | None:
    return None if lengths is None or bool((lengths == 1).all()) else lengths


def _floats(view: Column) -> npt.NDArray[np.float64]:
    if isinstance(view, Integers):
        values = view.values.astype(np.float64)
        # uint64 beyond int64 wrapped to negative.
        return values if view.wide is None else np.where(view.wide, view.values.view(np.uint64).astype(float), values)
    if isinstance(view, Floats):
        return view.values.astype(np.float64, copy=False)
    raise ColumnTypeError("numbers were expected")
