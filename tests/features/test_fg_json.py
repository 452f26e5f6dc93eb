"""fg_json as the reference asserts it (models_and_features.md 16, feature_generation.md 8), and its dialects."""

from __future__ import annotations

import pytest
from google.protobuf import text_format

from features.errors import FeatureConfigError
from features.fg_json import Dialect, Json, fg_json, hashed_name
from protos import pipeline_pb2


def nodes(text: str, dialect: Dialect = Dialect.FULL) -> list[dict[str, Json]]:
    config = pipeline_pb2.EasyRecConfig()
    text_format.Parse(text, config)
    found = fg_json(config, dialect)["features"]
    assert isinstance(found, list)
    return found


def node(kind: str, options: str, dialect: Dialect = Dialect.FULL) -> dict[str, Json]:
    (found,) = nodes(f"feature_configs {{ {kind} {{ {options} }} }}", dialect)
    return found


CAT = 'feature_name: "cat_a" expression: "item:cat_a" embedding_dim: 8'
INT = 'feature_name: "int_a" expression: "item:int_a"'
GROUP = f"""feature_configs {{ sequence_feature {{
  sequence_name: "click_seq" sequence_length: 50 sequence_delim: ";"
  features {{ id_feature {{ {CAT} hash_bucket_size: 10 }} }}
  features {{ raw_feature {{ {INT} boundaries: [7, 8, 9] embedding_dim: 8 }} }}
}} }}"""


def test_id_feature() -> None:
    assert node("id_feature", f"{CAT} num_buckets: 100") == {
        "feature_type": "id_feature", "feature_name": "cat_a", "default_value": "", "expression": "item:cat_a",
        "value_type": "string", "need_prefix": False, "value_dim": 0, "num_buckets": 100,
    }  # fmt: skip


def test_raw_feature() -> None:
    assert node("raw_feature", f"{INT} boundaries: [1, 2, 3] embedding_dim: 8") == {
        "feature_type": "raw_feature", "feature_name": "int_a", "default_value": "0", "expression": "item:int_a",
        "value_type": "float", "boundaries": [1.0, 2.0, 3.0],
    }  # fmt: skip
    wide = node(
        "raw_feature", f'{INT} value_dim: 2 separator: "|" normalizer: "method=zscore,mean=0,standard_deviation=1"'
    )
    assert (wide["value_dim"], wide["separator"], "normalizer" in wide) == (2, "|", True)


def test_combo_feature() -> None:
    text = (
        'feature_name: "combo_c" expression: ["user:combo_uc", "item:combo_ic"] embedding_dim: 8 hash_bucket_size: 1000'
    )
    assert node("combo_feature", text) == {
        "feature_type": "combo_feature", "feature_name": "combo_c", "default_value": "",
        "expression": ["user:combo_uc", "item:combo_ic"], "value_type": "string", "need_prefix": False, "value_dim": 0,
        "hash_bucket_size": 1000,
    }  # fmt: skip


def test_combine_feature() -> None:
    text = 'feature_name: "f" expression: "user:f" combiner: "MEAN" embedding_dim: 8'
    assert node("combine_feature", f'{text} num_buckets: 10 value_map {{ key: "a" value: 2 }}') == {
        "feature_type": "combine_feature", "feature_name": "f", "default_value": "", "expression": "user:f",
        "value_type": "int64", "need_prefix": False, "combiner": "mean", "value_map": {"a": 2.0}, "num_buckets": 10,
        "value_dim": 1,
    }  # fmt: skip
    assert "value_dim" not in node("combine_feature", text)


LOOKUP = 'feature_name: "lookup_d" map: "user:map_d" key: "item:key_d" embedding_dim: 8'


def test_lookup_feature() -> None:
    assert node("lookup_feature", f'{LOOKUP} vocab_list: ["a", "b", "c"]') == {
        "feature_type": "lookup_feature", "feature_name": "lookup_d", "map": "user:map_d", "key": "item:key_d",
        "default_value": "0", "value_type": "string", "needDiscrete": True, "needKey": False, "combiner": "",
        "value_dim": 1, "vocab_list": ["0", "<OOV>", "a", "b", "c"], "default_bucketize_value": 1,
    }  # fmt: skip
    assert node("lookup_feature", LOOKUP) == {
        "feature_type": "lookup_feature", "feature_name": "lookup_d", "map": "user:map_d", "key": "item:key_d",
        "default_value": "0", "value_type": "float", "needDiscrete": False, "needKey": False, "combiner": "sum",
    }  # fmt: skip


