"""Calls an operator with the distinct rows of a batch; where it fails, finds the rows that made it fail."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from features.columns import Columns
from features.distinct import Distinct, distinct_texts
from features.errors import OperatorError
from features.judge import Judge
from features.operators import Operator, as_numbers

Int64s = npt.NDArray[np.int64]
Made = list[str] | npt.NDArray[np.float64]
"""Texts, or numbers as [rows, dim]."""


class Calls:
    """An operator of `dim` numbers, or of texts."""

    def __init__(self, name: str, operator: Operator, dim: int) -> None:
        self._name = name
        self._operator = operator
        self._dim = dim

    def __call__(self, columns: Columns, inputs: tuple[str, ...], judge: Judge) -> tuple[Made, Int64s]:
        """What the operator made of distinct rows, and which one each row is.

        -1 where an input is missing, and in a row that the operator fails on, which is judged bad.
        """
        found = [distinct_texts(columns, name, judge) for name in inputs]
        rows, of_row = _distinct_rows(found, columns.count)
        texts = [[item.texts[index] for index in rows[:, at]] for at, item in enumerate(found)]
        try:
            return self._call(texts), of_row
        except OperatorError as error:
            failed: dict[int, str] = {}
            self._find(texts, 0, failed)
            # Rows that passed before, or that pass alone, are not to be defaulted behind anyone's back.
            if judge.faults is None or not failed:
                raise OperatorError(f"feature {self._name!r}: its {error}") from error
        judge.rows(np.isin(of_row, list(failed)), "operator_failed", lambda row: failed[int(of_row[row])])
        good = np.array([index not in failed for index in range(len(rows))])
        place = np.append(np.where(good, np.cumsum(good) - 1, -1), -1)
        kept = [[text for text, fine in zip(column, good, strict=True) if fine] for column in texts]
        return self._call(kept), place[of_row]

    def _call(self, texts: list[list[str]]) -> Made:
        """Raise OperatorError where the operator does not do what it should."""
        count = len(texts[0])
        if not count:
            return []
        try:
            made = self._operator(*texts)
            if len(made) != count:
                raise ValueError(f"{len(made)} results for {count} rows")
            if isinstance(made[0], str):
                return _all_texts(made)
            return as_numbers(made, count, self._dim)
        except Exception as error:  # it is users' code, which may raise anything
            raise OperatorError(f"operator failed: {type(error).__name__}: {error}") from error

    def _find(self, texts: list[list[str]], first: int, failed: dict[int, str]) -> None:
        """Halve until the rows on which the operator fails are alone."""
        try:
            self._call(texts)
        except OperatorError as error:
            half = len(texts[0]) // 2
            if not half:
                failed[first] = str(error)
                return
            self._find([column[:half] for column in texts], first, failed)
            self._find([column[half:] for column in texts], first + half, failed)


def _all_texts(made: Sequence[object]) -> list[str]:
    texts = [item for item in made if isinstance(item, str)]
    if len(texts) != len(made):
        raise ValueError("some results are texts and some are not")
    return texts


def _distinct_rows(found: list[Distinct], count: int) -> tuple[npt.NDArray[np.int64], Int64s]:
    if len(found) == 1:
        return np.arange(len(found[0].texts))[:, None], found[0].of_row
    table = np.stack([item.of_row for item in found], axis=1)
    present = (table >= 0).all(axis=1)
    rows, inverse = np.unique(table[present], axis=0, return_inverse=True)
    of_row = np.full(count, -1, np.int64)
    of_row[present] = inverse.reshape(-1)
    return rows, of_row
