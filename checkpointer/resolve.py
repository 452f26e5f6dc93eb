"""Last writer wins: a table's base rows and its later PUTs, DELs and RESETs become one ascending stream of rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from checkpointer.errors import ChainError, Flaw
from checkpointer.rows import Column, Ids, TableRows, no_ids


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlay:
    """What the deltas say about one table: for each id they mention, ascending, its newest row or that it is gone."""

    ids: Ids  # live and gone
    gone: npt.NDArray[np.bool_]
    place: Ids  # row in `live`, -1 where gone
    live: TableRows | None  # in the order of arrival
    reset: bool  # the base's rows are void


def overlay(steps: Sequence[Sequence[TableRows]]) -> Overlay:
    """Fold one table's parts of consecutive commits, oldest first. Refuses a commit that puts an id twice."""
    first = max((index for index, parts in enumerate(steps) if any(part.reset for part in parts)), default=-1)
    steps = steps[max(first, 0) :]
    puts = [part for parts in steps for part in parts if len(part)]
    live = _concatenate(puts) if puts else None
    mentions: list[tuple[Ids, Ids, int]] = []  # ids, place in live or -1, order
    at = 0
    for order, parts in enumerate(steps):
        for part in parts:
            if len(part.deleted):
                mentions.append((part.deleted, np.full(len(part.deleted), -1), 2 * order))
        for part in parts:
            if len(part):
                mentions.append((part.ids, np.arange(at, at + len(part)), 2 * order + 1))
                at += len(part)
    ids, place = _newest(mentions, puts)
    return Overlay(ids=ids, gone=place < 0, place=place, live=live, reset=first >= 0)


def merge(base: Iterable[TableRows], over: Overlay, rows_at_once: int) -> Iterator[TableRows]:
    """The resolved rows of one table: ids ascend over all that is yielded. `base` must ascend likewise."""
    done = 0
    last = -1
    for rows in () if over.reset else base:
        if len(rows) == 0:
            continue
        if rows.ids[0] <= last:
            raise ChainError(Flaw.MALFORMED, rows.table, "the rows of a base do not ascend")
        last = int(rows.ids[-1])
        until = int(np.searchsorted(over.ids, last, side="right"))
        kept = take(rows, np.flatnonzero(~np.isin(rows.ids, over.ids[done:until], assume_unique=True)))
        yield from _chunks(_join(kept, _live(over, done, until)), rows_at_once)
        done = until
    yield from _chunks(_live(over, done, len(over.ids)), rows_at_once)


def take(rows: TableRows, index: Ids) -> TableRows:
    """Some rows of a part, in the order of `index`, without its DELs and RESET."""
    return TableRows(
        table=rows.table,
        shard=rows.shard,
        kind=rows.kind,
        ids=rows.ids[index],
        slots=rows.slots[index],
        columns={name: column[index] for name, column in rows.columns.items()},
        deleted=no_ids(),
    )


def _newest(mentions: Sequence[tuple[Ids, Ids, int]], puts: Sequence[TableRows]) -> tuple[Ids, Ids]:
    if not mentions:
        return no_ids(), no_ids()
    ids = np.concatenate([mention[0] for mention in mentions])
    place = np.concatenate([mention[1] for mention in mentions])
    order = np.concatenate([np.full(len(mention[0]), mention[2]) for mention in mentions])
    # Stable: mentions are in order already, so equal ids stay oldest first.
    by_id = np.argsort(ids, kind="stable")
    ids, place, order = ids[by_id], place[by_id], order[by_id]
    same = ids[1:] == ids[:-1]
    if np.any(same & (order[1:] == order[:-1]) & (place[1:] >= 0)):
        twice = ids[1:][same & (order[1:] == order[:-1]) & (place[1:] >= 0)][0]
        raise ChainError(Flaw.MALFORMED, puts[0].table, f"one commit puts id {twice} twice")
    newest = np.append(~same, True)
    return ids[newest], place[newest]


def _live(over: Overlay, start: int, stop: int) -> TableRows | None:
    place = over.place[start:stop]
    place = place[place >= 0]
    return take(over.live, place) if over.live is not None and len(place) else None


def _join(kept: TableRows, more: TableRows | None) -> TableRows | None:
    if more is None:
        return kept if len(kept) else None
    if not len(kept):
        return more
    both = _raw([kept, more])
    order = np.argsort(both[0], kind="stable")
    return _built(kept, both[0][order], both[1][order], {name: column[order] for name, column in both[2].items()})


def _chunks(rows: TableRows | None, rows_at_once: int) -> Iterator[TableRows]:
    if rows is None:
        return
    if len(rows) <= rows_at_once:
        yield rows
        return
    for start in range(0, len(rows), rows_at_once):
        yield take(rows, np.arange(start, min(start + rows_at_once, len(rows))))


@dataclass(frozen=True, slots=True)
class _Arrival(TableRows):
    """Rows in the order of arrival: ids may repeat and need not ascend."""

    def __post_init__(self) -> None:
        return


def _concatenate(parts: Sequence[TableRows]) -> TableRows:
    ids, slots, columns = _raw(parts)
    return _Arrival(
        table=parts[0].table, shard=0, kind=parts[0].kind, ids=ids, slots=slots, columns=columns, deleted=no_ids()
    )


def _raw(parts: Sequence[TableRows]) -> tuple[Ids, Ids, dict[str, Column]]:
    shapes = [{name: (column.dtype, column.shape[1:]) for name, column in part.columns.items()} for part in parts]
    for shape in shapes:
        if shape != shapes[0]:
            raise ChainError(
                Flaw.MALFORMED,
                parts[0].table,
                f"columns change from {_described(shapes[0])} to {_described(shape)} without a RESET of the table",
            )
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in shapes[0]}
    return np.concatenate([part.ids for part in parts]), np.concatenate([part.slots for part in parts]), columns


def _built(like: TableRows, ids: Ids, slots: Ids, columns: Mapping[str, Column]) -> TableRows:
    return TableRows(table=like.table, shard=0, kind=like.kind, ids=ids, slots=slots, columns=columns, deleted=no_ids())


def _described(shape: Mapping[str, tuple[np.dtype[np.generic], tuple[int, ...]]]) -> str:
    return ", ".join(f"{name} {dtype}{list(tail)}" for name, (dtype, tail) in shape.items())
