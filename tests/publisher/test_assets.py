"""Files that features read travel with a version: a replica needs none of its own, and believes none of its own."""

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from features import FeatureSet, create_features, hashes
from protos.load import parse_config
from protos.pipeline_pb2 import EasyRecConfig
from publisher.contract import Contract
from publisher.export.host import this_host
from publisher.replica.follower import Follower
from publisher.replica.metrics import ReplicaMetrics
from publisher.replica.model import Side
from publisher.replica.switch import Switch

WORDS = ("other", "red", "green", "blue", "cyan", "pink")
FEATURES = """
feature_configs { id_feature { feature_name: "user_id" expression: "user:user_id" embedding_name: "user"
  embedding_dim: 4 zch { zch_size: 1000 hash {} } } }
feature_configs { id_feature { feature_name: "color" expression: "item:color" embedding_name: "item" embedding_dim: 3
  vocab_file: "colors.txt" asset_dir: "%s" default_bucketize_value: 0 } }
feature_configs { tokenize_feature { feature_name: "title" expression: "item:title" embedding_name: "item"
  embedding_dim: 3 vocab_file: "%s/tokenizer.json"
  text_normalizer { stop_char_file: "%s/stop.txt" norm_options: [TEXT_FILTER, TEXT_UPPER2LOWER] } } }
feature_configs { sequence_feature { sequence_name: "seen" sequence_length: 5 sequence_delim: ";"
  features { id_feature { feature_name: "color" expression: "user:color" embedding_name: "item" embedding_dim: 3
    vocab_file: "%s/colors.txt" default_bucketize_value: 0 } } } }
"""
OPERATOR = """
class Reversed:
    def __init__(self, parameters):
        pass

    def __call__(self, texts):
        return [text[::-1] for text in texts]

    def describe(self):
        return {{"version": {version}}}
"""
CUSTOM = """feature_configs { custom_feature { feature_name: "mirror" operator_name: "Reversed" value_dim: 1
  operator_lib_file: "mirroring:Reversed" expression: "item:color" embedding_name: "item" embedding_dim: 3
  hash_bucket_size: 6 } }"""
ROWS = pa.record_batch(
    {
        "user_id": [1, 2, 3],
        "color": ["red", "pink", "mauve"],
        "title": ["RED* green", "blue  blue", ""],
        "seen__color": ["red;blue", "", "grey;cyan;pink"],
    }
)


def write_files(folder: Path, words: tuple[str, ...] = WORDS) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    folder.mkdir()
    (folder / "colors.txt").write_text("\n".join(words))
    tokenizer = Tokenizer(WordLevel({word: index for index, word in enumerate(words)}, unk_token=words[0]))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "stop.txt").write_text("*\n")


def named(folder: Path) -> str:
    return FEATURES.replace("%s", str(folder))


def with_features(text: str, features: str, groups: str) -> EasyRecConfig:
    """The configuration of the tests with other features, of the same two tables."""
    start, end = text.index("feature_configs"), text.index("model_config")
    plain = 'feature_names: "user_id" feature_names: "item_id"'
    return parse_config((text[:start] + features + text[end:]).replace(plain, groups), json=False)


class Replica:
    def __init__(self, store) -> None:
        self.switch: Switch[Side] = Switch()
        self.metrics = ReplicaMetrics()
        self.follower = Follower(
            store, self.switch, self.metrics, host=this_host(), verifier=None, clock=lambda: 0.0, drain_s=1.0
        )

    def refusals(self, reason: str) -> float:
        name = "headrace_replica_refused_versions_total"
        return self.metrics.registry.get_sample_value(name, {"reason": reason}) or 0.0


@pytest.fixture
def config(tmp_path: Path, config_text) -> EasyRecConfig:
    write_files(tmp_path / "trainer")
    groups = 'feature_names: "user_id" feature_names: "color" feature_names: "title"'
    return with_features(config_text(tmp_path / "model"), named(tmp_path / "trainer"), groups)


@pytest.fixture
def published(local_bench, config):
    """A version of a model whose features read four files, under their names on the trainer's machine."""
    local_bench.train_under(config)
    local_bench.trainer.base()
    local_bench.publish(contract=Contract.of(config))
    return local_bench


def ids(features: FeatureSet) -> dict[str, list[int]]:
    batch = features.parse(ROWS, labels=False)
    return {
        key: [*part.values().tolist(), *part.lengths().tolist()]
        for group in batch.sparse_features.values()
        for key, part in group.to_dict().items()
    }


