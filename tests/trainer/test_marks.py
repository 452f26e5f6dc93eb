"""Which commits are kept, and how long: save_checkpoints_* and keep_checkpoint_max."""

from collections.abc import Callable

import pytest

from checkpointer import CommitLog, RetentionOptions
from checkpointer.local_store import LocalStore
from protos.pipeline_pb2 import EasyRecConfig
from tests.trainer.test_run import digest_of, run
from trainer.marks import Instant, Marks

Configure = Callable[..., EasyRecConfig]


def kept_of(config: EasyRecConfig) -> list[tuple[int, int]]:
    """(step, event time) of the kept commits."""
    commits = CommitLog(LocalStore(config.model_dir)).commits()
    return [(commit.step, commit.event_time_ms) for commit in commits if commit.kept]


def test_steps_mark_the_commit_that_reaches_them(configure: Configure) -> None:
    config = configure()
    config.train_config.save_checkpoints_steps = 5
    run(config)
    # By steps of two commits come at 2, 4, 5, 7, ...: a mark is a commit of its own.
    assert [step for step, _ in kept_of(config)] == [5, 10]


def test_nothing_is_marked_by_default(configure: Configure) -> None:
    assert Marks.from_proto(configure().train_config) == Marks()


def test_passes_mark_in_place_of_steps(configure: Configure) -> None:
    config = configure()
    config.train_config.num_epochs = 2
    config.train_config.save_checkpoints_steps = 1
    config.train_config.save_checkpoints_epochs = 1
    config.stream_config.ClearField("event_id_field")
    run(config)
    steps = max(commit.step for commit in CommitLog(LocalStore(config.model_dir)).commits())
    assert [step for step, _ in kept_of(config)] == [steps // 2, steps]


def test_event_times_mark_and_survive_a_restart(configure: Configure) -> None:
    whole, parts = configure("whole"), configure("parts")
    for config in (whole, parts):
        config.train_config.save_checkpoints_steps = 0
        config.train_config.save_checkpoints_timestamp_interval = 20
        config.train_config.save_checkpoints_timestamps.append(33)
    run(whole)
    seconds = [time // 1000 for _, time in kept_of(whole)]
    assert len(seconds) >= 3
    assert {20, 40} <= {second // 20 * 20 for second in seconds} and any(33 <= second < 40 for second in seconds)
    parts.train_config.num_steps = 5
    run(parts)
    parts.train_config.num_steps = 0
    run(parts)
    assert kept_of(parts) == kept_of(whole)
    assert digest_of(parts) == digest_of(whole)


def test_first_event_time_is_where_marks_begin() -> None:
    marks = Marks(interval_ms=1000)
    assert not marks.crossed(Instant(step=0, epoch=0), Instant(step=1, epoch=0, quorum_ms=5500))
    assert marks.crossed(Instant(step=0, epoch=0, quorum_ms=5500), Instant(step=1, epoch=0, quorum_ms=6000))


@pytest.mark.parametrize(("share", "reached"), [(0.25, 9), (0.5, 7), (0.75, 5), (1.0, 3)])
def test_quorum_is_a_share_of_the_ranks(share: float, reached: int) -> None:
    assert Marks(quorum=share).quorum_ms([3, 9, 5, 7]) == reached


@pytest.mark.parametrize(("configured", "kept"), [(None, 10), (3, 3), (0, 1 << 62)])
def test_keep_checkpoint_max_bounds_the_marked_commits(configured: int | None, kept: int, configure: Configure) -> None:
    config = configure()
    if configured is not None:
        config.train_config.keep_checkpoint_max = configured
    assert RetentionOptions.of(config).keep_marked == kept
