"""Sparse rows of bases and deltas, as Parquet (FORMAT.md, section 2)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from checkpointer.store import Store
from publisher.errors import Reason, VersionError
from publisher.manifest import Blob, Table
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
    """Rows of one width, table after table, no id twice in a run; none of its arrays can be written to.

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


def encode_rows(parts: Iterable[ServingRows]) -> list[bytes]:
    """Write the parts as one Parquet file for each row width; tables keep the order given."""
    by_width: defaultdict[int, list[ServingRows]] = defaultdict(list)
    for part in parts:
        if len(part):
            by_width[part.rows.shape[1]].append(part)
    return [_write(by_width[width], width) for width in sorted(by_width)]


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
        _check_types(columns.schema, what)
        ids = columns["id"].combine_chunks().to_numpy()
        rows, kept = _rows(columns["row"].combine_chunks())
    except (pa.ArrowException, KeyError) as error:
        raise VersionError(Reason.CORRUPT, f"{what} is not a file of serving rows: {error}") from error
    codes = names.indices.to_numpy()
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    ends = np.append(starts[1:], len(codes))
    known = names.dictionary.to_pylist()
    runs = tuple(
        Run(table=known[codes[start]], start=int(start), end=int(end)) for start, end in zip(starts, ends, strict=True)
    )
    _check_runs(runs, ids, what, tables)
    return RowBlock(runs=runs, ids=ids, rows=rows, kept=kept)


def _check_runs(runs: tuple[Run, ...], ids: np.ndarray, what: str, tables: Mapping[str, Table]) -> None:
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


def _write(parts: list[ServingRows], width: int) -> bytes:
    names = pa.DictionaryArray.from_arrays(
        np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts]), [part.table for part in parts]
    )
    merged = [_merge(part, width) for part in parts]
    # Chunks, since joining the parts would copy every row once more.
    table = pa.table(
        {
            "table": names,
            "id": pa.chunked_array([ids for ids, _, _ in merged]),
            "row": pa.chunked_array([_binary(rows, null) for _, rows, null in merged]),
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        row_group_size=max(len(table), 1),
        use_dictionary=["table"],
        column_encoding={"id": "DELTA_BINARY_PACKED", "row": "PLAIN"},
        compression="none",
        write_statistics=False,
        store_schema=False,
        data_page_size=1 << 26,
    )
    payload: bytes = sink.getvalue().to_pybytes()
    return payload


def _merge(part: ServingRows, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Interleave rows and deletions by id: ids, rows (zeros where deleted), whether deleted."""
    if not len(part.deleted):
        return part.ids, part.rows, np.zeros(len(part.ids), dtype=np.bool_)
    ids = np.concatenate([part.ids, part.deleted])
    order = np.argsort(ids, kind="stable")
    rows = np.concatenate([part.rows, np.zeros((len(part.deleted), width), dtype=np.uint8)])
    return ids[order], rows[order], order >= len(part.ids)


def _binary(rows: np.ndarray, null: np.ndarray) -> pa.Array:
    count, width = rows.shape
    validity = None if not null.any() else pa.array(~null).buffers()[1]
    return pa.Array.from_buffers(pa.binary(width), count, [validity, pa.py_buffer(np.ascontiguousarray(rows))])


def _rows(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """View a fixed-size binary array as uint8[n, w], with the mask of its valid rows."""
    width = array.type.byte_width
    flat = np.frombuffer(array.buffers()[1], dtype=np.uint8)[array.offset * width :][: len(array) * width]
    return flat.reshape(len(array), width), array.is_valid().to_numpy(zero_copy_only=False)
