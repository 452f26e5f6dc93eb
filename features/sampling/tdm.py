"""Rows for a tree model: each row's ancestors as positives, nodes of the same levels as negatives (4.6)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from features.errors import SamplerError
from features.sampling.attributes import Check
from features.sampling.catalogue import Catalogue, Tables
from features.sampling.draw import Draw
from features.sampling.negative import Sampled, typed_items
from features.sampling.options import SamplerOptions
from features.sampling.pool import Pool, distinct_rows
from features.sampling.tables import EdgeTable, find, to_ids

logger = logging.getLogger(__name__)

Int64s = npt.NDArray[np.int64]

LEVEL = "tree_level"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Level:
    """The nodes of one level, ascending, with their weights."""

    nodes: Int64s
    pool: Pool


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Ready:
    tables: Tables
    ancestors: EdgeTable
    columns: Mapping[str, pa.Array]
    node_levels: Int64s  # of each node, and -1 for the unknown one
    levels: tuple[_Level, ...]  # 1 … L-1


class TdmSampler:
    """Expands the rows of one batch at a time, for one thread at a time.

    The batch becomes [its rows | their ancestors, row by row | negatives, row by row, levels ascending]. An item that
    the tree does not know stands for its own ancestors; one with too few of them repeats them in turn.
    """

    def __init__(self, options: SamplerOptions, catalogue: Catalogue, check: Check, labels: Sequence[str]) -> None:
        self._options = options
        self._catalogue = catalogue
        self._check = check
        self._labels = tuple(labels)
        self._ready: _Ready | None = None
        self._types: Mapping[str, pa.DataType] = {}
        self._repeated = self._unknown = 0

    def totals(self) -> dict[str, int]:
        """What happened since the start: nodes drawn again for want of others, items that the tree does not know."""
        return {"repeated": self._repeated, "unknown": self._unknown, **self._catalogue.totals()}

    def sample(self, rows: pa.RecordBatch, draw: Draw) -> Sampled:
        """The batch with its positives and negatives."""
        count = rows.num_rows
        if not count:
            return Sampled(rows=rows)
        ready = self._prepare(rows)
        ids = to_ids(rows.column(self._options.item_id), text=ready.tables.items.text_ids)
        items = ready.tables.items.find(ids)
        kept = chosen_levels(self._options, draw)
        path = self._path(ready, ids)
        positives = path[:, kept - 1].reshape(-1)
        negatives = self._negatives(ready, np.column_stack((path, items)), kept, draw)
        origin = np.concatenate(
            [np.arange(count), np.repeat(np.arange(count), len(kept)), np.repeat(np.arange(count), negatives.shape[1])]
        )
        nodes = np.concatenate([np.full(count, -1), positives, negatives.reshape(-1)])
        return self._expand(rows, ready, origin, nodes, count + len(positives))

    def _path(self, ready: _Ready, ids: Int64s) -> Int64s:
        """[rows, levels 1 … L-2] the ancestor's number in each level; -1 where the item has none at all."""
        inner = len(self._options.layers) - 2
        starts, ends = ready.ancestors.spans(ids)
        sizes = ends - starts
        rows = np.repeat(np.arange(len(ids)), sizes)
        edges = np.repeat(starts, sizes) + np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        numbers = ready.tables.items.find(ready.ancestors.targets[edges])
        levels = ready.node_levels[numbers]
        inside = (levels >= 1) & (levels <= inner)
        path = np.full((len(ids), inner), -1, np.int64)
        path[rows[inside], levels[inside] - 1] = numbers[inside]
        for row in np.flatnonzero((path < 0).any(axis=1)).tolist():
            known = path[row][path[row] >= 0]
            if len(known):
                path[row, path[row] < 0] = np.resize(known, inner - len(known))
            else:
                self._unknown += 1
        return path

    def _negatives(self, ready: _Ready, path: Int64s, kept: Int64s, draw: Draw) -> Int64s:
        """[rows, negatives], levels ascending."""
        parts = []
        for level in (*kept.tolist(), len(self._options.layers) - 1):
            pool = ready.levels[level - 1]
            seed = int(draw.generator(f"level {level}").integers(2**63))
            at = find(pool.nodes, path[:, level - 1])
            own = np.where(at < len(pool.nodes), at, -1)
            asked = self._options.layers[level]
            drawn, repeated = distinct_rows(pool.pool.weights, pool.pool.keep, pool.pool.alias, own, asked, seed)
            self._repeated += repeated
            parts.append(pool.nodes[drawn])
        return np.concatenate(parts, axis=1)

    def _expand(
        self, rows: pa.RecordBatch, ready: _Ready, origin: Int64s, nodes: Int64s, first_negative: int
    ) -> Sampled:
        arrays = []
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            own = column.take(pa.array(origin))
            if name in self._labels:
                own = _with_answers(own, rows.num_rows, first_negative)
            elif name in ready.columns:
                sampled = ready.columns[name].take(pa.array(np.maximum(nodes, 0)))
                own = own.dictionary_decode() if pa.types.is_dictionary(own.type) else own
                own = pc.if_else(pa.array(nodes < 0), own, sampled)
            arrays.append(own)
        made = pa.RecordBatch.from_arrays(arrays, names=rows.schema.names)
        return Sampled(rows=made, negative=np.arange(len(origin)) >= first_negative)

    def _prepare(self, rows: pa.RecordBatch) -> _Ready:
        tables = self._catalogue.tables()
        names = [name for name in self._options.outputs if name != LEVEL and rows.schema.get_field_index(name) >= 0]
        types = {name: rows.schema.field(name).type for name in names}
        if self._ready is None or self._ready.tables is not tables or self._types != types:
            self._ready, self._types = self._build(tables, types), types
        return self._ready

    def _build(self, tables: Tables, types: Mapping[str, pa.DataType]) -> _Ready:
        columns, usable = typed_items(tables.items, self._options, types, self._check)
        if tables.ancestors is None:
            raise SamplerError("tdm_sampler: edge_input_path is empty")
        texts = tables.items.attributes[self._options.attributes.index(LEVEL)]
        try:
            node_levels = np.append(np.asarray(pc.cast(texts, pa.int64())), -1)
        except pa.ArrowInvalid as error:
            raise SamplerError(f"{self._options.item_path}: tree_level must be an integer: {error}") from None
        levels = []
        for level in range(1, len(self._options.layers)):
            nodes = np.flatnonzero((node_levels == level) & usable)
            try:
                levels.append(_Level(nodes=nodes, pool=Pool(tables.items.weights[nodes])))
            except ValueError:
                raise SamplerError(
                    f"{self._options.item_path}: level {level} has no usable node; layer_num_sample names "
                    f"{len(self._options.layers)} levels"
                ) from None
        return _Ready(
            tables=tables, ancestors=tables.ancestors, columns=columns, node_levels=node_levels, levels=tuple(levels)
        )


def chosen_levels(options: SamplerOptions, draw: Draw) -> Int64s:
    """Of the levels between root and leaves, those of this batch, ascending."""
    inner = np.arange(1, len(options.layers) - 1)
    if options.remain_ratio >= 1:
        return inner
    weights = {
        "UNIFORM": np.ones(len(inner)),
        "ARITHMETIC": inner.astype(np.float64),
        "RECIPROCAL": 1.0 / (len(options.layers) - 1 - inner),
    }[options.probability]
    count = round(options.remain_ratio * len(inner))
    random = draw.generator("levels")
    return np.sort(random.choice(inner, size=count, replace=False, p=weights / weights.sum()))


def _with_answers(labels: pa.Array, originals: int, first_negative: int) -> pa.Array:
    """The originals' labels as int64, 1 for positives, 0 for negatives."""
    own = pc.cast(labels.slice(0, originals), pa.int64(), safe=False)
    ones = np.ones(first_negative - originals, np.int64)
    zeros = np.zeros(len(labels) - first_negative, np.int64)
    return pa.concat_arrays([own, pa.array(np.concatenate((ones, zeros)))])
