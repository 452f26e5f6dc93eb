"""The batch of no rows that every trainer makes before it reads any."""

import pytest
from google.protobuf import text_format

from features import create_features
from protos.pipeline_pb2 import EasyRecConfig

KINDS = (
    'raw_feature { feature_name: "f" expression: "user:f" value_dim: 2 }',
    'id_feature { feature_name: "f" expression: "user:f" embedding_dim: 4 num_buckets: 9 weighted: true }',
    'lookup_feature { feature_name: "f" map: "user:m" key: "item:k" value_dim: 2 }',
    'match_feature { feature_name: "f" nested_map: "user:m" pkey: "item:k" skey: "item:s" }',
    'kv_dot_product { feature_name: "f" query: "user:q" document: "item:d" }',
    'overlap_feature { feature_name: "f" query: "user:q" title: "item:t" method: "query_common_ratio" }',
    'expr_feature { feature_name: "f" expression: "a * b" variables: ["user:a", "item:b"] }',
    'sequence_raw_feature { feature_name: "f" expression: "user:f" sequence_length: 4 }',
    'sequence_raw_feature { feature_name: "f" expression: "user:f" sequence_length: 4 value_dim: 2 }',
    'sequence_feature { sequence_name: "h" sequence_length: 4 features { '
    'raw_feature { feature_name: "p" expression: "user:p" } } }',
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["FG_NORMAL", "FG_DAG"])
def test_empty_batch_is_made_of_any_kind_of_feature(kind: str, mode: str) -> None:
    data = f'data_config {{ dataset_type: ParquetDataset fg_mode: {mode} label_fields: "y" }}'
    config = text_format.Parse(f"{data} feature_configs {{ {kind} }}", EasyRecConfig())
    batch = create_features(config).empty()
    assert batch.size == 0
    assert batch.labels["y"].shape == (0,)
