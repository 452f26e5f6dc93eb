"""docs/extending.md, as it stands: compiled, imported, configured and run in a process of its own."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.e2e.pages import command_blocks

ROOT = Path(__file__).parents[2]

PROGRAM = """
import io
import runpy
import sys
import pyarrow as pa
import torch
from features import create_features
from headrace.__main__ import run as command
from protos.dispositions import check
from protos.load import format_config, load_config, parse_config
from recmodels.registry import create_model
from publisher.export.build import build_dense_half

config = load_config(sys.argv[1])
assert parse_config(format_config(config), json=False) == config
assert check(config).errors == (), check(config).errors
features = create_features(config)
rows = pa.record_batch({"age_h": [0.0, 6.0, 12.0], "clicked": [0.0, 1.0, 0.0]})
assert len(features.validate(rows).rows) == 0
batch = features.parse(rows)
model = create_model(config, features)
assert type(model).__name__ == "Gate"
assert model.predict(batch)["probs"].shape == (3,)
(values,) = [group.values() for group in batch.dense_features.values()]
assert values.reshape(-1).tolist() == [1.0, 0.5, 0.25], values
build_dense_half(config)

def typed(*words):
    out, errors = io.StringIO(), io.StringIO()
    assert command(words, out=out, errors=errors, environment={}) == 0, errors.getvalue()
    return out.getvalue()

assert "pipeline.config: ok" in typed("config", "check", sys.argv[1])
assert "feature freshness" in typed("config", "schema", sys.argv[1])
open("producer.py", "w").write(typed("config", "schema", sys.argv[1], "--producer"))
made = runpy.run_path("producer.py")
sent = pa.RecordBatch.from_pylist([made["event"]() for _ in range(9)], schema=made["SCHEMA"])
assert len(features.validate(sent).rows) == 0 and features.parse(sent).size == 9
assert features.empty().size == 0
vector = config.feature_configs.add().raw_feature
vector.feature_name, vector.value_dim = "vector", 2
vector.expression = "user:vector"
assert create_features(config).empty().size == 0
"""

REST = """
model_dir: "m"
train_config {
  sparse_optimizer { sgd_optimizer { lr: 0.1 } constant_learning_rate {} }
  dense_optimizer { sgd_optimizer { lr: 0.1 } constant_learning_rate {} }
}
data_config { dataset_type: KafkaDataset fg_mode: FG_NORMAL label_fields: "clicked" }
stream_config { brokers: "b:9092" topic: "clicks" }
"""


def blocks() -> list[str]:
    return re.findall(r"```\w*\n(.*?)```", (ROOT / "docs" / "extending.md").read_text(encoding="utf-8"), re.DOTALL)


def test_what_the_page_shows_works(tmp_path: Path) -> None:
    proto, module, config = blocks()
    (tmp_path / "acme.proto").write_text(proto)
    (tmp_path / "acme.py").write_text(module)
    (tmp_path / "pipeline.config").write_text(REST + config)
    (tmp_path / "program.py").write_text(PROGRAM)
    ((shown,),) = command_blocks("docs/extending.md")
    python, *arguments = shlex.split(shown.replace("/path/to/headrace", str(ROOT)))
    assert python == "python"
    subprocess.run([sys.executable, *arguments], cwd=tmp_path, check=True)
    ran = subprocess.run(
        [sys.executable, "program.py", "pipeline.config"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert ran.returncode == 0, ran.stderr
