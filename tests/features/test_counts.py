"""What features count: null, defaulted, out of vocabulary, truncated and rejected, whatever the kind."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
import pytest

from features import FeatureSet
from features.counts import NULL, Counts

Build = Callable[..., FeatureSet]
ID = 'expression: "user:f" embedding_dim: 4'


def counted(build: Build, kind: str, options: str, **columns: object) -> dict[str, int]:
    features = build(f'feature_configs {{ {kind} {{ feature_name: "f" {options} }} }}')
    rows = pa.record_batch({name: pa.array(cells) for name, cells in columns.items()})
    errors = features.validate(rows)
    features.parse(rows.filter(pa.array(~errors.bad)))
    return {outcome: count for (_, outcome), count in features.counts.totals().items()}


@pytest.mark.parametrize(
    ("kind", "options", "columns", "expected"),
    [
        (
            "id_feature", f'{ID} vocab_list: ["a", "b"] default_value: "x" value_dim: 2',
            {"f": ["a\x1db\x1da", "c\x1dd", None, ""]},
            {"null": 2, "defaulted": 2, "out_of_vocabulary": 2, "truncated": 1},
        ),
        ("id_feature", f"{ID} num_buckets: 10", {"f": [0, 9, 10, -1, None]}, {"null": 1, "out_of_vocabulary": 2}),
        (
            "id_feature", f"{ID} num_buckets: 10", {"f": ["0", "00", "10", "x", "99999999999999999999"]},
            {"out_of_vocabulary": 2, "rejected": 1},
        ),
        (
            "raw_feature", 'expression: "user:f" default_value: "1"', {"f": [1.0, None, float("nan")]},
            {"null": 1, "defaulted": 1, "rejected": 1},
        ),
        (
            "combo_feature", 'expression: ["user:f", "user:g"] embedding_dim: 4 hash_bucket_size: 9 default_value: "d"',
            {"f": ["a", ""], "g": ["b", "c"]}, {"null": 1, "defaulted": 1},
        ),
        (
            "lookup_feature", 'map: "user:m" key: "item:f"', {"m": ["a:1", "a:1", "b:x"], "f": ["a", "b", "b"]},
            {"null": 1, "defaulted": 1, "rejected": 1},
        ),
        (
            "combine_feature", f"{ID} num_buckets: 3", {"f": ["1\x1d1", "1\x1d2", ""]},
            {"null": 1, "out_of_vocabulary": 1},
        ),
        (
            "bool_mask_feature", 'expression: ["user:f", "user:g"] embedding_dim: 4 vocab_list: "a" default_value: "a"',
            {"f": ["a", "b", ""], "g": ["0", "1", ""]}, {"null": 1, "defaulted": 1, "out_of_vocabulary": 1},
        ),
        (
            "sequence_id_feature", f"{ID} num_buckets: 9 sequence_length: 2", {"f": ["1;2;3", "1;2", "", "1;;3;"]},
            {"null": 2, "defaulted": 2, "truncated": 2},
        ),
        (
            "sequence_id_feature", f"{ID} num_buckets: 9 sequence_length: 2", {"f": [[1, 2, 3], [1, 20], [], None]},
            {"null": 2, "defaulted": 2, "truncated": 1, "out_of_vocabulary": 1},
        ),
    ],
)  # fmt: skip
def test_features_count_what_is_not_as_it_should_be(
    build: Build, kind: str, options: str, columns: dict[str, object], expected: dict[str, int]
) -> None:
    assert counted(build, kind, options, **columns) == expected


def test_good_rows_count_nothing(build: Build) -> None:
    assert counted(build, "id_feature", f"{ID} num_buckets: 9", f=[1, 2]) == {}


def test_a_thread_that_is_silent_does_not_silence_others() -> None:
    counts = Counts()
    with counts.silent():
        counts.add("f", NULL, 1)
        other = threading.Thread(target=counts.add, args=("f", NULL, 2))
        other.start()
        other.join()
    counts.add("f", NULL, 4)
    assert counts.totals() == {("f", NULL): 6}
