"""Rules between the fields of data_config, stream_config, checkpoint_config and the input paths."""

from collections import Counter
from collections.abc import Iterator

from protos.data_pb2 import KafkaDataset, OdpsDataset, OdpsDatasetV1
from protos.findings import Finding
from protos.kafka_uri import is_kafka_uri
from protos.nearest import suggestion
from protos.pipeline_pb2 import EasyRecConfig
from protos.sources import declared_columns, needs_declared_columns, reads_kafka
from protos.stream_pb2 import ARROW_IPC_BATCH, PROTOBUF, TIMESTAMP, KafkaSecurity

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def findings(config: EasyRecConfig) -> Iterator[Finding]:
    """What contradicts itself about rows and where they come from."""
    yield from _source(config)
    yield from _columns(config)
    yield from _labels(config)
    yield from _costs(config)
    if reads_kafka(config):
        yield from _stream(config)
        yield from _security(config.stream_config.security)
    yield from _dead_letters(config)
    checkpoint = config.checkpoint_config
    if checkpoint.commit_interval_ms == 0 and checkpoint.commit_interval_steps == 0:
        text = "and commit_interval_steps are both 0, so nothing is ever committed; set one of them"
        yield Finding(path="checkpoint_config.commit_interval_ms", text=text)
    if not 0 < checkpoint.compact_max_share <= 1:
        text = "is no share of time; write a number above 0, at most 1"
        yield Finding(path="checkpoint_config.compact_max_share", value=f"{checkpoint.compact_max_share:g}", text=text)
    if not checkpoint.compact_after_bytes_ratio > 0:
        text = "must be above 0: deltas over base, at which a new base is written"
        value = f"{checkpoint.compact_after_bytes_ratio:g}"
        yield Finding(path="checkpoint_config.compact_after_bytes_ratio", value=value, text=text)


def _source(config: EasyRecConfig) -> Iterator[Finding]:
    data, path = config.data_config, config.train_input_path
    if data.batch_size == 0:
        yield Finding(
            path="data_config.batch_size", value="0", text="trains nothing; give the rows of one batch of one rank"
        )
    if not data.HasField("dataset_type"):
        text = "is not set; write ParquetDataset, CsvDataset, OdpsDataset or KafkaDataset"
        yield Finding(path="data_config.dataset_type", text=text)
    elif is_kafka_uri(path) and data.dataset_type != KafkaDataset:
        text = "contradicts a kafka:// train_input_path; write dataset_type: KafkaDataset"
        yield Finding(path="data_config.dataset_type", text=text)
    elif path and path.startswith("odps://") != (data.dataset_type in (OdpsDataset, OdpsDatasetV1)):
        text = "and dataset_type contradict each other; OdpsDataset reads odps:// paths, and it alone"
        yield Finding(path="train_input_path", value=repr(path), text=text)
    elif data.dataset_type == KafkaDataset and path and not is_kafka_uri(path):
        text = "is no topic, as KafkaDataset needs; leave it empty and use stream_config, or write a kafka:// path"
        yield Finding(path="train_input_path", value=repr(path), text=text)


def _costs(config: EasyRecConfig) -> Iterator[Finding]:
    data = config.data_config
    if data.batch_cost_size and not data.sample_cost_field:
        yield Finding(path="data_config.batch_cost_size", text="needs sample_cost_field: the column of a row's cost")
    if data.sample_cost_field and not data.batch_cost_size:
        yield Finding(path="data_config.sample_cost_field", text="needs batch_cost_size: the costs of a batch together")


def _columns(config: EasyRecConfig) -> Iterator[Finding]:
    columns = declared_columns(config)
    for name, count in Counter(column.name for column in columns).items():
        if count > 1:
            text = f"is declared {count} times; keep one"
            yield Finding(path="data_config.input_fields", value=repr(name), text=text)
    untyped = [column.name for column in columns if column.type is None]
    if reads_kafka(config) and untyped:
        text = f"have no input_type: {', '.join(untyped)}; a message needs every type"
        yield Finding(path="data_config.input_fields", text=text)
    if needs_declared_columns(config) and not columns:
        text = "is empty; a CSV file without with_header needs the names of its columns in order"
        yield Finding(path="data_config.input_fields", text=text)


