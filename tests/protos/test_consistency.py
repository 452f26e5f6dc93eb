"""What the fields of a configuration must say together: one change to a good one, one error that names it."""

import pytest

from protos.dispositions import check
from protos.load import parse_config

FEATURE = """
feature_configs {
  id_feature { feature_name: "x" expression: "user:user_id" embedding_dim: 16 num_buckets: 5 %s }
}
"""


def errors_of(text: str) -> list[str]:
    return [str(error) for error in check(parse_config(text, json=False)).errors]


def changed(good: str, old: str, new: str) -> str:
    assert old in good
    return good.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('model_dir: "runs/model"', "", "model_dir: is not set"),
        ("batch_size: 64", "batch_size: 0", "data_config.batch_size: 0 trains nothing"),
        ("dataset_type: KafkaDataset", "", "data_config.dataset_type: is not set"),
        (
            'model_dir: "runs/model"',
            'model_dir: "runs/model" train_input_path: "odps://p/tables/t"',
            "train_input_path: 'odps://p/tables/t' and dataset_type contradict each other",
        ),
        ("batch_size: 64", "batch_size: 64 batch_cost_size: 9", "batch_cost_size: needs sample_cost_field"),
        ("batch_size: 64", 'batch_size: 64 sample_cost_field: "x"', "sample_cost_field: needs batch_cost_size"),
        ('label_fields: "clicked"', "", "data_config.label_fields: is empty"),
        (
            'label_fields: "clicked"',
            'label_fields: "cliked"',
            "'cliked' is not among input_fields; did you mean clicked?",
        ),
        ('"price" input_type: FLOAT', '"price"', "data_config.input_fields: have no input_type: price"),
        ('input_name: "price"', 'input_name: "user_id"', "'user_id' is declared 2 times"),
        ('expression: "item:price"', "", "price') is not set; write side:column"),
        ('expression: "item:price"', 'expression: "price"', "is 'price'; write side:column"),
        ('expression: "item:price"', 'expression: "shop:price"', "is 'shop:price'; write side:column"),
        ('expression: "item:price"', 'expression: "item:prise"', "reads column 'prise'"),
        ('feature_name: "price"', 'feature_name: "user_id"', "'user_id' is the name of 2 features"),
        (
            "embedding_dim: 16 hash_bucket_size: 100",
            "hash_bucket_size: 100",
            "embedding_dim: (feature 'item_id') is not set",
        ),
        ("hash_bucket_size: 100", "", "(feature 'item_id') is not set and no other bucketizer is"),
        (
            "hash_bucket_size: 100",
            "hash_bucket_size: 9 num_buckets: 9",
            "is a second bucketizer beside hash_bucket_size",
        ),
        ("hash_bucket_size: 100", "hash_bucket_size: 0", "holds 0 rows"),
        ("zch_size: 1000", "zch_size: 0", "holds 0 rows"),
        ("hash_bucket_size: 100", 'vocab_list: "a" vocab_list: "a"', "holds 'a' 2 times"),
        ('expression: "item:price"', 'expression: "item:price" boundaries: [2, 1] embedding_dim: 16', "do not ascend"),
        ("hash_bucket_size: 100", 'hash_bucket_size: 100 pooling: "max"', "is 'max'; write sum or mean"),
        ("hash_bucket_size: 100", 'hash_bucket_size: 100 data_type: "INT3"', "is 'INT3'; write FP32 or FP16"),
        (
            "hash_bucket_size: 100",
            'hash_bucket_size: 100 embedding_name: "user_id_emb"',
            "its number of rows is 100, not 1000",
        ),
        (
            'group_name: "deep" feature_names: "user_id"',
            'group_name: "deep" feature_names: "usr_id"',
            "did you mean user_id?",
        ),
        ('feature_names: "price" group_type', 'feature_names: "user_id" group_type', "holds 'user_id' 2 times"),
        (
            'group_name: "wide"',
            'group_name: "wide" feature_names: "price"',
            "(group 'wide') is WIDE but 'price' has no table",
        ),
        ('group_name: "fm"', 'group_name: "wide"', "'wide' is the name of 2 groups"),
        ('group_name: "wide"', 'group_name: "wid"', "needs a feature group 'wide'; did you mean wid?"),
        ("embedding_dim: 16 hash_bucket_size", "embedding_dim: 8 hash_bucket_size", "item_id has 8, user_id has 16"),
        ("deepfm { deep { hidden_units: 32 } }", "", "model_config: names no model"),
        ("losses { binary_cross_entropy {} }", "", "model_config.losses: is empty"),
        ("losses {", "num_class: 2 losses {", "model_config.num_class: 2 does not fit"),
        ("metrics { auc {} }", 'metrics { grouped_auc { grouping_key: "price" } }', "'price' is no feature with ids"),
        ("metrics { auc {} }", 'losses { jrc_loss { session_name: "usr_id" } }', "did you mean user_id?"),
        ('topic: "clicks"', "", "stream_config.topic: is not set"),
        ("format: JSON", "format: PROTOBUF", "stream_config.protobuf_message: is not set"),
        ("format: JSON", "format: JSON start: TIMESTAMP", "needs start_timestamp_ms"),
        ("train_config {", 'train_config { tensorboard_summaries: "gradients"', "did you mean gradient?"),
        ("train_config {", "train_config { save_checkpoints_timestamp_quorum: 0", "is no share of the ranks"),
        ("train_config {", 'train_config { fine_tune_ckpt_param_map: "m"', "fine_tune_checkpoint, which is not set"),
        (
            'model_dir: "runs/model"\ntrain_config {',
            'model_dir: "s3://b/m"\ntrain_config { is_profiling: true',
            "writes its trace into a local model_dir",
        ),
        (
            "format: JSON",
            'format: JSON event_time_field: "when"',
            "stream_config.event_time_field: 'when' is not among",
        ),
        (
            "format: JSON",
            'format: JSON filters { column: "cost" }',
            "stream_config.filters[0].column: 'cost' is not among",
        ),
        (
            "format: JSON",
            'format: JSON security { security_protocol: "SASL_SSL" }',
            "sasl_mechanism: '' is no mechanism",
        ),
        ("format: JSON", 'format: JSON security { security_protocol: "TLS" }', "'TLS' is no protocol"),
        ("format: JSON", 'format: JSON security { password_file: "p" }', "sends no user and password"),
        ("format: JSON", "format: JSON broker_wait_ms: 0", "gives the brokers no time to answer"),
        ("format: JSON", "format: JSON dead_letters { max_share: 2 }", "max_share: 2 is no share"),
        (
            'model_dir: "runs/model"',
            'model_dir: "m" checkpoint_config { commit_interval_ms: 0 }',
            "nothing is ever committed",
        ),
        (
            'model_dir: "runs/model"',
            'model_dir: "m" train_input_path: "/a.parquet"',
            "is no topic, as KafkaDataset needs",
        ),
    ],
)
def test_check_names_the_contradiction(good_text: str, old: str, new: str, words: str) -> None:
    found = errors_of(changed(good_text, old, new))
    assert any(words in error for error in found), found


