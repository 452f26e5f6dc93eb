"""Whole runs of the trainer in this process: what is committed, and going on from it."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.faults.stage import Stage
from checkpointer import CommitLog
from checkpointer.digest import logical_digest
from checkpointer.errors import LockedError
from checkpointer.faults import FaultPoints
from checkpointer.local_store import LocalStore
from checkpointer.lock import TRAINER_LOCK, acquire
from protos.load import load_config
from protos.pipeline_pb2 import EasyRecConfig
from stream.accounting import Counts
from stream.progress import Progress, recorded_cuts
from trainer.errors import RestoreError, TrainerConfigError
from trainer.launch import Launch
from trainer.run import train

Configure = Callable[..., EasyRecConfig]


class Crash(BaseException):
    """Ends a run as a crash would: no handler of the trainer may take it for an error that it can mend."""


class CrashAt:
    """Raise at the nth time a point is reached."""

    def __init__(self, point: str, nth: int) -> None:
        self._point, self._left = point, nth

    def reached(self, point: str) -> None:
        self._left -= point == self._point
        if point == self._point and self._left == 0:
            raise Crash(point)


def run(config: EasyRecConfig, faults: FaultPoints | None = None) -> None:
    launch = Launch() if faults is None else Launch(faults=faults)
    train(config, launch, threading.Event())


def log_of(config: EasyRecConfig) -> CommitLog:
    return CommitLog(LocalStore(config.model_dir))


def digest_of(config: EasyRecConfig) -> str:
    restored = log_of(config).restore()
    return logical_digest(restored.tables, restored.dense, restored.stream, restored.commit.step)


def totals(config: EasyRecConfig) -> Counts:
    log = log_of(config)
    head = log.head()
    assert head is not None
    counts = Counts()
    for topic in Progress.from_proto(log.stream(head)).accounting.values():
        counts = counts + topic
    return counts


def test_run_accounts_for_every_row(configure: Configure, stage: Stage) -> None:
    config = configure()
    run(config)
    counts = totals(config)
    assert counts.received == stage.rows
    assert min(counts.trained, counts.dead_lettered, counts.filtered, counts.duplicate, counts.late) > 0


def test_first_commit_is_a_base_and_all_chain_up(configure: Configure) -> None:
    config = configure()
    run(config)
    commits = list(log_of(config).commits())
    assert commits[0].kind == "base" and commits[0].step == 0
    assert [commit.kind for commit in commits[1:]] == ["delta"] * (len(commits) - 1)
    assert all(child.parent == parent.link for parent, child in zip(commits, commits[1:], strict=False))


def test_every_commit_records_its_cuts(configure: Configure) -> None:
    config = configure()
    run(config)
    log = log_of(config)
    states = [state for commit in log.commits() for state in log.stream(commit)]
    assert sum(sum(cut.rows) for cut in recorded_cuts(states)) == totals(config).trained


def test_crash_after_any_step_resumes_identically(configure: Configure) -> None:
    whole = configure("whole")
    run(whole)
    expected, steps = digest_of(whole), max(commit.step for commit in log_of(whole).commits())
    for step in range(1, steps + 1):
        config = configure(f"crashed-{step}")
        with pytest.raises(Crash):
            run(config, CrashAt("train.dense_updated", step))
        run(config)
        assert digest_of(config) == expected, f"crashed in step {step}"


def test_finished_run_has_nothing_to_add(configure: Configure) -> None:
    config = configure()
    run(config)
    before = log_of(config).head()
    run(config)
    assert log_of(config).head() == before


def test_num_steps_stops_and_the_rest_follows(configure: Configure) -> None:
    whole, config = configure("whole"), configure("parts")
    run(whole)
    config.train_config.num_steps = 5
    run(config)
    head = log_of(config).head()
    assert head is not None and head.step == 5
    config.train_config.num_steps = 0
    run(config)
    assert digest_of(config) == digest_of(whole)


def test_epochs_pass_over_the_source_again(configure: Configure, stage: Stage) -> None:
    config = configure()
    config.train_config.num_epochs = 2
    # The second pass repeats the ids of the first, whose window is over by then.
    config.stream_config.ClearField("event_id_field")
    run(config)
    assert totals(config).received == 2 * stage.rows


def test_stop_commits_what_was_learnt(configure: Configure) -> None:
    config = configure()
    stop = threading.Event()

    class StopAt(CrashAt):
        def reached(self, point: str) -> None:
            try:
                super().reached(point)
            except Crash:
                stop.set()

    train(config, Launch(faults=StopAt("train.dense_updated", 3)), stop)
    head = log_of(config).head()
    # The vote was before the next batch, which is learnt; after it the job stops.
    assert head is not None and head.step == 4


def test_two_trainers_on_one_directory_are_refused(configure: Configure) -> None:
    config = configure()
    held = acquire(config.model_dir, TRAINER_LOCK, "another trainer")
    try:
        with pytest.raises(LockedError, match="another trainer; stop it, or pass --take-over to fence it"):
            run(config)
    finally:
        held.release()


def test_changed_features_are_refused_by_name(configure: Configure) -> None:
    config = configure()
    run(config)
    config.feature_configs[2].id_feature.num_buckets = 10
    with pytest.raises(RestoreError, match="new model_dir"):
        run(config)


def test_grown_table_goes_on(configure: Configure) -> None:
    config = configure()
    config.train_config.num_steps = 4
    run(config)
    config.feature_configs[0].id_feature.zch.zch_size = 1024
    config.train_config.num_steps = 8
    run(config)
    head = log_of(config).head()
    assert head is not None and head.step == 8


def test_config_without_model_dir_is_refused(configure: Configure) -> None:
    config = configure()
    config.model_dir = ""
    with pytest.raises(TrainerConfigError, match="model_dir"):
        run(config)


@pytest.mark.parametrize("policy", ["lru {}", "lfu {}", "distance_lfu {}"])
def test_sorted_map_resumes_identically(policy: str, stage: Stage, tmp_path: Path) -> None:
    """TorchRec's own map goes on from a commit, with its history since the last eviction."""

    def make(name: str) -> EasyRecConfig:
        path = stage.config(tmp_path / name)
        text = path.read_text()
        changed = text.replace("hash { ttl_ms: 60000 buckets: 4 max_probe: 16 }", f"eviction_interval: 3 {policy}")
        assert changed != text
        path.write_text(changed)
        return load_config(str(path))

    whole, parts = make("whole"), make("parts")
    run(whole)
    # At a commit that the whole run has too: rows carry the iteration at which they were sealed.
    parts.train_config.num_steps = 6
    run(parts)
    parts.train_config.num_steps = 0
    run(parts)
    assert digest_of(parts) == digest_of(whole)
