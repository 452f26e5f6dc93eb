"""`headrace config check` and `schema` over every kind of feature: a clear line for a mistake, figures for the rest."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from .conftest import DECLARED

EMB = "embedding_dim: 4"
LOOKUP = 'lookup_feature { feature_name: "f" map: "user:m" key: "item:k"'
MATCH = 'match_feature { feature_name: "f" nested_map: "user:m" pkey: "item:p" skey: "item:s"'
COMBO = f'combo_feature {{ feature_name: "f" expression: ["user:a", "item:b"] {EMB}'
ID = f'id_feature {{ feature_name: "f" expression: "user:a" {EMB}'
MASK = f'bool_mask_feature {{ feature_name: "f" expression: ["user:a", "user:b"] {EMB}'
COMBINE = f'combine_feature {{ feature_name: "f" expression: "user:a" {EMB}'
OVERLAP = 'overlap_feature { feature_name: "f" query: "user:q" title: "item:t"'
DOT = 'kv_dot_product { feature_name: "f" query: "user:q" document: "item:t"'
TEXT = f'tokenize_feature {{ feature_name: "f" expression: "user:a" {EMB}'
DISTANCE = 'custom_feature { feature_name: "f" operator_name: "EditDistance" operator_lib_file: ""'
GROUP = 'sequence_feature { sequence_name: "s" sequence_length: 5 sequence_delim: ";" features'


@pytest.fixture
def check(headrace: Callable[..., Any], write_config: Callable[..., Path], tmp_path: Path) -> Callable[..., Any]:
    """Check the small configuration with more features and another data_config."""
    (tmp_path / "twice.txt").write_text("a\nb\na\n")
    (tmp_path / "twice_numbered.txt").write_text("a 1\nb 2\na 3\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "latin.txt").write_bytes(b"\xe9\xff\n")
    (tmp_path / "words.txt").write_text("x\ny\n")
    (tmp_path / "tokenizer.json").write_text("{}")

    def run(*features: str, data: str = "", verb: str = "check") -> Any:
        path = write_config(declared=data)
        more = "".join(f"feature_configs {{ {feature} }}\n" for feature in features)
        path.write_text(path.read_text() + more.replace("$", str(tmp_path)))
        return headrace("config", verb, path)

    return run


@pytest.mark.parametrize(
    ("feature", "field", "words"),
    [
        (COMBO.replace("item:b", "shop:b") + " hash_bucket_size: 9 }", "expression", "is 'shop:b'; write side:column"),
        (LOOKUP.replace("user:m", "m") + " }", "map", "is 'm'; write side:column"),
        (LOOKUP.replace("item:k", "") + " }", "key", "is not set; write side:column"),
        (MATCH.replace("item:p", "items:p") + " }", "pkey", "with a side of user, item, context"),
        (OVERLAP.replace("item:t", "t") + ' method: "is_equal" }', "title", "is 't'; write side:column"),
        (DOT.replace("user:q", "usr:q") + " }", "query", "is 'usr:q'; write side:column"),
        (MASK.replace("user:b", "b") + " num_buckets: 4 }", "expression", "is 'b'; write side:column"),
        (TEXT.replace("user:a", "a") + ' vocab_file: "x" }', "expression", "is 'a'; write side:column"),
        (COMBINE.replace("user:a", "a") + " num_buckets: 3 }", "expression", "is 'a'; write side:column"),
        (DISTANCE + ' expression: ["user:a", "b"] }', "expression", "is 'b'; write side:column"),
        (
            'expr_feature { feature_name: "f" expression: "a+b" variables: ["user:a", "b"] }',
            "variables", "is 'b'; write side:column",
        ),
        (f"sequence_{ID} num_buckets: 3 }}".replace("user:", "x:"), "expression", "is 'x:a'; write side:column"),
        (f"{GROUP} {{ {ID} num_buckets: 3 }} }} }}".replace("user:", "x:"), "expression", "(feature 's__f') is 'x:a'"),
        (f"{GROUP} {{ {ID} num_buckets: 3 zch {{ zch_size: 9 }} }} }} }}", "zch", "(feature 's__f') is a second"),
        (COMBO + ' hash_bucket_size: 9 vocab_list: "a" }', "vocab_list", "second bucketizer beside hash_bucket_size"),
        (f"{LOOKUP} {EMB} hash_bucket_size: 9 boundaries: 1 }}", "hash_bucket_size", "beside boundaries"),
        (f"{MATCH} {EMB} num_buckets: 9 boundaries: 1 }}", "num_buckets", "beside boundaries"),
        (f"{COMBINE} num_buckets: 9 boundaries: 1 }}", "num_buckets", "beside boundaries"),
        (f"{LOOKUP} {EMB} boundaries: [2, 1] }}", "boundaries", "do not ascend"),
        (f"{MATCH} {EMB} boundaries: [1, nan] }}", "boundaries", "are not all finite"),
        (f'{OVERLAP} method: "is_equal" {EMB} boundaries: [2, 1] }}', "boundaries", "do not ascend"),
        (f"{DOT} {EMB} boundaries: [2, 1] }}", "boundaries", "do not ascend"),
        (f"{COMBINE} boundaries: [2, 1] }}", "boundaries", "do not ascend"),
        (f'{DISTANCE} {EMB} expression: ["user:a", "user:b"] boundaries: [2, 1] }}', "boundaries", "do not ascend"),
        (
            f'expr_feature {{ feature_name: "f" expression: "a" variables: "user:a" {EMB} boundaries: [2, 1] }}',
            "boundaries", "do not ascend",
        ),
        (f"{COMBO} hash_bucket_size: 0 }}", "hash_bucket_size", "holds 0 rows"),
        (f"{COMBO} zch {{ zch_size: 1 }} }}", "zch", "holds 1 row, which is reserved"),
        (f"{LOOKUP} boundaries: 1 }}", "embedding_dim", "is not set"),
        (f'{MATCH} need_discrete: true {EMB} vocab_list: ["a", "a"] }}', "vocab_list", "holds 'a' 2 times"),
        (f'{MASK} num_buckets: 4 pooling: "max" }}', "pooling", "is 'max'; write sum or mean"),
        (LOOKUP.replace('"f"', '""') + " }", "feature_name", "is not set; every feature needs a name"),
    ],
)  # fmt: skip
def test_mistake_is_told_by_path_feature_and_field(check: Callable[..., Any], feature: str, field: str, words: str):
    ran = check(feature)
    assert ran.code == 2 and ran.errors == ""
    (told,) = [line for line in ran.out.splitlines() if line.startswith("error ")]
    assert told.startswith("error   feature_configs[3].") and f".{field}: " in told and words in told
    assert ": ok," not in ran.out


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        (f'{COMBO} hash_bucket_size: 9 separator: "||" }}', "separator '||' must be one ASCII character"),
        (f'{DOT} kv_separator: "::" }}', "kv_separator: separator '::' must be one"),
        (f'{LOOKUP} value_dim: 2 value_separator: "||" }}', "value_separator: separator '||' must be one"),
        (f'sequence_{ID} num_buckets: 3 sequence_delim: "ab" }}', "sequence_delim: separator 'ab' must be one"),
        (f'{ID} vocab_file: "$/none.txt" default_bucketize_value: 0 }}', "vocab_file '$/none.txt' cannot be read"),
        (f'{ID} vocab_file: "$" default_bucketize_value: 0 }}', "vocab_file '$' cannot be read"),
        (f'{COMBO} vocab_file: "$/twice.txt" default_bucketize_value: 0 }}', "vocab_file holds 'a' 2 times"),
        (
            f'{LOOKUP} need_discrete: true {EMB} vocab_file: "$/twice_numbered.txt" default_bucketize_value: 0 }}',
            "vocab_file holds 'a' 2 times",
        ),
        (f'{MASK} vocab_file: "$/empty.txt" default_bucketize_value: 0 }}', "its vocab_file is empty"),
        (f'{ID} vocab_file: "$/latin.txt" default_bucketize_value: 0 }}', "vocab_file '$/latin.txt' cannot be read"),
        (f'{ID} vocab_file: "$/words.txt" }}', "vocab_file needs default_bucketize_value"),
        (f'{ID} vocab_file: "$/words.txt" default_bucketize_value: 2 }}', "must be less than the 2 words"),
        (f'{TEXT} vocab_file: "$/none.json" }}', "vocab_file '$/none.json' is no bpe tokenizer"),
        (f'{TEXT} vocab_file: "$/tokenizer.json" }}', "vocab_file '$/tokenizer.json' is no bpe tokenizer"),
        (f'{TEXT} vocab_file: "$/words.txt" tokenizer_type: "wordpiece" }}', "tokenizer_type 'wordpiece' must be"),
        (f'{OVERLAP} method: "common" }}', "method 'common' must be one of"),
        (f'{COMBINE} num_buckets: 3 combiner: "median" }}', "combiner 'median' must be one of"),
        ('expr_feature { feature_name: "f" expression: "a+" variables: "user:a" }', "expression 'a+'"),
        ('expr_feature { feature_name: "f" expression: "a+b" variables: "user:a" }', "'b' is no variable"),
        (f'{DISTANCE} expression: "user:a" }}', "EditDistance takes 2 inputs, not 1"),
        (DISTANCE.replace('""', '"x.so"') + ' expression: "user:a" }', "operator_lib_file 'x.so' is no built-in"),
        (DISTANCE.replace('""', '"none:X"') + ' expression: "user:a" }', "'none:X' cannot be imported"),
        ('raw_feature { feature_name: "f" expression: "user:a" normalizer: "method=cubic" }', "normalizer"),
        ('raw_feature { feature_name: "f" expression: "user:a" default_value: "x" }', "default_value 'x' must be"),
        (f'{ID} hash_bucket_size: 3 fg_value_type: "blob" }}', "fg_value_type 'blob' must be one of"),
        (f'{COMBO} hash_bucket_size: 9 embedding_name: "slot_emb" }}', "share table 'slot_emb'"),
    ],
)  # fmt: skip
def test_mistake_that_only_building_finds_is_one_line(
    check: Callable[..., Any], tmp_path: Path, feature: str, words: str
) -> None:
    ran = check(feature)
    assert ran.code == 2 and ": ok," not in ran.out
    assert ran.errors.startswith("headrace: feature") and ran.errors.count("\n") == 1
    assert "'f'" in ran.errors and words.replace("$", str(tmp_path)) in ran.errors


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (
            [
                'expr_feature { feature_name: "x" expression: "y+1" variables: "feature:y" }',
                'expr_feature { feature_name: "y" expression: "x+1" variables: "feature:x" }',
            ],
            "features need each other in a cycle: x -> y -> x; break it",
        ),
        (
            ['expr_feature { feature_name: "x" expression: "p+1" variables: "feature:prise" }'],
            "feature 'x': expression 'p+1': 'p' is no variable; there are prise",
        ),
        (
            ['expr_feature { feature_name: "x" expression: "prise+1" variables: "feature:prise" }'],
            "feature 'x': its input feature:prise is no feature; did you mean 'price'?",
        ),
    ],
)
def test_graph_that_cannot_be_run_is_one_line(check: Callable[..., Any], features: list[str], words: str) -> None:
    ran = check(*features, data="fg_mode: FG_DAG")
    assert ran.code == 2 and ran.errors == f"headrace: {words}\n"


@pytest.mark.parametrize(
    ("feature", "field", "column", "mode"),
    [
        (LOOKUP.replace("user:m", "user:price") + " }", "key", "k", "FG_NORMAL"),
        (COMBO.replace("item:b", "item:slot") + " hash_bucket_size: 9 }", "expression", "a", "FG_DAG"),
        (MATCH.replace("user:m", "user:slot").replace("item:p", "ALL") + " }", "skey", "s", "FG_NORMAL"),
        ('expr_feature { feature_name: "f" expression: "c" variables: "user:c" }', "variables", "c", "FG_NORMAL"),
        (f"{GROUP} {{ {ID} num_buckets: 3 }} }} }}", "expression", "s__a", "FG_NORMAL"),
        (f"sequence_{ID} num_buckets: 3 }}", "expression", "a", "FG_DAG"),
        (COMBO + " hash_bucket_size: 9 }", "feature_name", "f", "FG_NONE"),
    ],
)
def test_column_that_is_not_declared_is_told(
    check: Callable[..., Any], feature: str, field: str, column: str, mode: str
) -> None:
    ran = check(feature, data=f"{DECLARED} fg_mode: {mode}")
    assert ran.code == 2
    (told,) = [line for line in ran.out.splitlines() if line.startswith("error ")]
    assert f".{field}: " in told and f"reads column '{column}', which is not among input_fields" in told


def test_inputs_that_are_features_constants_or_every_key_are_no_columns(check: Callable[..., Any]) -> None:
    ran = check(
        COMBO.replace("user:a", "feature:price").replace("item:b", "const:x") + " hash_bucket_size: 9 }",
        'match_feature { feature_name: "g" nested_map: "user:user_id" pkey: "ALL" skey: "item:slot" }',
        data=f"{DECLARED} fg_mode: FG_DAG",
    )
    assert ran.code == 0, ran.out + ran.errors


@pytest.mark.parametrize(
    ("feature", "declared", "words"),
    [
        (MATCH + " }", {"m": "INT64", "p": "STRING", "s": "STRING"}, "column 'm' must hold nested maps"),
        (TEXT + ' vocab_file: "$/real.json" }', {"a": "FLOAT"}, "column 'a' must hold one text a row"),
        ('raw_feature { feature_name: "f" expression: "user:v" value_dim: 3 }', {"v": "FLOAT"}, "one number a row"),
        (LOOKUP + " }", {"m": "MAP_STRING_FLOAT", "k": "MAP_STRING_FLOAT"}, "column 'k' is a map"),
        (COMBO + " hash_bucket_size: 9 }", {"a": "STRING", "b": "ARRAY_ARRAY_INT64"}, "no meaning outside a sequence"),
        (f"sequence_{ID} num_buckets: 3 }}", {"a": "MAP_STRING_FLOAT"}, "column 'a' is a map, which is no sequence"),
        (ID.replace("user:a", "user:v") + " num_buckets: 3 }", {"v": "MAP_INT64_FLOAT"}, "need weighted: true"),
    ],
)
def test_declared_type_that_a_feature_cannot_read_is_one_line(
    check: Callable[..., Any], tmp_path: Path, feature: str, declared: dict[str, str], words: str
) -> None:
    Tokenizer(WordLevel({"a": 0, "b": 1}, unk_token="a")).save(str(tmp_path / "real.json"))
    fields = "".join(f'input_fields {{ input_name: "{name}" input_type: {kind} }}' for name, kind in declared.items())
    ran = check(feature, data=DECLARED + fields)
    assert ran.code == 2 and ran.errors.startswith("headrace: feature 'f': ") and ran.errors.count("\n") == 1
    assert words in ran.errors and "(data_config declares its type)" in ran.errors
