"""Puts the events into the topic at a steady rate, and remembers when each message was handed to the broker."""

import threading
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.demo.errors import DemoError
from stream.encode import encode_rows

_SILENT = 0  # librdkafka writes to stderr that the broker went away, which it does at the end


def create_topics(brokers: str, *names: str) -> None:
    """Create topics of one partition."""
    admin = AdminClient({"bootstrap.servers": brokers, "log_level": _SILENT})
    created = admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1) for name in names])
    for name, future in created.items():
        try:
            future.result(20)
        except KafkaException as error:
            raise DemoError(f"topic {name} cannot be created at {brokers}: {error}") from error


class EventProducer:
    """Send `rows_per_message` rows a message, `rate` rows a second, from a thread of its own."""

    def __init__(
        self,
        table: pa.Table,
        *,
        brokers: str,
        topic: str,
        rate: float,
        rows_per_message: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._rows = table.combine_chunks().to_batches()[0]
        self._topic = topic
        self._rate = rate
        self._step = rows_per_message
        self._clock = clock
        settings = {"bootstrap.servers": brokers, "enable.idempotence": True, "linger.ms": 2, "log_level": _SILENT}
        self._producer = Producer(settings)
        self._sent_at: list[float] = []
        self._error: str = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer", daemon=True)

    @property
    def rows_per_message(self) -> int:
        """Rows of every message but the last."""
        return self._step

    @property
    def sent(self) -> int:
        """Rows handed to the broker so far."""
        return min(len(self._sent_at) * self._step, int(self._rows.num_rows))

    @property
    def sent_at(self) -> np.ndarray:
        """Wall-clock seconds at which each message was produced; float64[messages]."""
        return np.array(self._sent_at)

    @property
    def done(self) -> bool:
        """Whether everything was sent; raises DemoError when the broker refused a message."""
        if self._error:
            raise DemoError(f"the broker refused an event: {self._error}")
        return not self._thread.is_alive()

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        began = self._clock()
        for start in range(0, self._rows.num_rows, self._step):
            pause = began + start / self._rate - self._clock()
            if self._stop.wait(max(0.0, pause)):
                break
            payload = encode_rows(self._rows.slice(start, self._step), "ARROW_IPC")[0]
            now = self._clock()
            self._producer.produce(self._topic, payload, timestamp=int(now * 1000), on_delivery=self._delivered)
            self._sent_at.append(now)
            self._producer.poll(0)
        self._producer.flush(30)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._error = str(error)
