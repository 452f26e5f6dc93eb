"""All features of a configuration: validate rows, turn them into batches, say what the values depend on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torchrec.sparse.jagged_tensor import JaggedTensor

from features import targets
from features.assemble import Groups
from features.batch import Batch
from features.columns import Columns
from features.counts import Counts
from features.errors import ColumnTypeError
from features.filling import fill, unchecked
from features.generator import Generator, Made
from features.graph import Graph
from features.sampling.groups import with_negatives
from features.sampling.options import SamplerOptions
from features.sampling.padding import merged
from features.spec import CROSS, NEGATIVE, Feature, Side
from features.tiling import Sides, Tiled
from stream.row_errors import Faults, RowErrors, Spend

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
        self.readers = _readers(graph)
        """The features that read a column as it is, stubs too."""
        self._graph = graph
        self._sampler_columns = () if sampler is None else sampler.columns
        self._force_base = force_base
        self._described = {feature.name: feature.data_group for feature in kept}
        self._groups = Groups(pairs)
        self._of_rows = Groups([pair for pair in pairs if pair[0].name not in of_items])
        self._of_items = Groups([pair for pair in pairs if pair[0].name in of_items])
        self._stubs = set(graph.nodes) - {feature.name for feature in self.features}
        self._sides = Sides.of(graph, everything, generators, self.user_columns, self.counts)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that training reads."""
        return tuple(dict.fromkeys(self.input_columns + self.labels + self.weights + self._sampler_columns))

    def validate(self, rows: pa.RecordBatch, *, serving: bool = False, spend: Spend | None = None) -> RowErrors:
        """The rows that cannot be used; a request (`serving`) needs no labels and weights.

        `spend` counts the comparisons of all rows together (features/budget.py).
        """
        columns = Columns(rows)
        faults = Faults(columns.count, spend)
        self._graph.validate(columns, unchecked(self._groups, columns) | self._stubs, faults, self.counts)
        if not serving:
            for name in self.labels:
                _check(columns, name, targets.check_label, faults)
            for name in self.weights:
                _check(columns, name, targets.check_weight, faults)
        return faults.errors()

    def misfits(self, schema: pa.Schema) -> dict[str, str]:
        """In words, the features that cannot read a column of the type that it has there, by name."""
        row = pa.RecordBatch.from_arrays([pa.nulls(1, field.type) for field in schema], schema=schema)
        return self._graph.misfits(Columns(row))

    def empty(self) -> Batch:
        """A batch of no rows."""
        # No type suits every kind: vectors and nested maps are no integers, and a plugin's numbers are no null.
        refusing = set(self.misfits(pa.schema([(name, pa.int64()) for name in self.input_columns])))
        refusing |= {name for name, node in self._graph.nodes.items() if node.references}
        columns = {
            name: pa.nulls(0) if refusing & set(self.readers[name]) else pa.array([], pa.int64())
            for name in self.input_columns
        }
        targets = {name: pa.array([], pa.float32()) for name in (*self.labels, *self.weights)}
        return self.parse(pa.RecordBatch.from_pydict({**columns, **targets}))

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
            return self._fill(batch, self._groups, columns)
        sampled = Columns(items, None if masks is None else masks.items)
        made = self._fill(batch, self._of_rows, columns)
        if not self._force_base:
            return self._fill(made, self._of_items, sampled)
        more = self._fill(Batch(size=sampled.count), self._of_items, sampled)
        return merged(made, more, [feature.name for feature in self.features], more=sampled.count)

    def _fill(self, batch: Batch, groups: Groups, columns: Columns) -> Batch:
        return fill(batch, groups, self._graph, columns, self.counts)[0]

    def tiled(self, user: pa.RecordBatch, items: pa.RecordBatch) -> Tiled:
        """A request to check, then to parse: rows of users, and for each of them equally many rows of items, in order.

        The user's side is in groups that end in `_user`, of one row for `tile_size` items (architecture.md section 4).
        """
        return Tiled(self._sides, user, items)

    def parse_tiled(self, user: pa.RecordBatch, items: pa.RecordBatch) -> Batch:
        """The batch of a request that passed."""
        return self.tiled(user, items).parse()

    def validate_tiled(self, user: pa.RecordBatch, items: pa.RecordBatch) -> RowErrors:
        """The rows of items that cannot be used, all of them where their user's cannot."""
        return self.tiled(user, items).validate()

    def made(self, rows: pa.RecordBatch) -> dict[str, Made]:
        """What each feature makes of rows that passed, stubs too: for people and for files."""
        return self._graph.run(Columns(rows), list(self._graph.nodes)).parts

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


def _check(columns: Columns, name: str, check: targets.Check, faults: Faults) -> None:
    if not columns.has(name):
        faults.add_all("missing_column", f"label or weight {name!r} is no column of the rows")
        return
    try:
        check(columns, name, faults)
    except ColumnTypeError as error:
        faults.add_all("wrong_type", str(error))


def _readers(graph: Graph) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, node in graph.nodes.items():
        for column in node.columns:
            found[column] = (*found.get(column, ()), name)
    return found


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
