"""Tokenize and custom features, with small tokenizers that are trained here (feature_generation.md 3.7 and 3.8)."""

from __future__ import annotations

import io
import json
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
import sentencepiece
import tokenizers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from features import BASE, FeatureConfigError, FeatureSet
from features.errors import OperatorError
from features.text_normalizer import (
    CHT2CHS,
    FILTER,
    LOWER2UPPER,
    REMOVE_SPACE,
    SBC2DBC,
    SPLITCHRS,
    UPPER2LOWER,
    TextNormalizer,
)

Build = Callable[..., FeatureSet]

TEXTS = ["abc efg", "hij", "xyz abc", "the quick brown fox", "efg hij klm", "0 1 2", "quick abc"] * 20


@pytest.fixture(scope="module")
def bpe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte-level tokenizer.json, padded and with a special token."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300, special_tokens=["[CLS]"], initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()
    )
    made.train_from_iterator(TEXTS, trainer)
    made.post_processor = tokenizers.processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 0)])
    made.enable_padding()
    path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
    made.save(str(path))
    return path


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SentencePiece model."""
    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=content, vocab_size=30, minloglevel=2
    )
    path = tmp_path_factory.mktemp("pieces") / "spiece.model"
    path.write_bytes(content.getvalue())
    return path


def tokenize(path: Path, options: str = "", kind: str = "tokenize_feature") -> str:
    return (
        f'feature_configs {{ {kind} {{ feature_name: "f" expression: "item:f" embedding_dim: 4 '
        f'vocab_file: "{path.name}" asset_dir: "{path.parent}" {options} }} }}'
    )


def ids(features: FeatureSet, column: list[str | None]) -> tuple[list[int], list[int]]:
    rows = pa.record_batch({"f": pa.array(column, pa.string())})
    assert not features.validate(rows)
    tensor = features.parse(rows).sparse_features[BASE]
    return tensor.values().tolist(), tensor.lengths().tolist()


def expected(path: Path, texts: Sequence[str]) -> tuple[list[int], list[int]]:
    """Each text by itself, through the library's own file reader."""
    if path.suffix == ".json":
        plain = tokenizers.Tokenizer.from_file(str(path))
        found = [plain.encode(text, add_special_tokens=False).ids if text else [] for text in texts]
    else:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        found = [processor.encode(text) for text in texts]
    return [token for row in found for token in row], [len(row) for row in found]


def test_tokens_are_those_of_each_text_alone(build: Build, bpe: Path) -> None:
    features = build(tokenize(bpe))
    assert ids(features, ["abc efg", "", "hij", None, "abc efg"]) == expected(
        bpe, ["abc efg", "", "hij", "", "abc efg"]
    )
    table = features.features[0].embedding
    assert table is not None and table.num_embeddings == tokenizers.Tokenizer.from_file(str(bpe)).get_vocab_size()


