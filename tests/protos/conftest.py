"""Configurations to start from."""

from collections.abc import Callable

import pytest

from protos.load import parse_config
from protos.pipeline_pb2 import EasyRecConfig

GOOD = """
model_dir: "runs/model"
train_config {
  sparse_optimizer { rowwise_adagrad_optimizer { lr: 0.02 } constant_learning_rate {} }
  dense_optimizer { adam_optimizer { lr: 0.001 } constant_learning_rate {} }
}
data_config {
  batch_size: 64
  dataset_type: KafkaDataset
  fg_mode: FG_NORMAL
  label_fields: "clicked"
  input_fields { input_name: "user_id" input_type: INT64 }
  input_fields { input_name: "item_id" input_type: STRING }
  input_fields { input_name: "price" input_type: FLOAT }
  input_fields { input_name: "clicked" input_type: INT64 }
}
feature_configs {
  id_feature { feature_name: "user_id" expression: "user:user_id" embedding_dim: 16 zch { zch_size: 1000 } }
}
feature_configs {
  id_feature { feature_name: "item_id" expression: "item:item_id" embedding_dim: 16 hash_bucket_size: 100 }
}
feature_configs { raw_feature { feature_name: "price" expression: "item:price" } }
model_config {
  feature_groups { group_name: "wide" feature_names: "user_id" feature_names: "item_id" group_type: WIDE }
  feature_groups { group_name: "fm" feature_names: "user_id" feature_names: "item_id" group_type: DEEP }
  feature_groups {
    group_name: "deep" feature_names: "user_id" feature_names: "item_id" feature_names: "price" group_type: DEEP
  }
  deepfm { deep { hidden_units: 32 } }
  losses { binary_cross_entropy {} }
  metrics { auc {} }
}
stream_config { brokers: "127.0.0.1:9092" topic: "clicks" format: JSON }
"""


@pytest.fixture
def good() -> Callable[[], EasyRecConfig]:
    """A configuration without a finding, anew at each call."""
    return lambda: parse_config(GOOD, json=False)


@pytest.fixture
def good_text() -> str:
    """The same as text."""
    return GOOD
