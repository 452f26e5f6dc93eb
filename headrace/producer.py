"""A Python program that sends events of the right shape to the topic of a configuration."""

from dataclasses import replace

from headrace.errors import UsageError
from headrace.event_column import PAIRS, VECTORS, EventColumn
from headrace.event_schema import EVENT_ID, EVENT_TIME, EventSchema, event_schema
from protos.pipeline_pb2 import EasyRecConfig
from protos.stream_pb2 import KafkaSecurity, StreamConfig, TimeUnit

_ARROW = {
    "INT32": "pa.int32()",
    "INT64": "pa.int64()",
    "STRING": "pa.string()",
    "FLOAT": "pa.float32()",
    "DOUBLE": "pa.float64()",
}
_PER_SECOND = {"SECONDS": "", "MILLISECONDS": " * 1000", "MICROSECONDS": " * 1_000_000"}

_HEAD = '''"""Sends events to the topic {topic}. Written by `headrace config schema --producer`.

usage: python producer.py [COUNT] [BROKERS]
"""

{imports}

from confluent_kafka import Producer

TOPIC = {topic!r}
BROKERS = {brokers!r}
EVENTS_PER_MESSAGE = {rows}


def event() -> dict:
    """One event, drawn at random: put yours here."""
    return {{
{fields}
    }}


'''

_TAIL = '''

def settings() -> dict:
    """How to reach the brokers; secrets are read from the files that the configuration names."""
    return {{
{settings}
    }}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    brokers = sys.argv[2] if len(sys.argv) > 2 else BROKERS
    producer = Producer({{"bootstrap.servers": brokers, "enable.idempotence": True, "log_level": 2, **settings()}})
    sent = 0
    while sent < count:
        events = [event() for _ in range(min(EVENTS_PER_MESSAGE, count - sent))]
        producer.produce(TOPIC, encode(events))
        producer.poll(0)
        sent += len(events)
    left = producer.flush(30)
    if left:
        sys.exit(f"{{left}} messages were not delivered within 30 s")
    print(f"sent {{sent}} events to {{TOPIC}} on {{brokers}}")


if __name__ == "__main__":
    main()
'''

_JSON = '''def encode(events: list) -> bytes:
    """One event as a JSON object."""
    return json.dumps(events[0]).encode()
'''

_ARROW_STREAM = '''SCHEMA = pa.schema(
    [
{schema}
    ]
)


def encode(events: list) -> bytes:
    """The events as one Arrow record batch, {how}."""
    batch = pa.RecordBatch.from_pylist(events, schema=SCHEMA)
{body}
'''

_STREAM_BODY = """    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()"""

_BATCH_BODY = "    return batch.serialize().to_pybytes()"

_PROTOBUF = '''def message_class(path: str, name: str) -> type:
    """The class of the message `name` in the descriptor set at `path`."""
    with open(path, "rb") as file:
        files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    pool = descriptor_pool.DescriptorPool()
    for one in files.file:
        pool.Add(one)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


Event = message_class({descriptor!r}, {message!r})


def encode(events: list) -> bytes:
    """One event as a serialized message."""
    return json_format.ParseDict(events[0], Event()).SerializeToString()
'''


def producer_source(config: EasyRecConfig) -> str:
    """The text of the program."""
    schema, stream = event_schema(config), config.stream_config
    if not schema.topic:
        raise UsageError("the configuration names no topic; set stream_config.topic, or a kafka:// train_input_path")
    imports, encode = _encoder(schema, stream)
    head = _HEAD.format(
        topic=schema.topic.split(",")[0],
        brokers=stream.brokers,
        imports=imports,
        rows=128 if schema.format.startswith("ARROW") else 1,
        fields="\n".join(f"        {column.name!r}: {_sample(column, stream)}," for column in schema.columns),
    )
    return head + encode + _TAIL.format(settings="\n".join(_settings(stream.security)))


