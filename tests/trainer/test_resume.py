"""A start reads again what compaction has taken away while it was read; what is gone for good ends it."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.faults.stage import Stage
from checkpointer import CommitLog, Restored
from checkpointer.errors import ChainError, Flaw
from checkpointer.local_store import LocalStore
from checkpointer.rows import TableRows
from features import create_features
from protos.load import load_config
from protos.pipeline_pb2 import EasyRecConfig
from trainer.launch import Launch
from trainer.learner import Learner, create_learner
from trainer.resume import resume
from trainer.run import train
from trainer.workers import Rank, Workers


class Vanishing(CommitLog):
    """Loses what it reads, after a part of it, so many times."""

    def __init__(self, folder: str, times: int, flaw: Flaw) -> None:
        super().__init__(LocalStore(folder))
        self.left, self._flaw = times, flaw

    def restore(self, seq: int | None = None) -> Restored:
        restored = super().restore(seq)
        self.left -= 1
        return restored if self.left < 0 else replace(restored, tables=self._cut(restored.tables))

    def _cut(self, tables: Iterator[TableRows]) -> Iterator[TableRows]:
        yield next(tables)
        raise ChainError(self._flaw, "log/blobs/x.blob", "a manifest names this blob, but it is not there")


@pytest.fixture(scope="module")
def trained(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> EasyRecConfig:
    config = load_config(str(stage.config(Path(tmp_path_factory.mktemp("resume")) / "model")))
    train(config, Launch(), threading.Event())
    return config


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers(Rank())
    yield workers
    workers.close()


def restored(config: EasyRecConfig, workers: Workers, log: CommitLog) -> Learner:
    learner = create_learner(config, create_features(config), device=torch.device("cpu"))
    resume(log, 3, learner, workers, seed=config.seed)
    return learner


def test_start_reads_again_what_was_taken_away(trained: EasyRecConfig, workers: Workers) -> None:
    whole = restored(trained, workers, CommitLog(LocalStore(trained.model_dir)))
    log = Vanishing(trained.model_dir, 2, Flaw.MISSING)
    again = restored(trained, workers, log)
    assert log.left == -1
    for tables in (whole.tables, again.tables):
        tables.touch_all()
    for one, other in zip(whole.tables.seal(), again.tables.seal(), strict=True):
        assert (one.table, one.kind) == (other.table, other.kind)
        np.testing.assert_array_equal(one.ids, other.ids)
        for name, column in one.columns.items():
            np.testing.assert_array_equal(column, other.columns[name], err_msg=name)


@pytest.mark.parametrize(("times", "flaw"), [(3, Flaw.MISSING), (1, Flaw.ALTERED)])
def test_what_is_gone_for_good_or_altered_ends_the_start(
    times: int, flaw: Flaw, trained: EasyRecConfig, workers: Workers
) -> None:
    log = Vanishing(trained.model_dir, times, flaw)
    with pytest.raises(ChainError, match="x.blob"):
        restored(trained, workers, log)
    assert log.left == 0
