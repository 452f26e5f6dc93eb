"""The decoder for messages that hold one JSON object each."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.json

from stream.decode import Decoded, assemble, split_bad
from stream.framing import unframe

logger = logging.getLogger(__name__)

_MIN_BLOCK = 1 << 20
_LOOKED_AT = 1000


class JsonDecoder:
    """One object per message, typed by the declared schema, else by the types that the first run shows.

    What a message lacks of the columns asked for is null, whatever other messages have. Fields that are not declared
    are left out. Without a declared schema new fields are taken up as they come, and a value that does not fit the
    first type is a failure: declare it. Columns without a value in the first messages are logged: they may be misspelt.
    """

    format = "JSON"

    def __init__(self, schema: pa.Schema | None = None, columns: Collection[str] | None = None) -> None:
        self._declared = schema is not None
        self._columns = columns
        self._schema = _pruned(schema, columns) if schema is not None else None
        # pyarrow's reader refuses maps: it reads what is flat, and json the rest.
        self._maps = [field for field in self._schema or () if pa.types.is_map(field.type)]
        self._flat = pa.schema([field for field in self._schema or () if field not in self._maps])
        self._unseen = set(columns or ())
        self._messages = 0

    def decode(self, payloads: Sequence[bytes | None]) -> Decoded:
        """Decode a run of messages; those that are not one object of the schema's types are failures."""
        pieces, failures = split_bad([unframe(payload) for payload in payloads], self._decode_run)
        return assemble(pieces, failures, len(payloads))

    def _decode_run(self, payloads: list[bytes]) -> pa.RecordBatch:
        lines = b"\n".join(_line(payload) for payload in payloads)
        options = pa.json.ParseOptions(
            explicit_schema=self._flat if self._maps else self._schema,
            unexpected_field_behavior="ignore" if self._declared else "infer",
        )
        try:
            table = _read(lines, options)
        except pa.ArrowInvalid as error:
            if len(payloads) > 1 or not self._declared:
                raise
            raise pa.ArrowInvalid(_naming_the_column(lines, list(self._flat), str(error))) from None
        if table.num_rows != len(payloads):
            raise pa.ArrowInvalid(f"{len(payloads)} messages hold {table.num_rows} objects")
        table.validate(full=True)
        rows = pa.RecordBatch.from_struct_array(table.to_struct_array().combine_chunks())
        if self._maps:
            rows = self._with_maps(rows, payloads)
        elif not self._declared:
            rows = self._adopt(rows)
        if self._unseen:
            self._look_for_columns(rows)
        return rows

    def _look_for_columns(self, rows: pa.RecordBatch) -> None:
        self._unseen -= {name for name in rows.schema.names if rows.column(name).null_count < rows.num_rows}
        self._messages += rows.num_rows
        if self._messages >= _LOOKED_AT:
            for name in sorted(self._unseen):
                logger.warning("no value so far column=%s messages=%d: correct its name?", name, self._messages)
            self._unseen.clear()

    def _with_maps(self, rows: pa.RecordBatch, payloads: list[bytes]) -> pa.RecordBatch:
        """Put the map columns where the declared schema has them."""
        events = [json.loads(p, object_pairs_hook=_object, parse_constant=_refuse_constant) for p in payloads]
        maps = {field: pa.array([_items(event, field) for event in events], field.type) for field in self._maps}
        columns = [maps[field] if field in maps else rows.column(field.name) for field in self._schema or ()]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _adopt(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Keep the types of the fields that had a value; give only the columns asked for."""
        self._schema = pa.schema([field for field in rows.schema if not pa.types.is_null(field.type)])
        if self._columns is None:
            return rows
        for name in sorted(set(self._columns) - set(rows.schema.names)):
            rows = rows.append_column(name, pa.nulls(rows.num_rows))
        return rows.select([name for name in rows.schema.names if name in self._columns])


def _read(lines: bytes, options: pa.json.ParseOptions) -> pa.Table:
    return pa.json.read_json(
        pa.BufferReader(lines),
        read_options=pa.json.ReadOptions(use_threads=False, block_size=max(_MIN_BLOCK, len(lines) + 1)),
        parse_options=options,
    )


def _naming_the_column(line: bytes, fields: list[pa.Field], detail: str) -> str:
    """`detail`, with the declared column that the message does not fit: pyarrow does not always name it."""
    if not _fits(line, []):
        return detail
    while len(fields) > 1:
        half = fields[: len(fields) // 2]
        fields = fields[len(half) :] if _fits(line, half) else half
    return f"column {fields[0].name!r} is declared {fields[0].type}: {detail}" if fields else detail


def _fits(line: bytes, fields: list[pa.Field]) -> bool:
    options = pa.json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")
    try:
        _read(line, options)
    except pa.ArrowInvalid:
        return False
    return True


def _line(payload: bytes) -> bytes:
    """One line that holds at least one object, so that as many objects as messages means one object each."""
    # A raw newline is white space in JSON, but ends an object in the joined lines.
    line = payload.replace(b"\n", b" ").replace(b"\r", b" ").strip()
    if not (line.startswith(b"{") and line.endswith(b"}")):
        raise pa.ArrowInvalid("the message is not a JSON object")
    return line


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    event = dict(pairs)
    if len(event) < len(pairs):
        raise pa.ArrowInvalid("the message has an object with two equal keys")
    return event


def _refuse_constant(name: str) -> float:
    raise pa.ArrowInvalid(f"{name} is no JSON")


def _items(event: dict[str, object], field: pa.Field) -> list[tuple[str | int, object]] | None:
    """The items of one map; JSON writes keys that are numbers as strings."""
    value = event.get(field.name)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise pa.ArrowInvalid(f"column {field.name!r} holds {json.dumps(value)[:80]}, which is no object")
    key = int if pa.types.is_integer(field.type.key_type) else str
    return [(key(name), item) for name, item in value.items()]


def _pruned(schema: pa.Schema, columns: Collection[str] | None) -> pa.Schema:
    return schema if columns is None else pa.schema([field for field in schema if field.name in columns])
