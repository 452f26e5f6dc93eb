"""The logical digest of a state: its meaning, whatever base, deltas, shards and slots it came from."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from checkpointer.rows import Column, TableRows
from protos.commit_pb2 import Accounting, Cursor, StreamState, Watermark


def logical_digest(
    tables: Iterable[TableRows], dense: Mapping[str, Column], stream: Sequence[StreamState], step: int
) -> str:
    """A digest of raw id -> row, optimizer, age; dense arrays; cursors, watermarks, counters; step.

    `tables` as a restore yields them: by table and kind, ids ascending. Not in it: slots, batch cuts
    and seen ids.
    """
    rows = TablesDigest()
    for part in tables:
        rows.add(part)
    return state_digest(rows, dense, stream, step)


class TablesDigest:
    """The digest of rows, fed part by part; how they are cut into parts does not matter."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._key: tuple[str, str] | None = None
        self._rows = 0

    def add(self, rows: TableRows) -> None:
        """Take in rows whose ids are above those before, or of the next table."""
        if not len(rows):
            return
        names = sorted(rows.columns)
        if rows.key != self._key:
            described = [[name, rows.columns[name].dtype.str, list(rows.columns[name].shape[1:])] for name in names]
            self._end_table()
            self._key = rows.key
            self._hash.update(json.dumps([*rows.key, described]).encode())
        self._rows += len(rows)
        # Row by row, so that any cut of the same rows gives the same bytes.
        columns = [rows.ids, *(rows.columns[name] for name in names)]
        self._hash.update(np.concatenate([_as_bytes(column) for column in columns], axis=1).data)

    def value(self) -> bytes:
        """The digest so far."""
        self._end_table()
        return self._hash.digest()

    def _end_table(self) -> None:
        self._hash.update(self._rows.to_bytes(8, "little"))
        self._rows = 0


def state_digest(rows: TablesDigest, dense: Mapping[str, Column], stream: Sequence[StreamState], step: int) -> str:
    """As `logical_digest`, for rows that were digested already."""
    total = hashlib.sha256(rows.value())
    for name in sorted(dense):
        array = dense[name]
        total.update(json.dumps([name, array.dtype.str, list(array.shape)]).encode())
        total.update(array.tobytes())
    total.update(json.dumps([step, merged_counters(stream)], sort_keys=True).encode())
    return total.hexdigest()


def merged_counters(states: Sequence[StreamState]) -> dict[str, list[list[int | str]]]:
    """Cursors and watermarks by partition and accounting by topic, over all ranks."""
    accounting: dict[str, Accounting] = {}
    for state in states:
        for counts in state.accounting:
            _add(accounting.setdefault(counts.topic, Accounting()), counts)
    cursors = {(cursor.topic, cursor.partition): cursor for state in states for cursor in state.cursors}
    marks = {(mark.topic, mark.partition): mark for state in states for mark in state.watermarks}
    return {
        "cursors": [_cursor(cursors[key]) for key in sorted(cursors)],
        "watermarks": [_watermark(marks[key]) for key in sorted(marks)],
        "accounting": [[topic, *_counts(accounting[topic])] for topic in sorted(accounting)],
    }


def _cursor(cursor: Cursor) -> list[int | str]:
    # The leader epoch is the broker's affair: it changes when a broker restarts, and the row stays the same.
    return [cursor.topic, cursor.topic_id, cursor.partition, cursor.offset, cursor.row]


def _watermark(mark: Watermark) -> list[int | str]:
    return [mark.topic, mark.partition, mark.event_time_ms]


def _counts(counts: Accounting) -> list[int | str]:
    return [
        counts.received,
        counts.trained,
        counts.late,
        counts.dead_lettered,
        counts.filtered,
        counts.duplicate,
        counts.remainder,
    ]


def _add(total: Accounting, counts: Accounting) -> None:
    total.received += counts.received
    total.trained += counts.trained
    total.late += counts.late
    total.dead_lettered += counts.dead_lettered
    total.filtered += counts.filtered
    total.duplicate += counts.duplicate
    total.remainder += counts.remainder


def _as_bytes(column: Column) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return np.ascontiguousarray(column).reshape(len(column), -1).view(np.uint8)
