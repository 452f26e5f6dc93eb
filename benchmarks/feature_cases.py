"""One feature of each kind, and the columns that it reads; seeds, lengths and cardinalities are fixed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import tokenizers
from google.protobuf import text_format

from features import FeatureSet, create_features
from protos import pipeline_pb2

ROWS = 4096

Texts = np.ndarray[tuple[int], np.dtype[np.str_]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A feature and the columns that it reads."""

    name: str
    feature: str
    columns: tuple[str, ...]


_ID = 'feature_name: "f" embedding_dim: 4'
CASES = (
    Case(name="id_integer_num_buckets", feature=f'id_feature {{ {_ID} expression: "user:int" num_buckets: 1000000 }}',
         columns=("int",)),
    Case(name="id_integer_hash", feature=f'id_feature {{ {_ID} expression: "user:int" hash_bucket_size: 1000000 }}',
         columns=("int",)),
    Case(name="id_string_hash", feature=f'id_feature {{ {_ID} expression: "user:word" hash_bucket_size: 1000000 }}',
         columns=("word",)),
    Case(name="id_string_vocabulary", feature=f'id_feature {{ {_ID} expression: "user:word" VOCABULARY }}',
         columns=("word",)),
    Case(name="id_float_hash", feature=f'id_feature {{ {_ID} expression: "user:float" hash_bucket_size: 1000 }}',
         columns=("float",)),
    Case(name="raw_zscore",
         feature='raw_feature { feature_name: "f" expression: "user:float" '
                 'normalizer: "method=zscore,mean=0.5,standard_deviation=2" }',
         columns=("float",)),
    Case(name="raw_boundaries",
         feature=f'raw_feature {{ {_ID} expression: "user:float" boundaries: [.1, .2, .3, .5, .7, .8, .9] }}',
         columns=("float",)),
    Case(name="combo",
         feature=f'combo_feature {{ {_ID} expression: ["user:word", "item:words"] hash_bucket_size: 1000000 }}',
         columns=("word", "words")),
    Case(name="combine", feature='combine_feature { feature_name: "f" expression: "user:floats" combiner: "mean" }',
         columns=("floats",)),
    Case(name="combine_text", feature='combine_feature { feature_name: "f" expression: "user:numbers" }',
         columns=("numbers",)),
    Case(name="lookup_map", feature='lookup_feature { feature_name: "f" map: "user:map" key: "item:key" }',
         columns=("map", "key")),
    Case(name="lookup_text", feature='lookup_feature { feature_name: "f" map: "user:pairs" key: "item:key" }',
         columns=("pairs", "key")),
    Case(name="match",
         feature=f'match_feature {{ {_ID} nested_map: "user:nested" pkey: "item:key" skey: "item:key" '
                 'hash_bucket_size: 1000 }',
         columns=("nested", "key")),
    Case(name="overlap_ratio",
         feature='overlap_feature { feature_name: "f" query: "user:words" title: "item:title" '
                 'method: "query_common_ratio" }',
         columns=("words", "title")),
    Case(name="overlap_distance",
         feature='overlap_feature { feature_name: "f" query: "user:words" title: "item:title" '
                 'method: "proximity_avg_dist" }',
         columns=("words", "title")),
    Case(name="kv_dot_product", feature='kv_dot_product { feature_name: "f" query: "user:map" document: "item:pairs" }',
         columns=("map", "pairs")),
    Case(name="bool_mask",
         feature=f'bool_mask_feature {{ {_ID} expression: ["user:words", "user:mask"] hash_bucket_size: 1000000 }}',
         columns=("words", "mask")),
    Case(name="expr",
         feature='expr_feature { feature_name: "f" expression: "log(1 + float) * other - abs(other - 0.5)" '
                 'variables: ["user:float", "item:other"] }',
         columns=("float", "other")),
    Case(name="tokenize",
         feature=f'tokenize_feature {{ {_ID} expression: "item:title" TOKENIZER }}', columns=("title",)),
    Case(name="custom_edit_distance",
         feature='custom_feature { feature_name: "f" expression: ["user:word", "item:key"] '
                 'operator_name: "EditDistance" operator_lib_file: "pyfg/lib/libedit_distance.so" }',
         columns=("word", "key")),
    Case(name="sequence_string_hash",
         feature=f'sequence_id_feature {{ {_ID} expression: "user:clicks" sequence_length: 50 '
                 'hash_bucket_size: 1000000 }',
         columns=("clicks",)),
    Case(name="sequence_integer_num_buckets",
         feature=f'sequence_id_feature {{ {_ID} expression: "user:click_numbers" sequence_length: 50 '
                 'num_buckets: 1000000 }',
         columns=("click_numbers",)),
    Case(name="sequence_raw_boundaries",
         feature=f'sequence_raw_feature {{ {_ID} expression: "user:click_floats" sequence_length: 50 '
                 'boundaries: [.1, .2, .3, .5, .7, .8, .9] }',
         columns=("click_floats",)),
)  # fmt: skip


