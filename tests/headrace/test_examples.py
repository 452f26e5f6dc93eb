"""Configurations that we show pass `config check` and `config schema`; what their producers send is trained."""

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults.stage import CONFIG as STAGE
from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from protos.data_pb2 import KafkaDataset
from protos.load import format_config, load_config
from protos.pipeline_pb2 import EasyRecConfig
from stream.progress import Progress
from tests.conftest import Broker
from tests.e2e.conftest import CONFIG as LOOP
from tests.protos.test_peer_style import criteo
from trainer.launch import Launch
from trainer.run import train

ROOT = Path(__file__).parents[2]
EVENTS = 200
FEATURES_NEED = """
model_dir: "m"
train_config {
  sparse_optimizer { sgd_optimizer { lr: 0.1 } constant_learning_rate {} }
  dense_optimizer { sgd_optimizer { lr: 0.1 } constant_learning_rate {} }
}
stream_config { brokers: "b:9092" topic: "shop" }
model_config {
  feature_groups { group_name: "deep" group_type: DEEP feature_names: ["user", "tags", "category", "price"] }
  multi_tower { towers { input: "deep" mlp { hidden_units: 4 } } final { hidden_units: 4 } }
  losses { binary_cross_entropy {} }
}
"""


def shown(page: str) -> str:
    (text,) = re.findall(r"```textproto\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    return str(text)


def filled(text: str, folder: Path, **values: str) -> str:
    """A template of ours with its places filled; doubled braces are those of format()."""
    places = {"model_dir": folder / "m", "brokers": "b:9092", "topic": "t", "letters": folder / "dead", **values}
    return text.format(**places)


def demo(folder: Path) -> str:
    text = (ROOT / "headrace/demo/pipeline.config").read_text()
    for name, value in {"model_dir": "m", "brokers": "b:9092", "topic": "t", "dense_runtime": "TORCH_SCRIPT"}.items():
        text = text.replace(f"{{{name}}}", value)
    return text


SHOWN: dict[str, Callable[[Path], str]] = {
    "README.md": lambda _: shown("README.md"),
    "docs/features.md": lambda folder: (
        shown("docs/features.md").replace("vocabulary.txt", f"{folder}/vocabulary.txt") + FEATURES_NEED
    ),
    "docker/pipeline.config": lambda _: (ROOT / "docker/pipeline.config").read_text(),
    "headrace/demo/pipeline.config": demo,
    "tests/e2e": lambda folder: filled(LOOP, folder, checkpoint="", publish=""),
    "benchmarks/faults": lambda folder: filled(
        STAGE, folder, kind="KafkaDataset", files="", stream='brokers: "b:9092" topic: "t"'
    ),
    "a peer's": lambda _: criteo(),
}


def to_train(config: EasyRecConfig, folder: Path, broker: Broker) -> EasyRecConfig:
    """The same on a topic of the test's, small and with an end."""
    stream, data = config.stream_config, config.data_config
    stream.brokers, stream.topic, stream.stop_at_end = broker.bootstrap, broker.topic(), True
    stream.dead_letters.path = str(folder / "letters")
    # What the producer draws may be older than all before it, or filtered: that is the stage's own purpose.
    stream.ClearField("allowed_lateness_ms")
    config.train_input_path, config.model_dir = "", str(folder / "model")
    data.dataset_type, data.batch_size = KafkaDataset, 64
    for feature in config.feature_configs:
        if feature.HasField("id_feature") and feature.id_feature.HasField("zch"):
            feature.id_feature.zch.zch_size = 1000
    return config


def test_no_configuration_is_left_out() -> None:
    found = {str(path.relative_to(ROOT)) for part in ("docker", "headrace") for path in (ROOT / part).rglob("*.config")}
    pages = {str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md") if "```textproto" in path.read_text()}
    assert found | pages | {"README.md"} == {name for name in SHOWN if "." in name}


@pytest.mark.parametrize("name", SHOWN)
def test_a_shown_configuration_trains_on_what_its_producer_sends(
    name: str, headrace: Callable[..., Any], tmp_path: Path, embedded_broker: Broker
) -> None:
    (tmp_path / "vocabulary.txt").write_text("unknown\nhats\n")
    path = tmp_path / "pipeline.config"
    path.write_text(SHOWN[name](tmp_path), encoding="utf-8")
    checked = headrace("config", "check", path)
    assert checked.code == 0 and f"{path}: ok" in checked.out, checked.out + checked.errors
    schema = headrace("config", "schema", path)
    assert schema.code == 0, schema.errors
    config = to_train(load_config(path), tmp_path, embedded_broker)
    path.write_text(format_config(config), encoding="utf-8")
    program = tmp_path / "producer.py"
    program.write_text(headrace("config", "schema", path, "--producer").out, encoding="utf-8")
    subprocess.run([sys.executable, str(program), str(EVENTS)], check=True, timeout=120, capture_output=True)
    train(load_config(path), Launch(), threading.Event())
    log = CommitLog(LocalStore(config.model_dir))
    head = log.head()
    assert head is not None
    (counts,) = Progress.from_proto(log.stream(head)).accounting.values()
    assert counts.received == EVENTS and counts.dead_lettered == 0
    assert counts.trained + counts.filtered == EVENTS and counts.trained > EVENTS / 2
