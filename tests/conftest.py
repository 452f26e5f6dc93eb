"""Settings that hold for every test, and the brokers that tests share."""

from __future__ import annotations

import itertools
import logging
import os
import shutil
import subprocess
import time
import uuid
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from benchmarks.broker import two_free_ports
from benchmarks.faults.processes import Zygote
from stream.broker import EmbeddedBroker, free_port

# fbgemm's CPU build warns at import that its GPU-only modules are absent; every other warning is an error.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import fbgemm_gpu  # noqa: F401
    import torch.distributed.optim  # noqa: F401 - scripts its optimizers when imported, which torch itself deprecates
    import torchrec  # noqa: F401
    import torchrec.modules.hash_mc_modules  # noqa: F401 - scripts a class when imported

REAL_KAFKA = Path(__file__).resolve().parents[2] / "shared" / "kafka" / "run"


OURS = ("stream", "features", "recmodels", "trainer", "checkpointer", "publisher", "headrace", "protos")


@pytest.fixture(autouse=True)
def logging_of_its_own() -> Iterator[None]:
    """Entry points and benchmarks that a test runs in this process set levels: the next test must not feel it."""
    logging.disable(logging.NOTSET)
    root = logging.getLogger()
    level = root.level
    yield
    logging.disable(logging.NOTSET)
    root.setLevel(level)
    # Those of basicConfig; pytest's own are of other types, and it takes them away itself.
    for handler in [handler for handler in root.handlers if type(handler) is logging.StreamHandler]:
        root.removeHandler(handler)
    for name in OURS:
        logging.getLogger(name).setLevel(logging.NOTSET)


class Broker:
    """A broker that tests talk to: topics of their own, messages, deletions."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        quiet: dict[str, str | int] = {"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 500}
        self.admin = AdminClient(quiet)
        self._producer = Producer(
            {**quiet, "enable.idempotence": True, "message.max.bytes": 20_000_000, "linger.ms": 2}
        )

    def topic(self, partitions: int = 1, **config: str) -> str:
        """A new topic, whose name no other test has; underscores in settings stand for dots."""
        name = f"test-{uuid.uuid4().hex[:12]}"
        self.create(name, partitions, **config)
        return name

    def create(self, name: str, partitions: int = 1, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(15)

    def delete(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result(15)

    def grow(self, name: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(name, partitions)])[name].result(15)

    def produce(
        self, topic: str, values: Iterable[bytes | None], partition: int = 0, timestamps: Iterable[int] | None = None
    ) -> None:
        """Send messages to one partition, in order; return when they are acknowledged."""
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                errors.append(error)

        for value, timestamp in zip(values, timestamps or itertools.repeat(0)):  # noqa: B905 - repeat is endless
            while True:
                try:
                    self._producer.produce(
                        topic, value, partition=partition, timestamp=timestamp, on_delivery=delivered
                    )
                    break
                except BufferError:
                    self._producer.poll(0.1)
                except KafkaException as error:
                    if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                        raise
                    # A partition that was just added: ask for the topic again.
                    self._producer.list_topics(topic, timeout=5)
                    time.sleep(0.05)
            self._producer.poll(0)
        left = self._producer.flush(30)
        if left or errors:
            raise RuntimeError(f"{left} messages not delivered, errors {errors}")


class KafkaProcess:
    """One Apache Kafka of ../shared/kafka in a directory of its own; `kill` and `start` again is a crash."""

    def __init__(self, folder: Path, port: int, properties: Iterable[str] = ()) -> None:
        self.folder = folder
        self.port = port
        self.bootstrap = f"127.0.0.1:{port}"
        self._command = [str(REAL_KAFKA), str(folder / "data"), str(port), *properties]
        self._log = folder / "kafka.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, wait: bool = True) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        if wait:
            self.wait()

    def wait(self, deadline_s: float = 180.0) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        deadline = time.monotonic() + deadline_s
        while True:
            try:
                admin.list_topics(timeout=1.0)
                return
            except KafkaException:
                if time.monotonic() > deadline or (self._process is not None and self._process.poll() is not None):
                    raise RuntimeError(f"Apache Kafka did not start: {self._log.read_text()[-2000:]}") from None
                time.sleep(0.2)

    def broker(self) -> Broker:
        return Broker(self.bootstrap)

    def kill(self) -> None:
        """A crash: no clean shutdown."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()


@pytest.fixture(scope="session")
def embedded_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The embedded broker, one for the session: use topics of your own, never delete one."""
    with EmbeddedBroker(log_path=tmp_path_factory.mktemp("tansu") / "log") as process:
        yield Broker(process.bootstrap)


@pytest.fixture(scope="session")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """Starts processes of ours without importing everything again."""
    with Zygote(tmp_path_factory.mktemp("zygote") / "log") as running:
        yield running


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real Apache Kafka, one for the session: use topics of your own, do not kill it."""
    _require_kafka()
    process = KafkaProcess(tmp_path_factory.mktemp("kafka"), two_free_ports())
    process.start()
    yield Broker(process.bootstrap)
    process.stop()


class KafkaProcesses:
    """Starts real brokers of the test's own, to kill, restart and configure."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.started: list[KafkaProcess] = []

    def __call__(self, *properties: str, wait: bool = True) -> KafkaProcess:
        """Start one; `{port}` and `{controller}` in properties stand for its ports."""
        folder = self._folder / f"kafka{len(self.started)}"
        folder.mkdir()
        port = two_free_ports()
        filled = [item.replace("{port}", str(port)).replace("{controller}", str(port + 1)) for item in properties]
        self.started.append(KafkaProcess(folder, port, filled))
        self.started[-1].start(wait)
        return self.started[-1]

    @staticmethod
    def free_port() -> int:
        return free_port()


@pytest.fixture
def kafka_process(tmp_path: Path) -> Iterator[KafkaProcesses]:
    """A `KafkaProcesses`; what it started is stopped after the test."""
    _require_kafka()
    processes = KafkaProcesses(tmp_path)
    yield processes
    for process in processes.started:
        process.stop()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB; skips, visibly, where it cannot be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode:
        pytest.skip("this machine does not let us mount a tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def _require_kafka() -> None:
    if not REAL_KAFKA.exists() or shutil.which("java") is None:
        pytest.skip(f"no Apache Kafka at {REAL_KAFKA}, or no java")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever uses a real Kafka is marked so."""
    for item in items:
        if {"kafka_broker", "kafka_process"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.kafka)