def test_check_accepts_features_that_share_a_table_and_agree(good_text: str) -> None:
    more = FEATURE % 'embedding_name: "s"' + FEATURE.replace('"x"', '"y"') % 'embedding_name: "s"'
    assert errors_of(good_text + more) == []


@pytest.mark.parametrize(
    ("own", "what"),
    [
        ("embedding_dim: 8", "embedding_dim"),
        ('init_fn: "nn.init.zeros_"', "init_fn"),
        ("trainable: false", "trainable"),
    ],
)
def test_check_names_what_a_shared_table_disagrees_on(good_text: str, own: str, what: str) -> None:
    other = FEATURE.replace('"x"', '"y"').replace(
        "embedding_dim: 16", own if "dim" in own else f"embedding_dim: 16 {own}"
    )
    found = errors_of(good_text + FEATURE % 'embedding_name: "s"' + other % 'embedding_name: "s"')
    assert len(found) == 1
    assert f"its {what} is" in found[0]


def test_check_names_the_towers_that_have_no_group(good_text: str) -> None:
    text = changed(good_text, "deepfm { deep { hidden_units: 32 } }", 'multi_tower { towers { input: "dep" } }')
    assert errors_of(text) == [
        "model_config.multi_tower.towers[0].input: 'dep' is no feature group; did you mean deep?"
    ]


def test_check_reads_input_fields_str_first(good_text: str) -> None:
    text = changed(
        good_text, "batch_size: 64", 'batch_size: 64 input_fields_str: "user_id:BIGINT;item_id:STRING;clicked:INT"'
    )
    assert any("reads column 'price'" in error for error in errors_of(text))
    broken = changed(good_text, "batch_size: 64", 'batch_size: 64 input_fields_str: "user_id:BIGNT"')
    assert any("'BIGNT' is no column type" in error for error in errors_of(broken))
