"""The events that producers must send: columns and types, from features, labels, weights and stream fields."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from features.sampling.options import SamplerOptions
from headrace.event_column import FLOAT, INT64, STRING, EventColumn, feature_columns
from protos.data_pb2 import FieldType
from protos.pipeline_pb2 import EasyRecConfig
from protos.sources import declared_columns
from stream.opening import declared_format

EVENT_TIME, EVENT_ID = "event time", "event id"


@dataclass(frozen=True, kw_only=True, slots=True)
class EventSchema:
    """All columns of an event, and how messages carry them."""

    topic: str
    format: str
    columns: tuple[EventColumn, ...]

    def text(self) -> str:
        """A table for people."""
        rows = [("column", "type", "null", "used by")]
        for column in self.columns:
            kind = column.type if column.declared else f"{column.type} (or what converts to it)"
            used = ", ".join(column.used_by)
            if column.form and column.type in _TEXTS:
                used += f"; written as {column.form}"
            rows.append((column.name, kind, "allowed" if column.optional else "no", used))
        widths = [max(len(row[index]) for row in rows) for index in range(3)]
        lines = [
            "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows
        ]
        where = f"topic {self.topic}, " if self.topic else ""
        return f"{where}{_MESSAGES[self.format]}\n" + "\n".join(line.rstrip() for line in lines) + "\n"


_TEXTS = ("STRING", "ARRAY_STRING")
_MESSAGES = {
    "ARROW_IPC": "a message is an Arrow IPC stream: schema, then one record batch of one or many events",
    "ARROW_IPC_BATCH": "a message is an Arrow IPC record batch without its schema, columns in this order",
    "PROTOBUF": "a message is one event, a serialized protobuf message with these fields",
    "JSON": "a message is one event, a JSON object with these keys",
}

# Only a declared type tells a map from an object with a field for each key.
_UNDECLARED_JSON = {
    "MAP_STRING_FLOAT": "ARRAY_STRING",
    "MAP_STRING_STRING": "ARRAY_STRING",
    "MAP_INT64_FLOAT": "ARRAY_INT64",
}


def event_schema(config: EasyRecConfig) -> EventSchema:
    """What `config` reads: declared columns in their order, then those that only features or the stream name."""
    wanted: dict[str, EventColumn] = {}
    for column in [*feature_columns(config), *_named_columns(config)]:
        known = wanted.get(column.name)
        wanted[column.name] = column if known is None else _both(known, column)
    declared = {
        column.name: FieldType.Name(column.type) for column in declared_columns(config) if column.type is not None
    }
    stream = config.stream_config
    form = declared_format(config)
    columns = []
    for name in dict.fromkeys([*declared, *wanted]):
        column = wanted.get(name) or EventColumn(name=name, type=declared[name])
        kind = declared.get(name) or (_UNDECLARED_JSON.get(column.type, column.type) if form == "JSON" else column.type)
        columns.append(replace(column, type=kind, declared=name in declared))
    return EventSchema(topic=stream.topic, format=form, columns=tuple(columns))


def _named_columns(config: EasyRecConfig) -> Iterator[EventColumn]:
    data, stream = config.data_config, config.stream_config
    for name in data.label_fields:
        yield EventColumn(name=name, type=FLOAT, used_by=("label",), optional=False)
    for name in data.sample_weight_fields:
        yield EventColumn(name=name, type=FLOAT, used_by=("sample weight",), optional=False)
    if data.batch_cost_size:
        yield EventColumn(name=data.sample_cost_field, type=INT64, used_by=("sample cost",), optional=False)
    sampler = SamplerOptions.from_proto(config)
    if sampler is not None and sampler.candidates is None:
        for name in sampler.columns:
            yield EventColumn(name=name, type=INT64, used_by=(sampler.kind,), optional=False)
    if stream.event_time_field:
        yield EventColumn(name=stream.event_time_field, type=INT64, used_by=(EVENT_TIME,), optional=False)
    if stream.event_id_field:
        yield EventColumn(name=stream.event_id_field, type=STRING, used_by=(EVENT_ID,), optional=False)
    for row in stream.filters:
        yield EventColumn(name=row.column, type=STRING, used_by=("filter",), words=(row.value,))


def _both(known: EventColumn, other: EventColumn) -> EventColumn:
    """One column for two users of it: the narrower range, and a null only where both allow it."""
    ranges = [column.below for column in (known, other) if column.below]
    kinds = {known.type, other.type}
    plain = kinds <= {INT64, FLOAT, STRING}
    return replace(
        known,
        # Every feature reads whole numbers; text is read as numbers too.
        type=known.type if len(kinds) == 1 or not plain else INT64 if INT64 in kinds else STRING,
        used_by=(*known.used_by, *other.used_by),
        optional=known.optional and other.optional,
        below=min(ranges, default=0),
        words=known.words or other.words,
        form=known.form or other.form,
    )
