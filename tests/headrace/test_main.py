"""The command line as a whole: help, exit codes, and one clear line instead of a traceback."""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.__main__ import build_parser
from protos.boundary import explain, guarded


def commands(parser: argparse.ArgumentParser, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        yield prefix, parser
    for action in inner:
        for name, below in action.choices.items():
            yield from commands(below, (*prefix, name))


COMMANDS = dict(commands(build_parser()))


def test_every_command_of_the_issues_is_there() -> None:
    expected = (
        "train publish serve evaluate export predict replay status log-ls log-show log-verify log-compact log-revert "
        "rollback dlq-ls dlq-show dlq-replay dlq-clear broker config-check config-schema demo features"
    )
    assert sorted("-".join(name) for name in COMMANDS) == sorted(expected.split())


@pytest.mark.parametrize("name", COMMANDS, ids="-".join)
def test_every_command_has_a_help_with_an_example_that_its_parser_accepts(name: tuple[str, ...]) -> None:
    text = COMMANDS[name].format_help()
    example = text.split("example:\n")[1].strip().splitlines()[0]
    words = example.split(" > ")[0].split()
    assert words[: 1 + len(name)] == ["headrace", *name]
    build_parser().parse_args(words[1:])


@pytest.mark.parametrize(
    "arguments",
    [[], ["tarin"], ["train"], ["log"], ["train", "a.config", "--nproc", "0"], ["broker", "--port", "99999"]],
)
def test_usage_errors_exit_with_2(headrace: Callable[..., Any], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        headrace(*arguments)
    assert left.value.code == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["config", "check", "absent.config"], "absent.config: cannot be read"),
        (["train", "absent.config"], "absent.config: cannot be read"),
        (["publish", "absent.config"], "absent.config: cannot be read"),
        (["log", "ls", "absent"], "absent is no directory"),
        (["serve", "/absent/model"], "/absent is no directory; correct the path"),
        (["status", "absent"], "absent is no directory"),
        (["rollback", "s3://key:secret@bucket/model"], "carries a user and password"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(
    headrace: Callable[..., Any], arguments: list[str], words: str
) -> None:
    ran = headrace(*arguments)
    assert ran.code == 2
    assert ran.errors.startswith("headrace: ")
    assert words in ran.errors
    assert ran.errors.count("\n") == 1


def test_a_bad_configuration_lists_every_error_and_no_traceback(
    headrace: Callable[..., Any], write_config: Callable[..., Path]
) -> None:
    path = write_config()
    text = path.read_text().replace("batch_size: 64", "batch_size: 0").replace("num_buckets: 10", "")
    path.write_text(text)
    ran = headrace("train", path)
    assert ran.code == 2
    assert "batch_size" in ran.errors
    assert "no other bucketizer" in ran.errors
    assert "Traceback" not in ran.errors


def test_traceback_and_log_level_reach_the_trainer(write_config: Callable[..., Path], tmp_path: Path) -> None:
    path = write_config()
    text = path.read_text().replace("KafkaDataset", "ParquetDataset")
    path.write_text(f'train_input_path: "{tmp_path / "absent.parquet"}"\n{text}')
    command = [sys.executable, "-m", "headrace", "--traceback", "--log-level", "error", "train", str(path)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=280)
    assert ran.returncode == 1
    assert ran.stderr.startswith("Traceback")
    assert "absent.parquet" in ran.stderr.splitlines()[-1]


def test_commands_make_openmp_wait_passively_unless_told() -> None:
    code = (
        "import os; from headrace import __main__ as main\n"
        "main.run = lambda *a, **k: print(os.environ['OMP_WAIT_POLICY'])\n"
        "main.main()"
    )
    for told, policy in (({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")):
        environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"} | told
        ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
        assert ran.stdout == f"{policy}\n", ran.stderr


def test_the_script_says_its_version_without_importing_torch() -> None:
    program = (
        "import sys; from headrace.__main__ import build_parser; build_parser(); "
        "sys.exit(any(name in sys.modules for name in ('torch', 'pyarrow', 'confluent_kafka')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
    shown = subprocess.run([sys.executable, "-m", "headrace", "--version"], check=True, capture_output=True, text=True)
    assert shown.stdout.startswith("headrace 0.")


def roots() -> list[type[BaseException]]:
    from checkpointer.errors import CheckpointError
    from features.errors import FeatureError
    from headrace.errors import UsageError
    from protos.errors import ConfigError
    from publisher.errors import PublisherError
    from recmodels.errors import RecModelError
    from stream.errors import StreamError
    from trainer.errors import TrainerError

    return [
        CheckpointError,
        ConfigError,
        FeatureError,
        PublisherError,
        RecModelError,
        StreamError,
        TrainerError,
        UsageError,
    ]


@pytest.mark.parametrize("root", roots())
def test_the_boundary_knows_the_error_root_of_every_package(root: type[BaseException]) -> None:
    error = root.__new__(root)
    error.args = ("the broker is down",)
    line, code = explain(error)
    assert line == "the broker is down"
    assert code in (1, 2)


def test_the_boundary_shows_a_traceback_only_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise RuntimeError("a bug of ours")

    assert guarded(fail, program="headrace", errors=sys.stderr) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert guarded(fail, program="headrace", errors=sys.stderr, show_traceback=True) == 1
    assert "Traceback" in capsys.readouterr().err
