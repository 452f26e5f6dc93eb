"""Two ranks, once more: killed in the middle, and replayed from recorded cuts, they end in the same bits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.faults.stage import Stage
from checkpointer import CommitLog
from checkpointer.digest import logical_digest
from checkpointer.local_store import LocalStore


def train(config: Path, *options: str, fault: str = "") -> int:
    command = [sys.executable, "-m", "headrace", "train", str(config), "--nproc", "2", *options]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HEADRACE_FAULT": fault}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240, env=env)
    assert fault or done.returncode == 0, done.stderr
    return done.returncode


def digest_of(model_dir: Path) -> str:
    restored = CommitLog(LocalStore(str(model_dir))).restore()
    return logical_digest(restored.tables, restored.dense, restored.stream, restored.commit.step)


def steps_of(model_dir: Path) -> list[int]:
    return [commit.step for commit in CommitLog(LocalStore(str(model_dir))).commits()]


@pytest.mark.timeout(600)
def test_killed_and_replayed_ranks_end_in_the_same_bits(stage: Stage, tmp_path: Path) -> None:
    whole, killed, again = (tmp_path / name for name in ("whole", "killed", "again"))
    train(stage.config(whole))
    assert train(stage.config(killed), fault="train.rows_updated:5") != 0
    assert 0 < steps_of(killed)[-1] < steps_of(whole)[-1]
    train(stage.config(killed))
    assert digest_of(killed) == digest_of(whole)
    # Other commit boundaries, the same batches.
    config = stage.config(again)
    config.write_text(config.read_text().replace("commit_interval_steps: 2", "commit_interval_steps: 3"))
    train(config, "--replay-cuts", str(whole))
    assert digest_of(again) == digest_of(whole)
