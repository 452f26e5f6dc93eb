"""Notifications reach a topic where there is a broker, and never hold anything up where there is none."""

import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from publisher.errors import Reason, VersionError
from publisher.notify import KafkaNotifier, Notification
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
    consumer = Consumer({"bootstrap.servers": embedded_broker.bootstrap, "group.id": "x", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [Notification.decode(message.value()) for message in consumer.consume(2, timeout=20)]
    consumer.close()
    assert found == [FIRST, SECOND] and not lost


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
