"""The thread that follows: it polls, is woken by notifications on Kafka, and survives a bug."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

import pytest

from checkpointer.memory_store import MemoryStore
from publisher.export.host import this_host
from publisher.notify import KafkaNotifier, Notification
from publisher.replica.alarm import StalenessAlarm
from publisher.replica.follower import Follower
from publisher.replica.metrics import ReplicaMetrics
from publisher.replica.model import Side
from publisher.replica.options import Notifications
from publisher.replica.switch import Switch
from publisher.replica.watcher import Listener, Watcher
from tests.publisher.replica.conftest import Change, VersionWriter


class Broker(Protocol):
    bootstrap: str

    def topic(self, partitions: int = 1) -> str: ...

    def produce(self, topic: str, values: list[bytes]) -> None: ...


def until(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


class Following:
    """A watcher over a store in memory."""

    def __init__(self, store: MemoryStore, poll_s: float) -> None:
        self.metrics = ReplicaMetrics()
        self.switch: Switch[Side] = Switch()
        self.follower = Follower(
            store,
            self.switch,
            self.metrics,
            host=this_host(),
            verifier=None,
            clock=time.monotonic,
            drain_s=1.0,
        )
        self.now_s = 1.7e9
        alarm = StalenessAlarm(self.switch, 5.0, lambda: self.now_s)
        self.watcher = Watcher(self.follower, alarm, self.metrics, poll_s)

    def serves(self, number: int) -> bool:
        side = self.switch.current
        return side is not None and side.number == number

    def figure(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"headrace_replica_{name}", labels) or 0.0


@pytest.fixture
def polling(store: MemoryStore) -> Iterator[Following]:
    following = Following(store, poll_s=0.01)
    following.watcher.start()
    yield following
    following.watcher.stop(10.0)


def test_watcher_polls_the_pointer(polling: Following, writer: VersionWriter) -> None:
    writer.publish(1)
    until(lambda: polling.serves(1))
    writer.publish(2, {"user_id_emb": Change(put={1: 1.0})})
    until(lambda: polling.serves(2))


def test_watcher_follows_on_after_a_bug(
    polling: Following, writer: VersionWriter, caplog: pytest.LogCaptureFixture
) -> None:
    good, broken = polling.follower.poll, threading.Event()

    def fail() -> bool:
        broken.set()
        raise RuntimeError("a bug")

    with caplog.at_level(logging.ERROR):
        polling.follower.poll = fail  # type: ignore[method-assign]
        assert broken.wait(5.0)
        polling.follower.poll = good  # type: ignore[method-assign]
    until(lambda: "the version in service stays" in caplog.text)
    writer.publish(1)
    until(lambda: polling.serves(1))
    assert polling.figure("refused_versions_total", reason="bug") >= 1


def test_stale_version_is_said_once_and_so_is_its_end(
    polling: Following, writer: VersionWriter, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        writer.publish(1)
        until(lambda: polling.serves(1))
        polling.now_s += 6.0
        until(lambda: "stale version=1 age=6.0 s limit=5.0 s clock=broker" in caplog.text)
        time.sleep(0.1)
        assert caplog.text.count("stale version=1") == 1
        writer.now_ms += 6_000
        writer.publish(2)
        until(lambda: "fresh again version=2" in caplog.text)


@pytest.mark.timeout(120)
def test_notification_wakes_a_watcher_that_would_sleep(
    store: MemoryStore, writer: VersionWriter, embedded_broker: Broker
) -> None:
    topic = embedded_broker.topic()
    settings = {"bootstrap.servers": embedded_broker.bootstrap, "log_level": 0}
    following = Following(store, poll_s=3600.0)
    writer.publish(1)
    following.watcher.start()
    listener = Listener(Notifications(topic=topic, settings=settings), following.watcher.wake, following.metrics)
    listener.start()
    notifier = KafkaNotifier(topic, settings, lambda: None)
    try:
        until(lambda: following.serves(1))
        writer.publish(2)
        # The listener starts at the end of the topic, at a moment of its own.
        for _ in range(200):
            if following.serves(2):
                break
            notifier.notify(Notification(version=2, digest="d"))
            time.sleep(0.05)
        assert following.serves(2)
        embedded_broker.produce(topic, [b"not a notification"])
        writer.publish(3)
        notifier.notify(Notification(version=3, digest="d"))
        until(lambda: following.serves(3))
        assert following.figure("notifications_total") >= 2
    finally:
        notifier.close()
        listener.stop(10.0)
        following.watcher.stop(10.0)


@pytest.mark.timeout(60)
def test_listener_without_a_broker_leaves_polling_alone(
    polling: Following, writer: VersionWriter, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    listener = Listener(Notifications(topic="t", settings=settings), polling.watcher.wake, polling.metrics)
    listener.start()
    writer.publish(1)
    until(lambda: polling.serves(1))
    listener.stop(20.0)