def test_lookup_of_vectors_is_two_nodes() -> None:
    text = f'feature_configs {{ lookup_feature {{ {LOOKUP} value_dim: 2 normalizer: "method=log10" }} }}'
    assert nodes(text) == [
        {
            "feature_type": "lookup_feature", "feature_name": "lookup_d__lookup", "map": "user:map_d",
            "key": "item:key_d", "default_value": "0,0", "value_type": "string", "value_dim": 1, "needDiscrete": True,
            "needKey": False, "combiner": "", "stub_type": True,
        },
        {
            "feature_type": "raw_feature", "feature_name": "lookup_d", "default_value": "0",
            "expression": "feature:lookup_d__lookup", "separator": ",", "value_dim": 2, "value_type": "float",
            "normalizer": "method=log10",
        },
    ]  # fmt: skip


def test_match_feature() -> None:
    text = 'feature_name: "match_e" nested_map: "user:m" pkey: "item:c" skey: "item:b" embedding_dim: 8'
    words = " ".join(f'vocab_dict {{ key: "{word}" value: {index} }}' for word, index in [("e", 2), ("f", 3), ("g", 4)])
    assert node("match_feature", f"{text} {words}") == {
        "feature_type": "match_feature", "feature_name": "match_e", "user": "user:m", "category": "item:c",
        "item": "item:b", "matchType": "hit", "default_value": "0", "value_type": "string", "needDiscrete": True,
        "show_category": False, "show_item": False, "value_dim": 1, "vocab_dict": {"e": 2, "f": 3, "g": 4, "0": 0},
        "default_bucketize_value": 1,
    }  # fmt: skip
    assert node("match_feature", text.replace("item:c", "ALL"))["matchType"] == "multihit"


def test_overlap_feature_always_has_its_separator() -> None:
    text = 'feature_name: "o" query: "user:q" title: "item:t" method: "is_equal"'
    assert node("overlap_feature", text) == {
        "feature_type": "overlap_feature", "feature_name": "o", "query": "user:q", "title": "item:t",
        "method": "is_equal", "value_type": "float", "separator": "\x1d",
    }  # fmt: skip


def test_kv_dot_product_and_bool_mask() -> None:
    text = 'feature_name: "k" query: "user:q" document: "item:d" separator: "|"'
    assert node("kv_dot_product", text) == {
        "feature_type": "kv_dot_product", "feature_name": "k", "default_value": "0", "query": "user:q",
        "document": "item:d", "separator": "|",
    }  # fmt: skip
    text = 'feature_name: "b" expression: ["user:v", "user:m"] embedding_dim: 8 zch { zch_size: 9 }'
    assert node("bool_mask_feature", text) == {
        "feature_type": "bool_mask_feature", "feature_name": "b", "default_value": "",
        "expression": ["user:v", "user:m"], "value_dim": 0, "hash_bucket_size": 2**63 - 1,
    }  # fmt: skip
    assert node("sequence_bool_mask_feature", f"{text} sequence_length: 5")["feature_type"] == "bool_mask_feature"


def test_sequences_on_their_own() -> None:
    text = f'{CAT} vocab_file: "/v" default_bucketize_value: 0 sequence_length: 50'
    assert node("sequence_id_feature", text) == {
        "feature_type": "sequence_id_feature", "feature_name": "cat_a", "default_value": "0",
        "expression": "item:cat_a", "value_type": "string", "need_prefix": False, "value_dim": 1, "vocab_file": "/v",
        "default_bucketize_value": 0, "sequence_delim": ";", "sequence_length": 50,
    }  # fmt: skip
    assert node("sequence_raw_feature", f"{INT} sequence_length: 50") == {
        "feature_type": "sequence_raw_feature", "feature_name": "int_a", "default_value": "0",
        "expression": "item:int_a", "value_type": "float", "sequence_delim": ";", "sequence_length": 50,
    }  # fmt: skip


def test_a_group_is_one_object() -> None:
    assert nodes(GROUP) == [
        {
            "sequence_name": "click_seq", "sequence_length": 50, "sequence_delim": ";",
            "sequence_pk": "user:click_seq",
            "features": [
                {
                    "feature_type": "id_feature", "feature_name": "cat_a", "default_value": "0",
                    "expression": "item:cat_a", "value_type": "string", "need_prefix": False, "value_dim": 1,
                    "hash_bucket_size": 10,
                },
                {
                    "feature_type": "raw_feature", "feature_name": "int_a", "default_value": "0",
                    "expression": "item:int_a", "value_type": "float", "boundaries": [7.0, 8.0, 9.0],
                },
            ],
        }
    ]  # fmt: skip


def test_stripped_json_keeps_everything_but_bucketizers() -> None:
    found = node("id_feature", f"{CAT} vocab_list: 'a'", Dialect.STRIPPED)
    assert "vocab_list" not in found and found["default_bucketize_value"] == 1
    (group,) = nodes(GROUP, Dialect.STRIPPED)
    members = group["features"]
    assert isinstance(members, list)
    assert not any("boundaries" in member or "hash_bucket_size" in member for member in members)


