"""A small Parquet stream and its configuration, for tests of the trainer."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.faults.stage import Stage, prepare
from protos.load import load_config
from protos.pipeline_pb2 import EasyRecConfig


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return prepare(tmp_path_factory.mktemp("trainer") / "data", rows=800, parts=2)


@pytest.fixture
def configure(stage: Stage, tmp_path: Path) -> Callable[[str], EasyRecConfig]:
    """The configuration of a model directory of this test."""

    def make(name: str = "model") -> EasyRecConfig:
        return load_config(str(stage.config(tmp_path / name)))

    return make