def test_replica_without_the_files_makes_the_ids_of_the_trainer(published, config, tmp_path):
    trained = ids(create_features(config))
    assert trained["color"][:3] == [1, 5, 0] and trained["title"][:2] == [1, 2]
    (tmp_path / "trainer").rename(tmp_path / "gone")
    replica = Replica(published.store)
    assert replica.follower.poll()
    side = replica.switch.current
    assert side is not None and side.feature_counts() == {}, "warming up counts nothing"
    assert ids(side.contract.features) == trained
    assert side.contract.build_dense().state_dict().keys() == side.dense.runner._module.state_dict().keys()


def test_files_of_the_same_names_on_the_replicas_machine_are_not_read(published, config, tmp_path):
    trained = ids(create_features(config))
    (tmp_path / "trainer").rename(tmp_path / "gone")
    write_files(tmp_path / "trainer", WORDS[::-1])
    replica = Replica(published.store)
    assert replica.follower.poll()
    assert ids(replica.switch.current.contract.features) == trained
    assert ids(create_features(config)) != trained


def test_every_file_is_listed_once_under_each_name(published, tmp_path):
    version = published.current()
    folder = tmp_path / "trainer"
    assert [asset.name for asset in version.assets] == [
        f"{folder}/{name}" for name in ("colors.txt", "stop.txt", "tokenizer.json")
    ]
    assert all(asset.blob.path.startswith(f"contracts/{version.contract}/") for asset in version.assets)


@pytest.mark.parametrize(("damage", "reason"), [("flipped", "corrupt"), ("cut", "truncated"), ("gone", "missing")])
def test_replica_refuses_a_file_that_is_not_the_one_listed(published, damage, reason):
    path = published.current().assets[0].blob.path
    content = published.store.get(path)
    if damage == "gone":
        published.store.delete(path)
    else:
        changed = content[:-1] if damage == "cut" else bytes([content[0] ^ 1]) + content[1:]
        published.store.compare_and_swap(path, content, changed)
    replica = Replica(published.store)
    assert not replica.follower.poll()
    assert replica.switch.current is None and replica.refusals(reason) == 1.0


def test_version_that_brings_no_files_is_refused(published, caplog, monkeypatch, tmp_path):
    """What an older publisher wrote: the replica does not fall back on its own files."""
    (tmp_path / "trainer").rename(tmp_path / "gone")
    monkeypatch.setattr("publisher.fields.Fields.added_objects", lambda self, name: iter(()))
    replica = Replica(published.store)
    assert not replica.follower.poll()
    assert "feature 'color': vocab_file" in caplog.text and "did not come along" in caplog.text


def test_replica_with_another_hash_function_says_which_feature_and_what(
    local_bench, parsed_config, caplog, monkeypatch
):
    local_bench.train_under(config := hashed(parsed_config("model")))
    local_bench.trainer.base()
    local_bench.publish(contract=Contract.of(config))
    murmur = hashes.MURMUR
    monkeypatch.setattr(hashes, "MURMUR", "MurmurHash of an older release")
    replica = Replica(local_bench.store)
    assert not replica.follower.poll()
    told = f"feature 'item_id': values.bucketizer.hash was {murmur!r}, now 'MurmurHash of an older release'"
    assert told in caplog.text
    assert replica.refusals("contract") == 1.0


def hashed(config: EasyRecConfig) -> EasyRecConfig:
    item = config.feature_configs[1].id_feature
    item.ClearField("num_buckets")
    item.hash_bucket_size = 6
    return config


def test_replica_with_an_older_operator_says_which_feature_and_what(
    local_bench, config_text, caplog, monkeypatch, tmp_path
):
    start = config_text("m").index("feature_configs")
    plain = config_text("m")[start : config_text("m").index("model_config")]
    groups = 'feature_names: "user_id" feature_names: "item_id" feature_names: "mirror"'
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mirroring", raising=False)
    module = tmp_path / "mirroring.py"
    module.write_text(OPERATOR.format(version=2))
    config = with_features(config_text("m"), plain + CUSTOM, groups)
    local_bench.train_under(config)
    local_bench.trainer.base()
    local_bench.publish(contract=Contract.of(config))
    assert Replica(local_bench.store).follower.poll()
    monkeypatch.delitem(sys.modules, "mirroring")
    module.write_text(OPERATOR.format(version=1) + "\n# an older release")
    assert not Replica(local_bench.store).follower.poll()
    assert "feature 'mirror': values.own.version was 2, now 1" in caplog.text
