"""The decoder for messages that hold one JSON object each."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.json

from stream.decode import Decoded, assemble, split_bad
from stream.framing import unframe

_MIN_BLOCK = 1 << 20


class JsonDecoder:
    """One object per message, typed by the declared schema, else by the types that the first run shows.

    Declared fields that a message lacks are null, and fields that are not declared are left out. Without a declared
    schema new fields are taken up as they come, and a value that does not fit the first type is a failure: declare it.
    """

    format = "JSON"

    def __init__(self, schema: pa.Schema | None = None, columns: Collection[str] | None = None) -> None:
        self._declared = schema is not None
        self._columns = columns
        self._schema = _pruned(schema, columns) if schema is not None else None

    def decode(self, payloads: Sequence[bytes | None]) -> Decoded:
        """Decode a run of messages; those that are not one object of the schema's types are failures."""
        pieces, failures = split_bad([unframe(payload) for payload in payloads], self._decode_run)
        return assemble(pieces, failures, len(payloads))

    def _decode_run(self, payloads: list[bytes]) -> pa.RecordBatch:
        lines = b"\n".join(_line(payload) for payload in payloads)
        options = pa.json.ParseOptions(
            explicit_schema=self._schema, unexpected_field_behavior="ignore" if self._declared else "infer"
        )
        block = max(_MIN_BLOCK, len(lines) + 1)
        table = pa.json.read_json(
            pa.BufferReader(lines),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=block),
            parse_options=options,
        )
        if table.num_rows != len(payloads):
            raise pa.ArrowInvalid(f"{len(payloads)} messages hold {table.num_rows} objects")
        table.validate(full=True)
        rows = pa.RecordBatch.from_struct_array(table.to_struct_array().combine_chunks())
        return rows if self._declared else self._adopt(rows)

    def _adopt(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Keep the types of the fields that had a value; give only the columns asked for."""
        self._schema = pa.schema([field for field in rows.schema if not pa.types.is_null(field.type)])
        if self._columns is None:
            return rows
        return rows.select([name for name in rows.schema.names if name in self._columns])


def _line(payload: bytes) -> bytes:
    """One line that holds at least one object, so that as many objects as messages means one object each."""
    # A raw newline is white space in JSON, but ends an object in the joined lines.
    line = payload.replace(b"\n", b" ").replace(b"\r", b" ").strip()
    if not (line.startswith(b"{") and line.endswith(b"}")):
        raise pa.ArrowInvalid("the message is not a JSON object")
    return line


def _pruned(schema: pa.Schema, columns: Collection[str] | None) -> pa.Schema:
    return schema if columns is None else pa.schema([field for field in schema if field.name in columns])
