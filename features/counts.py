"""How often the values of a feature were not what they should be: null, defaulted, out of vocabulary, cut, rejected."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

NULL, DEFAULTED, OUT_OF_VOCABULARY, TRUNCATED, REJECTED = OUTCOMES = (
    "null", "defaulted", "out_of_vocabulary", "truncated", "rejected",
)  # fmt: skip
"""Rows without a value of their own, rows that got the default, values that no word or number of the feature is,
rows that were cut to value_dim or sequence_length, rows that were refused."""


class Counts:
    """Totals by feature and outcome since the start. Threads may share it.

    Rows of plain columns, which are copied as they are, have nothing to count.

    >>> counts = Counts()
    >>> counts.add("age", NULL, 2)
    >>> counts.totals()
    {('age', 'null'): 2}
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: Counter[tuple[str, str]] = Counter()
        self._here = threading.local()

    def add(self, feature: str, outcome: str, count: int) -> None:
        """Count rows, or values, of a feature."""
        if count and not getattr(self._here, "silent", False):
            with self._lock:
                self._totals[feature, outcome] += count

    @contextmanager
    def silent(self) -> Iterator[None]:
        """What this thread makes meanwhile is not counted: made-up rows are nobody's data."""
        self._here.silent = True
        try:
            yield
        finally:
            self._here.silent = False

    def totals(self) -> Mapping[tuple[str, str], int]:
        """What was counted so far, by feature and outcome."""
        with self._lock:
            return dict(self._totals)

    def of(self, feature: str) -> Tally:
        """What counts for one feature."""
        return Tally(self, feature)


class Tally:
    """Counts for one feature."""

    def __init__(self, counts: Counts, feature: str) -> None:
        self._counts = counts
        self._feature = feature

    def add(self, outcome: str, count: int) -> None:
        """Count rows, or values."""
        self._counts.add(self._feature, outcome, count)
