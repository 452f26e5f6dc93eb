"""Sparse rows of bases and deltas, as Parquet (FORMAT.md, section 2)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from checkpointer.parquet import Buffer
from checkpointer.store import Store
from publisher.errors import Reason, VersionError
from publisher.manifest import Blob, Table
from publisher.parquet import Segment, encode
from publisher.versions import read_blob


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingRows:
    """Rows of one table: `ids` int64[n] ascending, `rows` uint8[n, w] encoded, `deleted` int64[m] ascending."""

    table: str
    ids: np.ndarray
    rows: np.ndarray
    deleted: np.ndarray

    def __len__(self) -> int:
        return len(self.ids) + len(self.deleted)


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Where the rows of one table lie in a block: from `start` to before `end`."""

    table: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RowBlock:
    """Rows of one width, table after table, each once and no id of it twice; none of its arrays can be written to.

    `ids` int64[n]; `rows` uint8[n, w] encoded, C order, meaningless where deleted; `kept` bool[n], False: deleted.
    """

    runs: tuple[Run, ...]
    ids: np.ndarray
    rows: np.ndarray
    kept: np.ndarray

    def __post_init__(self) -> None:
        for array in (self.ids, self.rows, self.kept):
            array.flags.writeable = False

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.ids.nbytes + self.rows.nbytes + self.kept.nbytes


def encode_rows(parts: Iterable[ServingRows]) -> list[list[Buffer]]:
    """The parts as one Parquet file for each row width, in pieces; tables keep the order given."""
    by_width: defaultdict[int, list[ServingRows]] = defaultdict(list)
    for part in parts:
        if len(part):
            by_width[part.rows.shape[1]].append(part)
    return [encode([_segment(part) for part in by_width[width]], width) for width in sorted(by_width)]


def decode_rows(payload: bytes, what: str, tables: Mapping[str, Table]) -> Iterator[ServingRows]:
    """Read one file, table by table; VersionError as `decode_block`."""
    block = decode_block(payload, what, tables)
    for run in block.runs:
        part = slice(run.start, run.end)
        ids, rows, kept = block.ids[part], block.rows[part], block.kept[part]
        if kept.all():
            yield ServingRows(table=run.table, ids=ids, rows=rows, deleted=ids[:0])
        else:
            yield ServingRows(table=run.table, ids=ids[kept], rows=rows[kept], deleted=ids[~kept])


def decode_block(payload: bytes, what: str, tables: Mapping[str, Table]) -> RowBlock:
    """Read one file; refuse tables that the manifest does not list, and ids out of order."""
    try:
        # On this thread alone: a replica reads at a low priority, which Arrow's own threads do not have.
        columns = pq.ParquetFile(pa.BufferReader(payload), read_dictionary=["table"]).read(use_threads=False)
        names = columns["table"].combine_chunks()
        codes, known = names.indices.to_numpy(), names.dictionary.to_pylist()
        _check_types(columns.schema, what)
        ids = columns["id"].combine_chunks().to_numpy()
        rows, kept = _rows(columns["row"].combine_chunks())
    except (pa.ArrowException, KeyError) as error:
        raise VersionError(Reason.CORRUPT, f"{what} is not a file of serving rows: {error}") from error
    if len(codes) and not 0 <= codes.min() <= codes.max() < len(known):
        raise VersionError(Reason.CORRUPT, f"{what} holds rows of a table without a name")
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    ends = np.append(starts[1:], len(codes))
    runs = tuple(
        Run(table=known[codes[start]], start=int(start), end=int(end)) for start, end in zip(starts, ends, strict=True)
    )
    _check_runs(runs, ids, what, tables)
    return RowBlock(runs=runs, ids=ids, rows=rows, kept=kept)


def _check_runs(runs: tuple[Run, ...], ids: np.ndarray, what: str, tables: Mapping[str, Table]) -> None:
    if len({run.table for run in runs}) < len(runs):
        raise VersionError(Reason.CORRUPT, f"{what} holds the rows of a table in two places")
    for run in runs:
        if run.table not in tables:
            raise VersionError(
                Reason.CONTRACT, f"{what} holds rows of table {run.table!r}, which the manifest does not list"
            )
    falls = ids[1:] <= ids[:-1]
    falls[[run.start - 1 for run in runs[1:]]] = False
    if falls.any():
        at = int(np.argmax(falls))
        table = next(run.table for run in runs if at < run.end)
        raise VersionError(Reason.CORRUPT, f"{what}: ids of table {table!r} are not ascending")


def read_rows(store: Store, tables: Iterable[Table], blob: Blob) -> Iterator[ServingRows]:
    """Read and verify one file of a base or a delta, table by table."""
    return decode_rows(read_blob(store, blob), blob.path, {table.name: table for table in tables})


def read_block(store: Store, tables: Iterable[Table], blob: Blob) -> RowBlock:
    """Read and verify one file of a base or a delta."""
    return decode_block(read_blob(store, blob), blob.path, {table.name: table for table in tables})


def _check_types(schema: pa.Schema, what: str) -> None:
    id_type, row_type = schema.field("id").type, schema.field("row").type
    if id_type != pa.int64() or not pa.types.is_fixed_size_binary(row_type):
        detail = f"id must be int64 and row fixed-size binary, got {id_type} and {row_type}"
        raise VersionError(Reason.CORRUPT, f"{what} is not a file of serving rows: {detail}")


def _segment(part: ServingRows) -> Segment:
    """Rows and deletions in the order of their ids."""
    if not len(part.deleted):
        return Segment(table=part.table, ids=part.ids, kept=np.ones(len(part.ids), np.bool_), rows=part.rows)
    ids = np.concatenate([part.ids, part.deleted])
    order = np.argsort(ids, kind="stable")
    return Segment(table=part.table, ids=ids[order], kept=order < len(part.ids), rows=part.rows)


def _rows(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """View a fixed-size binary array as uint8[n, w], with the mask of its valid rows."""
    width = array.type.byte_width
    flat = np.frombuffer(array.buffers()[1], dtype=np.uint8)[array.offset * width :][: len(array) * width]
    return flat.reshape(len(array), width), array.is_valid().to_numpy(zero_copy_only=False)