def test_pieces_are_those_of_each_text_alone(build: Build, pieces: Path) -> None:
    features = build(tokenize(pieces, 'tokenizer_type: "sentencepiece" default_value: "xyz"'))
    assert ids(features, ["abc efg", "", "hij"]) == expected(pieces, ["abc efg", "xyz", "hij"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(column=st.lists(st.none() | st.text(max_size=12) | st.sampled_from(TEXTS), max_size=8))
def test_tokens_of_any_text_equal_the_library(build: Build, bpe: Path, column: list[str | None]) -> None:
    default = ids(build(tokenize(bpe, 'default_value: "xyz"')), column)
    assert default == expected(bpe, [text or "xyz" for text in column])


def test_each_distinct_text_is_tokenized_once(build: Build, bpe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from features.tokenizers import BytePairs

    seen: list[str] = []
    encode = BytePairs.encode
    features = build(tokenize(bpe))

    def counted(self: BytePairs, texts: Sequence[str]) -> list[list[int]]:
        seen.extend(texts)
        return encode(self, texts)

    monkeypatch.setattr(BytePairs, "encode", counted)
    ids(features, ["abc", "hij", "abc", None, "hij"] * 50)
    assert sorted(text for text in seen if text) == ["abc", "hij"]


def test_a_texts_case_is_normalized_before_it_is_tokenized(build: Build, bpe: Path) -> None:
    normal = "text_normalizer { norm_options: TEXT_UPPER2LOWER }"
    assert ids(build(tokenize(bpe, normal)), ["ABC efg", "HIJ"]) == expected(bpe, ["abc efg", "hij"])


def test_tokens_may_be_the_steps_of_a_sequence(build: Build, bpe: Path) -> None:
    features = build(tokenize(bpe, 'tokens_as_sequence: true sequence_length: 20 default_value: "xyz"'))
    assert features.features[0].is_sequence and features.features[0].value_dim == 1
    rows = pa.record_batch({"f": ["abc efg", "", "hij"]})
    batch = features.parse(rows)
    assert (batch.sparse_features[BASE].values().tolist(), batch.sparse_features[BASE].lengths().tolist()) == expected(
        bpe, ["abc efg", "xyz", "hij"]
    )
    assert batch.sequence_mulval_lengths == {}
    zero = build(tokenize(bpe, "tokens_as_sequence: true sequence_length: 20"))
    assert ids(zero, ["", "hij"]) == expected(bpe, ["0", "hij"])


@pytest.mark.parametrize("default", ["", "xyz"])
def test_sequences_of_texts_have_the_tokens_of_each_step(build: Build, bpe: Path, default: str) -> None:
    features = build(tokenize(bpe, f'default_value: "{default}"', "sequence_tokenize_feature"))
    batch = features.parse(pa.record_batch({"f": ["abc efg;hij", "", "hij"]}))
    values, lengths = expected(bpe, ["abc efg", "hij", default or "0", "hij"])
    steps = batch.sequence_mulval_lengths[BASE]
    assert batch.sparse_features[BASE].values().tolist() == values
    assert (steps.values().tolist(), steps.lengths().tolist()) == (lengths, [2, 1, 1])


@pytest.mark.parametrize(
    ("options", "text", "made"),
    [
        ({SBC2DBC}, "ＡＢｃ　１！", "ABc 1!"),
        ({LOWER2UPPER}, "abcß", "ABCß"),
        ({UPPER2LOWER, SBC2DBC}, "ＡB", "ab"),
        ({LOWER2UPPER, UPPER2LOWER}, "aB", "AB"),
        ({CHT2CHS}, "漢字體abc", "汉字体abc"),
        ({FILTER}, "a-b,c。d $e 中", "abcd e 中"),
        ({REMOVE_SPACE}, "a b\tc", "abc"),
        ({SPLITCHRS}, "a中b", "a 中 b"),
        ({LOWER2UPPER, SBC2DBC, CHT2CHS, FILTER}, "ａb，漢-1", "AB汉1"),
    ],
)
def test_text_normalizer(options: set[int], text: str, made: str) -> None:
    assert TextNormalizer(options=frozenset(options))(text) == made


def test_text_normalizer_lets_long_texts_pass() -> None:
    normalizer = TextNormalizer(options=frozenset({LOWER2UPPER}), max_length=3)
    assert [normalizer("abc"), normalizer("abcd")] == ["ABC", "abcd"]


def test_stop_characters_are_read_from_their_file(build: Build, bpe: Path, tmp_path: Path) -> None:
    (tmp_path / "stop").write_text("ax\nz\n")
    normal = f'text_normalizer {{ norm_options: TEXT_FILTER stop_char_file: "{tmp_path}/stop" }}'
    assert ids(build(tokenize(bpe, normal)), ["xabzc"]) == expected(bpe, ["bc"])


@pytest.mark.parametrize(
    ("options", "content", "message"),
    [
        ('tokenizer_type: "word"', "{}", "must be bpe or sentencepiece"),
        ("", "{}", "is no bpe tokenizer"),
        ('tokenizer_type: "sentencepiece"', "junk", "is no sentencepiece tokenizer"),
        ("tokens_as_sequence: true", None, "needs sequence_length"),
    ],
)
def test_tokenizers_that_cannot_be_read_say_why(
    build: Build, bpe: Path, tmp_path: Path, options: str, content: str | None, message: str
) -> None:
    path = bpe
    if content is not None:
        path = tmp_path / "file"
        path.write_text(content)
    with pytest.raises(FeatureConfigError, match=message):
        build(tokenize(path, options))
    with pytest.raises(FeatureConfigError, match="is no bpe tokenizer"):
        build(tokenize(tmp_path / "nowhere"))


def test_the_digest_is_that_of_the_tokenizers_content(build: Build, bpe: Path, tmp_path: Path) -> None:
    other = json.loads(bpe.read_text())
    other["truncation"] = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
    (tmp_path / bpe.name).write_text(json.dumps(other))
    (tmp_path / "same.json").write_text(bpe.read_text())
    digests = [build(tokenize(path)).digest() for path in (bpe, tmp_path / "same.json", tmp_path / bpe.name)]
    assert digests[0] == digests[1] != digests[2]
    assert ids(build(tokenize(tmp_path / bpe.name)), ["abc efg"])[1] == [1]


# --- custom


def custom(name: str, library: str, params: str, options: str = "", kind: str = "custom_feature") -> str:
    return (
        f'feature_configs {{ {kind} {{ feature_name: "f" operator_name: "{name}" operator_lib_file: "{library}" '
        f"operator_params {{ {params} }} {options} }} }}"
    )


def param(key: str, text: str) -> str:
    return f'fields {{ key: "{key}" value {{ string_value: "{text}" }} }}'


EDIT = "pyfg/lib/libedit_distance.so"
REGEX = "pyfg/lib/libregex_replace.so"
SEQUENCE = "pyfg/lib/libseq_expr.so"
PAIR = 'expression: "user:a" expression: "item:b"'


def test_edit_distance_equals_the_reference(build: Build) -> None:
    rows = pa.record_batch({"a": ["裙子", None], "b": ["连衣裙", "x"]})
    features = build(custom("EditDistance", EDIT, param("encoding", "utf-8"), PAIR))
    assert features.parse(rows).dense_features[BASE].values().tolist() == [[3], [0]]
    bounds = build(
        custom("EditDistance", EDIT, param("encoding", "utf-8"), f"{PAIR} boundaries: [0,5,10] embedding_dim: 4")
    )
    assert bounds.parse(rows).sparse_features[BASE].values().tolist() == [1, 1]


def levenshtein(a: Sequence[object], b: Sequence[object]) -> int:
    """The textbook's table."""
    last = list(range(len(b) + 1))
    for at, one in enumerate(a, 1):
        row = [at]
        for place, other in enumerate(b, 1):
            row.append(min(last[place] + 1, row[-1] + 1, last[place - 1] + (one != other)))
        last = row
    return last[-1]


TEXT = st.text(st.sampled_from("ab中é "), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6), characters=st.booleans())
def test_edit_distance_equals_the_textbook(build: Build, pairs: list[tuple[str, str]], characters: bool) -> None:
    encoding = param("encoding", "utf-8") if characters else ""
    features = build(custom("EditDistance", EDIT, encoding, PAIR))
    rows = pa.record_batch({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    found = features.parse(rows).dense_features[BASE].values().reshape(-1).tolist()
    assert found == [levenshtein(a, b) if characters else levenshtein(a.encode(), b.encode()) for a, b in pairs]


def replaced(build: Build, params: str, text: str) -> str:
    """What a regex stub hands on, as a batch of one hashed word says it: by the id of the text."""
    features = build(custom("RegexReplace", REGEX, params, 'expression: "item:a" zch { zch_size: 9 } embedding_dim: 4'))
    tensor = features.parse(pa.record_batch({"a": [text]})).sparse_features[BASE]
    return str(tensor.values().tolist())


def hashed(build: Build, text: str) -> str:
    plain = (
        'feature_configs { id_feature { feature_name: "f" expression: "item:a" zch { zch_size: 9 } embedding_dim: 4 } }'
    )
    tensor = build(plain).parse(pa.record_batch({"a": pa.array([[text]])})).sparse_features[BASE]
    return str(tensor.values().tolist())


@pytest.mark.parametrize(
    ("params", "text", "made"),
    [
        (param("regex_pattern", "\\\\|") + param("replacement", " "), "中华|人民|共和国", "中华 人民 共和国"),
        (param("regex_patten", "\\\\|") + param("replacement", " "), "中华|人民|共和国", "中华 人民 共和国"),
        (
            param("regex_pattern", "(?s)^(.{0,3}).*$") + param("replacement", "\\\\1E"),
            "中华人民共和国", "中华人E",
        ),
        (
            param("regex_pattern", "abc") + param("replacement", "x")
            + 'fields { key: "icase" value { bool_value: true } }',
            "ABCd", "xd",
        ),
        (
            param("regex_pattern", "b") + param("replacement", "x")
            + 'fields { key: "replace_all" value { bool_value: false } }',
            "abcb", "axcb",
        ),
    ],
)  # fmt: skip
def test_regex_replace_equals_the_reference(build: Build, params: str, text: str, made: str) -> None:
    assert replaced(build, params, text) == hashed(build, made)


@pytest.mark.parametrize(("text", "made"), [("a", "a"), ("b#c(d)", "bc")])
def test_regex_replace_takes_several_patterns(build: Build, text: str, made: str) -> None:
    patterns = "".join(f'values {{ string_value: "{pattern}" }}' for pattern in ("\\\\|", "#", "\\\\(.*\\\\)"))
    params = f'fields {{ key: "regex_pattern" value {{ list_value {{ {patterns} }} }} }}'
    assert replaced(build, params, text) == hashed(build, made)


def test_regex_replace_makes_numbers_of_what_is_left(build: Build) -> None:
    options = 'expression: "item:a" num_buckets: 100 embedding_dim: 4 default_value: "0"'
    features = build(
        custom("RegexReplace", REGEX, param("regex_pattern", "[^0-9]") + param("replacement", ""), options)
    )
    rows = pa.record_batch({"a": ["id7", "id42", None]})
    assert not features.validate(rows)
    assert features.parse(rows).sparse_features[BASE].values().tolist() == [7, 42, 0]


def test_sequence_formulas_equal_the_reference(build: Build) -> None:
    options = 'expression: "user:cur_time" expression: "user:clk_time_seq" sequence_delim: "|"'
    config = custom("SeqExpr", SEQUENCE, param("formula", "cur_time-clk_time_seq"), options, "sequence_custom_feature")
    features = build(config)
    for times, seen, values, lengths in (
        (["10", "10"], ["2|3", "4"], [8, 7, 6], [2, 1]),
        ([10, None, 5], ["2|3", "4", None], [8, 7, 0, 0], [2, 1, 1]),
    ):
        rows = pa.record_batch({"cur_time": times, "clk_time_seq": seen})
        assert not features.validate(rows)
        made = features.parse(rows).sequence_dense_features["f"]
        assert (made.values().reshape(-1).tolist(), made.lengths().tolist()) == (values, lengths)


def test_spherical_distance_equals_the_reference(build: Build) -> None:
    names = ("lng", "lat", "u_lng", "u_lat")
    options = " ".join(f'expression: "user:{name}"' for name in names) + (
        ' sequence_delim: "|" boundaries: [0, 150, 1500] embedding_dim: 4'
    )
    config = custom("SeqExpr", SEQUENCE, param("formula", "spherical_distance"), options, "sequence_custom_feature")
    rows = pa.record_batch(
        {
            "lng": ["113.728|116.4074", "121.4737", None],
            "lat": ["23.002|39.9042", "31.2304", None],
            "u_lng": [113.1057, 116.4074, None],
            "u_lat": [22.5614, 39.9042, None],
        }
    )
    features = build(config)
    assert not features.validate(rows)
    assert features.parse(rows).sparse_features[BASE].values().tolist() == [1, 3, 2, 1]


class PriceGap:
    """A user's operator: how far apart two numbers are."""

    seen = 0

    def __init__(self, parameters: dict[str, object]) -> None:
        self._scale = float(str(parameters["scale"]))

    def __call__(self, a: Sequence[str], b: Sequence[str]) -> list[float]:
        PriceGap.seen += len(a)
        return [self._scale * abs(float(x) - float(y)) for x, y in zip(a, b, strict=True)]


SCALE = 'fields { key: "scale" value { number_value: 2 } }'


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("acme_operators")
    module.PriceGap = PriceGap  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "acme_operators", module)
    return module


@pytest.mark.usefixtures("acme")
def test_users_operators_see_each_distinct_row_once(build: Build) -> None:
    features = build(custom("gap", "acme_operators:PriceGap", SCALE, f'{PAIR} default_value: "-1"'))
    PriceGap.seen = 0
    rows = pa.record_batch({"a": ["1", "1", None, "5"] * 10, "b": ["4", "4", "4", "4"] * 10})
    assert features.parse(rows).dense_features[BASE].values().reshape(-1).tolist() == [6, 6, -1, 2] * 10
    assert PriceGap.seen == 2


@pytest.mark.usefixtures("acme")
def test_only_the_rows_that_make_a_users_operator_fail_are_bad(build: Build) -> None:
    features = build(custom("gap", "acme_operators:PriceGap", SCALE, f'{PAIR} default_value: "-1"'))
    rows = pa.record_batch({"a": ["1", "x", None, "5", "x", "7"], "b": ["4", "4", "4", "4", "5", "y"]})
    errors = features.validate(rows)
    assert errors.rows.tolist() == [1, 4, 5]
    assert set(errors.reasons) == {"operator_failed"}
    for name, value in (("feature", "'f'"), ("column 'a'", "'x'"), ("column 'b'", "'4'"), ("ValueError", "'x'")):
        assert name in errors.details[0] and value in errors.details[0]
    good = features.parse(rows.filter(pa.array(~errors.bad)))
    assert good.dense_features[BASE].values().reshape(-1).tolist() == [6, -1, 2]


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (lambda a, b: [[1.0, 2.0]] * len(a), "were expected"),
        (lambda a, b: ["1", 2.0][-len(a) :], "some results are texts and some are not"),
        (lambda a, b: [1.0], "1 results for 2 rows"),
    ],
)
def test_operators_that_give_something_else_are_named(
    build: Build, acme: types.ModuleType, results: object, message: str
) -> None:
    acme.Wrong = lambda parameters: results  # type: ignore[attr-defined]
    features = build(custom("gap", "acme_operators:Wrong", "", f'{PAIR} default_value: "-1"'))
    with pytest.raises(OperatorError, match=f"feature 'f': its operator failed: .*({message})"):
        features.parse(pa.record_batch({"a": ["1", "2"], "b": ["4", "5"]}))


def test_operators_that_fail_on_rows_together_only_stop_everything(build: Build, acme: types.ModuleType) -> None:
    acme.Wrong = lambda parameters: lambda a, b: [1.0]  # type: ignore[attr-defined]
    features = build(custom("gap", "acme_operators:Wrong", "", PAIR))
    with pytest.raises(OperatorError, match="1 results for 2 rows"):
        features.validate(pa.record_batch({"a": ["1", "2"], "b": ["4", "5"]}))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (custom("Mine", "lib/libmine.so", "", PAIR), "compiled operators cannot be loaded"),
        (custom("Other", EDIT, "", PAIR), "operator 'Other' is not in"),
        (custom("RegexReplace", EDIT, "", PAIR), "operator 'RegexReplace' is not in"),
        (custom("EditDistance", EDIT, param("encoding", "gbk"), PAIR), "must be utf-8 or latin"),
        (custom("EditDistance", EDIT, "", 'expression: "user:a"'), "takes 2 inputs, not 1"),
        (custom("RegexReplace", REGEX, param("regex_pattern", "("), 'expression: "user:a"'), "Invalid regular"),
        (custom("gap", "no_such_module:Gap", "", PAIR), "cannot be imported"),
        (custom("gap", "fractions:Fraction", "", PAIR), "'fractions:Fraction' cannot be made: TypeError"),
        (custom("SeqExpr", SEQUENCE, param("formula", "a-c"), PAIR), "'c' is no variable"),
        (custom("SeqExpr", SEQUENCE, "", PAIR), "needs operator_params with a formula"),
    ],
)
def test_operators_that_cannot_be_made_say_why(build: Build, config: str, message: str) -> None:
    with pytest.raises(FeatureConfigError, match=message):
        build(config)


