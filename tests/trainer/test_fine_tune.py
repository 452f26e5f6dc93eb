"""Beginning from another model's commit."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from checkpointer import CommitLog, TableRows
from checkpointer.local_store import LocalStore
from protos.pipeline_pb2 import EasyRecConfig
from tests.trainer.test_run import Crash, CrashAt, run
from trainer.errors import RestoreError
from trainer.fine_tune import NameMap
from trainer.launch import Launch
from trainer.run import train

Configure = Callable[..., EasyRecConfig]


def tables_of(config: EasyRecConfig, seq: int | None = None) -> dict[tuple[str, str], TableRows]:
    return {rows.key: rows for rows in CommitLog(LocalStore(config.model_dir)).restore(seq).tables}


def dense_of(config: EasyRecConfig, seq: int | None = None) -> dict[str, np.ndarray]:
    dense = CommitLog(LocalStore(config.model_dir)).restore(seq).dense
    return {name: value for name, value in dense.items() if name.startswith("parameter/")}


def begin(config: EasyRecConfig) -> None:
    """Run until the base of the start is durable, and no step more than one."""
    config.train_config.num_steps = 1
    run(config)


@pytest.fixture
def trained(configure: Configure) -> EasyRecConfig:
    config = configure("trained")
    run(config)
    return config


def test_first_commit_holds_what_the_other_model_knew(trained: EasyRecConfig, configure: Configure) -> None:
    tuned = configure("tuned")
    tuned.train_config.fine_tune_checkpoint = trained.model_dir
    begin(tuned)
    first = CommitLog(LocalStore(tuned.model_dir)).restore(1)
    assert first.commit.step == 0 and not first.stream[0].accounting
    found, expected = tables_of(tuned, 1), tables_of(trained)
    assert found.keys() == expected.keys()
    for key, rows in expected.items():
        assert np.array_equal(found[key].ids, rows.ids)
        assert all(np.array_equal(found[key].columns[name], column) for name, column in rows.columns.items())
    assert all(np.array_equal(value, dense_of(trained)[name]) for name, value in dense_of(tuned, 1).items())


def test_numbered_commit_and_only_its_rows(trained: EasyRecConfig, configure: Configure) -> None:
    tuned = configure("tuned")
    tuned.train_config.fine_tune_checkpoint = f"{trained.model_dir}@3"
    begin(tuned)
    assert {key: len(rows) for key, rows in tables_of(tuned, 1).items()} == {
        key: len(rows) for key, rows in tables_of(trained, 3).items()
    }


def test_renamed_feature_takes_the_old_rows_by_the_map(
    trained: EasyRecConfig, configure: Configure, tmp_path: Path
) -> None:
    tuned = configure("tuned")
    tuned.feature_configs[0].id_feature.feature_name = "member"
    for group in tuned.model_config.feature_groups:
        group.feature_names[0] = "member"
    tuned.train_config.fine_tune_checkpoint = trained.model_dir
    tuned.train_config.fine_tune_ckpt_param_map = str(tmp_path / "map")
    (tmp_path / "map").write_text("member_emb\tuser_emb\nmember_emb_wide\tuser_emb_wide\n")
    begin(tuned)
    assert np.array_equal(tables_of(tuned, 1)["member_emb", "zch"].ids, tables_of(trained)["user_emb", "zch"].ids)


def test_restart_goes_on_from_its_own_commits(trained: EasyRecConfig, configure: Configure) -> None:
    tuned = configure("tuned")
    tuned.train_config.fine_tune_checkpoint = trained.model_dir
    with pytest.raises(Crash):
        run(tuned, CrashAt("train.dense_updated", 6))
    train(tuned, Launch(), threading.Event())
    head = CommitLog(LocalStore(tuned.model_dir)).head()
    whole = CommitLog(LocalStore(trained.model_dir)).head()
    assert head is not None and whole is not None and head.step == whole.step


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda config: setattr(config.train_config, "fine_tune_checkpoint", config.model_dir + "-none"), "no commit"),
        (lambda config: config.model_config.deepfm.deep.hidden_units.__setitem__(0, 8), "shape"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    change: Callable[[EasyRecConfig], None], message: str, trained: EasyRecConfig, configure: Configure
) -> None:
    tuned = configure("tuned")
    tuned.train_config.fine_tune_checkpoint = trained.model_dir
    change(tuned)
    with pytest.raises(RestoreError, match=message):
        run(tuned)


def test_malformed_map_is_refused_by_its_line() -> None:
    with pytest.raises(RestoreError, match="map:2: expected"):
        NameMap(["a\tb", "nothing"], "map")
