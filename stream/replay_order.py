"""The rows of Parquet files in event-time order, whatever order the files hold them in, in bounded memory.

A file in order is one run. Another is cut into runs that are sorted and spilled to a scratch folder. The runs are
merged; rows of equal time keep the order of files and of rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from protos.s3_account import ENVIRONMENT, S3Account
from stream.errors import ReplayError, SourceError
from stream.files import InputFile, list_files
from stream.missing import require_columns
from stream.urls import READ_ERRORS

_RUN_ROWS = 1 << 20
_BATCH_ROWS = 16_384
_MS_PER_UNIT = {"MILLISECONDS": (1, 1), "SECONDS": (1000, 1), "MICROSECONDS": (1, 1000)}

Times = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeColumn:
    """Which column is the event time, and its unit (timestamps know theirs)."""

    name: str
    unit: str = "MILLISECONDS"

    def of(self, rows: pa.RecordBatch, path: str) -> Times:
        """Milliseconds since the epoch, per row; raise ReplayError where the column is missing, null or no time."""
        if self.name not in rows.schema.names:
            raise ReplayError(f"{path} has no column {self.name} for the event time")
        column = rows.column(self.name)
        if column.null_count:
            raise ReplayError(f"{path} has rows without event time (column {self.name} is null)")
        if pa.types.is_timestamp(column.type):
            stamps = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
            return np.asarray(stamps.to_numpy(), np.int64)
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise ReplayError(f"{path}: column {self.name} of type {column.type} is no time")
        multiply, divide = _MS_PER_UNIT[self.unit]
        if pa.types.is_floating(column.type):
            return np.asarray(np.floor(column.to_numpy() * multiply / divide), np.int64)
        return np.asarray(column.to_numpy(), np.int64) * multiply // divide


@dataclass(frozen=True, kw_only=True, slots=True)
class _Run:
    """Rows in order of time: a file in order, or a spilled piece of one."""

    path: str
    file: InputFile | None  # None: an Arrow file in the scratch folder
    first_ms: int

    def batches(self, time: TimeColumn) -> Iterator[tuple[pa.RecordBatch, Times]]:
        for batch in _read_batches(self.file, None) if self.file else _read_spilled(self.path):
            if batch.num_rows:
                yield batch.replace_schema_metadata(None), time.of(batch, self.path)


def ordered_events(
    path: str, time: TimeColumn, scratch: Path, s3: S3Account = ENVIRONMENT
) -> Iterator[tuple[pa.RecordBatch, Times]]:
    """All rows of a path's Parquet files with their event times in milliseconds, in order of time.

    `scratch` is an empty folder for what must be sorted; the caller removes it.
    """
    runs: list[_Run] = []
    for file in _files(path, s3):
        runs += _runs(file, time, scratch)
    yield from _merge(runs, time)


def unordered_events(path: str, s3: S3Account = ENVIRONMENT) -> Iterator[pa.RecordBatch]:
    """All rows of a path's Parquet files in the order of files and rows."""
    for file in _files(path, s3):
        yield from _read_batches(file, None)


def require_everywhere(path: str, columns: Collection[str], s3: S3Account = ENVIRONMENT) -> None:
    """Raise MissingColumnsError where a file lacks one of the columns."""
    for file in _files(path, s3):
        require_columns(file.path, columns, _names(file), ())


def _names(file: InputFile) -> list[str]:
    try:
        with file.open() as handle, pq.ParquetFile(handle) as parquet:
            names: list[str] = parquet.schema_arrow.names
            return names
    except (pa.ArrowException, *READ_ERRORS) as error:
        raise ReplayError(f"{file.path} is no readable Parquet file: {error}") from None


def _files(path: str, s3: S3Account) -> tuple[InputFile, ...]:
    try:
        return list_files(path, ".parquet", s3)
    except SourceError as error:
        raise ReplayError(str(error)) from None