def test_a_stub_of_text_may_be_tokenized(build: Build, bpe: Path) -> None:
    pattern = param("regex_pattern", "(?s)^(.{0,8}).*$") + param("replacement", "\\\\1")
    stub = custom("RegexReplace", REGEX, pattern, 'expression: "item:title" stub_type: true default_value: ""')
    tokens = (
        tokenize(bpe, "tokens_as_sequence: true sequence_length: 9")
        .replace("item:f", "feature:cut")
        .replace('feature_name: "f"', 'feature_name: "t"')
    )
    features = build(stub.replace('feature_name: "f"', 'feature_name: "cut"') + tokens, mode="FG_DAG")
    rows = pa.record_batch({"title": ["abc efg hij klm", "hij", None]})
    errors = features.validate(rows)
    assert not errors, errors.details
    made = features.parse(rows).sparse_features[BASE]
    assert (made.values().tolist(), made.lengths().tolist()) == expected(bpe, ["abc efg ", "hij", "0"])


def test_several_texts_are_no_text(build: Build, bpe: Path) -> None:
    features = build(tokenize(bpe))
    errors = features.validate(pa.record_batch({"f": [["abc"], ["abc", "hij"], []]}))
    assert (errors.rows.tolist(), errors.reasons) == ([1], ("several_texts",))
    wrong = features.validate(pa.record_batch({"f": [1.5]}))
    assert wrong.reasons == ("wrong_type",)


def test_bytes_that_are_no_text_make_a_bad_row(build: Build, bpe: Path) -> None:
    offsets, data = pa.py_buffer(bytes([0, 0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0])), pa.py_buffer(b"abc\xff\xfe")
    column = pa.StringArray.from_buffers(2, offsets, data)
    errors = build(tokenize(bpe)).validate(pa.record_batch({"f": column}))
    assert (errors.rows.tolist(), errors.reasons) == ([1], ("invalid_utf8",))
