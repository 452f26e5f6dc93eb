"""A replica that is killed under load: no answer is torn, and it comes back with the version that the pointer names."""

import http.client
import json
import signal
import threading
import time
from collections import defaultdict

import pytest

from benchmarks.faults.processes import Process
from benchmarks.faults.stage import Stage
from checkpointer.local_store import LocalStore
from publisher.pointer import read_pointer
from stream.broker import free_port
from tests.faults.conftest import Bench

REQUEST = json.dumps(
    {
        "inputs": [
            {"name": name, "shape": [3], "datatype": "INT64", "data": data}
            for name, data in (("user", [1, 2, 3]), ("item", [1, 2, 3]), ("kind", [1, 2, 3]))
        ]
    }
)


class Client:
    """Asks the same again and again, on a new connection after each failure."""

    def __init__(self, port: int) -> None:
        self.answers: dict[str, set[str]] = defaultdict(set)
        self.failures = 0
        self.newest = 0
        self._port = port
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        while not self._stop.is_set():
            try:
                connection.request("POST", "/v2/models/headrace/infer", REQUEST)
                response = connection.getresponse()
                body = json.loads(response.read())
            except (OSError, http.client.HTTPException, ValueError):
                connection.close()
                self.failures += 1
                time.sleep(0.02)
                continue
            if response.status == 200:
                self.answers[body["model_version"]].add(json.dumps(body["outputs"]))
                self.newest = int(body["model_version"])
            elif response.status != 503:
                raise RuntimeError(f"{response.status}: {body}")
        connection.close()


def serve(bench: Bench, config, port: int) -> Process:
    return bench.start("headrace", "serve", bench.model(config), "--port", port)


@pytest.mark.timeout(200)
def test_killed_replica_comes_back_and_never_gives_a_torn_answer(bench: Bench, stage: Stage) -> None:
    config = stage.config(bench.folder / "model")
    store = LocalStore(str(bench.model(config)))

    def one_more() -> None:
        bench.start("trainer", config, HEADRACE_FAULT="train.durable:2").wait(60)
        assert bench.start("publisher", config, "--once").wait(60) == 0

    one_more()
    port = free_port()
    replica = serve(bench, config, port)
    client = Client(port)
    try:
        bench.until(lambda: client.newest > 0, replica)
        for _ in range(2):
            one_more()
            bench.until(lambda: client.newest == read_pointer(store).version, replica)
            failed = client.failures
            replica.signal(signal.SIGKILL)
            assert replica.wait(30) == -signal.SIGKILL
            one_more()
            bench.until(lambda before=failed: client.failures > before)
            replica = serve(bench, config, port)
            bench.until(lambda: client.newest == read_pointer(store).version, replica)
    finally:
        client.close()
        replica.signal(signal.SIGKILL)
    assert len(client.answers) >= 3
    assert all(len(outputs) == 1 for outputs in client.answers.values()), client.answers
