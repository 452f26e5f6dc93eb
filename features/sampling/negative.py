"""Negatives for a batch, shared by its rows: NegativeSampler, V2, and both with hard negatives (4.2 to 4.5)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from features.errors import SamplerError
from features.sampling.attributes import Check, typed
from features.sampling.catalogue import Catalogue, Tables
from features.sampling.draw import Draw
from features.sampling.merge import appended, flattened, merged_candidates
from features.sampling.options import SamplerOptions
from features.sampling.pool import Pool
from features.sampling.tables import EdgeTable, NodeTable, find, to_ids

logger = logging.getLogger(__name__)

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

HARD_INDICES, CANDIDATE_LENGTHS = "hard_neg_indices", "cand_pos_lengths"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Sampled:
    """A batch with its sample. `items` are the attribute columns, the batch's values first; None: all is in `rows`."""

    rows: pa.RecordBatch
    items: pa.RecordBatch | None = None
    infos: Mapping[str, Int32s] = field(default_factory=dict)
    added: int = 0  # rows of `items` behind the batch's own
    negative: npt.NDArray[np.bool_] | None = None  # TDM: which rows are negatives


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Ready:
    """Tables for batches of certain column types. Number len(items.ids) is the item that no table knows."""

    tables: Tables
    columns: Mapping[str, pa.Array]
    usable: npt.NDArray[np.bool_]
    pool: Pool
    candidates: Int64s | None  # V2: ids of the pool's candidates, ascending; None: the items themselves
    numbers: Int64s  # of the pool's candidates in the item table


