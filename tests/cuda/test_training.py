"""Whole runs on a GPU: what they learn, what their commits hold, and going on from them on either device.

A GPU adds in no fixed order, so that numbers agree closely where they do not agree to the last bit.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.faults.stage import Stage, prepare
from checkpointer import CommitLog
from checkpointer.faults import NO_FAULTS, FaultPoints
from checkpointer.local_store import LocalStore
from features import create_features
from protos.load import load_config
from protos.pipeline_pb2 import EasyRecConfig
from tests.trainer.test_ranks import train as ranks
from tests.trainer.test_run import Crash, CrashAt, totals
from trainer.devices import CPU, Machine
from trainer.evaluate import evaluate, predict
from trainer.launch import Launch
from trainer.learner import create_learner
from trainer.run import train
from trainer.workers import Rank, Workers

GPU = torch.device("cuda", 0)
Configure = Callable[..., EasyRecConfig]
FUSED = ("adam_optimizer { lr: 0.001 }", "adam_optimizer { lr: 0.001 fused: true }")
HALF = ("num_epochs: 1", 'num_epochs: 1 mixed_precision: "FP16" grad_scaler { init_scale: 4096 growth_interval: 3 }')
BRAIN = ("num_epochs: 1", 'num_epochs: 1 mixed_precision: "BF16"')
DROPOUT = ("deepfm {", "variational_dropout {} deepfm {")
UNPINNED = ("batch_size: 64", "batch_size: 64 pin_memory: false num_workers: 4")
MEASURED = ("losses {", "metrics { auc {} } losses {")
# Where buckets are full a GPU, which writes them in parallel, evicts whom it will.
ROOMY = (
    ("zch_size: 256 hash { ttl_ms: 60000 ", "zch_size: 65536 hash { "),
    ("zch_size: 512 ", "zch_size: 65536 "),
    ("admission_capacity: 256 ", "admission_capacity: 65536 "),
)
KINDS = pytest.mark.parametrize(
    "changes", [(), (FUSED,), (HALF,), (HALF, FUSED), (BRAIN,), (DROPOUT,), (UNPINNED,)], ids=str
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return prepare(tmp_path_factory.mktemp("cuda") / "data", rows=800, parts=2)


@pytest.fixture
def configure(stage: Stage, tmp_path: Path) -> Configure:
    def make(name: str, *changes: tuple[str, str]) -> EasyRecConfig:
        return load_config(str(stage.config(tmp_path / name, MEASURED, *ROOMY, *changes)))

    return make


def run(config: EasyRecConfig, device: torch.device, *, faults: FaultPoints = NO_FAULTS, steps: int = 0) -> None:
    config.train_config.num_steps = steps
    train(config, Launch(device=device, faults=faults), threading.Event())


def dense_of(config: EasyRecConfig) -> dict[str, np.ndarray]:
    restored = CommitLog(LocalStore(config.model_dir)).restore()
    list(restored.tables)
    return restored.dense


def rows_of(config: EasyRecConfig) -> dict[tuple[str, int], np.ndarray]:
    """The weights of every row by table and id."""
    restored = CommitLog(LocalStore(config.model_dir)).restore()
    return {
        (part.table, int(row)): weight
        for part in restored.tables
        if "weight" in part.columns
        for row, weight in zip(part.ids, part.columns["weight"], strict=True)
    }


def alike(one: EasyRecConfig, other: EasyRecConfig, *, within: float = 2e-3) -> None:
    mine, theirs = rows_of(one), rows_of(other)
    assert mine.keys() == theirs.keys() and mine
    assert all(np.allclose(mine[key], theirs[key], atol=within) for key in mine)
    parameters, others = dense_of(one), dense_of(other)
    names = {name for name in parameters if name.startswith("parameter/")}
    assert names == {name for name in others if name.startswith("parameter/")}
    assert all(np.allclose(parameters[name], others[name], atol=within) for name in names)
    assert totals(one) == totals(other)


def test_a_model_begins_alike_on_every_device(configure: Configure) -> None:
    config, begun = configure("begin"), []
    features = create_features(config)
    for device in (CPU, GPU):
        workers = Workers(Rank(), device=device)
        try:
            learner = create_learner(config, features, device=device)
            assert {parameter.device for parameter in learner.half.parameters()} == {device}
            assert all(tensor.device.type == device.type for tensor in learner.empty.labels.values())
            begun.append({name: value.cpu() for name, value in learner.half.state_dict().items()})
        finally:
            workers.close()
    assert begun[0].keys() == begun[1].keys()
    assert all(torch.equal(begun[0][name], begun[1][name]) for name in begun[0])


@KINDS
def test_a_gpu_learns_what_the_cpu_learns(configure: Configure, changes: tuple[tuple[str, str], ...]) -> None:
    there, here = configure("gpu", *changes), configure("cpu", *changes)
    run(there, GPU)
    run(here, CPU)
    if DROPOUT in changes:
        # Each device draws from a generator of its own.
        assert totals(there) == totals(here)
        return
    halved = HALF in changes or BRAIN in changes
    alike(there, here, within=5e-2 if halved else 2e-3)


@KINDS
def test_a_crash_on_a_gpu_goes_on_as_if_there_had_been_none(
    configure: Configure, changes: tuple[tuple[str, str], ...]
) -> None:
    whole, crashed = configure("whole", *changes), configure("crashed", *changes)
    run(whole, GPU)
    with pytest.raises(Crash):
        run(crashed, GPU, faults=CrashAt("train.dense_updated", 5))
    run(crashed, GPU)
    alike(crashed, whole, within=5e-3)
    if HALF in changes:
        mine, theirs = dense_of(crashed)["optimizer/scaler"], dense_of(whole)["optimizer/scaler"]
        assert mine.tolist() == theirs.tolist() and mine[0] > 4096


@pytest.mark.parametrize("first", [GPU, CPU], ids=str)
def test_a_commit_of_one_device_goes_on_on_the_other(configure: Configure, first: torch.device) -> None:
    second = CPU if first == GPU else GPU
    moved, stayed = configure("moved", FUSED), configure("stayed", FUSED)
    run(moved, first, steps=4)
    run(moved, second)
    run(stayed, first)
    alike(moved, stayed)


def test_a_commit_of_fp16_goes_on_in_float32_on_the_cpu(configure: Configure) -> None:
    config = configure("half", HALF)
    run(config, GPU, steps=4)
    assert "optimizer/scaler" in dense_of(config) and "rng/cuda/0" in dense_of(config)
    run(config, CPU)
    assert "optimizer/scaler" not in dense_of(config)


def test_evaluation_and_prediction_agree_on_both_devices(configure: Configure, stage: Stage) -> None:
    config = configure("judged")
    run(config, GPU)
    path = f"{stage.folder}/part-*.parquet"
    there, here = (evaluate(config, path=path, device=device) for device in (GPU, CPU))
    assert there.rows == here.rows > 0 and there.metrics.keys() == here.metrics.keys()
    assert all(there.metrics[name] == pytest.approx(here.metrics[name], abs=1e-3) for name in here.metrics)
    probabilities = [
        np.concatenate([part.column("probs").to_numpy() for part in predict(config, path=path, device=device)])
        for device in (GPU, CPU)
    ]
    assert np.allclose(*probabilities, atol=1e-4)


@pytest.mark.timeout(600)
def test_the_commands_train_on_the_gpu_and_evaluate_on_either_device(stage: Stage, tmp_path: Path) -> None:
    config = stage.config(tmp_path / "model", MEASURED, *ROOMY)
    assert "device=cuda:0" in ranks(config, nproc=1)
    judged = []
    for device in ("cuda", "cpu"):
        command = ["evaluate", str(config), "--input", f"{stage.folder}/part-*.parquet", "--device", device, "--json"]
        done = subprocess.run([sys.executable, "-m", "headrace", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        judged.append(json.loads(done.stdout))
    assert judged[0]["rows"] == judged[1]["rows"] > 0
    assert judged[0]["auc"] == pytest.approx(judged[1]["auc"], abs=1e-3)


@pytest.mark.skipif(Machine.found().gpus < 2, reason="needs two GPUs: one for each rank")
@pytest.mark.timeout(600)
def test_two_ranks_on_two_gpus_account_for_what_one_does(stage: Stage, tmp_path: Path) -> None:
    configs = {nproc: stage.config(tmp_path / f"ranks-{nproc}") for nproc in (1, 2)}
    for nproc, config in configs.items():
        assert f"device=cuda:{nproc - 1}" in ranks(config, nproc=nproc)
    assert totals(load_config(str(configs[1]))) == totals(load_config(str(configs[2])))


@pytest.mark.timeout(600)
def test_more_ranks_than_gpus_are_told_so(stage: Stage, tmp_path: Path) -> None:
    too_many = Machine.found().gpus + 1
    said = ranks(stage.config(tmp_path / "model"), nproc=too_many, expect=2)
    assert f"{too_many} ranks on this machine have {too_many - 1} GPU(s)" in said
