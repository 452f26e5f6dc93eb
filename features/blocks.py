"""Large batches, some rows at a time: what lies between a feature's columns and its ids stays small, and in cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from features.columns import Columns
from features.generator import Dense, Generator, Made, Sparse, Steps
from features.spec import Feature
from stream.row_errors import BoolArray, Faults, RowErrors

BLOCK_BYTES = 1 << 19
"""Bytes of a feature's columns that are looked at together; fewer would spend more on blocks than caches give."""
FEWEST_ROWS, MOST_ROWS = 256, 8192
"""Rows of a block."""
_ROW_BY_ROW = frozenset({"id", "raw", "combo", "combine", "lookup", "match", "overlap", "kv_dot", "bool_mask", "expr"})
"""Our kinds that look at one row after the other: tokenizers and users' code are to see each distinct text once."""


def generate(feature: Feature, generator: Generator, columns: Columns) -> Made:
    """Compute the feature of all rows."""
    size = _block_rows(feature, columns)
    if size >= columns.count:
        return generator.generate(columns, None)
    return _joined([generator.generate(block, None) for _, block in _blocks(columns, size)])


def check(feature: Feature, generator: Generator, columns: Columns, faults: Faults) -> None:
    """Note the rows that the feature cannot use."""
    size = _block_rows(feature, columns)
    if size >= columns.count:
        generator.generate(columns, faults)
        return
    for start, block in _blocks(columns, size):
        generator.generate(block, _Block(faults, start, block.count, columns.count))


def _block_rows(feature: Feature, columns: Columns) -> int:
    # Views have been gathered already; a stub's tokens refer to the memory of one column.
    if columns.count <= FEWEST_ROWS or type(columns) is not Columns or feature.is_stub:
        return columns.count
    if feature.kind not in _ROW_BY_ROW:
        return columns.count
    held = sum(int(columns.array(name).nbytes) for name in dict.fromkeys(feature.inputs))
    return min(max(FEWEST_ROWS, BLOCK_BYTES * columns.count // max(held, 1)), MOST_ROWS)


def _blocks(columns: Columns, size: int) -> Iterator[tuple[int, Columns]]:
    for start in range(0, columns.count, size):
        mask = None if columns.mask is None else columns.mask[start : start + size]
        block = Columns(columns.rows.slice(start, size), mask)
        block.tally = columns.tally
        yield start, block


def _joined(parts: Sequence[Made]) -> Made:
    first = parts[0]
    if isinstance(first, Steps):
        steps = [part for part in parts if isinstance(part, Steps)]
        made = _joined([part.made for part in steps])
        if not isinstance(made, Steps):
            return Steps(made, np.concatenate([part.lengths for part in steps]))
    if isinstance(first, Dense):
        return Dense(np.concatenate([part.values for part in parts if isinstance(part, Dense)]))
    if not isinstance(first, Sparse):
        raise TypeError(f"{type(first).__name__} is not made some rows at a time")
    sparse = [part for part in parts if isinstance(part, Sparse)]
    weights = [part.weights for part in sparse if part.weights is not None]
    return Sparse(
        np.concatenate([part.values for part in sparse]),
        None if all(part.lengths is None for part in sparse) else np.concatenate([_lengths(part) for part in sparse]),
        np.concatenate(weights) if weights else None,
    )


def _lengths(part: Sparse) -> npt.NDArray[np.int32]:
    return np.ones(len(part.values), np.int32) if part.lengths is None else part.lengths


class _Block(Faults):
    """Adds the faults of some rows to those of all."""

    def __init__(self, faults: Faults, start: int, size: int, count: int) -> None:
        self._faults = faults
        self.spend = faults.spend
        self._start, self._size, self._count = start, size, count

    def add(self, mask: BoolArray, reason: str, detail: Callable[[int], str]) -> None:
        everywhere = np.zeros(self._count, np.bool_)
        everywhere[self._start : self._start + self._size] = mask
        self._faults.add(everywhere, reason, lambda row: detail(row - self._start))

    def add_all(self, reason: str, detail: str) -> None:
        self.add(np.ones(self._size, np.bool_), reason, lambda row: detail)

    def merge(self, errors: RowErrors) -> None:
        rows = errors.rows + self._start
        self._faults.merge(RowErrors(count=self._count, rows=rows, reasons=errors.reasons, details=errors.details))
