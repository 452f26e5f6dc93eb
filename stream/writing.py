"""Rows into files and tables: prediction output as Parquet, CSV or a table of MaxCompute, whole or not at all."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import BinaryIO, Protocol

import fsspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from protos import data_pb2
from protos.pipeline_pb2 import EasyRecConfig
from protos.s3_account import S3Account, data_account
from stream.errors import WriteError
from stream.urls import OPEN_ERRORS, READ_ERRORS, locate, reason

PARQUET, CSV, ODPS = "parquet", "csv", "odps"


class _Sink(Protocol):
    def write_batch(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


def write_rows(path: str, batches: Iterable[pa.RecordBatch], config: EasyRecConfig, form: str = "") -> int:
    """Write `batches` to a path or fsspec URL, replacing what was there; return the number of rows.

    `form` is parquet, csv or odps; "" is what the path says, else what the data set is (Parquet for a topic). Raise
    WriteError where there are no rows, or the format cannot hold them.
    """
    form = form or form_of(path, config)
    given = iter(batches)
    first = next(given, None)
    if first is None:
        raise WriteError(f"there are no rows to write to {path}; check the input")
    rows = itertools.chain([first], given)
    if form == ODPS:
        from stream.odps_write import write_table

        return write_table(path, first.schema, rows, config)
    return _write_file(path, data_account(config), first.schema, rows, form)


def check_output(path: str, schema: pa.Schema, config: EasyRecConfig, form: str = "") -> None:
    """Refuse what `write_rows` would refuse of a path and these columns, before there are rows. Raise WriteError."""
    form = form or form_of(path, config)
    if form == CSV:
        _check_flat(path, schema)
    if form != ODPS:
        _locate(path, data_account(config))


class _Bytes:
    """Hands bytes on: Arrow's writers give buffers of signed bytes, which not every file system takes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.closed = False

    def write(self, data: bytes | memoryview) -> int:
        return self._file.write(bytes(data))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self.closed = True


def form_of(path: str, config: EasyRecConfig) -> str:
    """The format of an output path; WriteError where its ending is that of another one.

    >>> form_of("s3://bucket/scores.csv", EasyRecConfig())
    'csv'
    """
    if path.startswith("odps://"):
        return ODPS
    _, dot, ending = path.rpartition("/")[2].rpartition(".")
    if ending.lower() in (PARQUET, CSV):
        return ending.lower()
    if dot:
        raise WriteError(f"{path}: .{ending} is no format that is written; name it .parquet or .csv, or pass --format")
    return CSV if config.data_config.dataset_type == data_pb2.CsvDataset else PARQUET


def _write_file(path: str, s3: S3Account, schema: pa.Schema, rows: Iterable[pa.RecordBatch], form: str) -> int:
    if form == CSV:
        _check_flat(path, schema)
    fs, target = _locate(path, s3)
    folder, _, name = target.rpartition("/")
    staged = f"{folder}/.{name}.part" if folder else f".{name}.part"
    try:
        if folder:
            fs.makedirs(folder, exist_ok=True)
        try:
            with fs.open(staged, "wb") as file:
                count = _fill(_CREATE[form](_Bytes(file), schema), rows)
            fs.mv(staged, target)
        finally:
            if fs.exists(staged):
                fs.rm(staged)
    except READ_ERRORS as error:
        raise WriteError(f"{path} cannot be written: {reason(error)}") from error
    return count


def _fill(sink: _Sink, rows: Iterable[pa.RecordBatch]) -> int:
    count = 0
    try:
        for batch in rows:
            sink.write_batch(batch)
            count += batch.num_rows
    finally:
        sink.close()
    return count


_CREATE: dict[str, Callable[[object, pa.Schema], _Sink]] = {PARQUET: pq.ParquetWriter, CSV: pa.csv.CSVWriter}


def _locate(path: str, s3: S3Account) -> tuple[fsspec.AbstractFileSystem, str]:
    try:
        fs, target = locate(path, s3)
        folder = fs.isdir(target)
    except OPEN_ERRORS as error:
        raise WriteError(f"{path} cannot be written: {reason(error)}") from None
    if folder:
        raise WriteError(f"{path} is a folder; name a file in it")
    return fs, target


def _check_flat(path: str, schema: pa.Schema) -> None:
    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    if nested:
        raise WriteError(f"{path}: CSV cannot hold the lists of {', '.join(nested)}; write Parquet, or leave them out")
