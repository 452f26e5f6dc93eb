"""Put rows of the commit log back into a sorted map: by slot where slots hold; the lowest scores may not fit."""

from collections.abc import Mapping

import numpy as np

from recmodels.errors import TableRowsError
from recmodels.tables_seal import SealedLookup
from recmodels.zch.arena import EVICTIONS, FIRST_ROW, ROWS, SIZE, Int64s
from recmodels.zch.memory import Array
from recmodels.zch.sorted_map import History

Joined = tuple[Int64s, Int64s, dict[str, Array]]


def load_sorted(sealed: SealedLookup, number: int, rows: Joined, admission: Joined) -> None:
    """Replace a sorted map and its rows; what moved counts as touched, what does not fit is evicted as DEL."""
    lookup = sealed.lookup
    book, sorted_map = lookup.book, lookup.sorted[number]
    p, name = book.params[number], book.shards[number].table.name
    ids, slots, columns = rows
    seen, _, counted = admission
    records = {key: _integers(name, columns, key) for key in sorted_map.record_names} if len(ids) else {}
    iteration = max([0, *(int(held["iter"].max()) for held in (columns, counted) if len(held.get("iter", ())))])
    history = History(
        ids=seen,
        counts=_integers(name, counted, "count") if len(seen) else seen,
        last_iter=_integers(name, counted, "last_iter") if len(seen) else seen,
    )
    at, moved = _places(ids, slots - p[FIRST_ROW], sorted_map.scores(records, iteration), int(p[ROWS]))
    kept = at >= 0
    sorted_map.restore(ids[kept], at[kept], {key: held[kept] for key, held in records.items()}, iteration, history)
    lookup.zero_rows(number)
    if len(ids):
        lookup.write_rows(number, at[kept], {key: held[kept] for key, held in columns.items()})
    gone = ids[~kept]
    book.figures[number, SIZE] = int(kept.sum())
    book.figures[number, EVICTIONS] += len(gone)
    lookup.evict(number, np.sort(gone))
    lookup.mark(number, at[kept & moved])
    sealed.remember_history(number, history.ids)


def _integers(table: str, columns: Mapping[str, Array], name: str) -> Int64s:
    if name not in columns:
        raise TableRowsError(
            f"table {table!r}: the log has no {name!r} of its rows; train with the zch policy that wrote the log"
        )
    return columns[name].astype(np.int64)


def _places(ids: Int64s, rows: Int64s, scores: np.ndarray, size: int) -> tuple[Int64s, np.ndarray]:
    """Each id's row, -1 for the lowest scores beyond `size - 1`, and whether it is another than asked for."""
    best = np.lexsort((ids, -np.broadcast_to(scores, ids.shape)))[: size - 1]
    at = np.full(len(ids), -1, np.int64)
    taken = np.zeros(size, np.bool_)
    taken[size - 1] = True
    homeless = []
    for k in np.sort(best).tolist():
        if 0 <= rows[k] < size and not taken[rows[k]]:
            at[k] = rows[k]
            taken[rows[k]] = True
        else:
            homeless.append(k)
    at[homeless] = np.flatnonzero(~taken)[: len(homeless)]
    return at, at != rows
