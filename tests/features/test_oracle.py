"""Every fast path against a plain loop over Python values, on random data."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from features import BASE, WEIGHTED, FeatureSet
from features.elements import text_tokens, to_floats
from features.spec import MAX_RAW_ID

Build = Callable[..., FeatureSet]
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

MASK = 2**64 - 1


def murmur(data: bytes) -> int:
    """MurmurHash64A as the reference says it in words."""
    multiplier = 0xC6A4A7935BD1E995
    state = 0xC70F6907 ^ (len(data) * multiplier & MASK)
    whole = len(data) // 8 * 8
    for at in range(0, whole, 8):
        word = int.from_bytes(data[at : at + 8], "little") * multiplier & MASK
        word = (word ^ word >> 47) * multiplier & MASK
        state = (state ^ word) * multiplier & MASK
    if data[whole:]:
        state = (state ^ int.from_bytes(data[whole:], "little")) * multiplier & MASK
    state = (state ^ state >> 47) * multiplier & MASK
    return state ^ state >> 47


def identity(options: str) -> str:
    return f'feature_configs {{ id_feature {{ feature_name: "f" expression: "user:f" embedding_dim: 4 {options} }} }}'


def raw(options: str) -> str:
    return f'feature_configs {{ raw_feature {{ feature_name: "f" expression: "user:f" {options} }} }}'


def flat(rows: list[list[int]]) -> tuple[list[int], list[int]]:
    return [value for row in rows for value in row], [len(row) for row in rows]


def ids(features: FeatureSet, column: pa.Array) -> tuple[list[int], list[int]]:
    rows = pa.record_batch({"f": column})
    assert not features.validate(rows)
    tensor = features.parse(rows).sparse_features[BASE]
    return tensor.values().tolist(), tensor.lengths().tolist()


TEXTS = st.lists(
    st.none() | st.text(st.characters(codec="utf-8") | st.sampled_from("\x1d|ab"), max_size=30), max_size=12
)
TYPES = st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])


@SETTINGS
@given(texts=TEXTS, kind=TYPES, cut=st.integers(0, 3), default=st.sampled_from(["", "none"]), limit=st.integers(0, 2))
def test_text_ids_equal_a_plain_loop(
    build: Build, texts: list[str | None], kind: pa.DataType, cut: int, default: str, limit: int
) -> None:
    options = f'zch {{ zch_size: 50 }} separator: "|" default_value: "{default}" value_dim: {limit}'
    rows = []
    for text in texts[cut:]:
        tokens = [token for part in (text or "").split("\x1d") for token in part.split("|") if token]
        tokens = tokens[:limit] if limit else tokens
        rows.append([murmur(token.encode()) % (2**63 - 1) for token in tokens or ([default] if default else [])])
    column = pa.array(texts, pa.string())
    column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind)
    assert ids(build(identity(options)), column.slice(cut)) == flat(rows)


INTEGERS = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 120), max_size=20)


@SETTINGS
@given(values=INTEGERS, cut=st.integers(0, 3), default=st.sampled_from(["", "7"]))
def test_integer_ids_equal_a_plain_loop(build: Build, values: list[int | None], cut: int, default: str) -> None:
    column = pa.array(values, pa.int64()).slice(cut)
    hashed, numbered = [], []
    for value in values[cut:]:
        text = default if value is None else str(value)
        hashed.append([murmur(text.encode()) % 1000] if text else [])
        numbered.append([int(text) if 0 <= int(text) < 100 else 0] if text else [])
    assert ids(build(identity(f'hash_bucket_size: 1000 default_value: "{default}"')), column) == flat(hashed)
    assert ids(build(identity(f'num_buckets: 100 default_value: "{default}"')), column) == flat(numbered)


@SETTINGS
@given(
    values=st.lists(st.none() | st.lists(st.text("abc", max_size=2), max_size=4), max_size=10),
    missing=st.integers(0, 2),
)
def test_vocabularies_equal_a_plain_loop(build: Build, values: list[list[str] | None], missing: int) -> None:
    words = ["a", "bc", "cc", "ab"]
    options = f'vocab_list: ["a", "bc", "cc", "ab"] default_bucketize_value: {missing}'
    rows = [[words.index(w) if w in words else missing for w in row or [] if w] for row in values]
    assert ids(build(identity(options)), pa.array(values, pa.list_(pa.string()))) == flat(rows)


JOINED = st.lists(st.integers(-2, 2**64), min_size=1, max_size=4).map(lambda row: "\x03".join(map(str, row)))
ENCODED = st.one_of(st.none(), st.just(""), JOINED, st.text("0123456789-+ .\x03", max_size=24))


def _strict(token: str) -> int | None:
    """An id as FG_NONE reads it, or None."""
    digits = token.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        return None
    return int(token) if 0 <= int(token) <= MAX_RAW_ID else None


@SETTINGS
@given(texts=st.lists(ENCODED, max_size=12), default=st.sampled_from(["", "5"]))
def test_encoded_text_equals_a_plain_loop(build: Build, texts: list[str | None], default: str) -> None:
    features = build(identity(f'zch {{ zch_size: 9 }} fg_encoded_default_value: "{default}"'), mode="FG_NONE")
    read = [[_strict(token) for token in text.split("\x03")] if text else [] for text in texts]
    rows = pa.record_batch({"f": pa.array(texts, pa.string())})
    errors = features.validate(rows)
    assert errors.bad.tolist() == [None in row for row in read]
    good = rows.filter(pa.array(~errors.bad))
    fill = [int(default)] if default else []
    expected = flat([[value for value in row if value is not None] or fill for row in read if None not in row])
    tensor = features.parse(good).sparse_features[BASE]
    assert (tensor.values().tolist(), tensor.lengths().tolist()) == expected


@SETTINGS
@given(
    values=st.lists(st.none() | st.floats(width=64) | st.floats(-10, 10), max_size=20),
    kind=st.sampled_from([pa.float32(), pa.float64()]),
    cut=st.integers(0, 3),
)
def test_numbers_equal_a_plain_loop(build: Build, values: list[float | None], kind: pa.DataType, cut: int) -> None:
    features = build(raw('default_value: "2.5"'))
    with np.errstate(over="ignore"):
        narrowed = [None if value is None else float(np.float32(value)) for value in values]
    rows = pa.record_batch({"f": pa.array(narrowed if kind == pa.float32() else values, kind).slice(cut)})
    errors = features.validate(rows)
    assert errors.bad.tolist() == [value is not None and not math.isfinite(value) for value in narrowed[cut:]]
    batch = features.parse(rows.filter(pa.array(~errors.bad)))
    expected = [2.5 if value is None else value for value in narrowed[cut:] if value is None or math.isfinite(value)]
    assert batch.dense_features[BASE].values().reshape(-1).tolist() == expected


@SETTINGS
@given(values=st.lists(st.floats(-4, 4, width=32), max_size=30))
def test_buckets_equal_a_plain_loop(build: Build, values: list[float]) -> None:
    bounds = [np.float32(bound) for bound in (-1.5, 0.0, 0.1, 2.0)]
    options = raw("embedding_dim: 4 boundaries: [-1.5, 0, .1, 2]")
    expected = [[sum(bool(bound <= np.float32(value)) for bound in bounds)] for value in values]
    assert ids(build(options), pa.array(values, pa.float32())) == flat(expected)


DECIMALS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=6).map(str),
    st.from_regex(r"[-+]?[0-9]{1,25}(\.[0-9]{0,25})?([eE][-+]?[0-9]{1,3})?", fullmatch=True).filter(str.isascii),
    st.text("0123456789.eE+-naif x", max_size=8),
)


@SETTINGS
@given(texts=st.lists(DECIMALS, max_size=20))
def test_float_parser_rounds_as_python_does(texts: list[str]) -> None:
    values, status = to_floats(text_tokens(texts))
    for text, value, state in zip(texts, values.tolist(), status.tolist(), strict=True):
        try:
            expected = float(text) if text == text.strip() and "_" not in text else None
        except ValueError:
            expected = None
        assert (state == 0) == (expected is not None), text
        if expected is not None:
            assert value == expected or (math.isnan(value) and math.isnan(expected)), text


PAIRS = st.lists(
    st.none() | st.lists(st.tuples(st.integers(0, 99), st.floats(-8, 8, width=32)), max_size=4), min_size=1, max_size=10
)


@SETTINGS
@given(rows=PAIRS, default=st.sampled_from(["", "3"]))
def test_weighted_ids_are_the_same_as_text_lists_and_maps(
    build: Build, rows: list[list[tuple[int, float]] | None], default: str
) -> None:
    features = build(identity(f'num_buckets: 100 weighted: true default_value: "{default}"'))
    fill = [(int(default), 1.0)] if default else []
    pairs = [list(row or []) or fill for row in rows]
    text = [None if row is None else "\x1d".join(f"{key}:{weight!r}" for key, weight in row) for row in rows]
    parts = [None if row is None else [f"{key}:{weight!r}" for key, weight in row] for row in rows]
    maps = pa.array(rows, pa.map_(pa.int64(), pa.float32()))
    for column in (pa.array(text, pa.string()), pa.array(parts, pa.list_(pa.string())), maps):
        batch = pa.record_batch({"f": column})
        assert not features.validate(batch)
        tensor = features.parse(batch).sparse_features[WEIGHTED]
        assert tensor.values().tolist() == [key for row in pairs for key, _ in row]
        assert tensor.weights().tolist() == [weight for row in pairs for _, weight in row]
        assert tensor.lengths().tolist() == [len(row) for row in pairs]


@SETTINGS
@given(
    count=st.integers(0, 2000), cut=st.integers(0, 5), spoil=st.none() | st.integers(0, 1999), seed=st.integers(0, 9)
)
def test_plain_columns_equal_the_generated_ones(
    build: Build, count: int, cut: int, spoil: int | None, seed: int
) -> None:
    """The copy by address, and its check, against the ordinary way (a null makes it take that)."""
    rng = np.random.default_rng(seed)
    text = "".join(
        f'feature_configs {{ id_feature {{ feature_name: "i{k}" embedding_dim: 4 zch {{ zch_size: 9 }} }} }}\n'
        f'feature_configs {{ raw_feature {{ feature_name: "r{k}" }} }}\n'
        for k in range(3)
    )
    features = build(text, mode="FG_NONE")
    columns = {f"i{k}": rng.integers(0, 2**63 - 2, count + cut) for k in range(3)}
    columns |= {f"r{k}": rng.random(count + cut, np.float32) for k in range(3)}
    if spoil is not None and spoil < count:
        columns["i1"][cut + spoil] = -1
        columns["r2"][cut + spoil] = np.inf
    rows = pa.record_batch({name: pa.array(values) for name, values in columns.items()}).slice(cut)
    expected = [] if spoil is None or spoil >= count else [spoil]
    assert features.validate(rows).rows.tolist() == expected
    batch = features.parse(rows)
    values = np.concatenate([columns[f"i{k}"][cut:] for k in range(3)])
    assert (batch.sparse_features[BASE].values().numpy() == values).all()
    assert batch.sparse_features[BASE].lengths().tolist() == [1] * 3 * count
    dense = np.stack([columns[f"r{k}"][cut:] for k in range(3)], axis=1)
    assert (batch.dense_features[BASE].values().numpy() == dense).all()
