"""Last writer wins: a table's base rows and its later PUTs, DELs and RESETs become one ascending stream of rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from checkpointer.errors import ChainError, Flaw
from checkpointer.rows import Column, Ids, TableRows, no_ids


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlay:
    """What the deltas say about one table."""

    mentioned: Ids  # every id that was put or deleted, ascending: the base's rows of these are void
    live: TableRows | None  # the newest rows of those that are not deleted, ascending
    reset: bool  # all the base's rows are void


def overlay(newest_first: Iterable[Sequence[TableRows]]) -> Overlay:
    """Fold one table's parts of consecutive commits, and stop at a RESET. Refuses a commit that puts an id twice.

    Only the newest row of an id is kept in memory, so a thousand deltas over the same rows take no more than one.
    """
    mentioned = no_ids()
    kept: list[TableRows] = []
    reset = False
    for parts in newest_first:
        _refuse_repeated(parts)
        fresh = [_without(part, mentioned) for part in parts]
        kept += [part for part in fresh if len(part)]
        for ids in (*(part.ids for part in fresh), *(part.deleted for part in parts)):
            mentioned = _with(mentioned, ids)
        reset = any(part.reset for part in parts)
        if reset:
            break
    live = None
    if kept:
        ids, slots, columns = _joined(kept)
        order = np.argsort(ids, kind="stable")
        live = _built(kept[0], ids[order], slots[order], {name: column[order] for name, column in columns.items()})
    return Overlay(mentioned=mentioned, live=live, reset=reset)


def merge(base: Iterable[TableRows], over: Overlay, rows_at_once: int) -> Iterator[TableRows]:
    """The resolved rows of one table: ids ascend over all that is yielded. `base` must ascend likewise."""
    live = over.live
    done = 0
    last = -1
    for rows in () if over.reset else base:
        if len(rows) == 0:
            continue
        if rows.ids[0] <= last:
            raise ChainError(Flaw.MALFORMED, rows.table, "the rows of a base do not ascend")
        last = int(rows.ids[-1])
        until = int(np.searchsorted(live.ids, last, side="right")) if live else 0
        yield from _chunks(_interleaved(_without(rows, over.mentioned), _slice(live, done, until)), rows_at_once)
        done = until
    if live is not None:
        yield from _chunks(_slice(live, done, len(live)), rows_at_once)


def _refuse_repeated(parts: Sequence[TableRows]) -> None:
    filled = [part.ids for part in parts if len(part)]
    if len(filled) < 2:
        return
    ids = np.sort(np.concatenate(filled))
    twice = ids[1:][ids[1:] == ids[:-1]]
    if len(twice):
        raise ChainError(Flaw.MALFORMED, parts[0].table, f"one commit puts id {twice[0]} twice")


def _without(rows: TableRows, ids: Ids) -> TableRows:
    """The PUTs of `rows` whose id is not in the ascending `ids`."""
    absent = _absent(rows.ids, ids)
    return rows if absent.all() else _take(rows, np.flatnonzero(absent))


def _with(ids: Ids, more: Ids) -> Ids:
    """Both, ascending, each id once; either ascends and is distinct."""
    if not len(more):
        return ids
    joined = np.concatenate([ids, more[_absent(more, ids)]])
    # Two ascending runs: a stable sort merges them, where np.unique would sort the whole at every commit.
    joined.sort(kind="stable")
    return joined


def _absent(ids: Ids, among: Ids) -> npt.NDArray[np.bool_]:
    """Which of the ids are not in the ascending `among`."""
    if not len(among):
        return np.ones(len(ids), np.bool_)
    absent: npt.NDArray[np.bool_] = among[np.minimum(np.searchsorted(among, ids), len(among) - 1)] != ids
    return absent


def _take(rows: TableRows, index: Ids | slice) -> TableRows:
    columns = {name: column[index] for name, column in rows.columns.items()}
    return _built(rows, rows.ids[index], rows.slots[index], columns)


def _slice(rows: TableRows | None, start: int, stop: int) -> TableRows | None:
    return _take(rows, slice(start, stop)) if rows is not None and stop > start else None


def _interleaved(base: TableRows, live: TableRows | None) -> TableRows:
    if live is None:
        return base
    if not len(base):
        return live
    ids, slots, columns = _joined([base, live])
    order = np.argsort(ids, kind="stable")
    return _built(base, ids[order], slots[order], {name: column[order] for name, column in columns.items()})


def _chunks(rows: TableRows | None, rows_at_once: int) -> Iterator[TableRows]:
    if rows is None or not len(rows):
        return
    if len(rows) <= rows_at_once:
        yield _take(rows, slice(None))
        return
    for start in range(0, len(rows), rows_at_once):
        yield _take(rows, slice(start, start + rows_at_once))


def _joined(parts: Sequence[TableRows]) -> tuple[Ids, Ids, dict[str, Column]]:
    shapes = [{name: (column.dtype, column.shape[1:]) for name, column in part.columns.items()} for part in parts]
    for shape in shapes:
        if shape != shapes[0]:
            raise ChainError(
                Flaw.MALFORMED,
                parts[0].table,
                f"columns change between {_described(shape)} and {_described(shapes[0])} without a RESET of the table",
            )
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in shapes[0]}
    return np.concatenate([part.ids for part in parts]), np.concatenate([part.slots for part in parts]), columns


def _built(like: TableRows, ids: Ids, slots: Ids, columns: Mapping[str, Column]) -> TableRows:
    return TableRows(table=like.table, shard=0, kind=like.kind, ids=ids, slots=slots, columns=columns, deleted=no_ids())


def _described(shape: Mapping[str, tuple[np.dtype[np.generic], tuple[int, ...]]]) -> str:
    return ", ".join(f"{name} {dtype}{list(tail)}" for name, (dtype, tail) in shape.items())
