"""Picks and builds the source, the decoder and the dead letter sink that a configuration names."""

from __future__ import annotations

import logging
from collections.abc import Collection

from google.protobuf.descriptor import Descriptor

from protos import data_pb2, stream_pb2
from protos.kafka_uri import is_kafka_uri, overlay, stream_config_for, stream_config_of
from protos.pipeline_pb2 import EasyRecConfig
from protos.s3_account import data_account
from stream.csv import CsvOptions, open_csv
from stream.decode import Decoder
from stream.decode_arrow import ArrowBatchDecoder, ArrowStreamDecoder
from stream.decode_json import JsonDecoder
from stream.decode_protobuf import ProtobufDecoder, load_descriptor, unset_is_zero
from stream.decode_schema import declared_schema
from stream.errors import SourceError
from stream.files import Reading
from stream.kafka import KafkaSource
from stream.kafka_options import KafkaOptions
from stream.missing import require_columns
from stream.odps_table import OdpsOptions, read_account
from stream.parquet import open_parquet
from stream.shuffle import Shuffle
from stream.source import Clock, Source

logger = logging.getLogger(__name__)


def open_configured(
    config: EasyRecConfig,
    *,
    path: str | None,
    clock: Clock,
    columns: Collection[str] | None,
    epoch: int | None = None,
    splits: int = 1,
) -> Source:
    """The source of a path: Kafka where it says so or where the data set is Kafka's; else the data set's files."""
    path = config.train_input_path if path is None else path
    kind = config.data_config.dataset_type
    if is_kafka_uri(path) or kind == data_pb2.KafkaDataset:
        return KafkaSource(kafka_options(config, path), make_decoder(config, columns), clock=clock)
    shuffle = None if epoch is None else _shuffle(config, epoch)
    reading = Reading(splits=splits, shuffle=shuffle, s3=data_account(config))
    if kind == data_pb2.ParquetDataset:
        return open_parquet(path, columns=columns, declared=declared_schema(config.data_config), reading=reading)
    if kind == data_pb2.CsvDataset:
        return open_csv(path, _csv_options(config.data_config, columns, reading))
    # Replicas and most trainers never need pyodps.
    from stream.odps import OdpsSource

    declared = declared_schema(config.data_config)
    return OdpsSource(path, odps_options(config.data_config), columns=columns, declared=declared)


def odps_options(config: data_pb2.DataConfig) -> OdpsOptions:
    """How tables of MaxCompute are reached; reads the account's file."""
    return OdpsOptions(
        account=read_account(config.odps_config_file),
        quota=config.odps_data_quota_name,
        compression=config.odps_data_compression,
        immutable=config.odps_immutable,
        ordered=config.is_orderby_partition,
    )


def _shuffle(config: EasyRecConfig, epoch: int) -> Shuffle | None:
    """A pool of `shuffle_buffer_size` batches, as far as files are shuffled at all."""
    data = config.data_config
    if not data.shuffle:
        return None
    return Shuffle(seed=config.seed, epoch=epoch, rows=max(1, data.shuffle_buffer_size) * max(1, data.batch_size))


def _csv_options(config: data_pb2.DataConfig, columns: Collection[str] | None, reading: Reading) -> CsvOptions:
    types = declared_schema(config)
    names = types.names if config.input_fields_str and types else [field.input_name for field in config.input_fields]
    return CsvOptions(
        delimiter=config.delimiter,
        with_header=config.with_header,
        names=tuple(names),
        types=types,
        columns=None if columns is None else frozenset(columns),
        reading=reading,
    )


def kafka_options(config: EasyRecConfig, path: str | None = None) -> KafkaOptions:
    """The options for the topic of `stream_config`, or for the one that a kafka:// path names."""
    path = config.train_input_path if path is None else path
    told = stream_config_for(config, path)
    if is_kafka_uri(path) and not told.brokers:
        # Only load_config folds the path into stream_config.
        told = overlay(stream_config_of(path), told)
    return KafkaOptions.from_proto(told)


def make_decoder(config: EasyRecConfig, columns: Collection[str] | None, form: str | None = None) -> Decoder:
    """The decoder of a format, `stream_config.format` by default; raise SourceError where it lacks a schema."""
    schema = declared_schema(config.data_config)
    form = form or declared_format(config)
    if form == "ARROW_IPC":
        return ArrowStreamDecoder(columns)
    if form == "ARROW_IPC_BATCH":
        if schema is None:
            raise SourceError("format: ARROW_IPC_BATCH needs data_config.input_fields: the messages hold no schema")
        return ArrowBatchDecoder(schema, columns)
    if form == "JSON":
        return JsonDecoder(schema, columns)
    if form == "PROTOBUF":
        stream = config.stream_config
        if not stream.protobuf_message or not stream.protobuf_descriptor_file:
            raise SourceError("format: PROTOBUF needs stream_config.protobuf_message and protobuf_descriptor_file")
        descriptor = load_descriptor(stream.protobuf_descriptor_file, stream.protobuf_message)
        return _protobuf_decoder(config, descriptor, columns)
    raise SourceError(f"no decoder for format {form}")


def _protobuf_decoder(
    config: EasyRecConfig, descriptor: Descriptor, columns: Collection[str] | None
) -> ProtobufDecoder:
    stream, data = config.stream_config, config.data_config
    where = f"message {descriptor.full_name} of {stream.protobuf_descriptor_file}"
    require_columns(where, columns, [field.name for field in descriptor.fields], ())
    for name in unset_is_zero(descriptor, [*data.label_fields, *data.sample_weight_fields]):
        logger.warning(
            "a message without %s counts as %s=0: %s does not tell them apart; declare the field `optional` to have it "
            "judged as null",
            name,
            name,
            where,
        )
    return ProtobufDecoder(descriptor, columns, never_zero=(stream.event_time_field, stream.event_id_field))


def declared_format(config: EasyRecConfig) -> str:
    """`stream_config.format`; without it the peer's rule: declared fields mean messages without a schema."""
    if config.stream_config.HasField("format"):
        return stream_pb2.MessageFormat.Name(config.stream_config.format)
    return "ARROW_IPC" if declared_schema(config.data_config) is None else "ARROW_IPC_BATCH"
