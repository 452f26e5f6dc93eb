"""All features of a configuration: validate rows, turn them into batches, say what the values depend on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torchrec.sparse.jagged_tensor import JaggedTensor, KeyedJaggedTensor, KeyedTensor

from features import targets
from features.assemble import Addresses, DenseGroup, Groups, SparseGroup, as_jagged, as_numbers, as_rows, step_lengths
from features.batch import Batch
from features.columns import Column, Columns, Nested
from features.counts import Counts
from features.errors import ColumnTypeError
from features.generator import Generator, Made
from features.graph import Graph
from features.sampling.groups import with_negatives
from features.sampling.options import SamplerOptions
from features.sampling.padding import merged
from features.spec import CROSS, NEGATIVE, Feature, Side
from features.views import take
from stream.row_errors import Faults, RowErrors

USER = "_user"
"""What a data group's name ends with that holds the user's side of a tiled batch."""


Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Masks:
    """In which rows features with `use_mask` see nothing: of the batch, and of its sampled items."""

    rows: Bools
    items: Bools | None


class FeatureSet:
    """The features of one configuration, in its order. Threads may share it."""

    def __init__(
        self,
        generators: Sequence[Generator],
        features: Sequence[Feature],
        labels: Sequence[str],
        weights: Sequence[str],
        *,
        connected: bool = False,
        sampler: SamplerOptions | None = None,
        force_base: bool = False,
    ) -> None:
        """`features` are those of the generators, with their data groups; `connected`: FG_DAG.

        `sampler` extends the groups of what it samples; with `force_base` all stay in one, padded.
        """
        self.counts = Counts()
        graph = Graph(features, generators, connected=connected)
        sides = graph.user_side() if graph.has_references else {}
        placed = with_negatives(features, graph.leaves(), sampler)
        of_items = {feature.name for feature in placed if feature.data_group.startswith((NEGATIVE, CROSS))}
        kept = features if force_base else placed
        everything = [replace(feature, user_side=sides.get(feature.name)) for feature in kept]
        pairs = [pair for pair in zip(everything, generators, strict=True) if not pair[0].is_stub]
        self.features = tuple(feature for feature, _ in pairs)
        self.labels = tuple(labels)
        self.weights = tuple(weights)
        self.input_columns = graph.columns
        self.user_columns = _user_columns(graph)
        self._graph = graph
        self._sampler_columns = () if sampler is None else sampler.columns
        self._force_base = force_base
        self._described = {feature.name: feature.data_group for feature in kept}
        self._groups = Groups(pairs)
        self._of_rows = Groups([pair for pair in pairs if pair[0].name not in of_items])
        self._of_items = Groups([pair for pair in pairs if pair[0].name in of_items])
        self._user = Groups([(_on_user_side(feature), made) for feature, made in pairs if feature.is_user])
        self._items = Groups([pair for pair in pairs if not pair[0].is_user])

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that training reads."""
        return tuple(dict.fromkeys(self.input_columns + self.labels + self.weights + self._sampler_columns))

    def validate(self, rows: pa.RecordBatch, *, serving: bool = False) -> RowErrors:
        """The rows that cannot be used; a request (`serving`) needs no labels and weights."""
        columns = Columns(rows)
        faults = Faults(columns.count)
        self._check_features(self._groups, columns, faults)
        if not serving:
            for name in self.labels:
                _check(columns, name, targets.check_label, faults)
            for name in self.weights:
                _check(columns, name, targets.check_weight, faults)
        return faults.errors()

    def _check_features(self, groups: Groups, columns: Columns, faults: Faults) -> None:
        held: list[SparseGroup | DenseGroup] = [*groups.sparse.values(), *groups.dense.values()]
        valid = {name for group in held if group.plain and group.plain.valid(columns) for name in group.names}
        stubs = set(self._graph.nodes) - {feature.name for feature in self.features}
        self._graph.validate(columns, (set(groups.names) | stubs) - valid, faults, self.counts)

    def unusable(self, rows: pa.RecordBatch) -> Bools:
        """Which rows of attributes of items no feature can be made of, of those features that they are all of."""
        have = set(rows.schema.names)
        leaves = self._graph.leaves()
        names = {feature.name for feature in self.features if have.issuperset(leaves[feature.name])}
        faults = Faults(rows.num_rows)
        needed = self._graph.needed(names)
        self._graph.validate(Columns(rows), needed, faults)
        return faults.errors().bad

    def parse(
        self,
        rows: pa.RecordBatch,
        *,
        labels: bool = True,
        reserve: Sequence[str] = (),
        items: pa.RecordBatch | None = None,
        masks: Masks | None = None,
    ) -> Batch:
        """Turn rows that passed `validate` into a batch; requests have no labels.

        `reserve` names columns to carry along; `items` are sampled columns, longer than `rows`
        (features/sampling/maker.py).
        """
        columns = Columns(rows, None if masks is None else masks.rows)
        given = {name: targets.label(columns, name) for name in self.labels} if labels else {}
        batch = Batch(
            size=columns.count,
            labels={name: value for name, value in given.items() if isinstance(value, torch.Tensor)},
            jagged_labels={name: value for name, value in given.items() if isinstance(value, JaggedTensor)},
            sample_weights={name: targets.weight(columns, name) for name in self.weights} if labels else {},
            reserves=rows.select(list(reserve)) if reserve else None,
        )
        if items is None or not self._of_items.names:
            return self._fill(self._groups, columns, {}, batch)
        sampled = Columns(items, None if masks is None else masks.items)
        made = self._fill(self._of_rows, columns, {}, batch)
        if not self._force_base:
            return self._fill(self._of_items, sampled, {}, made)
        more = self._fill(self._of_items, sampled, {}, Batch(size=sampled.count))
        return merged(made, more, [feature.name for feature in self.features], more=sampled.count)

    def parse_tiled(self, user: pa.RecordBatch, items: pa.RecordBatch) -> Batch:
        """The batch of a request: rows of users, and for each of them equally many rows of items, in order.

        The user's side is in groups that end in `_user`, of one row for `tile_size` items (architecture.md section 4).
        """
        tile = _tile(user, items)
        users, columns = Columns(user), _tiled(user, items, self.user_columns)
        batch = Batch(size=items.num_rows, tile_size=tile)
        made = self._fill(self._user, users, {}, batch)
        repeat = np.repeat(np.arange(user.num_rows), tile)
        needed = {name for other in self._items.names for name in self._graph.nodes[other].references.values()}
        shared = [feature.name for feature in self.features if feature.is_user and feature.name in needed]
        views = {
            name: view if isinstance(view, Nested) else take(view, repeat)
            for name, view in self._graph.views(users, shared).items()
            if not isinstance(view, Nested)
        }
        return self._fill(self._items, columns, views, made)

    def validate_tiled(self, user: pa.RecordBatch, items: pa.RecordBatch) -> RowErrors:
        """The rows of items that cannot be used, all of them where their user's cannot."""
        tile = _tile(user, items)
        of_users, faults = Faults(user.num_rows), Faults(items.num_rows)
        self._check_features(self._user, Columns(user), of_users)
        found = of_users.errors()
        faults.merge(
            RowErrors(
                count=items.num_rows,
                rows=np.repeat(found.rows * tile, tile) + np.tile(np.arange(tile), len(found.rows)),
                reasons=tuple(reason for reason in found.reasons for _ in range(tile)),
                details=tuple(detail for detail in found.details for _ in range(tile)),
            )
        )
        self._check_features(self._items, _tiled(user, items, self.user_columns), faults)
        return faults.errors()

    def _fill(self, groups: Groups, columns: Columns, views: Mapping[str, Column], batch: Batch) -> Batch:
        """`batch` with the features of groups."""
        sparse = {name: _addresses(group, columns) for name, group in groups.sparse.items()}
        dense = {name: _addresses(group, columns) for name, group in groups.dense.items()}
        wanted = [name for key, group in groups.sparse.items() if sparse[key] is None for name in group.names]
        wanted += [name for key, group in groups.dense.items() if dense[key] is None for name in group.names]
        parts = self._graph.run(columns, wanted + groups.dense_sequences, views, self.counts)
        return replace(
            batch,
            sparse_features=batch.sparse_features
            | {key: _ids(group, sparse[key], parts, columns.count) for key, group in groups.sparse.items()},
            dense_features=batch.dense_features
            | {key: _numbers(group, dense[key], parts, columns.count) for key, group in groups.dense.items()},
            sequence_mulval_lengths=batch.sequence_mulval_lengths
            | {
                key: step_lengths(group.several, [parts[name] for name in group.several], columns.count)
                for key, group in groups.sparse.items()
                if group.several
            },
            sequence_dense_features=batch.sequence_dense_features
            | {name: as_jagged(parts[name]) for name in groups.dense_sequences},
        )

    def made(self, rows: pa.RecordBatch) -> dict[str, Made]:
        """What each feature makes of rows that passed, stubs too: for people and for files."""
        return self._graph.run(Columns(rows), list(self._graph.nodes))

    def describe(self) -> dict[str, dict[str, object]]:
        """What the values of each feature depend on, by name; JSON."""
        return {name: self._describe(name) for name in self._described}

    def _describe(self, name: str) -> dict[str, object]:
        node, group = self._graph.nodes[name], self._described[name]
        content: dict[str, object] = {
            "kind": node.feature.kind,
            "inputs": node.feature.inputs,
            "group": group,
            "values": node.generator.describe(),
        }
        if node.references or node.constants:
            content |= {"references": dict(node.references), "constants": dict(node.constants)}
        return content

    def digest(self) -> str:
        """SHA-256 of what the values of all features depend on: two sets with one digest compute the same."""
        return sha256(self.description()).hexdigest()

    def description(self) -> bytes:
        """`describe` as the bytes that `digest` is of (features/drift.py reads them)."""
        content = [{"name": name} | described for name, described in self.describe().items()]
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _addresses(group: SparseGroup | DenseGroup, columns: Columns) -> Addresses | None:
    return None if group.plain is None else group.plain.addresses(columns)