def _labels(config: EasyRecConfig) -> Iterator[Finding]:
    data = config.data_config
    if not data.label_fields:
        yield Finding(path="data_config.label_fields", text="is empty; name the column that holds the label")
    declared = {column.name for column in declared_columns(config)}
    for kind in ("label_fields", "sample_weight_fields"):
        names = list(getattr(data, kind))
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield Finding(path=f"data_config.{kind}", value=repr(name), text="stands there twice; keep one")
        for name in names:
            if declared and name not in declared:
                text = f"is not among input_fields; {suggestion(name, declared)}"
                yield Finding(path=f"data_config.{kind}", value=repr(name), text=text)


def _stream(config: EasyRecConfig) -> Iterator[Finding]:
    stream = config.stream_config
    for name in ("brokers", "topic"):
        if not getattr(stream, name):
            text = f"is not set; write stream_config {{ {name}: ... }} or a kafka:// train_input_path"
            yield Finding(path=f"stream_config.{name}", text=text)
    if stream.broker_wait_ms == 0:
        text = "gives the brokers no time to answer; write milliseconds, for example 30000"
        yield Finding(path="stream_config.broker_wait_ms", value="0", text=text)
    if stream.start == TIMESTAMP and not stream.HasField("start_timestamp_ms"):
        yield Finding(path="stream_config.start", value="TIMESTAMP", text="needs start_timestamp_ms")
    if stream.format == PROTOBUF:
        for name in ("protobuf_message", "protobuf_descriptor_file"):
            if not getattr(stream, name):
                yield Finding(path=f"stream_config.{name}", text="is not set; format PROTOBUF needs it")
    if stream.format == ARROW_IPC_BATCH and not declared_columns(config):
        text = "is empty; format ARROW_IPC_BATCH brings no schema, so the columns must be declared"
        yield Finding(path="data_config.input_fields", text=text)
    declared = {column.name for column in declared_columns(config)}
    named = [("event_time_field", stream.event_time_field), ("event_id_field", stream.event_id_field)]
    named += [(f"filters[{index}].column", row.column) for index, row in enumerate(stream.filters)]
    for name, column in named:
        if column and declared and column not in declared:
            text = f"is not among input_fields; {suggestion(column, declared)}"
            yield Finding(path=f"stream_config.{name}", value=repr(column), text=text)


def _security(security: KafkaSecurity) -> Iterator[Finding]:
    protocol, at = security.security_protocol, "stream_config.security"
    if protocol not in PROTOCOLS:
        text = f"is no protocol; {suggestion(protocol, PROTOCOLS)}"
        yield Finding(path=f"{at}.security_protocol", value=repr(protocol), text=text)
    if protocol.startswith("SASL"):
        if security.sasl_mechanism not in MECHANISMS:
            text = f"is no mechanism; {suggestion(security.sasl_mechanism, MECHANISMS)}"
            yield Finding(path=f"{at}.sasl_mechanism", value=repr(security.sasl_mechanism), text=text)
        for name in ("username_file", "password_file"):
            if not getattr(security, name):
                yield Finding(path=f"{at}.{name}", text=f"is not set; {protocol} needs it")
    elif security.username_file or security.password_file:
        text = "sends no user and password; write SASL_SSL"
        yield Finding(path=f"{at}.security_protocol", value=repr(protocol), text=text)
    if bool(security.certificate_file) != bool(security.key_file):
        yield Finding(path=f"{at}.certificate_file", text="and key_file go together; set both or none")


def _dead_letters(config: EasyRecConfig) -> Iterator[Finding]:
    share = config.stream_config.dead_letters.max_share
    if not 0 <= share <= 1:
        text = "is no share; write a number from 0 to 1"
        yield Finding(path="stream_config.dead_letters.max_share", value=f"{share:g}", text=text)
