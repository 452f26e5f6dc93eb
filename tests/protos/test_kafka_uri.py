"""The peer's kafka:// paths."""

import pytest

from protos.errors import ConfigError
from protos.kafka_uri import parse_kafka_uri, stream_config_for, stream_config_of
from protos.load import parse_config
from protos.stream_pb2 import EARLIEST, LATEST, TIMESTAMP


@pytest.mark.parametrize(
    ("uri", "topic", "settings"),
    [
        ("KAFKA://b:1/t?group.id=g", "t", {"group.id": "g"}),
        ("kafka://b:1//a%20b?group.id=g+h", "a%20b", {"group.id": "g h"}),
        ("kafka://b:1/t?group.id=a&group.id=b&debug=", "t", {"group.id": "b"}),
        ("kafka://b:1/t?group.id=a;b", "t", {"group.id": "a;b"}),
        ("kafka://b:1/t?group.id=%C3%A9", "t", {"group.id": "é"}),
    ],
)
def test_parse_kafka_uri_reads_as_the_peer_does(uri: str, topic: str, settings: dict[str, str]) -> None:
    parsed = parse_kafka_uri(uri)
    assert (parsed.brokers, parsed.topic, parsed.settings) == ("b:1", topic, settings)


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("kafka://b:1/t", "has no group.id"),
        ("kafka:///t?group.id=g", "is no Kafka path"),
        ("kafka://b:1?group.id=g", "is no Kafka path"),
        ("kafka://b:1/t?group.id=g#x", "%23"),
        ("kafka://b:1/t?group.id=g&start.timestamp.ms=-1", "start.timestamp.ms is '-1'"),
        ("kafka://b:1/t?group.id=g&start.timestamp.ms=abc", "start.timestamp.ms is 'abc'"),
        ("kafka://b:1/t?group.id=g&auto.offset.reset=never", "earliest or latest"),
        ("kafka://b:1/t?group.id=g&compression.typo=1", "compression.typo has no counterpart"),
    ],
)
def test_stream_config_of_names_what_it_cannot_take(uri: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace(".", r"\.")):
        stream_config_of(uri)


def test_stream_config_of_maps_every_setting_with_a_counterpart() -> None:
    stream = stream_config_of(
        "kafka://a:1,b:2/clicks?group.id=g&start.timestamp.ms=0&auto.offset.reset=latest&fetch.max.bytes=9"
        "&security.protocol=SASL_SSL&sasl.mechanism=PLAIN&ssl.ca.location=/ca&session.timeout.ms=6000"
    )
    assert (stream.brokers, stream.topic, stream.group_id) == ("a:1,b:2", "clicks", "g")
    assert (stream.start, stream.start_timestamp_ms, stream.fetch_max_bytes) == (TIMESTAMP, 0, 9)
    assert (stream.security.security_protocol, stream.security.sasl_mechanism) == ("SASL_SSL", "PLAIN")
    assert stream.security.ca_file == "/ca"


@pytest.mark.parametrize(("word", "start"), [("earliest", EARLIEST), ("latest", LATEST)])
def test_stream_config_of_maps_the_reset_to_the_start(word: str, start: int) -> None:
    assert stream_config_of(f"kafka://b:1/t?group.id=g&auto.offset.reset={word}").start == start


def test_parse_config_folds_the_path_under_the_fields_that_are_set() -> None:
    text = 'train_input_path: "kafka://b:1/t?group.id=g&auto.offset.reset=latest" stream_config { start: EARLIEST }'
    stream = parse_config(text, json=False).stream_config
    assert (stream.brokers, stream.topic, stream.start) == ("b:1", "t", EARLIEST)


def test_parse_config_refuses_two_topics() -> None:
    text = 'train_input_path: "kafka://b:1/t?group.id=g" stream_config { topic: "u" }'
    with pytest.raises(ConfigError, match="stream_config.topic is 'u' but the input path says 't'"):
        parse_config(text, json=False)


def test_stream_config_for_another_path_keeps_what_the_path_does_not_say() -> None:
    text = 'train_input_path: "kafka://b:1/t?group.id=g" stream_config { format: JSON security { ca_file: "/ca" } }'
    config = parse_config(text, json=False)
    elsewhere = stream_config_for(config, "kafka://b:1/held_out?group.id=h")
    assert (elsewhere.topic, elsewhere.group_id, elsewhere.security.ca_file) == ("held_out", "h", "/ca")
    assert elsewhere.format == config.stream_config.format
    assert config.stream_config.topic == "t"
