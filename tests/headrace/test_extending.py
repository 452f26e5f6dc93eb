"""docs/extending.md, as it stands: compiled, imported, configured and run in a process of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
import pyarrow as pa
import torch
from features import create_features
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
data_config { dataset_type: ParquetDataset fg_mode: FG_NORMAL label_fields: "clicked" }
"""


def blocks() -> list[str]:
    return re.findall(r"```\w*\n(.*?)```", (ROOT / "docs" / "extending.md").read_text(encoding="utf-8"), re.DOTALL)


def test_what_the_page_shows_works(tmp_path: Path) -> None:
    proto, module, config = blocks()
    (tmp_path / "acme.proto").write_text(proto)
    (tmp_path / "acme.py").write_text(module)
    (tmp_path / "pipeline.config").write_text(REST + config)
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"-I{ROOT}", "--python_out=.", "acme.proto"]
    subprocess.run(command, cwd=tmp_path, check=True)
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