def test_rtp_json_names_tables_and_keys() -> None:
    found = node("id_feature", f"{CAT} num_buckets: 100", Dialect.RTP)
    assert found["hash_bucket_size"] == 100 and "num_buckets" not in found
    assert (found["gen_key_type"], found["gen_val_type"], found["shared_name"]) == ("mod", "lookup", "cat_a_emb")
    assert (found["embedding_dimension"], found["value_dimension"]) == (8, 0)
    assert node("raw_feature", INT, Dialect.RTP)["gen_val_type"] == "idle"
    bounds = node("raw_feature", f"{INT} boundaries: [1, 2.5] embedding_dim: 8", Dialect.RTP)
    assert (bounds["boundaries"], bounds["gen_key_type"]) == ("1,2.5", "boundary")
    (group,) = nodes(GROUP, Dialect.RTP)
    assert group["sequence_table"] == "item"
    members = group["features"]
    assert isinstance(members, list) and members[0]["shared_name"] == "click_seq_cat_a_emb"


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("id_feature", f"{CAT} vocab_list: 'a'", "no vocabularies"),
        ("kv_dot_product", 'feature_name: "k" query: "user:q" document: "item:d"', "RTP knows no kv_dot_product"),
        ("sequence_id_feature", f"{CAT} num_buckets: 9 sequence_length: 5", "RTP knows no sequence_id_feature"),
    ],
)
def test_rtp_refuses_what_it_does_not_know(kind: str, options: str, message: str) -> None:
    with pytest.raises(FeatureConfigError, match=message):
        node(kind, options, Dialect.RTP)


def test_expr_feature() -> None:
    text = 'feature_name: "expr_f" expression: "int_g+int_h" variables: ["item:int_g", "item:int_h"] embedding_dim: 8'
    assert node("expr_feature", f"{text} boundaries: [4, 5, 6]") == {
        "feature_type": "expr_feature", "feature_name": "expr_f", "default_value": "0", "expression": "int_g+int_h",
        "variables": ["item:int_g", "item:int_h"], "value_type": "float", "boundaries": [4.0, 5.0, 6.0],
    }  # fmt: skip
    assert node("expr_feature", f"{text} fill_missing: 2 value_dim: 3")["fill_missing"] == 2.0


TOKENIZE = 'feature_name: "token_g" expression: "item:text" embedding_dim: 8 vocab_file: "/t/tokenizer.json"'


def test_tokenize_feature() -> None:
    assert node("tokenize_feature", TOKENIZE) == {
        "feature_type": "tokenize_feature", "feature_name": "token_g", "default_value": "",
        "vocab_file": "/t/tokenizer.json", "expression": "item:text", "tokenizer_type": "bpe", "output_type": "word_id",
    }  # fmt: skip
    assert node("tokenize_feature", TOKENIZE, Dialect.STRIPPED)["vocab_file"] == "/t/tokenizer.json"
    assert node("tokenize_feature", f"{TOKENIZE} tokens_as_sequence: true sequence_length: 5")["default_value"] == "0"


def test_tokenize_feature_behind_a_text_normalizer() -> None:
    how = "text_normalizer { max_length: 9 norm_options: [TEXT_UPPER2LOWER, TEXT_SPLITCHRS, TEXT_REMOVE_SPACE] }"
    first, second = nodes(f"feature_configs {{ tokenize_feature {{ {TOKENIZE} {how} }} }}")
    assert first == {
        "feature_type": "text_normalizer", "feature_name": "token_g__text_norm", "expression": "item:text",
        "is_gbk_input": False, "is_gbk_output": False, "stub_type": True, "max_length": 9, "parameter": 516,
        "remove_space": True,
    }  # fmt: skip
    assert second["expression"] == "feature:token_g__text_norm"


def test_custom_feature() -> None:
    text = (
        'feature_name: "c" operator_name: "EditDistance" operator_lib_file: "pyfg/lib/libedit_distance.so" '
        'expression: ["user:q", "item:t"] '
        'operator_params { fields { key: "encoding" value { string_value: "utf-8" } } }'
    )
    assert node("custom_feature", text) == {
        "feature_type": "custom_feature", "feature_name": "c", "default_value": "0", "operator_name": "EditDistance",
        "operator_lib_file": "pyfg/lib/libedit_distance.so", "is_op_thread_safe": False,
        "expression": ["user:q", "item:t"], "value_type": "float", "encoding": "utf-8", "value_dim": 1,
    }  # fmt: skip
    found = node("sequence_custom_feature", f"{text} sequence_length: 5")
    assert (found["feature_type"], found["is_sequence"], found["sequence_length"]) == ("custom_feature", True, 5)


def test_files_are_named_by_their_content() -> None:
    config = pipeline_pb2.EasyRecConfig()
    text_format.Parse(f"feature_configs {{ tokenize_feature {{ {TOKENIZE} }} }}", config)
    found = fg_json(config, asset_name=lambda path: hashed_name(path, b"a"), reserves=["uid"])
    assert found["reserves"] == ["uid"]
    (only,) = found["features"]
    assert only["vocab_file"] == "tokenizer_0cc175b9c0f1b6a831c399e269772661.json"
