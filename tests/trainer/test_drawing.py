"""Shuffles, masks, costs and negatives of a run: a crash at any step changes none of them."""

import threading
from pathlib import Path

import pytest

from benchmarks.faults.stage import Stage
from checkpointer import CommitLog
from checkpointer.digest import logical_digest
from checkpointer.faults import FaultPoints
from checkpointer.local_store import LocalStore
from protos.load import load_config
from protos.pipeline_pb2 import EasyRecConfig
from stream.accounting import Counts
from stream.progress import Progress
from trainer.launch import Launch
from trainer.run import train

DRAWN = (
    ("batch_size: 64", 'batch_size: 64 shuffle: true shuffle_buffer_size: 2 sample_mask_prob: 0.3 '
     'sample_cost_field: "kind" batch_cost_size: 150'),
    ('expression: "item:item"', 'expression: "item:item" use_mask: true'),
    ("duplicate_window_ms: 100000", ""),
    ('event_id_field: "event_id"', ""),
    ("allowed_lateness_ms: 20000", ""),
)  # fmt: skip


class Crash(BaseException):
    """As if the process had been killed."""


class CrashAt:
    """Raise at the nth step."""

    def __init__(self, nth: int) -> None:
        self._left = nth

    def reached(self, point: str) -> None:
        self._left -= point == "train.rows_updated"
        if point == "train.rows_updated" and self._left == 0:
            raise Crash(point)


def run(config: EasyRecConfig, faults: FaultPoints | None = None) -> None:
    train(config, Launch() if faults is None else Launch(faults=faults), threading.Event())


def digest_of(config: EasyRecConfig) -> str:
    restored = CommitLog(LocalStore(config.model_dir)).restore()
    return logical_digest(restored.tables, restored.dense, restored.stream, restored.commit.step)


def test_draws_survive_a_crash(stage: Stage, tmp_path: Path) -> None:
    def config(name: str, *changes: tuple[str, str]) -> EasyRecConfig:
        return load_config(str(stage.config(tmp_path / name, *DRAWN, *changes)))

    whole = config("whole")
    run(whole)
    log = CommitLog(LocalStore(whole.model_dir))
    head = log.head()
    assert head is not None
    counts = Counts()
    for part in Progress.from_proto(log.stream(head)).accounting.values():
        counts = counts + part
    assert counts.received == stage.rows
    assert head.step > counts.trained / 64  # cost cuts batches shorter than their rows alone
    for nth in (3, 6):
        broken = config(f"broken{nth}")
        with pytest.raises(Crash):
            run(broken, CrashAt(nth))
        run(broken)
        assert digest_of(broken) == digest_of(whole)
    other = config("other", ("seed: 11", "seed: 12"))
    run(other)
    assert digest_of(other) != digest_of(whole)


def test_epochs_are_shuffled_anew(stage: Stage, tmp_path: Path) -> None:
    config = load_config(str(stage.config(tmp_path / "m", *DRAWN, ("num_epochs: 1", "num_epochs: 2"))))
    run(config)
    log = CommitLog(LocalStore(config.model_dir))
    head = log.head()
    assert head is not None
    cursors = Progress.from_proto(log.stream(head)).cursors.values()
    assert all("-shuffle11.1.128" in cursor.topic_id for cursor in cursors)
