"""The features as a graph: each computed once, after its inputs (feature_generation.md section 5)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from features import blocks
from features.columns import Column, Columns, Nested
from features.counts import REJECTED, Counts
from features.errors import ColumnTypeError, FeatureConfigError
from features.generator import Generator, Made
from features.spec import Feature, Side
from features.step_counts import group_steps
from features.views import Views, constant, repeated, view_of
from stream.row_errors import BoolArray, Faults, RowErrors

WRONG = "wrong_type"
View = Column | Nested
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Node:
    """One feature: `columns` it reads from the rows, `references` and `constants` by the name of the input."""

    feature: Feature
    generator: Generator
    columns: tuple[str, ...]
    references: Mapping[str, str]
    constants: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a run made, and views of what others asked for."""

    parts: dict[str, Made]
    _views: dict[str, View]

    def views(self, names: Iterable[str]) -> dict[str, View]:
        """What features hand to others."""
        return {name: self._views[name] if name in self._views else view_of(self.parts[name]) for name in names}


class Graph:
    """All features in an order in which each comes after what it needs."""

    def __init__(self, features: Sequence[Feature], generators: Sequence[Generator], *, connected: bool) -> None:
        """`connected` (FG_DAG): `feature:` and `const:` inputs are no columns. Raise FeatureConfigError."""
        known = {feature.name for feature in features}
        pairs = zip(features, generators, strict=True)
        nodes = {feature.name: _node(feature, generator, known, connected) for feature, generator in pairs}
        self.nodes = {name: nodes[name] for name in _ordered(nodes)}
        self.columns = tuple(dict.fromkeys(name for feature in features for name in nodes[feature.name].columns))
        self.has_references = any(node.references for node in nodes.values())
        self._levels = _levels(self.nodes)
        self._groups = group_steps([(node.generator, node.columns) for node in self.nodes.values()])
        # Batches want the same features over and over, and a small one would spend its time on finding them.
        self._order = lru_cache(maxsize=64)(self._in_order)

    def run(
        self,
        columns: Columns,
        wanted: Iterable[str],
        given: Mapping[str, View] | None = None,
        counts: Counts | None = None,
    ) -> Run:
        """Compute the wanted features of rows that passed; `given` are of features that are known already."""
        views = {} if given is None else dict(given)
        parts: dict[str, Made] = {}
        for node in self._order(tuple(wanted), frozenset(views)):
            for reference in node.references.values():
                if reference not in views:
                    views[reference] = view_of(parts[reference])
            seen = _seen(node, columns, views)
            seen.tally = None if counts is None else counts.of(node.feature.name)
            parts[node.feature.name] = blocks.generate(node.feature, node.generator, seen)
        return Run(parts, views)

    def _with_references(self, wanted: Iterable[str], given: Container[str]) -> set[str]:
        needed: set[str] = set()
        pending = list(wanted)
        while pending:
            name = pending.pop()
            if name in needed:
                continue
            needed.add(name)
            pending += [other for other in self.nodes[name].references.values() if other not in given]
        return needed

    def _in_order(self, wanted: tuple[str, ...], given: frozenset[str]) -> tuple[Node, ...]:
        """The nodes that a run computes."""
        needed = self._with_references(wanted, given)
        return tuple(node for name, node in self.nodes.items() if name in needed)

    def validate(
        self,
        columns: Columns,
        wanted: set[str],
        faults: Faults,
        counts: Counts | None = None,
        given: Mapping[str, View] | None = None,
    ) -> None:
        """Note the rows that the wanted features cannot use; a feature sees only rows that those it names can.

        `given` are of features that are known already, for all rows.
        """
        known = {} if given is None else given
        for number, level in enumerate(self._levels):
            nodes = [node for node in level if node.feature.name in wanted]
            if not nodes:
                continue
            if not number or not faults:
                self._check_all(nodes, columns, known, faults, counts)
                continue
            good = ~faults.errors().bad
            places = np.flatnonzero(good)
            rest = {name: repeated(view, places) for name, view in known.items()}
            found = Faults(len(places), faults.spend)
            self._check_all(nodes, columns.only(good), rest, found, counts)
            faults.merge(moved(found.errors(), places, columns.count))
        for group in self._groups:
            group.check(columns, wanted, faults)

    def _check_all(
        self, nodes: Sequence[Node], columns: Columns, given: Mapping[str, View], faults: Faults, counts: Counts | None
    ) -> None:
        references = {name for node in nodes for name in node.references.values()}
        views = self.run(columns, references.difference(given), given).views(references) if references else {}
        for node in nodes:
            _check(node, columns, views, faults, counts)

    def misfits(self, columns: Columns) -> dict[str, str]:
        """In words, the features that cannot read columns of such types, whatever these hold."""
        found: dict[str, str] = {}
        for node in self.nodes.values():
            # What others hand on is computed of rows that passed only.
            if not node.references and all(columns.has(name) for name in node.columns):
                faults = Faults(columns.count)
                _check(node, columns, {}, faults)
                errors = faults.errors()
                for text, reason in zip(errors.details, errors.reasons, strict=True):
                    if reason == WRONG:
                        found.setdefault(node.feature.name, text)
        return found

    def needed(self, wanted: Iterable[str]) -> set[str]:
        """The wanted features and those that they are made of."""
        return self._with_references(wanted, ())

    def leaves(self) -> dict[str, tuple[str, ...]]:
        """The columns that each feature is made of, through other features too."""
        found: dict[str, tuple[str, ...]] = {}
        for name, node in self.nodes.items():
            inner = [column for other in node.references.values() for column in found[other]]
            found[name] = tuple(dict.fromkeys([*node.columns, *inner]))
        return found

    def user_side(self) -> dict[str, bool]:
        """Which features are the user's: all leaves are the user's or constant; a grouped sequence is."""
        found: dict[str, bool] = {}
        for name, node in self.nodes.items():
            feature = node.feature
            found[name] = bool(feature.sequence_name) or all(
                found[node.references[item]] if item in node.references else side in (Side.USER, Side.CONST)
                for item, side in zip(feature.inputs, feature.sides, strict=True)
            )
        return found


