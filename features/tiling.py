"""Requests of a user and several items: the user's features are made once (architecture.md section 4, Batch)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from features.assemble import Groups
from features.batch import Batch
from features.budget import Budget
from features.columns import Column, Columns, Nested
from features.counts import Counts
from features.errors import RepeatError
from features.filling import fill, unchecked
from features.generator import Generator
from features.graph import Graph, Run, View, moved
from features.spec import Feature
from features.views import flat_list, repeated, size_of
from stream.row_errors import Faults, RowErrors

USER = "_user"
"""What a data group's name ends with that holds the user's side of a tiled batch."""

MOST_REPEATED = 1 << 26
"""Bytes that a user's values may take beside all items: more is refused, since a request must not stop a replica."""

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Sides:
    """What a feature set makes once for a user, and what for every item."""

    graph: Graph
    user: Groups
    items: Groups
    user_stubs: frozenset[str]
    item_stubs: frozenset[str]
    shared: tuple[str, ...]
    """Features of the user, stubs too, that those of items name."""
    user_columns: frozenset[str]
    counts: Counts

    @classmethod
    def of(
        cls, graph: Graph, features: Sequence[Feature], generators: Sequence[Generator], user_columns: frozenset[str],
        counts: Counts,
    ) -> Sides:  # fmt: skip
        """Divide the features; those of users come into groups of their own.

        A grouped sequence counts as the user's, yet where a formula of it reads a column of items it is made for each.
        """
        leaves, nodes = graph.leaves(), graph.nodes
        of_user = {item.name for item in features if item.is_user and user_columns.issuperset(leaves[item.name])}
        stubs = frozenset(feature.name for feature in features if feature.is_stub)
        pairs = [pair for pair in zip(features, generators, strict=True) if pair[0].name not in stubs]
        named = [other for name in nodes if name not in of_user for other in nodes[name].references.values()]
        return cls(
            graph=graph,
            user=Groups([(_on_user_side(item), made) for item, made in pairs if item.name in of_user]),
            items=Groups([pair for pair in pairs if pair[0].name not in of_user]),
            user_stubs=stubs & of_user,
            item_stubs=stubs - of_user,
            shared=tuple(name for name in dict.fromkeys(named) if name in of_user),
            user_columns=user_columns,
            counts=counts,
        )


def _on_user_side(feature: Feature) -> Feature:
    return replace(feature, data_group=feature.data_group + USER)


class Repeated(Columns):
    """The columns of items, and beside each row those of its user."""

    def __init__(self, items: pa.RecordBatch, users: Columns, owners: Int64s, names: frozenset[str]) -> None:
        """`owners` are the users' rows, one for each row of items; `names` are the users' columns."""
        super().__init__(items, remember=True)
        self._users = users
        self._owners = owners
        self._of_user = names.intersection(users.rows.schema.names)
        self._repeated: dict[str, Column | Nested] = {}

    def has(self, name: str) -> bool:
        """Whether items or users have the column."""
        return name in self._of_user or super().has(name)

    def array(self, name: str) -> pa.Array:
        """The column as it is."""
        return self._users.array(name).take(pa.array(self._owners)) if name in self._of_user else super().array(name)

    def whole(self, name: str) -> tuple[Columns, Int64s | None]:
        """The users' columns for theirs, and whose row each is."""
        return (self._users, self._owners) if name in self._of_user else (self, None)

    def sequence(self, name: str) -> Column | Nested:
        """The column of a sequence."""
        if name not in self._of_user:
            return super().sequence(name)
        view = self._repeated.get(name)
        if view is None:
            view = self._repeated[name] = _beside(name, self._users.sequence(name), self._owners, self._users.count)
        return view

    def __getitem__(self, name: str) -> Column:
        if name not in self._of_user:
            return super().__getitem__(name)
        view = self.sequence(name)
        return flat_list(view) if isinstance(view, Nested) else view

    def only(self, good: npt.NDArray[np.bool_]) -> Columns:
        """Some of the rows."""
        return Repeated(self.rows.filter(good), self._users, self._owners[good], self._of_user)


class Tiled:
    """R rows of users, and for each of them equally many rows of items, in order."""

    def __init__(self, sides: Sides, user: pa.RecordBatch, items: pa.RecordBatch) -> None:
        if user.num_rows == 0 or items.num_rows % user.num_rows:
            raise ValueError(f"{items.num_rows} rows of items cannot be shared out to {user.num_rows} of users evenly")
        self._sides = sides
        self._tile = int(items.num_rows // user.num_rows)
        self._users = Columns(user, remember=True)
        self._owners = np.repeat(np.arange(user.num_rows), self._tile)
        self._items = Repeated(items, self._users, self._owners, sides.user_columns)

    def validate(self) -> RowErrors:
        """The rows of items that cannot be used, all of them where their user's cannot."""
        budget = Budget(rows=self._items.count)
        sides, faults = self._sides, Faults(self._users.count, budget.spend)
        sides.graph.validate(self._users, unchecked(sides.user, self._users) | sides.user_stubs, faults, sides.counts)
        bad = faults.errors()
        if not bad:
            return self._validate_items(budget)
        found, good = Faults(self._items.count), ~bad.bad
        if good.any():
            kept = good[self._owners]
            rest = Tiled(sides, self._users.rows.filter(good), self._items.rows.filter(kept))
            found.merge(moved(rest._validate_items(budget), np.flatnonzero(kept), self._items.count))
        found.merge(_spread(bad, self._tile))
        return found.errors()

    def _validate_items(self, budget: Budget) -> RowErrors:
        sides, faults = self._sides, Faults(self._items.count, budget.spend)
        given = self._shared(sides.graph.run(self._users, sides.shared))
        wanted = unchecked(sides.items, self._items) | sides.item_stubs
        sides.graph.validate(self._items, wanted, faults, sides.counts, given)
        return faults.errors()

    def parse(self) -> Batch:
        """The batch of rows that passed; the user's side is in groups that end in `_user`, of one row each."""
        sides = self._sides
        batch = Batch(size=self._items.count, tile_size=self._tile)
        batch, run = fill(batch, sides.user, sides.graph, self._users, sides.counts, more=sides.shared)
        return fill(batch, sides.items, sides.graph, self._items, sides.counts, given=self._shared(run))[0]

    def _shared(self, run: Run) -> dict[str, View]:
        """What items' features see of the user's."""
        views, users = run.views(self._sides.shared), self._users.count
        return {name: _beside(name, view, self._owners, users) for name, view in views.items()}


def _beside(name: str, view: View, owners: Int64s, users: int) -> View:
    """The users' values beside each item."""
    size, tile = size_of(view), len(owners) // users
    if size * tile > MOST_REPEATED and tile > 1:
        raise RepeatError(name, f"takes {size} bytes in one row, too many to lie beside {tile} rows")
    return repeated(view, owners)


def _spread(errors: RowErrors, tile: int) -> RowErrors:
    """Errors of users as errors of all their items."""
    return RowErrors(
        count=errors.count * tile,
        rows=np.repeat(errors.rows * tile, tile) + np.tile(np.arange(tile), len(errors.rows)),
        reasons=tuple(reason for reason in errors.reasons for _ in range(tile)),
        details=tuple(detail for detail in errors.details for _ in range(tile)),
    )
