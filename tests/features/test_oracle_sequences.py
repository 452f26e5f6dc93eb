"""Sequences and texts against plain loops over Python values, on random data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from features import BASE, FeatureSet
from stream.hashing import hash_bytes

Build = Callable[..., FeatureSet]
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

STEP = st.text(st.sampled_from("ab中é🙂 \x1d|0"), max_size=4)
ROWS = st.lists(st.none() | st.text(st.sampled_from("ab中é🙂 \x1d|;0"), max_size=14), min_size=1, max_size=8)


def config(options: str) -> str:
    return (
        f'feature_configs {{ sequence_id_feature {{ feature_name: "f" expression: "item:f" embedding_dim: 4 '
        f'hash_bucket_size: 1000 separator: "|" {options} }} }}'
    )


def found(features: FeatureSet, column: pa.Array) -> list[list[list[int]]]:
    """Ids of each step of each row, from the batch."""
    rows = pa.record_batch({"f": column})
    assert not features.validate(rows)
    batch = features.parse(rows)
    ids, steps = batch.sparse_features[BASE], batch.sequence_mulval_lengths[BASE]
    cuts = np.cumsum(steps.values().numpy())[:-1]
    flat = [part.tolist() for part in np.split(ids.values().numpy(), cuts)]
    ends = np.cumsum(steps.lengths().numpy())
    made = [flat[end - length : end] for end, length in zip(ends, steps.lengths().tolist(), strict=True)]
    assert ids.lengths().tolist() == [sum(map(len, row)) for row in made]
    return made


def step_ids(step: str, default: str, limit: int) -> list[int]:
    values = [value for value in step.replace("|", "\x1d").split("\x1d") if value]
    kept = values[:limit] if limit else values
    return [hash_bytes(value.encode()) % 1000 for value in kept or [default]]


@SETTINGS
@given(column=ROWS, length=st.integers(1, 4), limit=st.sampled_from([0, 2]), default=st.sampled_from(["", "xyz"]))
def test_texts_equal_a_plain_loop(
    build: Build, column: list[str | None], length: int, limit: int, default: str
) -> None:
    features = build(config(f'sequence_length: {length} value_dim: {limit} default_value: "{default}"'))
    expected = [
        [step_ids(step, default or "0", limit) for step in (row.split(";") if row else [""])[:length]] for row in column
    ]
    assert found(features, pa.array(column, pa.string())) == expected


@SETTINGS
@given(
    column=st.lists(st.none() | st.lists(st.none() | STEP, max_size=5), min_size=1, max_size=6), start=st.integers(0, 2)
)
def test_lists_of_texts_equal_a_plain_loop(build: Build, column: list[list[str | None] | None], start: int) -> None:
    features = build(config("sequence_length: 3 value_dim: 0"))
    array = pa.array(column, pa.list_(pa.string())).slice(start)
    expected = [[step_ids(step or "", "0", 0) for step in (row or [""])[:3]] for row in column[start:]]
    if len(array):
        assert found(features, array) == expected


@SETTINGS
@given(
    column=st.lists(st.none() | st.lists(st.lists(st.integers(0, 99), max_size=3), max_size=4), min_size=1, max_size=6),
    large=st.booleans(),
)
def test_lists_of_lists_equal_a_plain_loop(build: Build, column: list[list[list[int]] | None], large: bool) -> None:
    text = config("value_dim: 0").replace("hash_bucket_size: 1000", "num_buckets: 100")
    kind = pa.large_list(pa.list_(pa.int32())) if large else pa.list_(pa.list_(pa.int64()))
    expected = [[step or [0] for step in row or [[]]] for row in column]
    assert found(build(text), pa.array(column, kind)) == expected


NUMBERS = st.lists(st.none() | st.lists(st.integers(-50, 50), min_size=0, max_size=4), min_size=1, max_size=6)


@SETTINGS
@given(data=st.data(), times=NUMBERS)
def test_scalars_are_broadcast_and_sequences_zipped(
    build: Build, data: st.DataObject, times: list[list[int] | None]
) -> None:
    nows = data.draw(st.lists(st.none() | st.integers(-9, 9), min_size=len(times), max_size=len(times)))
    others = [data.draw(st.none() | st.just([2 * item for item in row or []])) for row in times]
    text = (
        'feature_configs { sequence_expr_feature { feature_name: "f" expression: "now + t * o" default_value: "7" '
        'variables: "user:now" variables: "item:t" variables: "item:o" } }'
    )
    rows = pa.record_batch(
        {
            "now": pa.array(nows, pa.int64()),
            "t": pa.array(times, pa.list_(pa.int64())),
            "o": pa.array(others, pa.list_(pa.int64())),
        }
    )
    features = build(text)
    assert not features.validate(rows)
    made = features.parse(rows).sequence_dense_features["f"]
    expected: list[list[float]] = []
    for now, row, other in zip(nows, times, others, strict=True):
        steps = max(len(row or []), len(other or []), 1)
        if now is None or not row or not other:
            expected.append([7.0] * steps)
        else:
            expected.append([now + t * o for t, o in zip(row, other, strict=True)])
    assert made.lengths().tolist() == [len(row) for row in expected]
    assert made.values().reshape(-1).tolist() == [value for row in expected for value in row]


@SETTINGS
@given(a=ROWS, b=st.lists(STEP, min_size=8, max_size=8))
def test_a_row_is_the_same_whoever_its_neighbours_are(build: Build, a: list[str | None], b: list[str]) -> None:
    text = (
        'feature_configs { sequence_combo_feature { feature_name: "f" expression: "user:b" expression: "item:a" '
        "hash_bucket_size: 1000 embedding_dim: 4 value_dim: 0 } }"
    )
    features = build(text)
    rows = pa.record_batch({"a": pa.array(a, pa.string()), "b": pa.array(b[: len(a)], pa.string())})
    whole = features.parse(rows).sparse_features[BASE]
    at = 0
    for row, length in enumerate(whole.lengths().tolist()):
        alone = features.parse(rows.slice(row, 1)).sparse_features[BASE]
        assert alone.values().tolist() == whole.values()[at : at + length].tolist()
        at += length
