"""Whatever the values of a feature depend on is in the digest, and is named when it differs."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from features import FeatureConfigError, FeatureSet, create_features
from features.drift import changes, described
from features.files import BroughtFiles, Files, LocalFiles, NotedFiles
from protos.load import parse_config

DATA = "data_config {{ batch_size: 8 dataset_type: ParquetDataset fg_mode: FG_NORMAL {} }}"
ID = 'id_feature {{ feature_name: "f" expression: "user:f" embedding_dim: 4 {} }}'
RAW = 'raw_feature {{ feature_name: "f" expression: "user:f" {} }}'
TEXT = """tokenize_feature {{ feature_name: "f" expression: "user:f" embedding_dim: 4 vocab_file: "t.json"
  text_normalizer {{ stop_char_file: "stop" {} }} }}"""
VOCABULARY = ID.format('vocab_file: "words" asset_dir: "dir/" default_bucketize_value: 0')


def tokenizer(*words: str) -> bytes:
    return Tokenizer(WordLevel({word: at for at, word in enumerate(words)}, unk_token=words[0])).to_str().encode()


def build(feature: str, data: str = "", files: Files | None = None) -> FeatureSet:
    text = f"{DATA.format(data)} feature_configs {{ {feature} }}"
    return create_features(parse_config(text, json=False), files=files)


def told(old: FeatureSet, new: FeatureSet) -> tuple[str, ...]:
    return changes(described(old.description()), described(new.description()))


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        (ID.format("hash_bucket_size: 9"), ID.format("hash_bucket_size: 8"), "values.bucketizer.buckets was 9, now 8"),
        (ID.format('vocab_list: ["a", "b"]'), ID.format('vocab_list: ["b", "a"]'), "values.bucketizer.vocabulary was"),
        (
            ID.format('num_buckets: 9 default_value: "1"'), ID.format('num_buckets: 9 default_value: "2"'),
            "values.default was [1], now [2]",
        ),
        (
            RAW.format("boundaries: [1, 2] embedding_dim: 4"), RAW.format("boundaries: [1, 3] embedding_dim: 4"),
            "values.bucketizer.boundaries was [1.0, 2.0], now [1.0, 3.0]",
        ),
        (
            RAW.format('normalizer: "method=log10"'),
            RAW.format('normalizer: "method=zscore,mean=1,standard_deviation=2"'),
            "values.normalizer.",
        ),
        (RAW.format('default_value: "1"'), RAW.format('default_value: "2"'), "values.default was"),
        (ID.format("num_buckets: 9"), ID.format('num_buckets: 9 separator: "|"'), "values.separators was"),
    ],
)  # fmt: skip
def test_setting_that_changes_values_is_named(old: str, new: str, part: str) -> None:
    before, after = build(old), build(new)
    assert before.digest() != after.digest()
    assert any(text.startswith(f"feature 'f': {part}") for text in told(before, after)), told(before, after)


def test_hash_function_is_named() -> None:
    feature = ID.format("hash_bucket_size: 9")
    (text,) = told(build(feature), build(feature, "use_farm_hash_to_bucketize: true"))
    assert text.startswith("feature 'f': values.bucketizer.hash was 'murmur") and "farm" in text.lower()


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("t.json", tokenizer("a", "c"), "values.content was"),
        ("stop", b"!\n", "values.normalizer.stop_characters was ['*'], now ['!']"),
        ("dir/words", b"other\nc\nb\n", "values.bucketizer.vocabulary was"),
    ],
)
def test_content_of_a_file_is_named(name: str, content: bytes, part: str) -> None:
    files = {"t.json": tokenizer("a", "b"), "stop": b"*\n", "dir/words": b"other\nb\nc\n"}
    feature = VOCABULARY if name == "dir/words" else TEXT.format("norm_options: TEXT_FILTER")
    before, after = (build(feature, files=BroughtFiles(part)) for part in (files, files | {name: content}))
    (text,) = told(before, after)
    assert text.startswith(f"feature 'f': {part}")


def test_files_with_other_line_ends_hold_the_same_words() -> None:
    one, other = (build(VOCABULARY, files=BroughtFiles({"dir/words": text})) for text in (b"a\nb\n", b"a\r\nb\r\n"))
    assert one.digest() == other.digest()


def test_description_is_what_the_digest_is_of() -> None:
    features = build(ID.format("num_buckets: 9"))
    assert sha256(features.description()).hexdigest() == features.digest()
    assert described(features.description()).keys() == {"f"}


@pytest.mark.parametrize("payload", [b"", b"{}", b'["f"]', b'[{"kind":"id"}]'])
def test_description_that_is_none_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError):
        described(payload)


def test_files_that_are_read_are_noted_once_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "words").write_bytes(b"a\nb\n")
    (tmp_path / "unread").write_bytes(b"x")
    noted = NotedFiles(LocalFiles())
    feature = VOCABULARY.replace("dir/", str(tmp_path))
    build(feature, files=noted)
    (tmp_path / "words").write_bytes(b"changed\n")
    build(feature, files=noted)
    assert noted.noted == {f"{tmp_path}/words": b"a\nb\n"}
    assert build(feature, files=BroughtFiles(noted.noted)).digest() == build(feature, files=noted).digest()


def test_file_that_did_not_come_along_is_named() -> None:
    with pytest.raises(FeatureConfigError, match="feature 'f': vocab_file 'dir/words' cannot be read: it did not come"):
        build(VOCABULARY, files=BroughtFiles({}))