def _ids(group: SparseGroup, found: Addresses | None, parts: Mapping[str, Made], count: int) -> KeyedJaggedTensor:
    if found is not None:
        return group.copy(found, count)
    return group.join([as_rows(parts[name]) for name in group.names], count)


def _numbers(group: DenseGroup, found: Addresses | None, parts: Mapping[str, Made], count: int) -> KeyedTensor:
    if found is not None:
        return group.copy(found, count)
    return group.join([as_numbers(parts[name]) for name in group.names], count)


def _check(columns: Columns, name: str, check: targets.Check, faults: Faults) -> None:
    if not columns.has(name):
        faults.add_all("missing_column", f"label or weight {name!r} is no column of the rows")
        return
    try:
        check(columns, name, faults)
    except ColumnTypeError as error:
        faults.add_all("wrong_type", str(error))


def _on_user_side(feature: Feature) -> Feature:
    return replace(feature, data_group=feature.data_group + USER)


def _tile(user: pa.RecordBatch, items: pa.RecordBatch) -> int:
    if user.num_rows == 0 or items.num_rows % user.num_rows:
        raise ValueError(f"{items.num_rows} rows of items cannot be shared out to {user.num_rows} of users evenly")
    return int(items.num_rows // user.num_rows)


def _tiled(user: pa.RecordBatch, items: pa.RecordBatch, names: frozenset[str]) -> Columns:
    """The columns of items, and the user's columns repeated for each of them."""
    repeat = pa.array(np.repeat(np.arange(user.num_rows), _tile(user, items)))
    columns = {name: items.column(name) for name in items.schema.names}
    columns |= {name: user.column(name).take(repeat) for name in user.schema.names if name in names}
    return Columns(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))


def _user_columns(graph: Graph) -> frozenset[str]:
    """The columns that hold the user's values for all features that read them."""
    users: dict[str, bool] = {}
    for node in graph.nodes.values():
        feature = node.feature
        whole = len(feature.inputs) != len(feature.sides)
        for at, name in enumerate(feature.inputs):
            if name in node.columns:
                of_group = bool(feature.sequence_name) and name.startswith(f"{feature.sequence_name}__")
                of_user = feature.is_user if whole else of_group or feature.sides[at] is Side.USER
                users[name] = users.get(name, True) and of_user
    return frozenset(name for name, user in users.items() if user)
