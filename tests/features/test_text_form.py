"""What features make of a row as text: the reference's recorded line, and more."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from features import FeatureSet
from features.text_form import as_texts

Build = Callable[..., FeatureSet]

CONFIG = """
feature_configs { id_feature { feature_name: "f_cat_a" num_buckets: 100 embedding_dim: 4 } }
feature_configs { id_feature { feature_name: "f_tag_b" num_buckets: 100 embedding_dim: 4 weighted: true } }
feature_configs { raw_feature { feature_name: "f_int_a" } }
feature_configs { raw_feature { feature_name: "f_int_b" value_dim: 2 } }
feature_configs { lookup_feature { feature_name: "f_lookup_a" } }
feature_configs { sequence_feature {
  sequence_name: "click_seq" sequence_length: 50 sequence_delim: ";"
  features { id_feature { feature_name: "f_cat_a" num_buckets: 100 embedding_dim: 4 } }
  features { raw_feature { feature_name: "f_int_a" } }
  features { id_feature { feature_name: "f_tag_b" num_buckets: 100 embedding_dim: 4 value_dim: 0 } } } }
"""

ROWS = pa.record_batch(
    {
        "f_cat_a": ["1", ""],
        "f_tag_b": ["5:0.2\x034:0.1", ""],
        "f_int_a": [7.0, 1e10],
        "f_int_b": ["27.0\x0337.0", "0\x03-1.5"],
        "f_lookup_a": [0.1, 0.25],
        "click_seq__f_cat_a": ["10;11;12", ""],
        "click_seq__f_int_a": ["14.0;15.0;16.0", "1"],
        "click_seq__f_tag_b": ["17\x0318;19;20\x0321", ""],
    }
)


def test_texts_are_those_of_the_reference(build: Build) -> None:
    features = build(CONFIG, mode="FG_NONE")
    assert not features.validate(ROWS)
    full, sparse = as_texts(features, ROWS).to_pylist()
    assert full == (
        "f_cat_a:1 | f_tag_b:4:0.1,5:0.2 | f_int_a:7.0 | f_int_b:27.0,37.0 | f_lookup_a:0.1 | "
        "click_seq__f_cat_a:10;11;12 | click_seq__f_int_a:14.0;15.0;16.0 | click_seq__f_tag_b:17,18;19;20,21"
    )
    assert sparse == (
        "f_cat_a: | f_tag_b: | f_int_a:1e+10 | f_int_b:0.0,-1.5 | f_lookup_a:0.25 | "
        "click_seq__f_cat_a: | click_seq__f_int_a:1.0 | click_seq__f_tag_b:"
    )
    assert as_texts(features, ROWS.slice(0, 0)).to_pylist() == []
