"""What all rows of a request may cost together: a request must not stop a replica."""

from __future__ import annotations

from dataclasses import dataclass

from features.errors import RepeatError

MOST_TOGETHER = 1 << 31
"""Comparisons, some seconds of a worker."""

PRODUCT = 512
"""Comparisons that a value made of several costs as much as: 2^22 of those are some hundred megabytes."""


@dataclass(kw_only=True, slots=True)
class Budget:
    """Counts the comparisons of all features of a request."""

    rows: int
    spent: int = 0

    def spend(self, name: str, comparisons: int) -> None:
        """Raise RepeatError, of the column `name`, where it gets too much."""
        self.spent += comparisons
        if self.spent > MOST_TOGETHER:
            raise RepeatError(
                name, f"takes {comparisons} comparisons, at most {MOST_TOGETHER} are made for all of {self.rows} rows"
            )
