"""A real Apache Kafka for a benchmark (../shared/kafka), and topics with many messages."""

import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from stream.broker import free_port

KAFKA = Path(__file__).resolve().parents[2] / "shared" / "kafka" / "run"


class ApacheKafka:
    """One broker in `folder`; a context manager. LogAppendTime is the default of its topics."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = two_free_ports()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """Its address."""
        return f"127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self.start()
        return self

    def start(self) -> None:
        """Start it, again after `kill`, and wait until it answers."""
        command = [str(KAFKA), str(self._folder / "data"), str(self._port), "log.message.timestamp.type=LogAppendTime"]
        with (self._folder / "kafka.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        deadline = time.monotonic() + 180
        while True:
            try:
                admin.list_topics(timeout=1.0)
                return
            except KafkaException:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    text = (self._folder / "kafka.log").read_text(errors="replace")
                    raise RuntimeError(f"Apache Kafka did not start: {text[-1000:]}") from None
                time.sleep(0.1)

    def kill(self) -> None:
        """A crash: no clean shutdown."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)

    def create(self, *topics: str, partitions: int = 1) -> None:
        """Create topics."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.create_topics([NewTopic(topic, partitions, 1) for topic in topics]).values():
            future.result(20)

    def produce(self, topic: str, payloads: Iterable[bytes], *, partition: int = 0) -> None:
        """Send `payloads` to one partition, in order, and wait until they are acknowledged."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 5})
        for payload in payloads:
            while True:
                try:
                    producer.produce(topic, payload, partition=partition)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        if left := producer.flush(60):
            raise RuntimeError(f"{left} messages of {topic} were not acknowledged")

    def append_times(self, topic: str) -> np.ndarray:
        """The broker's append time of every message of the partition, in seconds; float64[messages]."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "benchmark", "enable.auto.commit": False})
        partition = TopicPartition(topic, 0, 0)
        _, end = consumer.get_watermark_offsets(partition, timeout=20)
        consumer.assign([partition])
        times: list[int] = []
        while len(times) < end:
            times += [_append_time(message) for message in consumer.consume(10_000, timeout=5.0)]
        consumer.close()
        return np.array(times) / 1000


def _append_time(message: Message) -> int:
    if error := message.error():
        raise KafkaException(error)
    kind, milliseconds = message.timestamp()
    if kind != 2:
        raise RuntimeError(f"offset {message.offset()} has no append time but a timestamp of kind {kind}")
    return int(milliseconds)


def two_free_ports() -> int:
    """A port that is free together with the next one, which the controller takes."""
    while True:
        port = free_port()
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port
