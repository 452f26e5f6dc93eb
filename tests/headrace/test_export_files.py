"""A plain export brings the files that its features read: it is of use where the originals are gone."""

from pathlib import Path

import pytest

from features import create_features
from headrace.errors import UsageError
from headrace.export_files import with_files_of_its_own, write_files
from protos.load import parse_config
from protos.pipeline_pb2 import EasyRecConfig
from publisher.contract import Contract

FEATURES = """
feature_configs {{ id_feature {{ feature_name: "color" expression: "item:color" embedding_dim: 3
  vocab_file: "words.txt" asset_dir: "{folder}/colors" default_bucketize_value: 0 }} }}
feature_configs {{ sequence_feature {{ sequence_name: "seen" sequence_length: 5 sequence_delim: ";"
  features {{ id_feature {{ feature_name: "color" expression: "user:color" embedding_dim: 3
    vocab_file: "{folder}/words.txt" default_bucketize_value: 0 }} }} }} }}
feature_configs {{ tokenize_feature {{ feature_name: "title" expression: "item:title" embedding_dim: 3
  vocab_file: "{folder}/tokenizer.json" text_normalizer {{ stop_char_file: "{folder}/stop.txt"
  norm_options: [TEXT_FILTER] }} }} }}
model_config {{
  feature_groups {{ group_name: "deep" group_type: DEEP feature_names: ["color", "title"] }}
  multi_tower {{ towers {{ input: "deep" mlp {{ hidden_units: 4 }} }} final {{ hidden_units: 4 }} }}
  losses {{ binary_cross_entropy {{}} }}
}}
data_config {{ fg_mode: FG_NORMAL label_fields: "click" }}
"""


@pytest.fixture
def config(tmp_path: Path) -> EasyRecConfig:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    (tmp_path / "colors").mkdir()
    (tmp_path / "colors" / "words.txt").write_text("other\nred\ngreen\n")
    (tmp_path / "words.txt").write_text("other\nblue\n")
    (tmp_path / "stop.txt").write_text("*")
    Tokenizer(WordLevel({"[UNK]": 0, "hat": 1}, unk_token="[UNK]")).save(str(tmp_path / "tokenizer.json"))
    return parse_config(FEATURES.format(folder=tmp_path), json=False)


def test_the_exported_configuration_gives_the_same_features_when_the_originals_are_gone(
    config: EasyRecConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = create_features(config).digest()
    moved, files = with_files_of_its_own(config, Contract.of(config))
    assert len(files) == 4
    write_files(files, tmp_path / "exported")
    for name in ("words.txt", "stop.txt", "tokenizer.json", "colors/words.txt"):
        (tmp_path / name).unlink()
    monkeypatch.chdir(tmp_path / "exported")
    assert create_features(moved).digest() == digest
    assert str(tmp_path) not in str(moved)


def test_files_that_would_not_be_found_again_are_refused(config: EasyRecConfig, tmp_path: Path) -> None:
    contract = Contract.of(config)
    (tmp_path / "words.txt").write_text("other\ngreen\n")
    changed = Contract.of(config)
    assert changed.features != contract.features
    mixed = Contract(
        digest=contract.digest, features=contract.features, tables=contract.tables, widths=contract.widths,
        config=contract.config, layout=contract.layout, assets=changed.assets,
    )  # fmt: skip
    with pytest.raises(UsageError, match=r"words\.txt.* cannot be exported under other names: they come out differ"):
        with_files_of_its_own(config, mixed)
