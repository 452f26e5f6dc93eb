"""Tables that followed the log are, bit for bit, those that were loaded from its newest commit."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.faults.stage import Stage
from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from checkpointer.revert import revert
from checkpointer.rows import TableRows
from checkpointer.writer import WriterOptions
from features import create_features
from protos.load import load_config
from protos.pipeline_pb2 import EasyRecConfig
from recmodels.tables import ShardedTables
from trainer.errors import RestoreError
from trainer.following import Follower
from trainer.launch import Launch
from trainer.learner import create_learner
from trainer.run import train
from trainer.workers import Rank, Workers


@pytest.fixture(scope="module")
def trained(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> EasyRecConfig:
    """A log with evictions, admission counters that come and go, expired rows and a table without a map."""
    config = load_config(str(stage.config(tmp_path_factory.mktemp("following") / "model", ("size: 256", "size: 32"))))
    train(config, Launch(), threading.Event())
    return config


@pytest.fixture
def new_tables(trained: EasyRecConfig) -> Iterator[Callable[[], ShardedTables]]:
    workers, features = Workers(Rank()), create_features(trained)
    yield lambda: create_learner(trained, features, device=torch.device("cpu")).tables
    workers.close()


def log_of(config: EasyRecConfig) -> CommitLog:
    return CommitLog(LocalStore(config.model_dir))


def accept(commit: object) -> None:
    pass


def content(tables: ShardedTables) -> dict[str, np.ndarray]:
    """All that a step would find: maps, counters, weights, optimizer state, sizes; and what the next commit owes."""
    found = {}
    for number, lookup in enumerate(tables._lookups):
        for name in ("entries", "counters", "touched", "counter_touched", "figures"):
            found[f"{number}/{name}"] = getattr(lookup.arena, name)
        for table, memory in enumerate(lookup.memory):
            found |= {f"{number}/{table}/{name}": column for name, column in memory.state.items()}
            found[f"{number}/{table}"] = memory.weight
    return found


def assert_same(one: ShardedTables, other: ShardedTables) -> None:
    first, second = content(one), content(other)
    assert first.keys() == second.keys() and len(first) > 6
    for name, column in first.items():
        np.testing.assert_array_equal(column, second[name], err_msg=name)


def test_tables_that_followed_are_those_that_were_loaded(
    trained: EasyRecConfig, new_tables: Callable[[], ShardedTables]
) -> None:
    log = log_of(trained)
    followed, loaded = new_tables(), new_tables()
    followed.load(log.restore(2).tables)
    deleted = 0
    for commit in log.commits(after=2):
        assert followed.in_place
        rows = list(log.rows(commit))
        deleted += sum(len(part.deleted) for part in rows)
        assert followed.follow(rows), commit.seq
        loaded.load(log.restore(commit.seq).tables)
        assert_same(followed, loaded)
    assert deleted > 100


def test_rows_that_do_not_fit_where_they_say_are_refused(
    trained: EasyRecConfig, new_tables: Callable[[], ShardedTables]
) -> None:
    log, tables = log_of(trained), new_tables()
    for change in (moved_up, without_puts, doubled):
        refused = 0
        for commit in log.commits(after=2):
            tables.load(log.restore(commit.seq - 1).tables)
            refused += not tables.follow(change(part) if part.kind == "zch" else part for part in log.rows(commit))
        assert refused > 3, change.__name__


def moved_up(part: TableRows) -> TableRows:
    """Rows one bucket further than their ids belong."""
    return replace(part, slots=part.slots + 64)


def without_puts(part: TableRows) -> TableRows:
    """A commit that lost the ids that took the rows of the evicted."""
    return replace(part, ids=part.ids[:0], slots=part.slots[:0], columns={})


def doubled(part: TableRows) -> TableRows:
    """Two ids in one row."""
    return replace(part, slots=np.repeat(part.slots[::2], 2)[: len(part)])


def test_follower_goes_from_commit_to_commit_to_the_one_that_counts(
    trained: EasyRecConfig, new_tables: Callable[[], ShardedTables], caplog: pytest.LogCaptureFixture
) -> None:
    log, tables, expected = log_of(trained), new_tables(), new_tables()
    head = log.head()
    assert head is not None
    follower = Follower(log, tables, accept)
    with caplog.at_level("INFO", logger="trainer.following"):
        follower.follow()
        follower.follow()
        follower.bring_to(log.restore(head.seq))
    assert f"stage=following seq={head.seq}" in caplog.text and f"caught_up seq={head.seq} commits=0" in caplog.text
    expected.load(log.restore(head.seq).tables)
    assert_same(tables, expected)
    # An older one is loaded whole: nothing is taken back.
    follower.bring_to(log.restore(3))
    expected.load(log.restore(3).tables)
    assert_same(tables, expected)
    follower.bring_to(log.restore(head.seq - 1))
    expected.load(log.restore(head.seq - 1).tables)
    assert_same(tables, expected)


def test_follower_loads_what_a_revert_put_on_top(
    trained: EasyRecConfig, new_tables: Callable[[], ShardedTables]
) -> None:
    log, tables, expected = log_of(trained), new_tables(), new_tables()
    follower = Follower(log, tables, accept)
    follower.follow()
    options = WriterOptions(token="test", clock_ms=lambda: 1, new_chain=lambda: "other", writer="test")
    head = revert(log.store, 4, options, from_now=False)
    follower.follow()
    follower.bring_to(log.restore(head.seq))
    expected.load(log.restore(4).tables)
    assert_same(tables, expected)


def test_follower_begins_only_without_having_followed(
    trained: EasyRecConfig, new_tables: Callable[[], ShardedTables], tmp_path: Path
) -> None:
    empty = Follower(CommitLog(LocalStore(str(tmp_path))), new_tables(), accept)
    empty.follow()
    empty.begin()
    follower = Follower(log_of(trained), new_tables(), accept)
    follower.follow()
    with pytest.raises(RestoreError, match="start it again"):
        follower.begin()
