"""Where a configuration's rows come from, and what they are declared to look like."""

from dataclasses import dataclass

from protos.data_pb2 import CsvDataset, FieldType, KafkaDataset, OdpsDataset, OdpsDatasetV1, ParquetDataset
from protos.errors import ConfigError, Reason
from protos.kafka_uri import is_kafka_uri
from protos.nearest import suggestion
from protos.pipeline_pb2 import EasyRecConfig

_TABLES = (OdpsDataset, OdpsDatasetV1)
_ALIASES = {"INT": "INT32", "BIGINT": "INT64"}


def reads_kafka(config: EasyRecConfig) -> bool:
    """Whether training reads a topic."""
    return config.data_config.dataset_type == KafkaDataset or is_kafka_uri(config.train_input_path)


def is_unbounded(config: EasyRecConfig) -> bool:
    """Whether training reads a stream that is not told where to end."""
    stream = config.stream_config
    ends = stream.stop_at_end or stream.stop_timestamp_ms > 0 or stream.stop_idle_ms > 0
    return reads_kafka(config) and not ends


def needs_declared_columns(config: EasyRecConfig) -> bool:
    """Whether nothing but `input_fields` names the columns: a CSV file without its header."""
    data = config.data_config
    return not reads_kafka(config) and data.dataset_type == CsvDataset and not data.with_header


def reads_tables(config: EasyRecConfig) -> bool:
    """Whether training reads tables of MaxCompute."""
    data = config.data_config
    return not reads_kafka(config) and data.HasField("dataset_type") and data.dataset_type in _TABLES


def brings_schema(config: EasyRecConfig) -> bool:
    """Whether each file or table of the source says its own columns and types."""
    is_parquet = not reads_kafka(config) and config.data_config.dataset_type == ParquetDataset
    return is_parquet or reads_tables(config)


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A declared column; `type` is a FieldType, None where it is left to the source."""

    name: str
    type: int | None


def declared_columns(config: EasyRecConfig) -> tuple[Column, ...]:
    """The columns of `input_fields_str`, which wins when it is not empty, else of `input_fields`.

    >>> from protos.pipeline_pb2 import EasyRecConfig
    >>> config = EasyRecConfig()
    >>> config.data_config.input_fields_str = "user : bigint; tags: Array<String>"
    >>> [(column.name, FieldType.Name(column.type)) for column in declared_columns(config)]
    [('user', 'INT64'), ('tags', 'ARRAY_STRING')]
    """
    data = config.data_config
    if data.input_fields_str:
        parts = [part.strip() for part in data.input_fields_str.split(";")]
        return tuple(_column(part) for part in parts if part)
    return tuple(
        Column(name=field.input_name, type=field.input_type if field.HasField("input_type") else None)
        for field in data.input_fields
    )


def _column(part: str) -> Column:
    name, colon, spelled = part.partition(":")
    if not colon or not name.strip():
        raise _error(f"{part!r} is no column; write name:TYPE")
    return Column(name=name.strip(), type=_type(spelled))


def _type(spelled: str) -> int:
    """`MAP<STRING, INT>` and the like, blanks and case ignored."""
    text = "".join(spelled.split()).upper()
    for mark in "<>,":
        text = text.replace(mark, " ")
    words = [_ALIASES.get(word, word) for word in text.split()]
    name = "_".join(words)
    known = FieldType.DESCRIPTOR.values_by_name
    if name not in known:
        raise _error(f"{spelled.strip()!r} is no column type; {suggestion(name, known)}")
    return FieldType.Value(name)


def _error(detail: str) -> ConfigError:
    return ConfigError(detail, reason=Reason.BAD_VALUE)
