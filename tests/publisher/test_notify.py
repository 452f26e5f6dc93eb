"""Notifications reach a topic where there is a broker, and never hold anything up where there is none."""

import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from protos.load import parse_config
from publisher.errors import Reason, VersionError
from publisher.notify import KafkaNotifier, Notification
from publisher.run import roll_back
from stream.broker import free_port

FIRST = Notification(version=1, digest="ab" * 32)
SECOND = Notification(version=2, digest="cd" * 32)


def test_notifications_arrive_in_order(embedded_broker):
    topic = embedded_broker.topic()
    lost = []
    notifier = KafkaNotifier(topic, {"bootstrap.servers": embedded_broker.bootstrap}, lambda: lost.append(1))
    notifier.notify(FIRST)
    notifier.notify(SECOND)
    notifier.close()
    assert arrived(embedded_broker, topic, 2) == [FIRST, SECOND] and not lost


def arrived(broker, topic: str, count: int) -> list[Notification]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "x", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [Notification.decode(message.value()) for message in consumer.consume(count, timeout=20)]
    consumer.close()
    return found


def test_rollback_is_told_like_a_publish(bench, config_text, embedded_broker):
    bench.trainer.base()
    follower = bench.publish()
    bench.trainer.commit({"user": [1]})
    follower.step()
    topic = embedded_broker.topic()
    stream = f'stream_config {{ brokers: "{embedded_broker.bootstrap}" topic: "events" }}'
    config = parse_config(config_text("m", f'notify_topic: "{topic}"') + stream, json=False)
    pointer = roll_back(config, bench.store, None, lambda: 9)
    assert pointer.version == 1
    assert arrived(embedded_broker, topic, 1) == [Notification(version=1, digest=pointer.digest)]


def test_broker_that_is_away_holds_nothing_up():
    lost = []
    settings = {"bootstrap.servers": f"127.0.0.1:{free_port()}", "log_level": 0}
    notifier = KafkaNotifier("versions", settings, lambda: lost.append(1))
    started = time.monotonic()
    for number in range(2000):
        notifier.notify(Notification(version=number, digest=""))
    assert time.monotonic() - started < 2.0
    assert len(lost) >= 1000
    started = time.monotonic()
    notifier.close()
    assert time.monotonic() - started < 5.0


@pytest.mark.parametrize(
    "payload", [b"", b"\x00", b"[]", b'{"version":1}', b'{"digest":"x","version":-1}', b'{"digest":1,"version":1}']
)
def test_garbage_in_the_topic_is_refused(payload):
    with pytest.raises(VersionError) as refusal:
        Notification.decode(payload)
    assert refusal.value.reason in (Reason.FORMAT, Reason.CORRUPT)


def test_notification_round_trips():
    assert Notification.decode(SECOND.encode()) == SECOND
