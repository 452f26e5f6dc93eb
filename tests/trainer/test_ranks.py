"""Two ranks under torchrun's agent: uneven partitions, fewer of them than ranks, another world size."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.faults.stage import Stage, prepare
from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from stream.accounting import Counts
from stream.progress import Progress


def train(config: Path, *, nproc: int, expect: int = 0) -> str:
    command = [sys.executable, "-m", "headrace", "train", str(config), "--nproc", str(nproc)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240, env=env)
    assert done.returncode == expect, done.stderr
    return done.stderr


def log_of(model_dir: Path) -> CommitLog:
    return CommitLog(LocalStore(str(model_dir)))


def totals(model_dir: Path) -> Counts:
    log = log_of(model_dir)
    head = log.head()
    assert head is not None
    counts = Counts()
    for part in Progress.from_proto(log.stream(head)).accounting.values():
        counts = counts + part
    return counts


def config_of(stage: Stage, model_dir: Path, *changes: tuple[str, str]) -> Path:
    path = stage.config(model_dir)
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return path


@pytest.mark.timeout(600)
def test_two_ranks_account_for_what_one_does(stage: Stage, tmp_path: Path) -> None:
    said = train(config_of(stage, tmp_path / "one"), nproc=1)
    assert "stage=built" in said and " root " not in said and "Warning" not in said  # only what is ours
    train(config_of(stage, tmp_path / "two"), nproc=2)
    # Late and duplicate are judged per partition, so the world size changes nothing.
    assert totals(tmp_path / "two") == totals(tmp_path / "one")
    head = log_of(tmp_path / "two").head()
    assert head is not None and head.world == 2


@pytest.mark.timeout(600)
def test_rank_without_partition_takes_part_with_empty_batches(tmp_path: Path) -> None:
    # One row group cannot be split.
    single = prepare(tmp_path / "data", rows=200, parts=1)
    train(config_of(single, tmp_path / "model"), nproc=2)
    assert totals(tmp_path / "model").received == 200


@pytest.mark.timeout(600)
def test_fewer_files_than_ranks_are_split_and_stay_so(tmp_path: Path) -> None:
    single = prepare(tmp_path / "data", rows=800, parts=1)
    model = tmp_path / "model"
    train(config_of(single, model, ("num_epochs: 1", "num_epochs: 1 num_steps: 3")), nproc=2)
    train(config_of(single, model), nproc=1)
    assert totals(model).received == 800
    head = log_of(model).head()
    assert head is not None
    cursors = Progress.from_proto(log_of(model).stream(head)).cursors
    assert ["-part0of2" in cursors[key].topic_id for key in sorted(cursors)] == [True, False]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_training_goes_on_at_another_world_size(before: int, after: int, stage: Stage, tmp_path: Path) -> None:
    model = tmp_path / "model"
    train(config_of(stage, model, ("num_epochs: 1", "num_epochs: 1 num_steps: 3")), nproc=before)
    held = {rows.key: rows.ids.tolist() for rows in log_of(model).restore().tables}
    train(config_of(stage, model), nproc=after)
    assert totals(model).received == stage.rows
    head = log_of(model).head()
    assert head is not None and head.world == after
    assert any(ids for ids in held.values())


@pytest.mark.timeout(600)
def test_bad_configuration_ends_every_rank_with_one_line(stage: Stage, tmp_path: Path) -> None:
    path = config_of(stage, tmp_path / "model", ('label_fields: "label"', 'label_fields: "labl"'))
    errors = train(path, nproc=2, expect=1)
    assert "labl" in errors and "Traceback" not in errors
