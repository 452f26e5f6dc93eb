"""Reading configurations: what is accepted, and the one clear line for what is not."""

import importlib
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf import json_format

from protos.data_pb2 import FG_DAG, FG_NONE, FG_NORMAL
from protos.errors import ConfigError, Reason
from protos.load import format_config, load_config, parse_config


def error_of(text: str, *, json: bool = False) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, json=json, source="a.config")
    return caught.value


def test_parse_config_round_trips_text(good_text: str) -> None:
    config = parse_config(good_text, json=False)
    assert parse_config(format_config(config), json=False) == config


def test_parse_config_round_trips_json(good_text: str) -> None:
    config = parse_config(good_text, json=False)
    assert parse_config(json_format.MessageToJson(config), json=True) == config


def test_parse_config_does_not_enforce_required_fields() -> None:
    text = 'feature_configs { id_feature { feature_name: "a" } } data_config { hard_negative_sampler {} }'
    assert parse_config(text, json=False).feature_configs[0].id_feature.feature_name == "a"


def test_parse_config_touches_no_path_that_the_configuration_names() -> None:
    text = """
    train_input_path: "odps://{PROJECT}/tables/t" eval_input_path: "" model_dir: "/nowhere/at/all"
    feature_configs { id_feature { feature_name: "a" vocab_file: "not/there.txt" } }
    stream_config { security { password_file: "/nowhere/secret" } }
    """
    assert parse_config(text, json=False).model_dir == "/nowhere/at/all"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            'model_dir: "m"\ntrain_input_pth: "x"',
            2,
            "EasyRecConfig has no field train_input_pth; did you mean train_input_path?",
        ),
        ("data_config {\n  bach_size: 3\n}", 2, "DataConfig has no field bach_size; did you mean batch_size?"),
        (
            "data_config {\n\n dataset_type: KafkaDatset }",
            3,
            "DatasetType has no value KafkaDatset; did you mean KafkaDataset?",
        ),
        ('data_config { batch_size: "many" }', 1, "Couldn't parse integer"),
        ("data_config { batch_size: -1 }", 1, "out of range"),
        ("data_config {\n  batch_size 3\n}", 2, "is not valid text format"),
        (
            "[my.own.feature] {}",
            1,
            "extension my.own.feature is not known; name the module that registers it under plugins",
        ),
    ],
)
def test_parse_config_names_line_thing_and_remedy(text: str, line: int, words: str) -> None:
    error = error_of(text)
    assert str(error).startswith(f"a.config:{line}: ")
    assert words in str(error)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{\n "data_config": {\n  "bach_size": 3}}', 3, "DataConfig has no field bach_size; did you mean batch_size?"),
        ('{"data_config": {\n "dataset_type": "KafkaDatset"}}', 2, "did you mean KafkaDataset?"),
        ('{"data_config": {\n "batch_size": "many"}}', 2, "batch_size: invalid literal"),
        ('{\n "seed": 1', 2, "is not a valid configuration"),
    ],
)
def test_parse_config_names_the_line_in_json_too(text: str, line: int, words: str) -> None:
    error = error_of(text, json=True)
    assert str(error).startswith(f"a.config:{line}: ")
    assert words in str(error)


def test_parse_config_logs_a_field_given_twice(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        config = parse_config("seed: 1\nseed: 2", json=False, source="a.config")
    assert config.seed == 2
    assert "given twice" in caplog.text


def test_load_config_reads_json_by_suffix(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"modelDir": "m"}', encoding="utf-8")
    assert load_config(path).model_dir == "m"


@pytest.mark.parametrize("name", ["absent.config", "."])
def test_load_config_names_a_path_that_it_cannot_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        load_config(tmp_path / name)
    assert caught.value.reason == Reason.FILE


def test_load_config_refuses_what_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "a.config"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(path)


@pytest.mark.parametrize(
    ("data", "mode"),
    [
        ("", FG_NONE),
        ("fg_mode: FG_NORMAL", FG_NORMAL),
        ("fg_encoded: true fg_mode: FG_NORMAL", FG_NONE),
        ("fg_encoded: false", FG_DAG),
        ("fg_encoded: false fg_threads: 0", FG_NORMAL),
    ],
)
def test_parse_config_resolves_fg_mode_and_marks_it_set(data: str, mode: int) -> None:
    config = parse_config(f"data_config {{ {data} }}", json=False)
    assert config.data_config.fg_mode == mode
    assert config.data_config.HasField("fg_mode")


@pytest.mark.parametrize(
    "text",
    [
        'train_input_path: "s3://key:hunter2@bucket/x"',
        'eval_input_path: "kafka://b:9092/t?group.id=g&sasl.password=hunter2"',
        'train_input_path: "kafka://b:9092/t?group.id=g&ssl.key.password=hunter2"',
        'model_dir: "s3://bucket/m?aws_secret_access_key=hunter2"',
        'stream_config { brokers: "one:9092,user:hunter2@two:9092" }',
        'data_config { negative_sampler { input_path: "https://u:hunter2@h/x" } }',
        'train_input_path: "/data/a.parquet,s3://key:hunter2@bucket/b.parquet"',
    ],
)
def test_parse_config_refuses_a_secret_without_repeating_it(text: str) -> None:
    error = error_of(text)
    assert error.reason == Reason.SECRET
    assert "file" in str(error)
    assert "hunter2" not in str(error)


@pytest.mark.parametrize(
    "path", ["odps://p/tables/t/dt=1&dt=2", "s3://bucket/a@b/c", "/data/a@b:c", "kafka://b:1/t?group.id=g"]
)
def test_parse_config_accepts_paths_without_secrets(path: str) -> None:
    assert parse_config(f'eval_input_path: "{path}"', json=False).eval_input_path == path


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A user's own feature: a proto file of theirs, compiled, and nothing of ours edited."""
    name = "acme_features"
    (tmp_path / f"{name}.proto").write_text(
        'syntax = "proto2"; package acme; import "protos/feature.proto";'
        "message Decay { optional string feature_name = 1; optional double half_life_s = 2; }"
        "extend headrace.protos.FeatureConfig { optional Decay decay = 10001; }",
        encoding="utf-8",
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{root}", f"-I{tmp_path}", f"--python_out={tmp_path}"]
    subprocess.run([*command, f"{name}.proto"], cwd=tmp_path, check=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield f"{name}_pb2"
    sys.modules.pop(f"{name}_pb2", None)


def test_parse_config_takes_a_users_own_feature_from_a_plugin(plugin: str) -> None:
    text = f'feature_configs {{ [acme.decay] {{ feature_name: "d" half_life_s: 60 }} }} plugins: "{plugin}"'
    config = parse_config(text, json=False)
    decay = importlib.import_module(plugin).decay
    assert config.feature_configs[0].Extensions[decay].half_life_s == 60
    assert parse_config(json_format.MessageToJson(config), json=True) == config


def test_parse_config_names_a_plugin_that_is_not_there() -> None:
    error = error_of('plugins: "no_such_module_of_mine"')
    assert error.reason == Reason.PLUGIN
    assert "PYTHONPATH" in str(error)
