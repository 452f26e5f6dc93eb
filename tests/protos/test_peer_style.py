"""Configurations as the peer writes them: required fields unset, placeholders for paths, fields of other systems."""

from protos.dispositions import check
from protos.load import format_config, parse_config

CAT, INT = 26, 13


def criteo() -> str:
    """A DeepFM on 13 numbers and 26 ids whose columns were generated before (FG_NONE), from a table in MaxCompute."""
    raw = "".join(f'feature_configs {{ raw_feature {{ feature_name: "int_{i}" }} }}\n' for i in range(INT))
    ids = "".join(
        f'feature_configs {{ id_feature {{ feature_name: "cat_{i}" num_buckets: {i + 3} embedding_dim: 16 }} }}\n'
        for i in range(CAT)
    )
    cats = " ".join(f'feature_names: "cat_{i}"' for i in range(CAT))
    ints = " ".join(f'feature_names: "int_{i}"' for i in range(INT))
    return f"""
    train_input_path: "odps://{{PROJECT}}/tables/train"
    eval_input_path: "odps://{{PROJECT}}/tables/eval"
    model_dir: "experiments/deepfm"
    train_config {{
      sparse_optimizer {{ adagrad_optimizer {{ lr: 0.001 }} constant_learning_rate {{}} }}
      dense_optimizer {{ adam_optimizer {{ lr: 0.001 }} constant_learning_rate {{}} }}
      num_epochs: 1
    }}
    eval_config {{ num_steps: 100 }}
    data_config {{
      batch_size: 8192 dataset_type: OdpsDataset fg_mode: FG_NONE label_fields: "label" num_workers: 2
      odps_data_quota_name: ""
    }}
    {raw}{ids}
    model_config {{
      feature_groups {{ group_name: "wide" {cats} group_type: WIDE }}
      feature_groups {{ group_name: "fm" {cats} group_type: DEEP }}
      feature_groups {{ group_name: "deep" {ints} {cats} group_type: DEEP }}
      deepfm {{ deep {{ hidden_units: [512, 256, 128] }} final {{ hidden_units: [64] }} }}
      metrics {{ auc {{}} }}
      losses {{ binary_cross_entropy {{}} }}
      kernel: TRITON
    }}
    """


def test_a_peers_configuration_parses_and_round_trips() -> None:
    config = parse_config(criteo(), json=False)
    assert len(config.feature_configs) == INT + CAT
    assert parse_config(format_config(config), json=False) == config


def test_a_peers_configuration_is_told_what_is_different_here_and_nothing_else() -> None:
    report = check(parse_config(criteo(), json=False))
    assert report.errors == ()
    assert [(notice.path, notice.disposition) for notice in report.notices] == [
        ("data_config.num_workers", "mapped"),
        ("model_config.kernel", "mapped"),
    ]


def test_a_peers_configuration_runs_on_files_after_one_change() -> None:
    text = criteo().replace("OdpsDataset", "ParquetDataset").replace("odps://{PROJECT}/tables/train", "data/*.parquet")
    assert check(parse_config(text, json=False)).errors == ()


def test_a_peers_sequence_model_names_each_part_that_is_not_there() -> None:
    text = """
    model_dir: "m"
    data_config { dataset_type: ParquetDataset fg_mode: FG_DAG label_fields: "clk" }
    feature_configs { id_feature { feature_name: "item" expression: "item:item" embedding_dim: 8 num_buckets: 9 } }
    feature_configs { sequence_feature { sequence_name: "click_50" sequence_length: 50 features {
      id_feature { feature_name: "item" expression: "item:item" embedding_dim: 8 num_buckets: 9 } } } }
    model_config {
      feature_groups { group_name: "seq" feature_names: "item" feature_names: "click_50__item" group_type: SEQUENCE }
      multi_tower_din { din_towers { input: "seq" } }
      losses { binary_cross_entropy {} }
    }
    """
    assert [error.path for error in check(parse_config(text, json=False)).errors] == [
        "model_config.feature_groups[0].group_type",
        "model_config.multi_tower_din",
    ]


def test_features_that_no_model_reads_are_told() -> None:
    text = criteo().replace('feature_names: "int_3"', "").replace('feature_names: "int_4"', "")
    notices = [str(notice) for notice in check(parse_config(text, json=False)).notices]
    assert [notice for notice in notices if notice.startswith("feature_configs")] == [
        "feature_configs: 'int_3', 'int_4' in no feature group: no model reads it, though it is made, and requests "
        "must bring its columns"
    ]


def test_stubs_and_what_other_features_are_made_of_need_no_group() -> None:
    text = """
    data_config { fg_mode: FG_DAG }
    feature_configs { expr_feature { feature_name: "score" expression: "x * 2" variables: "user:x" stub_type: true } }
    feature_configs { raw_feature { feature_name: "half" expression: "user:half" } }
    feature_configs { expr_feature { feature_name: "sum" expression: "half" variables: "feature:half" } }
    model_config { feature_groups { group_name: "deep" feature_names: "sum" group_type: DEEP } }
    """
    report = check(parse_config(text, json=False))
    assert [notice for notice in report.notices if notice.path == "feature_configs"] == []
