"""Rows into a table of MaxCompute, over the Arrow tunnel. Never run against MaxCompute itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from protos.pipeline_pb2 import EasyRecConfig
from stream.errors import WriteError
from stream.odps_table import COMPRESSIONS, OdpsOptions, TablePath, connect, parse_table_paths, tried
from stream.opening import odps_options

if TYPE_CHECKING:
    from odps import ODPS

_ROWS_PER_BLOCK = 1 << 20

_NAMES = {
    pa.int64(): "bigint",
    pa.int32(): "int",
    pa.float64(): "double",
    pa.float32(): "float",
    pa.string(): "string",
    pa.large_string(): "string",
}


def write_table(path: str, schema: pa.Schema, rows: Iterable[pa.RecordBatch], config: EasyRecConfig) -> int:
    """Replace the table, or its one partition, by rows; the table is created where it is missing. Raise WriteError.

    Nothing is there before the commit at the end.
    """
    options = odps_options(config.data_config)
    (table, *more) = parse_table_paths(path)
    if more or len(table.partitions) > 1:
        raise WriteError(f"{path} names several places; rows go to one table, and one partition of it")
    client = connect(options, table)
    _ensure(client, table, schema, options)
    return _upload(client, table, rows, options)


def _ensure(client: ODPS, path: TablePath, schema: pa.Schema, options: OdpsOptions) -> None:
    kinds = {field.name: _kind(path, field) for field in schema}
    name, namespace = path.table, path.schema or None
    if tried(lambda: client.exist_table(name, schema=namespace), f"table {path.text}", options):
        return
    columns = ", ".join(f"`{column}` {kind}" for column, kind in kinds.items())
    keys = [pair.partition("=")[0] for partition in path.partitions for pair in partition.split("/")]
    definition = (columns, ", ".join(f"`{key}` string" for key in keys)) if keys else columns
    hints = {"odps.sql.type.system.odps2": "true"}
    tried(
        lambda: client.create_table(name, definition, schema=namespace, hints=hints),
        f"creation of table {path.text}",
        options,
    )


def _kind(path: TablePath, field: pa.Field) -> str:
    inner = field.type
    depth = 0
    while pa.types.is_list(inner) or pa.types.is_large_list(inner) or pa.types.is_fixed_size_list(inner):
        inner, depth = inner.value_type, depth + 1
    if inner not in _NAMES or depth > 2:
        raise WriteError(f"{path.text} cannot hold column {field.name} of type {field.type}; leave it out")
    return "array<" * depth + _NAMES[inner] + ">" * depth


def _upload(client: ODPS, path: TablePath, rows: Iterable[pa.RecordBatch], options: OdpsOptions) -> int:
    from odps.tunnel import TableTunnel

    tunnel = TableTunnel(client, quota_name=options.quota or None)
    spec = path.partitions[0].replace("/", ",") if path.partitions else None
    table = client.get_table(path.table, schema=path.schema or None)
    session = tried(
        lambda: tunnel.create_upload_session(
            table,
            partition_spec=spec,
            overwrite=True,
            create_partition=spec is not None,
            compress_algo=COMPRESSIONS[options.compression],
        ),
        f"upload to {path.text}",
        options,
    )
    blocks, count, block = [], 0, 0
    pending: list[pa.RecordBatch] = []

    def flush() -> None:
        with session.open_arrow_writer(block, compress=options.compression != "UNCOMPRESSED") as writer:
            for batch in pending:
                writer.write(batch)
        blocks.append(block)

    for batch in rows:
        pending.append(batch)
        count += batch.num_rows
        if sum(part.num_rows for part in pending) >= _ROWS_PER_BLOCK:
            flush()
            block, pending = block + 1, []
    if pending:
        flush()
    tried(lambda: session.commit(blocks), f"commit of {path.text}", options)
    return count
