"""A replica that is killed under load: no answer is torn, and it comes back with the version that the pointer names."""

import signal

import pytest

from benchmarks.faults.client import Client
from benchmarks.faults.processes import Process
from benchmarks.faults.stage import Stage
from checkpointer.local_store import LocalStore
from publisher.versions import read_pointer
from stream.broker import free_port
from tests.faults.conftest import Bench


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
    assert not client.torn and not client.strange
