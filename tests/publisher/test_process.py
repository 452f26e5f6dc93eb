"""`python -m publisher CONFIG`, as a user starts it: it follows, compiles, locks, stops, and explains errors."""

import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import numpy as np
import pytest
import torch

from protos.load import load_config
from publisher.__main__ import run_until
from publisher.errors import PublisherBusyError, PublisherError
from publisher.export.build import build_dense_half
from publisher.export.host import this_host
from publisher.export.runtime import TORCH_SCRIPT, load_runtime
from publisher.lock import publisher_lock
from publisher.pointer import rollback
from publisher.versions import list_versions, read_blob, read_pointer, read_version
from stream.broker import free_port


@pytest.fixture
def config(tmp_path: Path, config_text) -> Callable[..., Path]:
    def write(publish: str = "", model_dir: str = "") -> Path:
        path = tmp_path / "pipeline.config"
        path.write_text(config_text(model_dir or tmp_path / "model", publish))
        return path

    return write


@pytest.fixture
def trained(local_bench, config):
    """A model directory whose commits were trained under the configuration, with dense weights of the model."""
    local_bench.train_under(load_config(config()))
    local_bench.trainer.base()
    return local_bench


@contextmanager
def running(path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "publisher", str(path), *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def wait_for(bench, version: int, process: subprocess.Popen[str]) -> None:
    def there() -> bool:
        pointer = read_pointer(bench.store)
        return pointer is not None and pointer.version == version

    wait_until(there, process)


def test_process_follows_compiles_and_stops(trained, config):
    port = free_port()
    with running(config(), "--metrics-port", str(port)) as process:
        wait_for(trained, 1, process)
        number = 1
        while not read_version(trained.store, number).artefacts:
            number += 1
            trained.trainer.commit({"user": [number]})
            wait_for(trained, number, process)
            time.sleep(0.5)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
            assert f"headrace_publisher_served_version {number}.0" in response.read().decode()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert_same_predictions(trained, config, number)


def test_error_of_the_process_is_one_line(config):
    with running(config("keep_versions: 1")) as process:
        _, errors = process.communicate(timeout=90)
    assert process.returncode == 2
    *notices, last = errors.splitlines()
    assert last == "publisher: publish_config.keep_versions must be at least 2, got 1"
    assert all("config notice" in line for line in notices)


def assert_same_predictions(bench, config, number: int) -> None:
    version = read_version(bench.store, number)
    (artefact,) = version.artefacts
    assert artefact.runtime == TORCH_SCRIPT and this_host().unfit(artefact) is None
    state = {name.removeprefix("parameter/"): value for name, value in bench.trainer.dense.items()}
    runner = load_runtime(artefact.runtime, read_blob(bench.store, artefact.blob), state)
    half = build_dense_half(load_config(config()))
    half.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in state.items()})
    group = torch.rand(5, 7)
    with torch.no_grad():
        expected = half(group)
    found = runner.run([group])
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value)


@pytest.mark.parametrize(
    ("publish", "model_dir", "message"),
    [
        ("keep_versions: 1", "", "keep_versions must be at least 2, got 1"),
        ('signing_key_file: "/nowhere/key.pem"', "", "cannot read the key file /nowhere/key.pem"),
        ("gate { max_auc_drop: 2 }", "", "max_auc_drop must be in (0, 1]"),
    ],
)
def test_bad_input_is_explained(config, publish, model_dir, message):
    with pytest.raises(PublisherError, match=re.escape(message)):
        run_until([str(config(publish, model_dir)), "--once"], Event())


def test_second_publisher_on_one_directory_is_refused(trained, config):
    with (
        publisher_lock(trained.store, "", "publisher host:7"),
        pytest.raises(PublisherBusyError, match="publisher host:7"),
    ):
        run_until([str(config()), "--once"], Event())
    run_until([str(config()), "--once"], Event())
    assert read_pointer(trained.store).version == 1


def test_resume_removes_the_pin(trained, config):
    run_until([str(config()), "--once"], Event())
    trained.trainer.commit({"user": [2]})
    rollback(trained.store, 1, lambda: 9)
    run_until([str(config()), "--once"], Event())
    assert read_pointer(trained.store).version == 1
    run_until([str(config()), "--once", "--resume"], Event())
    assert read_pointer(trained.store).version == 2


def test_publisher_that_runs_goes_on_when_another_process_resumes(trained, config):
    with running(config()) as process:
        wait_for(trained, 1, process)
        rollback(trained.store, 1, lambda: 9)
        trained.trainer.commit({"user": [2]})
        wait_until(lambda: list_versions(trained.store) == [1, 2], process)
        assert read_pointer(trained.store).version == 1
        run_until([str(config()), "--resume"], Event())
        wait_for(trained, 2, process)


def test_unknown_task_is_refused(config):
    with pytest.raises(PublisherError, match="no task 'dance'"):
        run_until([str(config()), "--task", "dance"], Event())
