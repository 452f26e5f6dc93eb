"""`headrace broker` in a process of its own."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

from confluent_kafka.admin import AdminClient

from stream.broker import free_port


def test_broker_creates_topics_and_stops_on_sigterm(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "headrace", "broker", "--port", str(port), "--log", str(tmp_path / "log")]
    with subprocess.Popen(
        [*command, "--topic", "clicks:3", "--topic", "dead"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"broker ready on 127.0.0.1:{port}\n"
        topics = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(timeout=10).topics
        assert {name: len(topics[name].partitions) for name in ("clicks", "dead")} == {"clicks": 3, "dead": 1}
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_broker_names_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "headrace", "broker", "--port", str(port), "--log", str(tmp_path / "log")]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 1
    assert f"port {port} is taken" in ran.stderr
    assert "Traceback" not in ran.stderr
