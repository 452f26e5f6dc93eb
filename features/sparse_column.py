"""Ids from one column: read elements, bucketize, fill in. Id features, and every sparse feature under FG_NONE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from features import kernels
from features.bucketize import Bucketizer, Encoded
from features.columns import Column, Columns, Integers, Text
from features.counts import DEFAULTED, NULL, OUT_OF_VOCABULARY
from features.elements import Elements, Int32s, Int64s, Reader, Splitting
from features.errors import FeatureConfigError
from features.generator import Sparse
from features.plain import Plain
from features.spec import Feature
from stream.row_errors import Faults

NO_IDS = np.empty(0, np.int64)
NO_WEIGHTS = np.empty(0, np.float32)


@dataclass(frozen=True, kw_only=True, slots=True)
class SparseColumn:
    """Generator of a feature with a single column; `default` are the ids of a row that has none."""

    feature: Feature
    splitting: Splitting
    bucketizer: Bucketizer
    default: tuple[int, ...] = ()

    @property
    def plain(self) -> Plain | None:
        """Given ids are copied as they are (features/generator.py)."""
        given = isinstance(self.bucketizer, Encoded) and not self.splitting.weighted
        return Plain(limit=self.bucketizer.size - 1) if given else None

    @property
    def any_text(self) -> bool:
        """Whether every text has ids, so that none need be looked at to know that rows are good."""
        return self.bucketizer.total and not self.splitting.weighted

    def generate(self, columns: Columns, faults: Faults | None) -> Sparse:
        """Compute the ids of all rows (features/generator.py)."""
        if faults is not None and self._takes_all(columns[self.feature.inputs[0]]):
            return Sparse(NO_IDS)
        reader = Reader(columns, self.feature.inputs[0], self.splitting, faults)
        elements = reader.read()
        if faults is not None and self.bucketizer.total:
            return Sparse(NO_IDS)
        ids, status = self.bucketizer(elements.values, check=faults is not None)
        if status is not None:
            reader.blame_elements(status == kernels.MALFORMED, elements.lengths, "not_an_integer")
            reader.blame_elements(status == kernels.OUT_OF_RANGE, elements.lengths, "id_out_of_range")
        if faults is None:
            self._count(columns, elements, ids)
        return self._fill(Sparse(ids, elements.lengths, elements.weights))

    def _takes_all(self, view: Column) -> bool:
        """Whether no row can be bad: every text has an id, and every integer, unless those are ids themselves."""
        if isinstance(view, Integers):
            return view.wide is None and not isinstance(self.bucketizer, Encoded)
        return self.any_text and isinstance(view, Text)

    def _count(self, columns: Columns, elements: Elements, ids: Int64s) -> None:
        if columns.tally is None:
            return
        columns.note(OUT_OF_VOCABULARY, self.bucketizer.unknown(elements.values, ids))
        if elements.lengths is not None:
            note_missing(columns, elements.lengths, bool(self.default))

    def _fill(self, made: Sparse) -> Sparse:
        if not self.default or made.lengths is None or made.lengths.all():
            return made
        weights = NO_WEIGHTS if made.weights is None else made.weights
        fill = np.array(self.default, np.int64)
        weighted = made.weights is not None
        ids, weights, lengths = kernels.fill_empty(made.values, weights, weighted, made.lengths, fill)
        return Sparse(ids, lengths, weights if weighted else None)

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        split = self.splitting
        return {
            "separators": sorted({split.first, split.second}),
            "keep_empty": split.keep_empty,
            "weighted": split.weighted,
            "limit": split.limit,
            "bucketizer": self.bucketizer.describe(),
            "default": list(self.default),
        }


def note_missing(columns: Columns, lengths: Int32s, defaulted: bool) -> None:
    """Count the rows that have no value of their own."""
    missing = len(lengths) - int(np.count_nonzero(lengths))
    columns.note(NULL, missing)
    if defaulted:
        columns.note(DEFAULTED, missing)


def encoded_default(name: str, text: str, separator: str, size: int) -> tuple[int, ...]:
    """The ids of `fg_encoded_default_value`; "" means none."""
    if not text:
        return ()
    try:
        ids = tuple(int(part) for part in text.split(separator))
    except ValueError:
        raise FeatureConfigError(
            f"feature {name!r}: fg_encoded_default_value {text!r} must be integers separated by {separator!r}"
        ) from None
    if not all(0 <= item < size for item in ids):
        raise FeatureConfigError(f"feature {name!r}: fg_encoded_default_value {text!r} must be ids in 0 ... {size - 1}")
    return ids
