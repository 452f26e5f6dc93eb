"""The sequences of a group are one history: in a row all have equally many steps, or none at all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from features.columns import Columns
from features.errors import ColumnTypeError
from features.generator import Generator
from features.masking import Masked
from features.sequence import SequenceGenerator
from features.steps import Cutting, Int32s
from stream.row_errors import Faults


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Member:
    """A feature of a group and a column that it cuts into steps."""

    feature: str
    column: str
    cutting: Cutting


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GroupSteps:
    """The columns of one `sequence_feature`."""

    name: str
    members: tuple[Member, ...]

    def check(self, columns: Columns, wanted: Collection[str], faults: Faults) -> None:
        """Note the rows in which wanted members differ in steps; a missing sequence differs from none.

        What is no column of the rows or no sequence is told with its feature (features/graph.py).
        """
        found: dict[str, Int32s] = {}
        readers: list[Member] = []
        for member in self.members:
            if member.feature in wanted and member.column not in found and columns.has(member.column):
                try:
                    found[member.column] = member.cutting.steps(columns, member.column)
                    readers.append(member)
                except ColumnTypeError:
                    continue
        if len(found) < 2:
            return
        longest = np.maximum.reduce(list(found.values()))
        unequal = np.zeros(len(longest), np.bool_)
        for steps in found.values():
            unequal |= (steps != longest) & (steps != 0)
        if unequal.any():
            faults.add(unequal, "unequal_steps", lambda row: self._describe(readers, found, row))

    def _describe(self, readers: list[Member], found: dict[str, Int32s], row: int) -> str:
        steps = ", ".join(
            f"feature {member.feature!r} has {int(found[member.column][row])} in column {member.column!r}"
            for member in readers
        )
        return f"sequence {self.name!r} differs in steps: {steps}"


def group_steps(generators: Sequence[tuple[Generator, Collection[str]]]) -> tuple[GroupSteps, ...]:
    """The groups of generators that cut two columns at least; with each generator the columns that it reads."""
    groups: dict[str, list[Member]] = {}
    for generator, columns in generators:
        inner = generator.inner if isinstance(generator, Masked) else generator
        feature = generator.feature
        if isinstance(inner, SequenceGenerator) and feature.sequence_name:
            groups.setdefault(feature.sequence_name, []).extend(
                Member(feature=feature.name, column=item.column, cutting=inner.cutting)
                for item in inner.cutting.inputs
                if item.sequence and not inner.cutting.stretch and item.column in columns
            )
    return tuple(
        GroupSteps(name=name, members=tuple(members))
        for name, members in groups.items()
        if len({member.column for member in members}) > 1
    )
