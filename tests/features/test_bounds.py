"""A row that would take all time or memory is refused, and its neighbours are not."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from features import FeatureSet

Build = Callable[..., FeatureSet]
MANY = [f"k{k}" for k in range(5000)]
MAP = "\x1d".join(f"{key}:1" for key in MANY)
NESTED = "k0^" + ",".join(f"{key}:1" for key in MANY)


@pytest.mark.parametrize(
    ("kind", "options", "big", "small"),
    [
        (
            "combo_feature", 'expression: ["user:a", "user:b"] hash_bucket_size: 9 embedding_dim: 4',
            (MANY, MANY), (["x"], ["y"]),
        ),
        ("lookup_feature", 'map: "user:a" key: "user:b"', (MAP, MANY), ("x:1", ["x"])),
        ("kv_dot_product", 'query: "user:a" document: "user:b"', (MAP, MANY), ("x:1", ["x"])),
        (
            "overlap_feature", 'query: "user:a" title: "user:b" method: "proximity_avg_dist"',
            (MANY, ["x"]), (["x"], ["x"]),
        ),
        ("match_feature", 'nested_map: "user:a" pkey: "user:b" skey: "user:b"', (NESTED, MANY), ("x^x:1", ["x"])),
        ("match_feature", 'nested_map: "user:a" pkey: "user:b" skey: "ALL"', (NESTED, ["k0"]), ("x^x:1", ["x"])),
    ],
)  # fmt: skip
def test_a_row_with_too_many_values_is_refused(
    build: Build, kind: str, options: str, big: tuple[object, object], small: tuple[object, object]
) -> None:
    features = build(f'feature_configs {{ {kind} {{ feature_name: "f" {options} }} }}')
    rows = pa.record_batch({"a": pa.array([big[0], small[0]]), "b": pa.array([big[1], small[1]])})
    errors = features.validate(rows)
    assert (errors.rows.tolist(), errors.reasons) == ([0], ("too_many_values",))
    features.parse(rows.slice(1))
