"""`headrace features` (that its ids are those of training and of requests: tests/e2e/test_same_ids.py)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

CONFIG = """
model_dir: "unused"
train_config {
  sparse_optimizer { rowwise_adagrad_optimizer { lr: 0.02 } constant_learning_rate {} }
  dense_optimizer { adam_optimizer { lr: 0.001 } constant_learning_rate {} }
}
data_config { batch_size: 4 dataset_type: ParquetDataset fg_mode: FG_DAG label_fields: "clicked" }
feature_configs { id_feature { feature_name: "user" expression: "user:user" embedding_dim: 4 zch { zch_size: 50 } } }
feature_configs { id_feature { feature_name: "tags" expression: "item:tags" embedding_dim: 4 hash_bucket_size: 100 } }
feature_configs { raw_feature { feature_name: "age" expression: "user:age" boundaries: [18, 40, 65] embedding_dim: 4 } }
feature_configs { combo_feature { feature_name: "age_tag" expression: "feature:age" expression: "item:tags"
  hash_bucket_size: 1000 embedding_dim: 4 } }
feature_configs { expr_feature { feature_name: "gap" expression: "now - at"
  variables: "user:now" variables: "item:at" } }
feature_configs { custom_feature { feature_name: "near" operator_name: "EditDistance"
  operator_lib_file: "pyfg/lib/libedit_distance.so" expression: "user:user" expression: "item:tags" } }
feature_configs { sequence_feature { sequence_name: "clicks" sequence_length: 3
  features { id_feature { feature_name: "tag" expression: "item:tag" hash_bucket_size: 100 value_dim: 0
    embedding_dim: 4 } }
  features { expr_feature { feature_name: "ago" expression: "now - at" variables: "user:now" variables: "item:at"
    boundaries: [1, 10, 100] embedding_dim: 4 } } } }
model_config {
  feature_groups { group_name: "deep" feature_names: "user" feature_names: "tags" feature_names: "age"
    feature_names: "age_tag" feature_names: "gap" feature_names: "near" group_type: DEEP }
  multi_tower { towers { input: "deep" mlp { hidden_units: 4 } } final { hidden_units: 4 } }
  losses { binary_cross_entropy {} }
}
"""
USER = {"user": "ann", "age": 33.5, "now": 100, "clicks__tag": "a\x1db;c;;d", "clicks__at": "99;95;1;2"}
ITEMS = {"tags": ["x\x1dyy", "", "zz", "aé"], "at": [98, 90, None, 1]}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A configuration, and rows of one user with several items."""
    config, data = tmp_path / "pipeline.config", tmp_path / "rows.parquet"
    config.write_text(CONFIG)
    rows = {name: [value] * 4 for name, value in USER.items()} | ITEMS | {"clicked": [1.0, 0.0, 1.0, 0.0]}
    pq.write_table(pa.table(rows), data)
    return config, data


def test_features_shows_what_the_first_rows_make(headrace: Callable[..., Any], files: tuple[Path, Path]) -> None:
    config, data = files
    ran = headrace("features", config, "--data", data, "--rows", "2")
    assert ran.code == 0
    assert "row 1" in ran.out and "row 2" not in ran.out
    assert "age=33.5 -> [1]  (row age_emb[4])" in ran.out
    assert "raw id of zch user_emb[50]" in ran.out
    shown = json.loads(headrace("features", config, "--data", data, "--json").out)
    assert len(shown) == 4
    gap = next(item for item in shown[0]["features"] if item["feature"] == "gap")
    assert (gap["inputs"], gap["made"]) == ({"now": 100, "at": 98}, 2.0)


def test_features_tells_rows_that_cannot_be_used(headrace: Callable[..., Any], files: tuple[Path, Path]) -> None:
    config, data = files
    rows = pq.read_table(data)
    at = rows.schema.get_field_index("now")
    pq.write_table(rows.set_column(at, "now", pa.array(["100", "soon", "100", "100"])), data)
    ran = headrace("features", config, "--data", data)
    assert ran.code == 0
    assert "row 1  cannot be used: feature " in ran.out and "'soon'" in ran.out
    written = headrace("features", config, "--data", data, "--out", data.with_name("out.parquet"))
    assert "4 rows, 1 of them cannot be used and are null" in written.out


def test_features_compares_with_what_is_expected(headrace: Callable[..., Any], files: tuple[Path, Path]) -> None:
    config, data = files
    expected = data.with_name("expected.parquet")
    assert headrace("features", config, "--data", data, "--out", expected).code == 0
    same = headrace("features", config, "--data", data, "--compare", expected)
    assert (same.code, same.out) == (0, "4 rows are equal in every feature\n")
    table = pq.read_table(expected)
    at = table.schema.get_field_index("age")
    changed = table.set_column(at, "age", pa.array([[1], [1], [2], [1]])).drop_columns(["gap"])
    pq.write_table(changed, expected)
    other = headrace("features", config, "--data", data, "--compare", expected)
    assert other.code == 1
    assert "gap: no such column" in other.out
    assert "age: 1 of 4 rows differ" in other.out and "row 2: [1], expected [2]" in other.out
    pq.write_table(changed.slice(1), expected)
    short = headrace("features", config, "--data", data, "--compare", expected)
    assert short.code == 2 and "has 3 rows" in short.errors
    for content, word in ((b"no parquet", "no readable Parquet file"), (None, "expected.parquet")):
        expected.unlink() if content is None else expected.write_bytes(content)
        wrong = headrace("features", config, "--data", data, "--compare", expected)
        assert wrong.code == 2 and word in wrong.errors and wrong.errors.count("\n") == 1
