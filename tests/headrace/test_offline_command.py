"""The command line from rows to answers: train on a file, then evaluate, predict, export, publish."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

from checkpointer.local_store import LocalStore
from protos.load import load_config
from publisher.versions import read_current

pytestmark = pytest.mark.e2e

ROWS = 640


def headrace(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "headrace", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, env=environment)


@pytest.fixture
def trained(write_config: Callable[..., Path], tmp_path: Path) -> Path:
    """A configuration that was trained on a Parquet file, to its end."""
    rng = np.random.default_rng(0)
    users = rng.integers(0, 40, ROWS)
    table = {
        "user_id": [str(user) for user in users],
        "slot": rng.integers(0, 10, ROWS),
        "price": rng.random(ROWS, dtype=np.float32),
        "clicked": (users % 2).astype(np.float32),
        "at": np.arange(ROWS),
        "event": [str(row) for row in range(ROWS)],
    }
    pq.write_table(pa.table(table), tmp_path / "rows.parquet")
    path = write_config()
    text = path.read_text().replace("KafkaDataset", "ParquetDataset")
    path.write_text(f'train_input_path: "{tmp_path / "rows.parquet"}"\n{text}')
    ran = headrace("train", path)
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    return path


def test_train_evaluate_predict_export_and_publish(trained: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    found = json.loads(headrace("status", model, "--json").stdout)
    assert (
        sum(int(word.split("=")[1]) for word in found["accounting"].popitem()[1].split() if "trained" in word) == ROWS
    )

    rows = tmp_path / "rows.parquet"
    evaluated = json.loads(headrace("evaluate", trained, "--input", rows, "--json").stdout)
    assert evaluated["rows"] == ROWS

    ran = headrace(
        "predict", trained, "--input", rows, "--output", tmp_path / "scores.parquet", "--reserve", "event", "--features"
    )
    assert ran.returncode == 0, ran.stderr
    scores = pq.read_table(tmp_path / "scores.parquet")
    assert scores.column("event").to_pylist() == [str(row) for row in range(ROWS)]
    assert scores.schema.field("probs").type == pa.float32()
    assert scores.column("__features__")[0].as_py().startswith("user_id:")

    assert headrace("export", trained, "--plain", "--output", tmp_path / "exported").returncode == 0
    table = pq.read_table(tmp_path / "exported" / "tables" / "user_id_emb.parquet")
    assert table.num_rows == 40
    assert load_file(tmp_path / "exported" / "dense.safetensors")
    assert load_config(tmp_path / "exported" / "pipeline.config").model_dir == str(model)
    again = headrace("export", trained, "--plain", "--output", tmp_path / "exported")
    assert again.returncode == 2
    assert "is not empty" in again.stderr

    ran = headrace("export", trained, "--runtime", "torch_script", "--output", tmp_path / "served")
    assert ran.returncode == 0 and f"headrace serve {tmp_path / 'served'}" in ran.stdout, ran.stderr
    served = read_current(LocalStore(tmp_path / "served"))
    assert served is not None and [artefact.runtime for artefact in served.artefacts] == ["torch_script"]
    again = headrace("export", trained, "--output", tmp_path / "served")
    assert again.returncode == 1 and "holds a served version already" in again.stderr

    publish = [sys.executable, "-m", "publisher", str(trained), "--once"]
    subprocess.run(publish, check=True, timeout=200, capture_output=True)
    version = read_current(LocalStore(model))
    assert version is not None
    assert json.loads(headrace("status", model, "--json").stdout)["version"]["served"] == version.version


def test_evaluate_refuses_a_secret_without_repeating_it(headrace: Any, write_config: Callable[..., Path]) -> None:
    ran = headrace("evaluate", write_config(), "--input", "kafka://b:1/t?group.id=g&sasl.password=hunter2")
    assert ran.code == 2
    assert "hunter2" not in ran.errors


def test_evaluate_names_an_input_that_fits_no_data_set(headrace: Any, write_config: Callable[..., Path]) -> None:
    ran = headrace("evaluate", write_config(), "--input", "rows.txt")
    assert ran.code == 2
    assert "rows.txt is no topic" in ran.errors