def columns(seed: int) -> dict[str, pa.Array]:
    """Words of 6 to 12 letters out of 100 thousand, three a row where there are several; eight keys, 50 clicks."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{k * 7919 % 100_000_007}" for k in range(100_000)])
    keys = [f"key{k}" for k in range(32)]

    def joined(width: int, among: Texts, separator: str = "\x1d") -> pa.Array:
        return pa.array([separator.join(row) for row in among[rng.integers(0, len(among), (ROWS, width))]])

    picks = np.argsort(rng.random((ROWS, 32)))[:, :8]
    values = rng.random((ROWS, 8)).round(4)
    pairs = [[(keys[k], v) for k, v in zip(*row, strict=True)] for row in zip(picks, values, strict=True)]
    steps = np.arange(0, ROWS * 50 + 1, 50, dtype=np.int32)
    return {
        "int": pa.array(rng.integers(0, 1_000_000, ROWS)),
        "float": pa.array(rng.random(ROWS, np.float32)),
        "other": pa.array(rng.random(ROWS, np.float32)),
        "word": pa.array(words[rng.integers(0, len(words), ROWS)]),
        "words": joined(3, words[:50]),
        "title": joined(10, words[:50]),
        "numbers": joined(3, rng.random(1000).round(4).astype(str)),
        "mask": joined(3, np.array(["true", "false"])),
        "floats": pa.array(list(rng.random((ROWS, 3))), pa.list_(pa.float64())),
        "key": pa.array([keys[k] for k in rng.integers(0, 32, ROWS)]),
        "map": pa.array(pairs, pa.map_(pa.string(), pa.float32())),
        "pairs": pa.array(["\x1d".join(f"{key}:{value}" for key, value in row) for row in pairs]),
        "nested": pa.array(
            ["|".join(f"{key}^{row[0][0]}:1,{key}:2,{row[1][0]}:3" for key, _ in row[:4]) for row in pairs]
        ),
        "clicks": joined(50, words, ";"),
        "click_numbers": pa.ListArray.from_arrays(steps, rng.integers(0, 1_000_000, ROWS * 50)),
        "click_floats": pa.ListArray.from_arrays(steps, rng.random(ROWS * 50, np.float32)),
    }


def _tokenizer(folder: Path) -> str:
    """Train a byte-level BPE of 1000 tokens on the words, and name its file."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=1000, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator([f"word{k * 7919 % 100_000_007}" for k in range(1000)], trainer)
    made.save(str(folder / "tokenizer.json"))
    return f'vocab_file: "tokenizer.json" asset_dir: "{folder}"'


def feature_set(case: Case, folder: Path) -> FeatureSet:
    """The one feature of a case; `folder` takes the tokenizer, where there is one."""
    words = " ".join(f'vocab_list: "word{k * 7919 % 100_000_007}"' for k in range(0, 100_000, 2))
    config = pipeline_pb2.EasyRecConfig()
    text = case.feature.replace("VOCABULARY", words)
    text = text.replace("TOKENIZER", _tokenizer(folder)) if "TOKENIZER" in text else text
    text_format.Parse(f"data_config {{ fg_mode: FG_NORMAL }} feature_configs {{ {text} }}", config)
    return create_features(config)
