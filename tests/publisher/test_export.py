"""An exported commit is a model directory of its own, and its compiled halves give the model's numbers."""

from pathlib import Path

import numpy as np
import pytest
import torch

from checkpointer.local_store import LocalStore
from publisher.errors import ContractError, ExportError, UnfitRowsError
from publisher.export.build import build_dense_half
from publisher.export.offline import export_model
from publisher.export.runtime import load_runtime
from publisher.manifest import refusal_path
from publisher.versions import list_versions, read_blob, read_current


@pytest.fixture
def trained(local_bench, parsed_config):
    """A model directory trained under a real configuration."""
    config = parsed_config(local_bench.store.root)
    local_bench.train_under(config)
    trainer = local_bench.trainer
    trainer.base()
    trainer.commit({"user": [1, 40]}, delete=[9])
    return local_bench, config


def test_export_serves_the_newest_commit_alone(trained, tmp_path: Path):
    bench, config = trained
    published = export_model(config, str(tmp_path / "out"), clock_ms=lambda: 5)
    bench.store = LocalStore(tmp_path / "out")
    assert list_versions(bench.store) == [2] and read_current(bench.store) == published.version
    assert bench.same(bench.held(published.version), bench.trainer.rows)


def test_exported_runtimes_give_the_numbers_of_the_model(trained, tmp_path: Path):
    bench, config = trained
    config.publish_config.dense_runtime = 0
    published = export_model(config, str(tmp_path / "out"), clock_ms=lambda: 5)
    store = LocalStore(tmp_path / "out")
    state = {name.removeprefix("parameter/"): np.array(value) for name, value in bench.trainer.dense.items()}
    half = build_dense_half(config)
    half.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})
    assert [artefact.runtime for artefact in published.version.artefacts] == ["aot_inductor", "torch_script"]
    for artefact in published.version.artefacts:
        runner = load_runtime(artefact.runtime, read_blob(store, artefact.blob), state)
        for size in (1, 2, 33):
            group = torch.randn(size, 7)
            with torch.no_grad():
                expected = half(group)
            found = runner.run([group])
            for name, value in expected.items():
                torch.testing.assert_close(found[name], value, rtol=1e-6, atol=1e-6)


def test_export_of_an_older_commit(trained, tmp_path: Path):
    _, config = trained
    assert export_model(config, str(tmp_path / "out"), clock_ms=lambda: 5, seq=1).version.version == 1


def test_export_never_touches_what_is_served_already(trained, tmp_path: Path):
    _, config = trained
    export_model(config, str(tmp_path / "out"), clock_ms=lambda: 5)
    with pytest.raises(ExportError, match="holds a served version already"):
        export_model(config, str(tmp_path / "out"), clock_ms=lambda: 5)


def test_export_without_a_commit_says_train_first(parsed_config, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ExportError, match="train first"):
        export_model(parsed_config(tmp_path / "empty"), str(tmp_path / "out"), clock_ms=lambda: 5)


def test_export_refuses_another_contract_and_rows_that_are_not_finite(trained, tmp_path: Path):
    bench, config = trained
    bench.trainer.commit({"user": [3]}, weights=np.full((1, 4), np.nan, np.float32))
    with pytest.raises(UnfitRowsError, match="id 3"):
        export_model(config, str(tmp_path / "out"), clock_ms=lambda: 5)
    bench.trainer.contract = "other"
    bench.trainer.commit({"user": [3]})
    with pytest.raises(ContractError, match="serving contract is other"):
        export_model(config, str(tmp_path / "other"), clock_ms=lambda: 5)
    assert not (tmp_path / "out" / refusal_path(3)).exists()
