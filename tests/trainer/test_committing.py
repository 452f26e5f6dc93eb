"""Commits beside training: failed ones lose nothing, slow ones hold nothing up, and each is a place to go on from."""

import errno
import shutil
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from benchmarks.faults.stage import Stage
from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from features import create_features
from headrace.maintain import revert_to
from protos.pipeline_pb2 import EasyRecConfig
from stream.cursor import Cursor
from stream.deadletter import DeadLetter
from stream.progress import Progress, recorded_cuts
from tests.trainer.test_run import digest_of, run, totals
from trainer.errors import TrainerError
from trainer.learner import create_learner
from trainer.position import Position
from trainer.workers import Rank, Workers

Configure = Callable[..., EasyRecConfig]


class FailAt:
    """An input/output error the given times that a point is reached."""

    def __init__(self, point: str, *times: int) -> None:
        self._point, self._times, self._seen = point, times, 0

    def reached(self, point: str) -> None:
        if point == self._point:
            self._seen += 1
            if self._seen in self._times:
                raise OSError(errno.EIO, "input/output error")


class SlowCommit:
    """Holds the first commit back until a few steps are trained, which wait until it is there."""

    def __init__(self, steps: int) -> None:
        self._left = steps
        self._commits = 0
        self._steps = 0
        self._held = threading.Event()
        self._enough = threading.Event()
        self.trained_meanwhile = False

    def reached(self, point: str) -> None:
        if point == "commit.manifest_written":
            self._commits += 1
            if self._commits == 1:
                self._held.set()
                self.trained_meanwhile = self._enough.wait(30)
        elif point == "train.dense_updated":
            self._steps += 1
            # The commit is due after the first step; if its thread gets no core, the last step may be over by then.
            if self._steps == 1 or not self._held.wait(30):
                return
            self._left -= 1
            if self._left == 0:
                self._enough.set()


def cut_rows(config: EasyRecConfig) -> int:
    log = CommitLog(LocalStore(config.model_dir))
    return sum(sum(cut.rows) for commit in log.commits() for cut in recorded_cuts(log.stream(commit)))


@pytest.mark.parametrize("point", ["commit.blob_written", "commit.manifest_synced"])
def test_failed_commit_loses_nothing(point: str, configure: Configure) -> None:
    whole, failing = configure("whole"), configure("failing")
    run(whole)
    run(failing, FailAt(point, 1, 3, 4))
    assert digest_of(failing) == digest_of(whole)
    assert cut_rows(failing) == cut_rows(whole) == totals(whole).trained


def test_commits_that_keep_failing_end_the_job(configure: Configure) -> None:
    with pytest.raises(TrainerError, match="input/output error"):
        run(configure(), FailAt("commit.blob_written", *range(2, 40)))


def test_training_goes_on_while_a_commit_is_written(configure: Configure) -> None:
    config = configure()
    config.checkpoint_config.commit_interval_steps = 0
    config.checkpoint_config.commit_interval_ms = 1
    slow = SlowCommit(3)
    run(config, slow)
    assert slow.trained_meanwhile
    steps = [commit.step for commit in CommitLog(LocalStore(config.model_dir)).commits()]
    # What came due meanwhile merged into the next.
    assert max(after - before for before, after in pairwise(steps)) >= 3
    assert totals(config).trained == cut_rows(config)


def test_training_rests_while_too_many_dead_letters_wait(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    """No byte of them may wait beside a commit in flight: nothing is lost, and it goes on when the commit is there."""
    whole, resting = configure("whole"), configure("resting")
    run(whole)
    monkeypatch.setattr("trainer.desk.MAX_DEAD_BYTES", 0)
    resting.checkpoint_config.commit_interval_steps = 0
    resting.checkpoint_config.commit_interval_ms = 1
    run(resting)
    assert totals(resting) == totals(whole) and totals(whole).dead_lettered > 0


def test_letters_that_wait_are_weighed_until_a_commit_has_them() -> None:
    position = Position(progress=Progress())
    letter = DeadLetter(cursor=Cursor(topic="t", partition=0), reason="r", detail="", raw=b"x" * 5000, format="JSON")
    position.put_back([letter, letter])
    weight = position.dead_bytes
    assert weight > 10_000 and position.take_dead() == (letter, letter)
    assert (position.dead_bytes, position.dead) == (0, [])
    position.put_back([letter])
    assert position.dead_bytes == weight / 2


def test_every_commit_restores_into_a_run_that_ends_alike(configure: Configure, tmp_path: Path) -> None:
    whole, other = configure("whole"), configure("other")
    run(whole)
    commits = [commit.seq for commit in CommitLog(LocalStore(whole.model_dir)).commits()]
    assert len(commits) > 4
    for seq in commits[::3]:
        shutil.rmtree(other.model_dir, ignore_errors=True)
        shutil.copytree(whole.model_dir, other.model_dir)
        revert_to(LocalStore(other.model_dir), seq, from_now=False)
        run(other)
        assert digest_of(other) == digest_of(whole), f"went on from commit {seq}"


def test_sealed_rows_are_copies(configure: Configure, stage: Stage) -> None:
    config = configure()
    features = create_features(config)
    rows = pq.read_table(stage.folder / "part-0.parquet").slice(0, 64)
    rows = rows.set_column(rows.schema.get_field_index("label"), "label", pa.array(np.ones(64, np.float32)))
    workers = Workers(Rank())
    try:
        learner = create_learner(config, features, device=torch.device("cpu"))
        batch = features.parse(rows.combine_chunks().to_batches()[0])
        learner.step(batch, scale=1.0, event_time_ms=1)
        sealed = learner.tables.seal()
        before = [{name: column.copy() for name, column in part.columns.items()} for part in sealed]
        assert any("momentum1" in columns for columns in before)
        learner.step(batch, scale=1.0, event_time_ms=2)
        for part, columns in zip(sealed, before, strict=True):
            assert all(np.array_equal(part.columns[name], column) for name, column in columns.items())
        learner.tables.confirm()
        after = {part.key: part for part in learner.tables.seal()}
        assert any(
            not np.array_equal(after[part.key].columns["weight"], part.columns["weight"])
            for part in sealed
            if "weight" in part.columns
        )
    finally:
        workers.close()
