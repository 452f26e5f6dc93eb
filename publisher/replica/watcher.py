"""The thread that follows the pointer: it polls, and looks at once when a notification arrives on Kafka."""

import logging
import threading
from collections.abc import Callable

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from publisher.errors import VersionError
from publisher.notify import Notification
from publisher.replica.alarm import StalenessAlarm
from publisher.replica.follower import Follower
from publisher.replica.metrics import ReplicaMetrics
from publisher.replica.options import Notifications
from publisher.replica.turns import VERSIONS_NS, linux, take_turns

logger = logging.getLogger(__name__)

_AFTER_A_BUG_S = 1.0
_METADATA_S = 5.0
# On a busy host the scheduler gives this thread about a third of the share of one that answers requests.
_NICER = 5


class Watcher:
    """Runs a follower until it is stopped, and the alarm beside it."""

    def __init__(self, follower: Follower, alarm: StalenessAlarm, metrics: ReplicaMetrics, poll_s: float) -> None:
        self._follower = follower
        self._alarm = alarm
        self._metrics = metrics
        self._poll_s = poll_s
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follow", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Look at the pointer now."""
        self._wake.set()

    def stop(self, timeout_s: float) -> None:
        """End the thread after what it is doing."""
        self._stop.set()
        self._wake.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        take_turns(VERSIONS_NS, nicer=_NICER, call=linux())
        while not self._stop.is_set():
            try:
                self._follower.poll()
                self._alarm.check()
            except Exception:
                # A replica that has stopped following looks healthy and is not.
                logger.exception("following failed: this is a bug, the version in service stays")
                self._metrics.refusals.labels("bug").inc()
                self._stop.wait(_AFTER_A_BUG_S)
            self._wake.wait(self._poll_s)
            self._wake.clear()


class Listener:
    """Wakes a watcher for every notification; without a broker it waits for one, since the watcher polls anyway."""

    def __init__(self, notifications: Notifications, wake: Callable[[], None], metrics: ReplicaMetrics) -> None:
        self._topic = notifications.topic
        self._wake = wake
        self._metrics = metrics
        self._stop = threading.Event()
        self._consumer = Consumer(
            {
                **notifications.settings,
                # Partitions are assigned by hand: the group is never joined, its name is only required.
                "group.id": "headrace-replica",
                "enable.auto.commit": False,
                "error_cb": self._report,
            }
        )
        self._thread = threading.Thread(target=self._run, name="listen", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """End the thread and leave the broker."""
        self._stop.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            while not self._stop.is_set() and not self._assign():
                self._stop.wait(_METADATA_S)
            while not self._stop.is_set():
                self._receive()
        finally:
            self._consumer.close()

    def _assign(self) -> bool:
        try:
            topic = self._consumer.list_topics(self._topic, timeout=_METADATA_S).topics[self._topic]
        except KafkaException as error:
            logger.warning("no notifications topic=%s error=%s: polling only", self._topic, error)
            return False
        if topic.error is not None or not topic.partitions:
            logger.warning("no notifications topic=%s error=%s: polling only", self._topic, topic.error)
            return False
        self._consumer.assign([TopicPartition(self._topic, number, OFFSET_END) for number in topic.partitions])
        return True

    def _receive(self) -> None:
        message = self._consumer.poll(0.5)
        if message is None:
            return
        if message.error() is not None:
            self._report(message.error())
            return
        try:
            Notification.decode(message.value() or b"")
        except VersionError as error:
            logger.warning("notification not understood topic=%s error=%s", self._topic, error)
            return
        self._metrics.notifications.inc()
        self._wake()

    def _report(self, error: KafkaError) -> None:
        logger.warning("notifications topic=%s error=%s", self._topic, error)
