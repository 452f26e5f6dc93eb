"""A chunk becomes a segment: project, validate, filter, then judge late and duplicate rows in the partition's order."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stream.costs import check_costs, cumulated
from stream.cursor import PartitionKey
from stream.deadletter import DeadLetter
from stream.duplicates import ACCEPTED, DEAD, FILTERED, PartitionJudge
from stream.errors import DeadLetterRateError
from stream.feed_options import FeedOptions
from stream.filters import rejected
from stream.projection import Projection
from stream.row_errors import Faults, RowErrors, Validate
from stream.row_times import event_ids, event_times
from stream.segment import GAP_KINDS, Segment
from stream.source import Chunk

Int64s = npt.NDArray[np.int64]


class DeadLetterRate:
    """Stops a stream whose rows are mostly bad: at most `max_share` of each `window` rows, one window after another."""

    def __init__(self, max_share: float, window: int) -> None:
        self._limit = max_share * window
        self._window = window
        self._rows = 0
        self._dead = 0

    def observe(self, dead: npt.NDArray[np.bool_], last: str) -> None:
        """Count the next rows, in order; raise DeadLetterRateError once the limit of a window is passed."""
        at = 0
        while at < len(dead):
            part = dead[at : at + self._window - self._rows]
            self._rows += len(part)
            self._dead += int(part.sum())
            if self._dead > self._limit:
                raise DeadLetterRateError(self._message(last))
            if self._rows == self._window:
                self._rows = self._dead = 0
            at += len(part)

    def _message(self, last: str) -> str:
        return (
            f"{self._dead} of the last {self._rows} rows are bad, more than {self._limit / self._window:g} of a window "
            f"of {self._window}; the last one: {last}. "
            "Mend the producer or the schema, or raise dead_letters.max_share"
        )


class ChunkJudge:
    """Judges chunks; keeps the state of every partition as of the rows read (not trained)."""

    def __init__(
        self, options: FeedOptions, validate: Validate | None, judges: Mapping[PartitionKey, PartitionJudge]
    ) -> None:
        self._options = options
        self._validate = validate
        self._judges = dict(judges)
        self._project = Projection(options.all_columns, options.schema)
        self._rate = DeadLetterRate(options.max_dead_share, options.dead_window_rows)

    def add(self, key: PartitionKey, judge: PartitionJudge) -> None:
        """Judge one more partition."""
        self._judges[key] = judge

    def judge(self, chunk: Chunk) -> Segment:
        """Judge all rows of a chunk; raise DeadLetterRateError and FeedError."""
        count = chunk.rows.num_rows
        if count == 0:
            self._count_dead(chunk, RowErrors.none(0))
            return _trail(chunk)
        rows, projection_errors = self._project(chunk.rows)
        faults = Faults(count)
        faults.merge(projection_errors)
        times = event_times(rows, chunk.broker_time_ms, self._options, faults)
        ids = event_ids(rows, self._options, faults)
        if self._options.cost_column is not None:
            check_costs(rows, self._options.cost_column, faults)
        if self._validate is not None:
            faults.merge(self._validate(rows))
        errors = faults.errors()
        self._count_dead(chunk, errors)
        letters = _row_letters(chunk, errors)
        status = np.zeros(count, np.uint8)
        drop = rejected(rows, self._options.filters)
        if drop is not None:
            status[drop] = FILTERED
        status[errors.rows] = DEAD
        watermarks = self._judges[chunk.key].judge(status, times, ids)
        segment = _segment(
            chunk, rows, status, times, watermarks, ids, list(zip(errors.rows.tolist(), letters, strict=True))
        )
        if self._options.cost_column is not None:
            segment.costs = cumulated(segment.rows, self._options.cost_column)
        return segment

    def _count_dead(self, chunk: Chunk, errors: RowErrors) -> None:
        if errors:
            last = f"{errors.reasons[-1]} at {chunk.cursor(int(errors.rows[-1])).text}: {errors.details[-1]}"
        else:
            last = f"{chunk.dead[-1].reason} at {chunk.dead[-1].key}: {chunk.dead[-1].detail}" if chunk.dead else ""
        self._rate.observe(np.concatenate((np.ones(len(chunk.dead), np.bool_), errors.bad)), last)


def _row_letters(chunk: Chunk, errors: RowErrors) -> list[DeadLetter]:
    return [
        DeadLetter(
            cursor=chunk.cursor(row),
            reason=reason,
            detail=detail,
            raw=_ipc(chunk.rows.slice(row, 1)),
            format="ARROW_IPC",
        )
        for row, reason, detail in zip(errors.rows.tolist(), errors.reasons, errors.details, strict=True)
    ]


def _ipc(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def _trail(chunk: Chunk) -> Segment:
    """A chunk of dead messages only."""
    nothing = np.empty(0, np.int64)
    gap = np.zeros((1, len(GAP_KINDS)), np.int64)
    gap[0, 0] = len(chunk.dead)
    return Segment(
        rows=chunk.rows, event_time_ms=nothing, broker_time_ms=nothing, watermarks=nothing, ids=None,
        next_offset=nothing, next_row=np.empty(0, np.int32), start=chunk.start, end=chunk.end,
        gaps=gap, dead=[(0, letter) for letter in chunk.dead],
    )  # fmt: skip


def _segment(
    chunk: Chunk,
    rows: pa.RecordBatch,
    status: npt.NDArray[np.uint8],
    times: Int64s,
    watermarks: Int64s,
    ids: npt.NDArray[np.uint64] | None,
    letters: list[tuple[int, DeadLetter]],
) -> Segment:
    """Keep the accepted rows; count the others by what they precede."""
    offsets = np.append(chunk.offsets[1:], chunk.end.offset)
    places = np.append(chunk.row_in_message[1:], np.int32(chunk.end.row)).astype(np.int32)
    between = [_rows_before(chunk, letter) for letter in chunk.dead]
    for before, letter in zip(reversed(between), reversed(chunk.dead), strict=True):
        if before:
            offsets[before - 1], places[before - 1] = letter.cursor.place
    keep = np.flatnonzero(status == ACCEPTED)
    complete = len(keep) == len(status)
    gaps, dead = None, []
    if not complete or chunk.dead:
        gaps = _gaps(status, keep, between)
        dead = _placed(chunk, letters, between, keep)
    return Segment(
        rows=rows if complete else rows.take(pa.array(keep)),
        event_time_ms=times if complete else times[keep],
        broker_time_ms=chunk.broker_time_ms if complete else chunk.broker_time_ms[keep],
        watermarks=watermarks if complete else watermarks[keep],
        ids=ids if ids is None or complete else ids[keep],
        next_offset=offsets if complete else offsets[keep],
        next_row=places if complete else places[keep],
        start=chunk.start,
        end=chunk.end,
        gaps=gaps,
        dead=dead,
        append_time=chunk.append_time,
    )


def _rows_before(chunk: Chunk, letter: DeadLetter) -> int:
    """How many rows of the chunk precede a dead message."""
    offset, row = letter.cursor.place
    first = int(np.searchsorted(chunk.offsets, offset, "left"))
    last = int(np.searchsorted(chunk.offsets, offset, "right"))
    return first + int(np.searchsorted(chunk.row_in_message[first:last], row, "left"))


def _gaps(status: npt.NDArray[np.uint8], keep: npt.NDArray[np.intp], between: list[int]) -> Int64s:
    """What precedes each accepted row, cumulated, by kind; then the total."""
    seen = np.zeros((len(status) + 1, len(GAP_KINDS)), np.int64)
    for column, kind in enumerate(GAP_KINDS):
        np.cumsum(status == kind, out=seen[1:, column])
    for before in between:
        # A dead message precedes the row at its place and all later ones.
        seen[before:, 0] += 1
    return np.concatenate((seen[keep], seen[-1:]))


def _placed(
    chunk: Chunk, letters: list[tuple[int, DeadLetter]], between: list[int], keep: npt.NDArray[np.intp]
) -> list[tuple[int, DeadLetter]]:
    """Letters in the partition's order, each with the number of accepted rows before it."""
    found = [*zip(between, chunk.dead, strict=True), *letters]
    placed = [(int(np.searchsorted(keep, before)), letter) for before, letter in found]
    return sorted(placed, key=lambda item: item[1].cursor.place)
