"""Blobs: several parts, one after the other in one object, one fsync for each rank (FORMAT.md, section 4)."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from checkpointer import dense as dense_codec
from checkpointer import parquet
from checkpointer.canonical import sha256
from checkpointer.commit import BlobRef, Part, Role
from checkpointer.errors import ChainError, Flaw, NotFoundError
from checkpointer.rows import Column, Ids, TableRows
from checkpointer.store import Store
from protos import commit_pb2

_COLUMNS = b"headrace.columns"
_WORTH_THREADS = 1 << 22


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A part before it has a place, its bytes in one or more buffers; `part.offset` is not looked at."""

    part: Part
    data: tuple[bytes | memoryview, ...]


def rows_pieces(rows: TableRows) -> list[Piece]:
    """PUTs and DELs of one shard. RESET stands on the first; where there is nothing else, on a part without rows."""
    pieces = []
    if len(rows) or (rows.reset and not len(rows.deleted)):
        pieces.append(_piece(Role.ROWS, _encode_rows(rows), rows, len(rows)))
    if len(rows.deleted):
        pieces.append(_piece(Role.DELETED, parquet.encode({"id": rows.deleted}, {}), rows, len(rows.deleted)))
    if rows.reset:
        pieces[0] = replace(pieces[0], part=replace(pieces[0].part, reset=True))
    return pieces


def dense_piece(arrays: Mapping[str, Column]) -> Piece:
    """All dense arrays of one rank."""
    return _plain(Role.DENSE, *dense_codec.to_buffers(arrays))


def stream_piece(state: commit_pb2.StreamState) -> Piece:
    """The stream state of one rank."""
    return _plain(Role.STREAM, state.SerializeToString(deterministic=True))


def assemble(pieces: Sequence[Piece]) -> tuple[Sequence[bytes | memoryview], tuple[Part, ...]]:
    """The bytes of a blob, in pieces, and where its parts lie."""
    parts, offset = [], 0
    for piece in pieces:
        parts.append(replace(piece.part, offset=offset))
        offset += piece.part.bytes
    return [buffer for piece in pieces for buffer in piece.data], tuple(parts)


def read_part(store: Store, blob: BlobRef, part: Part) -> bytes:
    """The verified bytes of a part. Raises ChainError."""
    try:
        data = store.get(blob.path, offset=part.offset, length=part.bytes)
    except NotFoundError:
        raise ChainError(Flaw.MISSING, blob.path, "a manifest names this blob, but it is not there") from None
    if len(data) < part.bytes:
        raise ChainError(Flaw.TRUNCATED, blob.path, f"ends after {part.offset + len(data)} of {blob.bytes} bytes")
    if sha256(data) != part.sha256:
        raise ChainError(
            Flaw.ALTERED, blob.path, f"the digest of its {part.role.value} at byte {part.offset} does not fit"
        )
    return data


def read_rows(store: Store, blob: BlobRef, part: Part, wanted: Collection[str] | None = None) -> TableRows:
    """The PUTs or the DELs that one part holds; of their columns the `wanted` ones, by default all."""
    data = read_part(store, blob, part)
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        described = json.loads((file.metadata.metadata or {}).get(_COLUMNS, b"{}"))
        held = ["id", *(("slot", *described) if part.role is Role.ROWS else ())]
        if set(file.schema.names) != set(held):
            raise ChainError(Flaw.MALFORMED, blob.path, f"unexpected columns {file.schema.names} at byte {part.offset}")
        if wanted is not None:
            described = {name: said for name, said in described.items() if name in wanted}
            held = [name for name in held if name in ("id", "slot") or name in described]
        # For the few thousand rows of a delta, waking threads takes longer than decoding.
        read = file.read(held, use_threads=part.bytes > _WORTH_THREADS)
        # combine_chunks() copies a single chunk, too.
        whole = [column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in read.columns]
        table = pa.Table.from_arrays(whole, names=read.column_names)
    except (pa.ArrowException, ValueError) as error:
        raise ChainError(Flaw.MALFORMED, blob.path, f"no rows at byte {part.offset}: {error}") from None
    if table.num_rows != part.rows:
        raise ChainError(Flaw.MALFORMED, blob.path, f"{table.num_rows} rows where the manifest says {part.rows}")
    ids = table["id"].to_numpy()
    empty = np.empty(0, np.int64)
    if part.role is Role.DELETED:
        return _table_rows(part, ids=empty, slots=empty, columns={}, deleted=ids)
    columns = {name: _decode_column(table[name], *described[name]) for name in described}
    return _table_rows(part, ids=ids, slots=table["slot"].to_numpy(), columns=columns, deleted=empty)


def read_dense(store: Store, parts: Iterable[tuple[BlobRef, Part]]) -> dict[str, Column]:
    """The dense arrays of all ranks together."""
    merged: dict[str, Column] = {}
    for blob, part in parts:
        arrays = dense_codec.from_bytes(blob.path, read_part(store, blob, part))
        if merged.keys() & arrays.keys():
            raise ChainError(
                Flaw.MALFORMED, blob.path, f"two ranks wrote the arrays {sorted(merged.keys() & arrays.keys())}"
            )
        merged |= arrays
    return merged


def read_stream(store: Store, blob: BlobRef, part: Part) -> commit_pb2.StreamState:
    """The stream state of one rank."""
    return commit_pb2.StreamState.FromString(read_part(store, blob, part))


def _piece(role: Role, data: Sequence[bytes | memoryview], rows: TableRows, count: int) -> Piece:
    plain = _plain(role, *data)
    part = replace(plain.part, rows=count, table=rows.table, kind=rows.kind, shard=rows.shard)
    return replace(plain, part=part)


def _plain(role: Role, *data: bytes | memoryview) -> Piece:
    return Piece(part=Part(role=role, offset=0, bytes=sum(map(len, data)), sha256=sha256(*data)), data=data)


def _table_rows(part: Part, *, ids: Ids, slots: Ids, columns: dict[str, Column], deleted: Ids) -> TableRows:
    return TableRows(
        table=part.table,
        shard=part.shard,
        kind=part.kind,
        ids=ids,
        slots=slots,
        columns=columns,
        deleted=deleted,
        reset=part.reset,
    )


def _encode_rows(rows: TableRows) -> Sequence[bytes | memoryview]:
    described = {name: [column.dtype.str, list(column.shape[1:])] for name, column in rows.columns.items()}
    columns = {"id": rows.ids, "slot": rows.slots, **rows.columns}
    return parquet.encode(columns, {_COLUMNS.decode(): json.dumps(described, separators=(",", ":"))})


def _decode_column(column: pa.ChunkedArray, dtype: str, tail: list[int]) -> Column:
    array = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    if not tail:
        return np.asarray(array.to_numpy(zero_copy_only=False), np.dtype(dtype))
    width = np.dtype(dtype).itemsize * tail[0]
    if array.type != pa.binary(width):
        raise ValueError(f"a column of {array.type} cannot hold {tail[0]} x {dtype}")
    flat = np.frombuffer(array.buffers()[1] or b"", np.dtype(dtype), len(array) * tail[0], array.offset * width)
    return flat.reshape(len(array), tail[0])
