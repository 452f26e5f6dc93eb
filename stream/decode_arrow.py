"""Decoders for messages that hold one Arrow record batch of events, with its schema or without."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pyarrow as pa

from stream.decode import DECODE_ERRORS, EMPTY, UNDECODABLE, Decoded, Failure, assemble, concat
from stream.decode_alike import Layout

_CONTINUATION = b"\xff\xff\xff\xff"
_END_OF_STREAM = (b"", _CONTINUATION + bytes(4), bytes(4))
_MAX_SCHEMAS = 64


class ArrowStreamDecoder:
    """The IPC stream format: schema, record batches, end. All batches of a message count as one.

    A message whose schema bytes were seen before is read without parsing the schema again, and messages of the last
    one's layout are read together.
    """

    format = "ARROW_IPC"

    def __init__(self, columns: Collection[str] | None = None) -> None:
        self._columns = None if columns is None else frozenset(columns)
        self._schemas: dict[bytes, pa.Schema] = {}
        self._layout: Layout | None = None

    def decode(self, payloads: Sequence[bytes | None]) -> Decoded:
        """Decode a run of messages; those that are no IPC stream are failures."""
        return _decode_runs(payloads, self._decode_one, lambda: self._layout)

    def _decode_one(self, payload: bytes) -> pa.RecordBatch:
        schema_size = 8 + int.from_bytes(payload[4:8], "little")
        schema = self._schemas.get(payload[:schema_size])
        if schema is not None and (found := _only_batch(payload, schema_size, schema)) is not None:
            batch, body, end = found
            self._layout = Layout.of(payload, batch, body, end, self._columns)
            return _prune(batch, self._columns)
        batch = _all_batches(payload)
        self._remember(payload[:schema_size], batch.schema)
        return _prune(plain(batch), self._columns)

    def _remember(self, prefix: bytes, schema: pa.Schema) -> None:
        # Dictionaries come as messages of their own, which only the stream reader follows.
        if prefix.startswith(_CONTINUATION) and not any(_has_dictionary(field.type) for field in schema):
            if len(self._schemas) >= _MAX_SCHEMAS:
                self._schemas.clear()
            self._schemas[prefix] = schema


class ArrowBatchDecoder:
    """One encapsulated record batch message without its schema, which is declared."""

    format = "ARROW_IPC_BATCH"

    def __init__(self, schema: pa.Schema, columns: Collection[str] | None = None) -> None:
        self._schema = schema
        self._columns = None if columns is None else frozenset(columns)
        self._layout: Layout | None = None

    def decode(self, payloads: Sequence[bytes | None]) -> Decoded:
        """Decode a run of messages; those that do not fit the declared schema are failures."""
        return _decode_runs(payloads, self._decode_one, lambda: self._layout)

    def _decode_one(self, payload: bytes) -> pa.RecordBatch:
        found = _only_batch(payload, 0, self._schema)
        if found is None:
            raise pa.ArrowInvalid("the message is not one record batch")
        batch, body, end = found
        self._layout = Layout.of(payload, batch, body, end, self._columns)
        return _prune(batch, self._columns)


def _decode_runs(
    payloads: Sequence[bytes | None],
    decode_one: Callable[[bytes], pa.RecordBatch],
    layout_of_last: Callable[[], Layout | None],
) -> Decoded:
    """Decode messages one by one, and together those that follow in the layout of the last one."""
    pieces: list[tuple[Sequence[int], pa.RecordBatch]] = []
    failures: list[Failure] = []
    index = 0
    while index < len(payloads):
        layout = layout_of_last()
        stop = index
        while layout is not None and stop < len(payloads) and layout.has(payloads[stop]):
            stop += 1
        if layout is not None and stop > index:
            run = [payload for payload in payloads[index:stop] if payload is not None]
            pieces.append((range(index, stop), layout.decode(run)))
            index = stop
            continue
        payload = payloads[index]
        try:
            if payload:
                pieces.append(((index,), decode_one(payload)))
            else:
                failures.append(Failure(index=index, reason=EMPTY, detail="no payload"))
        except DECODE_ERRORS as error:
            failures.append(Failure(index=index, reason=UNDECODABLE, detail=str(error)))
        index += 1
    return assemble(pieces, failures, len(payloads))


def _only_batch(payload: bytes, start: int, schema: pa.Schema) -> tuple[pa.RecordBatch, int, int] | None:
    """The record batch at `start`, and where its body starts and ends.

    None where there is no batch, or more than the end of the stream follows it.
    """
    reader = pa.BufferReader(payload)
    reader.seek(start)
    try:
        message = pa.ipc.read_message(reader)
    except EOFError:
        return None
    end = reader.tell()
    if message.type != "record batch" or payload[end:] not in _END_OF_STREAM:
        return None
    batch = pa.ipc.read_record_batch(message, schema)
    # Offsets and lengths come from outside: unchecked they would be read as addresses.
    batch.validate(full=True)
    return batch, end - message.body.size, end


def _all_batches(payload: bytes) -> pa.RecordBatch:
    reader = pa.BufferReader(payload)
    with pa.ipc.open_stream(reader) as stream:
        schema = stream.schema.remove_metadata()
        _check_names(schema)
        batches = [batch.replace_schema_metadata(None) for batch in stream]
    if rest := len(payload) - reader.tell():
        raise pa.ArrowInvalid(f"{rest} bytes follow the end of the stream")
    for batch in batches:
        batch.validate(full=True)
    return concat(batches) if batches else pa.RecordBatch.from_pylist([], schema=schema)


def _check_names(schema: pa.Schema) -> None:
    """Raise ValueError for names that are no UTF-8, which nobody could ask for, and for names that come twice."""
    names = schema.names
    if len(set(names)) < len(names):
        raise pa.ArrowInvalid(f"columns come twice: {sorted({name for name in names if names.count(name) > 1})}")
    todo = [field.type for field in schema]
    while todo:
        kind = todo.pop()
        inner = [kind.field(i) for i in range(kind.num_fields)]
        todo += [field.type for field in inner if isinstance(field.name, str)]


def _has_dictionary(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    return any(_has_dictionary(kind.field(i).type) for i in range(kind.num_fields))


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Dictionary columns as their values, so that chunks of different dictionaries have one schema."""
    for i, field in enumerate(batch.schema):
        if pa.types.is_dictionary(field.type):
            column = batch.column(i).dictionary_decode()
            batch = batch.set_column(i, pa.field(field.name, column.type, field.nullable), column)
    return batch


def _prune(batch: pa.RecordBatch, columns: frozenset[str] | None) -> pa.RecordBatch:
    if columns is None:
        return batch
    names = batch.schema.names
    return batch.select([i for i, name in enumerate(names) if name in columns]) if set(names) - columns else batch