def _read_batches(file: InputFile, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    try:
        with file.open() as handle, pq.ParquetFile(handle) as parquet:
            yield from parquet.iter_batches(batch_size=_BATCH_ROWS, columns=columns, use_threads=False)
    except (pa.ArrowException, *READ_ERRORS) as error:
        raise ReplayError(f"{file.path} is no readable Parquet file: {error}") from None


def _read_spilled(path: str) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(path, "rb") as handle, pa.ipc.open_stream(handle) as stream:
        yield from stream


def _runs(file: InputFile, time: TimeColumn, scratch: Path) -> list[_Run]:
    first, in_order = _look(file, time)
    if first is None:
        return []
    if in_order:
        return [_Run(path=file.path, file=file, first_ms=first)]
    runs, waiting, rows = [], list[pa.RecordBatch](), 0
    for batch in _read_batches(file, None):
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _RUN_ROWS:
            runs.append(_spill(waiting, file, time, scratch))
            waiting, rows = [], 0
    if rows:
        runs.append(_spill(waiting, file, time, scratch))
    return runs


def _look(file: InputFile, time: TimeColumn) -> tuple[int | None, bool]:
    """The file's first time, None where it is empty, and whether its times never fall."""
    first: int | None = None
    last = 0
    if time.name not in _names(file):
        raise ReplayError(f"{file.path} has no column {time.name} for the event time")
    for batch in _read_batches(file, [time.name]):
        times = time.of(batch, file.path)
        if not len(times):
            continue
        if first is None:
            first = last = int(times[0])
        if times[0] < last or np.any(np.diff(times) < 0):
            return first, False
        last = int(times[-1])
    return first, True


def _spill(batches: list[pa.RecordBatch], file: InputFile, time: TimeColumn, scratch: Path) -> _Run:
    rows = pa.concat_batches(batches)
    times = time.of(rows, file.path)
    order = np.argsort(times, kind="stable")
    path = scratch / f"{len(list(scratch.iterdir())):08d}.arrow"
    with pa.OSFile(str(path), "wb") as handle, pa.ipc.new_stream(handle, rows.schema) as writer:
        for start in range(0, len(order), _BATCH_ROWS):
            writer.write_batch(rows.take(pa.array(order[start : start + _BATCH_ROWS])))
    return _Run(path=str(path), file=None, first_ms=int(times[order[0]]))


class _Head:
    """What a run has in memory."""

    def __init__(self, run: _Run, time: TimeColumn) -> None:
        self._batches = run.batches(time)
        self.rows: pa.RecordBatch | None = None
        self.times: Times = np.empty(0, np.int64)
        self.fill()

    def fill(self) -> None:
        if not len(self.times):
            self.rows, self.times = next(self._batches, (None, self.times))

    def take(self, count: int) -> tuple[pa.RecordBatch, Times]:
        if self.rows is None:
            raise ReplayError("a run gave out after its end")
        taken = self.rows.slice(0, count), self.times[:count]
        self.rows, self.times = self.rows.slice(count), self.times[count:]
        return taken


def _merge(runs: Sequence[_Run], time: TimeColumn) -> Iterator[tuple[pa.RecordBatch, Times]]:
    """Give, again and again, everything up to the time at which the first run in memory gives out."""
    waiting = sorted(range(len(runs)), key=lambda i: (runs[i].first_ms, i), reverse=True)
    heads: dict[int, _Head] = {}
    while heads or waiting:
        bound = min((int(head.times[-1]) for head in heads.values()), default=None)
        while waiting and (bound is None or runs[waiting[-1]].first_ms <= bound):
            number = waiting.pop()
            heads[number] = _Head(runs[number], time)
            last = int(heads[number].times[-1])
            bound = last if bound is None else min(bound, last)
        yield _take_until(heads, int(bound or 0))
        for number in list(heads):
            heads[number].fill()
            if heads[number].rows is None:
                del heads[number]


def _take_until(heads: dict[int, _Head], bound: int) -> tuple[pa.RecordBatch, Times]:
    """Rows up to the bound. Of the bound's own time, only what is sure to come first in the order of runs."""
    pieces = []
    passed = False
    for number in sorted(heads):
        head = heads[number]
        count = int(np.searchsorted(head.times, bound, side="left" if passed else "right"))
        passed = passed or int(head.times[-1]) == bound
        if count:
            pieces.append(head.take(count))
    times = np.concatenate([piece[1] for piece in pieces])
    rows = pieces[0][0] if len(pieces) == 1 else _concat([piece[0] for piece in pieces])
    if len(pieces) == 1:
        return rows, times
    order = np.argsort(times, kind="stable")
    return rows.take(pa.array(order)), times[order]


def _concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    try:
        return pa.concat_batches(batches)
    except pa.ArrowInvalid as error:
        raise ReplayError(f"the files differ in their columns: {error}") from None
