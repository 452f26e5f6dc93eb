"""A configuration with features of every kind, alone, in sequences and in a graph; `$` is a folder with their files."""

FEATURES = """
feature_configs { id_feature { feature_name: "id" expression: "user:id" embedding_dim: 4 hash_bucket_size: 100 } }
feature_configs { id_feature { feature_name: "weighted" expression: "user:weighted" embedding_dim: 4 weighted: true
  hash_bucket_size: 100 } }
feature_configs { raw_feature { feature_name: "raw" expression: "item:raw" value_dim: 3 } }
feature_configs { raw_feature { feature_name: "binned" expression: "item:binned" boundaries: [0.2, 0.5]
  embedding_dim: 4 } }
feature_configs { combo_feature { feature_name: "combo" expression: ["user:id", "item:slot"] embedding_dim: 4
  hash_bucket_size: 100 } }
feature_configs { combine_feature { feature_name: "combine" expression: "user:counts" num_buckets: 9
  embedding_dim: 4 } }
feature_configs { combine_feature { feature_name: "mapped" expression: "user:moods"
  value_map { key: "good" value: 1 } value_map { key: "bad" value: 0 } } }
feature_configs { lookup_feature { feature_name: "lookup" map: "user:prices" key: "item:shop" } }
feature_configs { lookup_feature { feature_name: "vector" map: "user:vectors" key: "item:shop" value_dim: 4 } }
feature_configs { lookup_feature { feature_name: "labels" map: "user:labels" key: "item:shop" need_discrete: true
  hash_bucket_size: 50 embedding_dim: 4 } }
feature_configs { match_feature { feature_name: "match" nested_map: "user:nested" pkey: "item:shop" skey: "item:brand"
  } }
feature_configs { match_feature { feature_name: "any" nested_map: "user:nested" pkey: "ALL" skey: "item:brand"
  need_discrete: true hash_bucket_size: 50 embedding_dim: 4 } }
feature_configs { expr_feature { feature_name: "expr" expression: "log(a + 1) * b" variables: ["user:a", "item:b"] } }
feature_configs { overlap_feature { feature_name: "overlap" query: "user:query" title: "item:title"
  method: "query_common_ratio" } }
feature_configs { tokenize_feature { feature_name: "tokens" expression: "item:title" embedding_dim: 4
  vocab_file: "$/tokenizer.json" } }
feature_configs { kv_dot_product { feature_name: "dot" query: "user:tastes" document: "item:traits" } }
feature_configs { bool_mask_feature { feature_name: "kept" expression: ["user:clicks", "user:flags"] embedding_dim: 4
  num_buckets: 20 } }
feature_configs { custom_feature { feature_name: "distance" operator_name: "EditDistance"
  operator_lib_file: "pyfg/lib/libedit_distance.so" expression: ["user:query", "item:title"] } }
feature_configs { custom_feature { feature_name: "digits" operator_name: "RegexReplace" operator_lib_file: ""
  operator_params { fields { key: "regex_pattern" value { string_value: "[^0-9]" } } } expression: "item:title"
  hash_bucket_size: 50 embedding_dim: 4 } }
feature_configs { id_feature { feature_name: "word" expression: "user:word" embedding_dim: 4
  vocab_file: "$/words.txt" default_bucketize_value: 0 } }
feature_configs { sequence_id_feature { feature_name: "visits" expression: "user:visits" embedding_dim: 4
  num_buckets: 30 sequence_length: 10 } }
feature_configs { sequence_raw_feature { feature_name: "paces" expression: "user:paces" value_dim: 2
  sequence_length: 10 } }
feature_configs { sequence_expr_feature { feature_name: "ratios" expression: "p / 2" variables: "item:p"
  sequence_length: 10 } }
feature_configs { sequence_combo_feature { feature_name: "pairs" expression: ["user:id", "item:visited"]
  hash_bucket_size: 50 embedding_dim: 4 sequence_length: 10 } }
feature_configs { sequence_feature { sequence_name: "seen" sequence_length: 20 sequence_delim: ";"
  features { id_feature { feature_name: "item" expression: "item:item" embedding_dim: 4 num_buckets: 30 } }
  features { raw_feature { feature_name: "price" expression: "item:price" } }
  features { lookup_feature { feature_name: "rate" map: "user:prices" key: "item:shop" } }
  features { custom_feature { feature_name: "away" operator_name: "EditDistance" operator_lib_file: ""
    expression: ["user:query", "item:name"] } } } }
"""

GRAPH = """
feature_configs { expr_feature { feature_name: "score" expression: "x * 2" variables: "user:x" stub_type: true } }
feature_configs { expr_feature { feature_name: "final" expression: "score + y" variables: ["feature:score", "item:y"]
  } }
feature_configs { combo_feature { feature_name: "fixed" expression: ["const:A", "item:slot"] embedding_dim: 4
  hash_bucket_size: 9 } }
"""