def _encoder(schema: EventSchema, stream: StreamConfig) -> tuple[str, str]:
    plain = ["import random", "import sys", "import time", "import uuid"]
    if schema.format == "JSON":
        return "\n".join(["import json", *plain]), _JSON
    if schema.format == "PROTOBUF":
        needed = "from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory"
        source = _PROTOBUF.format(descriptor=stream.protobuf_descriptor_file, message=stream.protobuf_message)
        return "\n".join([*plain, "", needed]), source
    lines = "\n".join(f"        ({column.name!r}, {arrow_type(column.type)})," for column in schema.columns)
    if schema.format == "ARROW_IPC":
        how, body = "schema first", _STREAM_BODY
    else:
        how, body = "without its schema, which the configuration declares", _BATCH_BODY
    return "\n".join([*plain, "", "import pyarrow as pa"]), _ARROW_STREAM.format(schema=lines, how=how, body=body)


def arrow_type(name: str) -> str:
    """The pyarrow expression for a FieldType's name.

    >>> arrow_type("ARRAY_ARRAY_INT64"), arrow_type("MAP_STRING_FLOAT")
    ('pa.list_(pa.list_(pa.int64()))', 'pa.map_(pa.string(), pa.float32())')
    """
    if name.startswith("ARRAY_"):
        return f"pa.list_({arrow_type(name.removeprefix('ARRAY_'))})"
    if name.startswith("MAP_"):
        key, value = name.removeprefix("MAP_").split("_")
        return f"pa.map_({_ARROW[key]}, {_ARROW[value]})"
    return _ARROW[name]


def _sample(column: EventColumn, stream: StreamConfig) -> str:
    if EVENT_TIME in column.used_by:
        return f"int(time.time(){_PER_SECOND[TimeUnit.Name(stream.event_time_unit)]})"
    if EVENT_ID in column.used_by:
        return "uuid.uuid4().int >> 65" if column.type.startswith("INT") else "uuid.uuid4().hex"
    if "label" in column.used_by:
        return "random.randrange(2)" if column.type.startswith("INT") else "float(random.randrange(2))"
    return _value(column, column.type)


def _value(column: EventColumn, kind: str) -> str:
    if kind.startswith("ARRAY_"):
        inner = kind.removeprefix("ARRAY_")
        return f"[{_value(column, inner)} for _ in range({2 if inner.startswith('ARRAY_') else column.width})]"
    if kind.startswith("MAP_"):
        key, value = kind.removeprefix("MAP_").split("_")
        plain = replace(column, form="")
        numbers = f'",".join(str(random.random()) for _ in range({column.width}))'
        return f"{{{_value(plain, key)}: {numbers if column.form == VECTORS else _value(plain, value)}}}"
    if kind in ("FLOAT", "DOUBLE"):
        return "round(random.random(), 3)"
    if kind == "STRING" and column.form:
        pair = f'{_value(replace(column, form=""), kind)} + f":{{random.randrange(10)}}"'
        return pair if column.form == PAIRS else f'f"{{random.randrange(10)}}^" + {pair}'
    if kind == "STRING" and column.words:
        return f"random.choice({list(column.words[:8])!r})"
    number = f"random.randrange({column.below or 1000})"
    return f"str({number})" if kind == "STRING" else number


def _settings(security: KafkaSecurity) -> list[str]:
    plain = {
        "security.protocol": security.security_protocol,
        "sasl.mechanism": security.sasl_mechanism,
        "ssl.ca.location": security.ca_file,
        "ssl.certificate.location": security.certificate_file,
        "ssl.key.location": security.key_file,
    }
    secret = {
        "sasl.username": security.username_file,
        "sasl.password": security.password_file,
        "ssl.key.password": security.key_password_file,
    }
    lines = [f"        {key!r}: {value!r}," for key, value in plain.items() if value]
    return lines + [f"        {key!r}: open({path!r}).read().strip()," for key, path in secret.items() if path]
