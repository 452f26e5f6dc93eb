"""The whole loop as processes: on a real Kafka with a crash of everything, and with its model directory in S3."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Broker
from tests.e2e.conftest import Loop, events
from tests.s3_server import s3_server

ALL = ("trainer", "publisher", "replica")
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(800)]


def test_loop_goes_on_exactly_once_when_everything_dies(kafka_broker: Broker, make_loop: Callable[..., Loop]) -> None:
    topic = kafka_broker.topic(2, message_timestamp_type="LogAppendTime")
    told = kafka_broker.topic()
    loop = make_loop(kafka_broker, topic, publish=f'notify_topic: "{told}"')
    loop.start(*ALL)
    for partition in (0, 1):
        loop.produce(events(1000 * partition, 400), partition)
    loop.trained(300)
    loop.kill(*ALL)
    for partition in (0, 1):
        # A repeat, an undecodable message and a null label between new rows.
        null = b'{"user_id":1,"item_id":1,"clicked":null,"at":1,"event":999999}'
        loop.produce([*events(1000 * partition + 390, 10), b"{", null, *events(1000 * partition + 400, 300)], partition)
    loop.start(*ALL)
    loop.trained(1400)
    loop.served()
    counts = {name: count for name, count in loop.counts().items() if count}
    assert counts == {"received": 1424, "trained": 1400, "dead_lettered": 4, "duplicate": 20}
    assert " 4  in all" in loop.command("dlq", "ls", str(loop.config))
    status = loop.status()
    assert status["version"]["staleness_from"] == "broker time"
    assert status["lag"] == {f"{topic}/0": 0, f"{topic}/1": 0}
    clicks, others = loop.probability([0, 2, 4, 6]), loop.probability([1, 3, 5, 7])
    assert clicks.min() > others.max()
    notified = [line for line in loop.metrics().splitlines() if line.startswith("headrace_replica_notifications_total")]
    assert float(notified[0].split()[1]) > 0
    learned = loop.command("log", "show", loop.model_dir, "served")
    assert f"{topic}/0" in learned and "until=712:0" in learned
    assert loop.stop() == dict.fromkeys(ALL, 0)
    assert "sound" in loop.command("log", "verify", loop.model_dir)


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The endpoint of an S3 server with the bucket `models`, and a file with credentials."""
    credentials = tmp_path / "credentials"
    credentials.write_text("key\nsecret\n")
    with s3_server("models") as endpoint:
        yield endpoint, credentials


def test_loop_lives_in_an_object_store(
    s3: tuple[str, Path], embedded_broker: Broker, make_loop: Callable[..., Loop]
) -> None:
    endpoint, credentials = s3
    loop = make_loop(
        embedded_broker,
        embedded_broker.topic(),
        model_dir="s3://models/loop",
        store=("--s3-endpoint", endpoint, "--s3-credentials-file", str(credentials), "--s3-allow-http"),
        checkpoint=f's3 {{ endpoint: "{endpoint}" credentials_file: "{credentials}" allow_http: true }}',
    )
    loop.start(*ALL)
    loop.produce(events(0, 500))
    loop.trained(200)
    # Without a lock that both could see, the older trainer is fenced by its epoch.
    loop.kill("trainer")
    loop.start("trainer")
    loop.produce(events(500, 300))
    loop.trained(800)
    loop.served()
    assert {name: count for name, count in loop.counts().items() if count} == {"received": 800, "trained": 800}
    assert loop.probability([0, 2, 4]).min() > loop.probability([1, 3, 5]).max()
    assert loop.stop() == dict.fromkeys(ALL, 0)
    assert "sound" in loop.command("log", "verify", loop.model_dir, *loop.store)
