"""Kinds of several columns against plain loops over Python values, on random data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from features import FeatureSet
from features.floats import format_floats
from features.generator import Dense, Sparse
from features.overlap_kernels import METHODS
from stream.hashing import hash_bytes

Build = Callable[..., FeatureSet]
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
RAW_IDS = 2**63 - 1

TOKEN = st.sampled_from(["a", "b", "ab", "中文", "é", "x y", "1", "-7", "9223372036854775808", "0.5", "nan", "inf"])
TEXT = st.none() | st.lists(TOKEN | st.just(""), max_size=4).map("\x1d".join)
KINDS = st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])


def tokens(text: str | None) -> list[str]:
    return [token for token in (text or "").split("\x1d") if token]


def column(cells: Sequence[object], kind: pa.DataType, cut: int) -> pa.Array:
    array = pa.array(cells, pa.string())
    made = array.dictionary_encode() if pa.types.is_dictionary(kind) else array.cast(kind)
    return made.slice(cut)


def run(build: Build, kind: str, options: str, **columns: pa.Array) -> tuple[list[bool], Sparse | Dense]:
    """Which rows are bad, and what the feature makes of the others; the judgement does not depend on neighbours."""
    features = build(f'feature_configs {{ {kind} {{ feature_name: "f" {options} }} }}')
    rows = pa.record_batch(columns)
    bad = features.validate(rows).bad
    for row in range(rows.num_rows):
        assert bool(features.validate(rows.slice(row, 1))) == bool(bad[row])
    good = rows.filter(pa.array(~bad))
    assert not features.validate(good)
    made = features.made(good)["f"]
    features.parse(good)
    assert isinstance(made, Sparse | Dense)
    return bad.tolist(), made


def rows_of(made: Sparse | Dense) -> list[list[int]]:
    assert isinstance(made, Sparse)
    lengths = [1] * len(made.values) if made.lengths is None else made.lengths.tolist()
    ends = list(itertools.accumulate(lengths))
    return [made.values[end - size : end].tolist() for end, size in zip(ends, lengths, strict=True)]


def same_numbers(made: Sparse | Dense, expected: Sequence[float]) -> None:
    assert isinstance(made, Dense)
    np.testing.assert_array_equal(made.values, np.array(expected, np.float32))


def number(text: str) -> float | None:
    try:
        return float(text) if text == text.strip() and "_" not in text else None
    except ValueError:
        return None


@SETTINGS
@given(
    rows=st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=8),
    kind=KINDS,
    cut=st.integers(0, 2),
    default=st.sampled_from(["", "no"]),
)
def test_combo_equals_a_product(
    build: Build, rows: list[tuple[str | None, str | None, str | None]], kind: pa.DataType, cut: int, default: str
) -> None:
    options = (
        f'expression: ["user:a", "user:b", "item:c"] zch {{ zch_size: 9 }} embedding_dim: 4 default_value: "{default}"'
    )
    cells = list(zip(*rows, strict=True)) or [(), (), ()]
    columns = {name: column(cell, kind, cut) for name, cell in zip("abc", cells, strict=True)}
    _, made = run(build, "combo_feature", options, **columns)
    expected = []
    for row in rows[cut:]:
        joined = ["_".join(parts) for parts in itertools.product(*map(tokens, row))] or ([default] if default else [])
        expected.append([hash_bytes(text.encode()) % RAW_IDS for text in joined])
    assert rows_of(made) == expected


def folded(values: list[float], combiner: str) -> float:
    narrow = [np.float32(value) for value in values]
    gaps = [abs(b - a) for a, b in itertools.pairwise(narrow)] or [np.float32(0)]
    total = narrow[0]
    for value in narrow[1:]:
        total = np.float32(total + value)
    return float(
        {
            "sum": total, "mean": np.float32(total / np.float32(len(narrow))), "min": min(narrow), "max": max(narrow),
            "count": np.float32(len(narrow)), "gap_min": min(gaps), "gap_max": max(gaps),
        }[combiner]
    )  # fmt: skip


FINITE = st.floats(-1e6, 1e6, width=32)
COMBINERS = st.sampled_from(["sum", "mean", "min", "max", "count", "gap_min", "gap_max"])


@SETTINGS
@given(
    rows=st.lists(
        st.none() | st.lists(FINITE | st.sampled_from([math.nan, math.inf, -math.inf]), max_size=5), max_size=8
    ),
    combiner=COMBINERS,
    text=st.booleans(),
)
def test_combine_equals_a_loop(build: Build, rows: list[list[float] | None], combiner: str, text: bool) -> None:
    cells = [None if row is None else "\x1d".join([*map(repr, row), "oops"]) for row in rows] if text else rows
    options = f'expression: "user:v" combiner: "{combiner}" default_value: "7.5"'
    with np.errstate(over="ignore", invalid="ignore"):
        bad, made = run(
            build, "combine_feature", options, v=pa.array(cells, pa.string() if text else pa.list_(pa.float64()))
        )
    expected = []
    for row, is_bad in zip(rows, bad, strict=True):
        finite = all(map(math.isfinite, row or []))
        if finite or not row:
            assert not is_bad
            expected.append(folded(row, combiner) if row else 7.5)
        elif not is_bad:
            # A count, or the smaller side of an infinity, is finite.
            assert combiner in ("count", "min", "max", "gap_min", "gap_max")
            expected.append(None)
    assert isinstance(made, Dense)
    for found, wanted in zip(made.values.tolist(), expected, strict=True):
        assert math.isfinite(found) and (wanted is None or found == wanted)


KEYS = st.sampled_from(["a", "b", "1", "2", "中"])
PAIRS = st.none() | st.lists(st.tuples(KEYS, FINITE), max_size=5)


def pair_columns(rows: list[list[tuple[str, float]] | None], form: str) -> pa.Array:
    if form == "map":
        return pa.array(rows, pa.map_(pa.string(), pa.float64()))
    parts = [None if row is None else [f"{key}:{value!r}" for key, value in row] for row in rows]
    if form == "list":
        return pa.array(parts, pa.list_(pa.string()))
    return pa.array([None if part is None else "\x1d".join(part) for part in parts], pa.string())


FORMS = st.sampled_from(["map", "list", "text"])


@SETTINGS
@given(
    rows=st.lists(st.tuples(PAIRS, st.none() | st.lists(KEYS, max_size=4)), max_size=8),
    form=FORMS,
    combiner=st.sampled_from(["sum", "mean", "min", "max", "count"]),
)
def test_lookup_equals_dictionaries(
    build: Build, rows: list[tuple[list[tuple[str, float]] | None, list[str] | None]], form: str, combiner: str
) -> None:
    maps, keys = pair_columns([row[0] for row in rows], form), pa.array([row[1] for row in rows], pa.list_(pa.string()))
    options = f'map: "user:m" key: "item:k" default_value: "-3" combiner: "{combiner}"'
    bad, made = run(build, "lookup_feature", options, m=maps, k=keys)
    assert not any(bad)
    hits = [[dict(pairs or [])[key] for key in wanted or [] if key in dict(pairs or [])] for pairs, wanted in rows]
    same_numbers(made, [folded(values, combiner) if values else -3 for values in hits])
    options = 'map: "user:m" key: "item:k" zch { zch_size: 9 } embedding_dim: 4 default_value: "" need_key: true'
    _, made = run(build, "lookup_feature", options, m=maps, k=keys)
    if form == "map":
        return
    labels = [
        [f"{key}_{dict(pairs or [])[key]!r}" for key in wanted or [] if key in dict(pairs or [])]
        for pairs, wanted in rows
    ]
    assert rows_of(made) == [[hash_bytes(label.encode()) % RAW_IDS for label in row] for row in labels]


@SETTINGS
@given(rows=st.lists(st.tuples(PAIRS, PAIRS), max_size=8), one=FORMS, other=FORMS)
def test_kv_dot_product_equals_a_sum(
    build: Build,
    rows: list[tuple[list[tuple[str, float]] | None, list[tuple[str, float]] | None]],
    one: str,
    other: str,
) -> None:
    left, right = pair_columns([row[0] for row in rows], one), pair_columns([row[1] for row in rows], other)
    bad, made = run(build, "kv_dot_product", 'query: "user:q" document: "item:d" default_value: "5"', q=left, d=right)
    assert not any(bad)
    expected = []
    for query, document in rows:
        if not query or not document:
            expected.append(5.0)
            continue
        q, d = dict(query), dict(document)
        order = [key for place, (key, _) in enumerate(query) if key not in [later for later, _ in query[place + 1 :]]]
        expected.append(sum(float(np.float32(q[key])) * float(np.float32(d[key])) for key in order if key in d))
    same_numbers(made, expected)


INNER = st.lists(st.tuples(KEYS, st.integers(0, 9)), max_size=4)
OUTER = st.none() | st.lists(st.tuples(KEYS, INNER.filter(bool)), max_size=3)


@SETTINGS
@given(
    rows=st.lists(st.tuples(OUTER, st.lists(KEYS, max_size=2), st.lists(KEYS, max_size=2)), max_size=8),
    arrow=st.booleans(),
    mode=st.sampled_from(["hit", "pkey", "skey"]),
)
def test_match_equals_dictionaries(
    build: Build,
    rows: list[tuple[list[tuple[str, list[tuple[str, int]]]] | None, list[str], list[str]]],
    arrow: bool,
    mode: str,
) -> None:
    inner = [
        None if outer is None else [(pk, ",".join(f"{sk}:{v}" for sk, v in held)) for pk, held in outer]
        for outer, _, _ in rows
    ]
    texts = [None if row is None else "|".join(f"{pk}^{held}" for pk, held in row) for row in inner]
    maps = pa.array(inner, pa.map_(pa.string(), pa.string())) if arrow else pa.array(texts, pa.string())
    p, s = (pa.array([row[at] for row in rows], pa.list_(pa.string())) for at in (1, 2))
    keys = {"hit": ("item:p", "item:s"), "pkey": ("ALL", "item:s"), "skey": ("item:p", "ALL")}[mode]
    options = (
        f'nested_map: "user:m" pkey: "{keys[0]}" skey: "{keys[1]}" num_buckets: 10 embedding_dim: 4 default_value: ""'
    )
    bad, made = run(build, "match_feature", options, m=maps, p=p, s=s)
    assert not any(bad)
    expected = []
    for outer, pks, sks in rows:
        held = {(pk, sk): value for pk, entries in outer or [] for sk, value in entries}
        if mode == "hit":
            expected.append([held[pk, sk] for pk in pks for sk in sks if (pk, sk) in held])
        else:
            at, wanted = (1, sks) if mode == "pkey" else (0, pks)
            expected.append([value for key in wanted for pair, value in held.items() if pair[at] == key])
    if mode == "hit":
        assert rows_of(made) == expected
    else:
        assert [sorted(row) for row in rows_of(made)] == [sorted(row) for row in expected]


def overlap(method: str, q: list[str], t: list[str]) -> float:
    """The table of feature_generation.md 3.6, word for word."""
    if not q or not t:
        return 0.0
    common = sum(term in t for term in q)
    runs = [at for at in range(len(t) - len(q) + 1) if t[at : at + len(q)] == q]
    matched = sorted({term for term in q if term in t})
    pairs = [
        min(abs(i - j) for i, x in enumerate(t) for j, y in enumerate(t) if (x, y) == (a, b))
        for a, b in itertools.combinations(matched, 2)
    ]
    covers = [b - a for a in range(len(t)) for b in range(a + 1, len(t) + 1) if set(q) <= set(t[a:b])]
    alone = len(t) + 1 if not matched else 0
    return {
        "query_common_ratio": common / len(q), "title_common_ratio": common / len(t), "is_equal": float(q == t),
        "is_contain": float(bool(runs)), "index_of": runs[0] if runs else -1,
        "proximity_min_cover": min(covers) if covers else 0, "proximity_min_dist": min(pairs) if pairs else alone,
        "proximity_max_dist": max(pairs) if pairs else alone,
        "proximity_avg_dist": sum(pairs) / len(pairs) if pairs else alone,
    }[method]  # fmt: skip


TERMS = st.lists(st.sampled_from("abcd"), max_size=6)


@SETTINGS
@given(rows=st.lists(st.tuples(TERMS, TERMS), max_size=8), method=st.sampled_from(METHODS))
def test_overlap_equals_the_table(build: Build, rows: list[tuple[list[str], list[str]]], method: str) -> None:
    q, t = (pa.array(["\x1d".join(row[at]) for row in rows], pa.string()) for at in (0, 1))
    bad, made = run(build, "overlap_feature", f'query: "user:q" title: "item:t" method: "{method}"', q=q, t=t)
    assert not any(bad)
    same_numbers(made, [overlap(method, *row) for row in rows])


MASKS = st.sampled_from(["true", "FALSE", "1", "0", "2.5", "0.0", "x", "nan", "inf"])


@SETTINGS
@given(
    rows=st.lists(st.tuples(st.lists(TOKEN, max_size=4), st.lists(MASKS, max_size=4)), max_size=8),
    default=st.sampled_from(["", "no"]),
)
def test_bool_mask_equals_a_loop(build: Build, rows: list[tuple[list[str], list[str]]], default: str) -> None:
    v, m = (pa.array([row[at] for row in rows], pa.list_(pa.string())) for at in (0, 1))
    options = f'expression: ["user:v", "user:m"] zch {{ zch_size: 9 }} embedding_dim: 4 default_value: "{default}"'
    bad, made = run(build, "bool_mask_feature", options, v=v, m=m)
    assert bad == [len(values) != len(masks) or not {"x", "nan"}.isdisjoint(masks) for values, masks in rows]
    true = {"true", "1", "2.5", "inf"}
    expected = []
    for (values, masks), is_bad in zip(rows, bad, strict=True):
        if not is_bad:
            kept = [value for value, mask in zip(values, masks, strict=True) if mask in true]
            kept = kept if values else ([default] if default else [])
            expected.append([hash_bytes(value.encode()) % RAW_IDS for value in kept])
    assert rows_of(made) == expected


@SETTINGS
@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20), narrow=st.booleans())
def test_floats_are_written_as_c_does(values: list[float], narrow: bool) -> None:
    with np.errstate(over="ignore"):
        array = np.array(values, np.float32 if narrow else np.float64)
    array = array[np.isfinite(array)]
    data, starts, ends = format_floats(array)
    written = [bytes(data[a:b]).decode() for a, b in zip(starts, ends, strict=True)]
    assert written == [f"{value:g}" if value else f"{value:.0f}" for value in array.tolist()]


@SETTINGS
@given(rows=st.lists(st.none() | st.floats() | st.sampled_from([1e22, 5e-324]), max_size=12))
def test_float_ids_are_hashes_of_their_text(build: Build, rows: list[float | None]) -> None:
    bad, made = run(
        build, "id_feature", 'expression: "user:f" embedding_dim: 4 zch { zch_size: 9 }', f=pa.array(rows, pa.float64())
    )
    assert bad == [row is not None and not math.isfinite(row) for row in rows]
    expected = [
        [] if row is None else [hash_bytes(f"{row:g}".encode()) % RAW_IDS]
        for row in rows
        if row is None or math.isfinite(row)
    ]
    assert rows_of(made) == expected
