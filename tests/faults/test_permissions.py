"""Files and folders that a process may not use: one clear line that names them, and an exit code that is not 0."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.faults.processes import Zygote
from benchmarks.faults.stage import Stage, prepare

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="starting processes of another user needs root")

NOBODY = 65534


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A folder that all may enter (those of pytest are root's alone), with a model that root has trained."""

    folder: Path
    zygote: Zygote
    stage: Stage

    def config(self, name: str, *changes: tuple[str, str]) -> Path:
        path = self.stage.config(self.folder / name, *changes)
        path.chmod(0o644)
        return path

    def model(self, name: str) -> Path:
        """A copy of the model that belongs to nobody."""
        shutil.copytree(self.folder / "trained", self.folder / name)
        self.give(self.folder / name)
        return self.folder / name

    def give(self, folder: Path) -> None:
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, NOBODY, NOBODY)

    def denied(self, named: Path, module: str, *arguments: object) -> None:
        """Run as nobody: it must end, and a line must name what it may not use."""
        log = self.folder / f"{module}.log"
        log.unlink(missing_ok=True)
        process = self.zygote.start(module, [str(item) for item in arguments], log=log, user=NOBODY)
        assert process.wait(60) in (1, 2), process.text()
        lines = process.text().splitlines()
        assert any("ermission denied" in line and str(named) in line for line in lines), process.text()
        assert "Traceback" not in process.text() and "internal" not in lines[-1], process.text()


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    with tempfile.TemporaryDirectory(prefix="headrace-permissions-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        stage = prepare(folder / "data", rows=640, parts=1)
        with Zygote(folder / "zygote.log") as zygote:
            config = str(stage.config(folder / "trained"))
            assert zygote.run("trainer", [config]) == 0
            assert zygote.run("publisher", [config, "--once"]) == 0
            yield Ground(folder=folder, zygote=zygote, stage=stage)


def private(path: Path) -> Path:
    """Root's alone."""
    os.chown(path, 0, 0)
    path.chmod(0o700 if path.is_dir() else 0o600)
    return path


def test_configuration_that_may_not_be_read(ground: Ground) -> None:
    config = private(ground.config("locked"))
    for module, *arguments in (
        ("trainer", config),
        ("publisher", config),
        ("headrace", "train", config),
        ("headrace", "config", "check", config),
        ("headrace", "replay", config, ground.folder / "data"),
        ("headrace", "serve", ground.folder, "--port", "0", "--config", config),
    ):
        ground.denied(config, module, *arguments)


def test_model_directory_that_may_not_be_written(ground: Ground) -> None:
    model, config = ground.folder / "trained", ground.config("trained")
    for module, *arguments in (
        ("trainer", config),
        ("publisher", config),
        ("headrace", "log", "compact", model),
        ("headrace", "log", "revert", model, "2"),
        ("headrace", "rollback", model, "6"),
    ):
        ground.denied(model, module, *arguments)
    ground.denied(ground.folder / "new", "trainer", ground.config("new"))


def test_model_directory_that_may_not_be_read(ground: Ground) -> None:
    model = private(ground.model("unreadable"))
    for module, *arguments in (
        ("trainer", ground.config("unreadable")),
        ("publisher", ground.config("unreadable")),
        ("headrace", "serve", model, "--port", "0"),
        ("headrace", "status", model),
        ("headrace", "log", "ls", model),
        ("headrace", "log", "verify", model),
    ):
        ground.denied(model, module, *arguments)


def test_blob_of_the_log_that_may_not_be_read(ground: Ground) -> None:
    model = ground.model("holed")
    blob = private(max(path for path in (model / "log").rglob("*.blob")))
    ground.denied(blob.relative_to(model), "trainer", ground.config("holed"))
    ground.denied(blob.relative_to(model), "headrace", "log", "verify", model)


def test_data_and_dead_letters_that_may_not_be_used(ground: Ground) -> None:
    (ground.folder / "empty").mkdir()
    ground.give(ground.folder / "empty")
    letters = private_folder(ground, "letters")
    elsewhere = (f'path: "{ground.folder}/empty/dead_letters"', f'path: "{letters}"')
    ground.denied(letters, "trainer", ground.config("empty", elsewhere))
    part = ground.folder / "data" / "part-0.parquet"
    part.chmod(0o600)
    try:
        ground.denied(part, "trainer", ground.config("empty"))
    finally:
        part.chmod(0o644)


def private_folder(ground: Ground, name: str) -> Path:
    (ground.folder / name).mkdir()
    return private(ground.folder / name)


SECRETS: dict[str, Callable[[Path, Path], tuple[object, ...]]] = {
    "token": lambda secret, model: ("headrace", "serve", model, "--port", "0", "--token-file", secret),
    "verification key": lambda secret, model: ("headrace", "serve", model, "--port", "0", "--verify-key-file", secret),
    "credentials": lambda secret, _: ("headrace", "status", "s3://models/m", "--s3-credentials-file", secret),
}


@pytest.mark.parametrize("name", SECRETS)
def test_secret_that_may_not_be_read(name: str, ground: Ground) -> None:
    secret = ground.folder / "secret"
    secret.write_text("sesame")
    ground.denied(private(secret), *map(str, SECRETS[name](secret, ground.folder / "trained")))


def test_secrets_of_a_configuration_that_may_not_be_read(ground: Ground) -> None:
    secret = ground.folder / "secret"
    secret.write_text("sesame")
    private(secret)
    ground.model("signed")
    key = ("checkpoint_config {", f'publish_config {{ signing_key_file: "{secret}" }} checkpoint_config {{')
    ground.denied(secret, "publisher", ground.config("signed", key), "--once")
    told = 'brokers: "b:1" topic: "t" security { security_protocol: "SASL_SSL" sasl_mechanism: "PLAIN" '
    told += f'username_file: "{secret}" password_file: "{secret}" }}'
    files = f'train_input_path: "{ground.folder}/data/part-*.parquet"'
    topic = ((files, ""), ("ParquetDataset", "KafkaDataset"), ("stream_config {", f"stream_config {{ {told}"))
    (ground.folder / "secured").mkdir()
    ground.give(ground.folder / "secured")
    ground.denied(secret, "trainer", ground.config("secured", *topic))