def _node(feature: Feature, generator: Generator, known: set[str], connected: bool) -> Node:
    columns, references, constants = [], {}, {}
    sides = dict(zip(feature.inputs, feature.sides, strict=False))
    if connected and len(sides) != len(feature.inputs) and len(set(feature.sides)) > 1:
        raise FeatureConfigError(f"feature {feature.name!r}: two of its inputs have one name; rename a column")
    for name in feature.inputs:
        side = sides.get(name)
        if connected and side is Side.FEATURE:
            references[name] = _reference(feature, name, known)
        elif connected and side is Side.CONST:
            constants[name] = name
        else:
            columns.append(name)
    return Node(
        feature=feature, generator=generator, columns=tuple(columns), references=references, constants=constants
    )


def _reference(feature: Feature, name: str, known: set[str]) -> str:
    """Inside a group, its members are named without the group."""
    grouped = f"{feature.sequence_name}__{name}"
    if feature.sequence_name and grouped in known:
        return grouped
    if name in known:
        return name
    near = get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise FeatureConfigError(f"feature {feature.name!r}: its input feature:{name} is no feature{hint}")


def _ordered(nodes: Mapping[str, Node]) -> list[str]:
    """Depth first; raise FeatureConfigError that names a cycle."""
    done: dict[str, None] = {}
    for start in nodes:
        trail: list[tuple[str, list[str]]] = [(start, list(nodes[start].references.values()))]
        while trail:
            name, pending = trail[-1]
            if name in done or not pending:
                done.setdefault(name)
                trail.pop()
                continue
            other = pending.pop(0)
            names = [visited for visited, _ in trail]
            if other in names:
                cycle = " -> ".join([*names[names.index(other) :], other])
                raise FeatureConfigError(f"features need each other in a cycle: {cycle}; break it")
            if other not in done:
                trail.append((other, list(nodes[other].references.values())))
    return list(done)


def _levels(nodes: Mapping[str, Node]) -> list[list[Node]]:
    depths: dict[str, int] = {}
    levels: list[list[Node]] = []
    for name, node in nodes.items():
        depth = max((depths[other] + 1 for other in node.references.values()), default=0)
        depths[name] = depth
        levels += [[]] * (depth + 1 - len(levels))
        levels[depth] = [*levels[depth], node]
    return levels


def _seen(node: Node, columns: Columns, views: Mapping[str, View]) -> Columns:
    """The columns that a feature sees: its own names for constants and for other features."""
    if not node.references and not node.constants:
        return columns
    seen: dict[str, View] = {name: views[other] for name, other in node.references.items()}
    seen |= {name: constant(text, columns.count) for name, text in node.constants.items()}
    return Views(seen, columns.count, columns)


class _Named(Faults):
    """Adds faults to others, with the name of the feature that has them."""

    def __init__(self, name: str, faults: Faults, count: int) -> None:
        self._name = name
        self._faults = faults
        self.spend = faults.spend
        self._size = count
        self._rows: BoolArray | None = None

    def add(self, mask: BoolArray, reason: str, detail: Callable[[int], str]) -> None:
        self._rows = mask if self._rows is None else self._rows | mask
        self._faults.add(mask, reason, lambda row: f"feature {self._name!r}: {detail(row)}")

    def add_all(self, reason: str, detail: str) -> None:
        self._rows = np.ones(self._size, np.bool_)
        self._faults.add_all(reason, detail)

    def merge(self, errors: RowErrors) -> None:
        self._rows = errors.bad if self._rows is None else self._rows | errors.bad
        self._faults.merge(errors)

    def count(self, counts: Counts | None) -> None:
        """Count the rows that this feature cannot use, whatever others say of them."""
        if counts is not None and self._rows is not None:
            counts.add(self._name, REJECTED, int(self._rows.sum()))


def _check(
    node: Node, columns: Columns, views: Mapping[str, View], faults: Faults, counts: Counts | None = None
) -> None:
    name = node.feature.name
    named = _Named(name, faults, columns.count)
    for column in node.columns:
        if not columns.has(column):
            named.add_all("missing_column", f"feature {name!r} needs column {column!r}, which the rows lack")
            named.count(counts)
            return
    try:
        blocks.check(node.feature, node.generator, _seen(node, columns, views), named)
    except ColumnTypeError as error:
        named.add_all(WRONG, f"feature {name!r}: {error}")
    named.count(counts)


def moved(errors: RowErrors, places: Places, count: int) -> RowErrors:
    """Errors of some rows as errors of the `count` rows among which those stand at `places`."""
    return RowErrors(count=count, rows=places[errors.rows], reasons=errors.reasons, details=errors.details)
