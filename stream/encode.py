"""From record batches to message payloads, in the formats that decoders read: for replay, tests and producers."""

from __future__ import annotations

import json

import pyarrow as pa

from stream.errors import ReplayError


def encode_rows(rows: pa.RecordBatch, form: str) -> list[bytes]:
    """One message of all rows in the Arrow formats, one message per row in JSON, where maps are objects.

    >>> encode_rows(pa.record_batch({"id": [1, 2]}), "JSON")
    [b'{"id":1}', b'{"id":2}']
    """
    if form == "ARROW_IPC":
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_batch(rows)
        return [sink.getvalue().to_pybytes()]
    if form == "ARROW_IPC_BATCH":
        return [rows.serialize().to_pybytes()]
    if form == "JSON":
        try:
            return [json.dumps(row, separators=(",", ":")).encode() for row in _objects(rows)]
        except TypeError as error:
            raise ReplayError(f"rows cannot be written as JSON: {error}") from None
    raise ReplayError(f"rows cannot be written as {form}: use ARROW_IPC, ARROW_IPC_BATCH or JSON")


def _objects(rows: pa.RecordBatch) -> list[dict[str, object]]:
    try:
        events: list[dict[str, object]] = rows.to_pylist(maps_as_pydicts="strict")
    except (pa.ArrowException, KeyError) as error:
        raise ReplayError(f"rows cannot be written as JSON: {error}") from None
    return events
