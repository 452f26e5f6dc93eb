"""The declared schema of events: `data_config.input_fields`, or `input_fields_str`, which wins."""

from __future__ import annotations

import pyarrow as pa

from protos import data_pb2
from stream.errors import SourceError

_SCALARS = {
    "INT32": pa.int32(),
    "INT": pa.int32(),
    "INT64": pa.int64(),
    "BIGINT": pa.int64(),
    "STRING": pa.string(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
}
_KEYS = ("STRING", "INT64", "BIGINT", "INT32", "INT")


def declared_schema(config: data_pb2.DataConfig) -> pa.Schema | None:
    """The schema of the declared fields that have a type; None where there are none.

    Raise SourceError for a name declared twice and for a type that is none.
    """
    if config.input_fields_str:
        fields = _parse_fields(config.input_fields_str)
    else:
        fields = [
            pa.field(field.input_name, field_type(data_pb2.FieldType.Name(field.input_type)))
            for field in config.input_fields
            if field.HasField("input_type")
        ]
    names = [field.name for field in fields]
    if twice := {name for name in names if names.count(name) > 1}:
        raise SourceError(f"data_config declares input fields twice: {', '.join(sorted(twice))}")
    return pa.schema(fields) if fields else None


def field_type(name: str) -> pa.DataType:
    """The Arrow type of a name: a `FieldType`, or the notation of `input_fields_str`.

    >>> field_type("MAP<string, ARRAY<int>>")
    Traceback (most recent call last):
    stream.errors.SourceError: input field type 'MAP<STRING,ARRAY<INT>>' is unknown
    >>> field_type("ARRAY<BIGINT>") == field_type("ARRAY_INT64")
    True
    """
    text = "".join(name.upper().split())
    kind = _SCALARS.get(text) or _nested(text)
    if kind is None:
        raise SourceError(f"input field type {text!r} is unknown")
    return kind


def _nested(text: str) -> pa.DataType | None:
    for prefix, suffix in (("ARRAY<", ">"), ("ARRAY_", "")):
        if text.startswith(prefix) and text.endswith(suffix):
            inner = text[len(prefix) : len(text) - len(suffix)]
            value = _SCALARS.get(inner) or (_nested(inner) if inner.startswith("ARRAY") else None)
            return None if value is None or _depth(value) > 1 else pa.list_(value)
    for prefix, suffix, separator in (("MAP<", ">", ","), ("MAP_", "", "_")):
        if text.startswith(prefix) and text.endswith(suffix):
            key, _, inner = text[len(prefix) : len(text) - len(suffix)].partition(separator)
            return pa.map_(_SCALARS[key], _SCALARS[inner]) if key in _KEYS and inner in _SCALARS else None
    return None


def _depth(kind: pa.DataType) -> int:
    return 1 + _depth(kind.value_type) if pa.types.is_list(kind) else 0


def _parse_fields(text: str) -> list[pa.Field]:
    fields = []
    for part in text.split(";"):
        if not part.strip():
            continue
        name, colon, kind = part.partition(":")
        if not colon or not name.strip() or not kind.strip():
            raise SourceError(f"data_config.input_fields_str: {part!r} is not name:TYPE")
        fields.append(pa.field(name.strip(), field_type(kind)))
    return fields
