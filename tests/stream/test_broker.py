"""The embedded broker starts, answers, stops, and says why it does not."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from stream.broker import EmbeddedBroker, broker_binary, free_port
from stream.errors import EmbeddedBrokerError


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_broker_answers_while_it_runs_and_leaves_no_process(tmp_path: Path) -> None:
    with EmbeddedBroker(log_path=tmp_path / "logs" / "broker.log") as broker:
        pid = broker.pid
        assert pid is not None
        assert broker.alive()
        assert AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=5).brokers
    assert not broker.alive()
    assert not _runs(pid)
    broker.stop()


def test_broker_takes_the_port_it_is_given(tmp_path: Path) -> None:
    port = free_port()
    with EmbeddedBroker(log_path=tmp_path / "log", port=port) as broker:
        assert broker.bootstrap == f"127.0.0.1:{port}"


def test_broker_names_a_taken_port(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EmbeddedBrokerError, match=f"port {port} is taken"):
            EmbeddedBroker(log_path=tmp_path / "log", port=port).start()


def test_broker_that_leaves_at_once_points_to_its_log(tmp_path: Path) -> None:
    broken = tmp_path / "tansu"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(EmbeddedBrokerError, match=f"left with 3: see {tmp_path}/log"):
        EmbeddedBroker(log_path=tmp_path / "log", binary=broken).start()


def test_broker_that_never_answers_is_stopped(tmp_path: Path) -> None:
    deaf = tmp_path / "tansu"
    deaf.write_text("#!/bin/sh\nexec sleep 60\n")
    deaf.chmod(0o755)
    broker = EmbeddedBroker(log_path=tmp_path / "log", binary=deaf, ready_s=0.5)
    with pytest.raises(EmbeddedBrokerError, match="did not answer in 0.5 s"):
        broker.start()
    assert broker.pid is None


def test_broker_binary_is_executable() -> None:
    assert os.access(broker_binary(), os.X_OK)
