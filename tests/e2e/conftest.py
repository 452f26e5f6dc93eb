"""The loop's processes as a test starts, kills and asks them."""

import io
import json
import os
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from headrace.__main__ import run as headrace
from headrace.demo.processes import Child, spawn, wait_for
from stream.broker import free_port
from tests.conftest import Broker

CONFIG = """
model_dir: "{model_dir}"
train_config {{
  sparse_optimizer {{ rowwise_adagrad_optimizer {{ lr: 0.05 }} constant_learning_rate {{}} }}
  dense_optimizer {{ adam_optimizer {{ lr: 0.01 }} constant_learning_rate {{}} }}
  log_step_count_steps: 5
}}
data_config {{
  batch_size: 64 dataset_type: KafkaDataset fg_mode: FG_NORMAL label_fields: "clicked"
  input_fields {{ input_name: "user_id" input_type: INT64 }}
  input_fields {{ input_name: "item_id" input_type: INT64 }}
  input_fields {{ input_name: "clicked" input_type: INT32 }}
  input_fields {{ input_name: "at" input_type: INT64 }}
  input_fields {{ input_name: "event" input_type: INT64 }}
}}
stream_config {{
  brokers: "{brokers}" topic: "{topic}" format: JSON event_time_field: "at" event_id_field: "event" linger_ms: 50
  dead_letters {{ path: "{letters}" }}
}}
checkpoint_config {{ commit_interval_ms: 200 {checkpoint} }}
publish_config {{ dense_runtime: TORCH_SCRIPT {publish} }}
feature_configs {{
  id_feature {{ feature_name: "user_id" expression: "user:user_id" embedding_dim: 8 zch {{ zch_size: 1000 }} }}
}}
feature_configs {{
  id_feature {{ feature_name: "item_id" expression: "item:item_id" embedding_dim: 8 zch {{ zch_size: 1000 }} }}
}}
model_config {{
  feature_groups {{ group_name: "wide" group_type: WIDE feature_names: ["user_id", "item_id"] }}
  feature_groups {{ group_name: "deep" group_type: DEEP feature_names: ["user_id", "item_id"] }}
  deepfm {{ deep {{ hidden_units: [8] }} }}
  losses {{ binary_cross_entropy {{}} }}
}}
"""


def events(first: int, count: int) -> list[bytes]:
    """Users with even numbers click."""
    random = np.random.default_rng(first)
    found = []
    for event in range(first, first + count):
        user, item = int(random.integers(0, 40)), int(random.integers(0, 30))
        row = {"user_id": user, "item_id": item, "clicked": int(user % 2 == 0), "at": 1000 * event, "event": event}
        found.append(json.dumps(row).encode())
    return found


@dataclass(kw_only=True, slots=True)
class Loop:
    """Trainer, publisher and replica on one topic and one model directory."""

    folder: Path
    broker: Broker
    topic: str
    model_dir: str
    config: Path
    store: tuple[str, ...] = ()  # options that reach the model directory
    children: dict[str, Child] = field(default_factory=dict)
    port: int = 0
    starts: int = 0

    def start(self, *names: str, options: tuple[str, ...] = ()) -> None:
        self.port = free_port() if "replica" in names else self.port
        self.starts += 1
        arguments = {
            "trainer": ["train", str(self.config)],
            "publisher": ["publish", str(self.config)],
            "replica": ["serve", self.model_dir, "--port", str(self.port), "--config", str(self.config), *self.store],
        }
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        for name in names:
            logs = self.folder / f"logs-{self.starts}"
            self.children[name] = spawn(name, ["headrace", *arguments[name], *options], logs=logs, env=env)

    def log(self, name: str) -> str:
        return self.children[name].log.read_text(errors="replace")

    def kill(self, *names: str) -> None:
        for name in names:
            self.children[name].process.kill()
            self.children[name].process.wait()

    def stop(self) -> dict[str, int]:
        """Ask all to leave; their exit codes."""
        return {name: child.stop() for name, child in self.children.items()}

    def produce(self, messages: Iterable[bytes], partition: int = 0) -> None:
        self.broker.produce(self.topic, messages, partition)

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_for(condition, list(self.children.values()), what=what, timeout_s=240)

    def status(self) -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = json.loads(self.command("status", self.model_dir, *self.store, "--json"))
        return found

    def counts(self) -> dict[str, int]:
        """The accounting of the topic in the newest commit; empty before the first."""
        try:
            text = self.status()["accounting"].get(self.topic, "")
        except AssertionError:
            return {}
        return {name: int(value) for name, value in (word.split("=") for word in str(text).split())}

    def trained(self, rows: int) -> None:
        self.wait(lambda: self.counts().get("trained", 0) >= rows, f"training of {rows} rows")

    def served(self) -> None:
        """Wait until the replica answers with the newest commit's version."""
        self.wait(self._is_served, "serving of the newest commit")

    def _is_served(self) -> bool:
        head = self.status()["commit"]["seq"]
        try:
            return int(self.ask([0], [0])["model_version"]) >= int(str(head))
        except OSError:
            return False

    def probability(self, users: list[int]) -> np.ndarray:
        return np.array(self.ask(users, [1] * len(users))["outputs"][0]["data"])

    def ask(self, users: list[int], items: list[int]) -> dict[str, object]:
        inputs = [
            {"name": name, "shape": [len(ids)], "datatype": "INT64", "data": ids}
            for name, ids in (("user_id", users), ("item_id", items))
        ]
        body = json.dumps({"inputs": inputs}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v2/models/headrace/infer", body)
        with urllib.request.urlopen(request, timeout=5) as response:
            found: dict[str, object] = json.load(response)
        return found

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as response:
            text: str = response.read().decode()
        return text

    def command(self, *arguments: str) -> str:
        out, errors = io.StringIO(), io.StringIO()
        code = headrace(list(arguments), out=out, errors=errors, environment={})
        assert code == 0, errors.getvalue()
        return out.getvalue()


@pytest.fixture
def make_loop(tmp_path: Path) -> Iterator[Callable[..., Loop]]:
    """Makes loops; what they started is stopped after the test."""
    loops: list[Loop] = []

    def make(
        broker: Broker,
        topic: str,
        *,
        model_dir: str = "",
        store: tuple[str, ...] = (),
        checkpoint: str = "",
        publish: str = "",
    ) -> Loop:
        path = model_dir or str(tmp_path / "model")
        config = tmp_path / "pipeline.config"
        values = {"brokers": broker.bootstrap, "topic": topic, "letters": tmp_path / "letters"}
        config.write_text(CONFIG.format(model_dir=path, checkpoint=checkpoint, publish=publish, **values))
        if not model_dir:
            Path(path).mkdir()
        loop = Loop(folder=tmp_path, broker=broker, topic=topic, model_dir=path, config=config, store=store)
        loops.append(loop)
        return loop

    yield make
    for loop in loops:
        for child in loop.children.values():
            if child.process.poll() is None:
                child.process.kill()
                child.process.wait()