class NegativeSampler:
    """Draws the negatives of one batch at a time, for one thread at a time."""

    def __init__(self, options: SamplerOptions, catalogue: Catalogue, check: Check) -> None:
        self._options = options
        self._catalogue = catalogue
        self._check = check
        self._ready: _Ready | None = None
        self._types: Mapping[str, pa.DataType] = {}
        self._told: set[str] = set()
        self._relaxed = self._unusable_items = self._unusable_hard = 0

    def totals(self) -> dict[str, int]:
        """What happened since the start: negatives that are positives of other rows, items and edges left out."""
        return {
            "relaxed": self._relaxed,
            "unusable_items": self._unusable_items,
            "unusable_hard": self._unusable_hard,
            **self._catalogue.totals(),
        }

    def sample(self, rows: pa.RecordBatch, draw: Draw) -> Sampled:
        """The batch with its negatives behind it; a batch without rows has none."""
        options = self._options
        ready = self._prepare(rows)
        items, lengths = self._positives(rows)
        ids = to_ids(items, text=ready.tables.items.text_ids)
        users = self._users(rows, lengths, ready)
        count = options.asked(draw.evaluating) if len(ids) else 0
        numbers = self._easy(ready, ids, users, count, draw)
        infos: dict[str, Int32s] = {} if lengths is None else {CANDIDATE_LENGTHS: lengths}
        if ready.tables.hard is not None and users is not None:
            hard, indices = self._hard(ready, ready.tables.hard, users)
            if len(hard):
                numbers = np.concatenate((numbers, hard))
                infos[HARD_INDICES] = indices
            elif len(ids):
                self._tell("no user of a batch has hard negatives: it trains without")
        return self._merge(rows, ready, numbers, infos)

    def _positives(self, rows: pa.RecordBatch) -> tuple[pa.Array, Int32s | None]:
        column = rows.column(self._options.item_id)
        if self._options.candidates is None:
            return column, None
        return flattened(column, self._options.candidates.delimiter)

    def _users(self, rows: pa.RecordBatch, lengths: Int32s | None, ready: _Ready) -> Int64s | None:
        """The user of each positive."""
        edges = ready.tables.positive or ready.tables.hard
        if edges is None:
            return None
        users = to_ids(rows.column(self._options.user_id), text=edges.text_sources)
        return users if lengths is None else np.repeat(users, lengths)

    def _easy(self, ready: _Ready, ids: Int64s, users: Int64s | None, count: int, draw: Draw) -> Int64s:
        if not count:
            return np.empty(0, np.int64)
        known = ready.tables.items.ids if ready.candidates is None else ready.candidates
        excluded = ids
        if ready.tables.positive is not None and users is not None:
            excluded = np.concatenate((ids, _targets(ready.tables.positive, np.unique(users))))
        at = find(known, np.unique(excluded))
        own = np.repeat(find(known, ids), -(-count // len(ids)))[:count]
        picked = ready.pool.draw_without(
            count, at[at < len(known)], np.where(own < len(known), own, -1), draw.generator("negatives")
        )
        if picked.relaxed:
            self._relaxed += picked.relaxed
            self._tell("a batch excludes every item there is: some of its negatives are positives of other rows")
        return ready.numbers[picked.items]

    def _hard(self, ready: _Ready, edges: EdgeTable, users: Int64s) -> tuple[Int64s, Int32s]:
        """Item numbers, and their [row, slot] pairs: the heaviest edges of each user."""
        starts, ends = edges.spans(users)
        if self._options.num_hard_sample:
            ends = np.minimum(ends, starts + self._options.num_hard_sample)
        sizes = ends - starts
        rows = np.repeat(np.arange(len(users)), sizes)
        slots = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        numbers = ready.tables.items.find(edges.targets[np.repeat(starts, sizes) + slots])
        fine = ready.usable[numbers]
        if not fine.all():
            self._unusable_hard += int((~fine).sum())
            numbers, rows = numbers[fine], rows[fine]
            slots = np.arange(len(rows)) - np.searchsorted(rows, rows)
        return numbers, np.stack((rows, slots), axis=1).astype(np.int32)

    def _merge(self, rows: pa.RecordBatch, ready: _Ready, numbers: Int64s, infos: dict[str, Int32s]) -> Sampled:
        taken = {name: column.take(pa.array(numbers)) for name, column in ready.columns.items()}
        candidates = self._options.candidates
        if candidates is None:
            items = {name: appended(rows.column(name), values) for name, values in taken.items()}
            return Sampled(rows=rows, items=pa.RecordBatch.from_pydict(items), infos=infos, added=len(numbers))
        for name, values in taken.items():
            column, _ = merged_candidates(rows.column(name), values, candidates.delimiter)
            rows = rows.set_column(rows.schema.get_field_index(name), name, column)
        return Sampled(rows=rows, infos=infos)

    def _prepare(self, rows: pa.RecordBatch) -> _Ready:
        """The tables in the types of this batch; made once as long as neither changes."""
        tables = self._catalogue.tables()
        names = [name for name in self._options.outputs if rows.schema.get_field_index(name) >= 0]
        types = {name: rows.schema.field(name).type for name in names}
        if self._ready is not None and self._ready.tables is tables and self._types == types:
            return self._ready
        for name in sorted(set(self._options.outputs) - set(names)):
            self._tell(f"attr_fields: {name} is no column that is read, its values are ignored")
        self._ready, self._types = self._build(tables, types), types
        return self._ready

    def _build(self, tables: Tables, types: Mapping[str, pa.DataType]) -> _Ready:
        options = self._options
        columns, usable = typed_items(tables.items, options, types, self._check)
        self._unusable_items += int((~usable[:-1]).sum())
        candidates, numbers = None, np.arange(len(tables.items.ids))
        weights = tables.items.weights * usable[:-1]
        if tables.positive is not None:
            candidates = np.unique(tables.positive.targets)
            numbers = tables.items.find(candidates)
            candidates, numbers = candidates[usable[numbers]], numbers[usable[numbers]]
            weights = np.ones(len(candidates))
        try:
            pool = Pool(weights)
        except ValueError:
            raise SamplerError(
                f"{options.kind}: no item can be drawn: all have weight 0, or attributes that no feature accepts"
            ) from None
        return _Ready(tables=tables, columns=columns, usable=usable, pool=pool, candidates=candidates, numbers=numbers)

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            logger.warning("sampler kind=%s %s", self._options.kind, text)


def typed_items(
    items: NodeTable, options: SamplerOptions, types: Mapping[str, pa.DataType], check: Check
) -> tuple[dict[str, pa.Array], npt.NDArray[np.bool_]]:
    """The attribute columns that the batch has, and which items can be used; the last row is the unknown item."""
    usable = np.ones(len(items.ids) + 1, np.bool_)
    columns, shown = {}, {}
    for name, texts in zip(options.outputs, items.attributes, strict=True):
        if name not in types:
            continue
        kind = types[name].value_type if options.candidates and _is_list(types[name]) else types[name]
        blank = pa.concat_arrays([texts, pa.array([""], texts.type)])
        columns[name], bad = typed(blank, kind)
        usable &= ~bad
        shown[name] = _alone(columns[name]) if options.candidates and _is_list(types[name]) else columns[name]
    if shown:
        usable &= ~check(pa.RecordBatch.from_pydict(shown))
    if not usable[:-1].all():
        first = int(np.flatnonzero(~usable[:-1])[0])
        logger.warning(
            "sampler unusable_items=%d first=%d attributes=%r",
            int((~usable[:-1]).sum()), items.ids[first], [texts[first].as_py() for texts in items.attributes],
        )  # fmt: skip
    return columns, usable


def _alone(values: pa.Array) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array(np.arange(len(values) + 1)), values)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _targets(edges: EdgeTable, users: Int64s) -> Int64s:
    starts, ends = edges.spans(users)
    sizes = ends - starts
    found: Int64s = edges.targets[
        np.repeat(starts, sizes) + np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    ]
    return found
