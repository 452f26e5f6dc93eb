"""`headrace serve`: what keeps it from starting, and that it starts before anything is published and drains."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stream.broker import free_port


def test_serve_names_a_port_that_is_taken(headrace: Callable[..., Any], model_dir: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = headrace("serve", model_dir, "--port", port)
    assert ran.code == 1
    assert f"port {port}" in ran.errors
    assert "--port" in ran.errors


def test_serve_names_a_token_file_that_is_not_there(headrace: Callable[..., Any], model_dir: Path) -> None:
    ran = headrace("serve", model_dir, "--port", 0, "--token-file", model_dir / "absent")
    assert ran.code == 1
    assert "absent" in ran.errors
    assert "Traceback" not in ran.errors


def test_serve_is_live_before_a_version_is_there_and_leaves_on_sigterm(model_dir: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "headrace", "serve", str(model_dir), "--port", str(port)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            live = ask(f"http://127.0.0.1:{port}/v2/health/live", deadline_s=200)
            assert live == (200, {"live": True})
            status, body = ask(f"http://127.0.0.1:{port}/v2/health/ready", deadline_s=10)
            assert (status, "no verified version" in body["error"]) == (503, True)
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    assert "Traceback" not in errors


def ask(url: str, *, deadline_s: float) -> tuple[int, dict[str, Any]]:
    deadline = time.monotonic() + deadline_s
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
