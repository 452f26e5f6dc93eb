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
import torch
from safetensors.numpy import load_file

from checkpointer.local_store import LocalStore
from features import create_features
from protos.load import load_config
from publisher.export.host import this_host
from publisher.export.runtime import load_runtime
from publisher.replica.follower import Follower
from publisher.replica.metrics import ReplicaMetrics
from publisher.replica.model import Side
from publisher.replica.switch import Switch
from publisher.versions import read_current

pytestmark = pytest.mark.e2e

ROWS = 640
VOCABULARY = """feature_configs { id_feature { feature_name: "kind" expression: "item:kind" embedding_dim: 16
  vocab_file: "%s/words.txt" default_bucketize_value: 0 } }
"""


def headrace(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "headrace", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, env=environment)


@pytest.fixture
def trained(write_config: Callable[..., Path], tmp_path: Path) -> Path:
    """A configuration that was trained on a Parquet file, to its end."""
    rng = np.random.default_rng(0)
    users = rng.integers(0, 40, ROWS)
    (tmp_path / "words.txt").write_text("other\nhats\nshoes\n")
    table = {
        "kind": rng.choice(["hats", "shoes", "cups"], ROWS),
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
    text = text.replace('feature_names: "slot"', 'feature_names: "slot" feature_names: "kind"') + VOCABULARY % tmp_path
    path.write_text(f'train_input_path: "{tmp_path / "rows.parquet"}"\n{text}')
    ran = headrace("train", path)
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    return path


def served_alone(folder: Path, rows: pa.RecordBatch) -> np.ndarray:
    """What a replica answers that has nothing but an exported model directory."""
    store, switch = LocalStore(folder), Switch[Side]()
    follower = Follower(
        store, switch, ReplicaMetrics(), host=this_host(), verifier=None, clock=lambda: 0.0, drain_s=1.0
    )
    assert follower.poll() and switch.current is not None
    return switch.current.predict(rows)["probs"]


def computed_alone(folder: Path, rows: pa.RecordBatch) -> np.ndarray:
    """What another program makes of a plain export: its features, its rows, its dense half."""
    features = create_features(load_config(folder / "pipeline.config"))
    batch = features.parse(rows, labels=False)
    ids = {key: part for group in batch.sparse_features.values() for key, part in group.to_dict().items()}
    numbers = {key: part for group in batch.dense_features.values() for key, part in group.to_dict().items()}
    groups = []
    for group in json.loads((folder / "layout.json").read_text())["groups"]:
        columns = []
        for entry in group["entries"]:
            if entry["table"] is None:
                columns.append(numbers[entry["feature"]].numpy())
                continue
            assert set(ids[entry["feature"]].lengths().tolist()) == {1}
            table = pq.read_table(folder / "tables" / f"{entry['table']}.parquet").to_pydict()
            known = dict(zip(table["id"], table["weight"], strict=True))
            columns.append(np.array([known[one] for one in ids[entry["feature"]].values().tolist()], np.float32))
        groups.append(torch.from_numpy(np.concatenate(columns, axis=1)))
    half = load_runtime(
        "torch_script", (folder / "dense.torch_script").read_bytes(), load_file(folder / "dense.safetensors")
    )
    return half.run(groups)["probs"]


def alone(folder: Path, config: Path, expected: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both exports give what was predicted, when all that they were made of is gone."""
    (whole,) = pq.read_table(folder / "rows.parquet").to_batches()
    for gone in (folder / "model", folder / "words.txt", folder / "rows.parquet", config):
        gone.rename(gone.with_suffix(".gone"))
    needed = whole.drop_columns(["clicked", "at", "event"])
    np.testing.assert_allclose(served_alone(folder / "served", needed), expected, rtol=1e-5)
    monkeypatch.chdir(folder / "exported")
    np.testing.assert_allclose(computed_alone(Path(), needed), expected, rtol=1e-5)


def test_train_evaluate_predict_export_and_publish(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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

    alone(tmp_path, trained, scores.column("probs").to_numpy(), monkeypatch)


def test_evaluate_refuses_a_secret_without_repeating_it(headrace: Any, write_config: Callable[..., Path]) -> None:
    ran = headrace("evaluate", write_config(), "--input", "kafka://b:1/t?group.id=g&sasl.password=hunter2")
    assert ran.code == 2
    assert "hunter2" not in ran.errors


def test_evaluate_names_an_input_that_fits_no_data_set(headrace: Any, write_config: Callable[..., Path]) -> None:
    ran = headrace("evaluate", write_config(), "--input", "rows.txt")
    assert ran.code == 2
    assert "rows.txt is no topic" in ran.errors
