from google.protobuf import struct_pb2 as _struct_pb2
from protos import sharding_pb2 as _sharding_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf.internal import python_message as _python_message
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TextNormalizeOption(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TEXT_LOWER2UPPER: _ClassVar[TextNormalizeOption]
    TEXT_UPPER2LOWER: _ClassVar[TextNormalizeOption]
    TEXT_SBC2DBC: _ClassVar[TextNormalizeOption]
    TEXT_CHT2CHS: _ClassVar[TextNormalizeOption]
    TEXT_FILTER: _ClassVar[TextNormalizeOption]
    TEXT_SPLITCHRS: _ClassVar[TextNormalizeOption]
    TEXT_REMOVE_SPACE: _ClassVar[TextNormalizeOption]
TEXT_LOWER2UPPER: TextNormalizeOption
TEXT_UPPER2LOWER: TextNormalizeOption
TEXT_SBC2DBC: TextNormalizeOption
TEXT_CHT2CHS: TextNormalizeOption
TEXT_FILTER: TextNormalizeOption
TEXT_SPLITCHRS: TextNormalizeOption
TEXT_REMOVE_SPACE: TextNormalizeOption

class AutoDisEmbedding(_message.Message):
    __slots__ = ("num_channels", "temperature", "keep_prob")
    NUM_CHANNELS_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    KEEP_PROB_FIELD_NUMBER: _ClassVar[int]
    num_channels: int
    temperature: float
    keep_prob: float
    def __init__(self, num_channels: _Optional[int] = ..., temperature: _Optional[float] = ..., keep_prob: _Optional[float] = ...) -> None: ...

class BoolMaskFeature(_message.Message):
    __slots__ = ("feature_name", "expression", "embedding_name", "embedding_dim", "hash_bucket_size", "num_buckets", "vocab_list", "vocab_dict", "value_dim", "pooling", "default_value", "separator", "init_fn", "use_mask", "zch", "vocab_file", "asset_dir", "dynamicemb", "fg_encoded_default_value", "default_bucketize_value", "fg_value_type", "trainable", "stub_type", "data_type", "embedding_constraints", "sequence_length", "sequence_delim", "sequence_fields")
    class VocabDictEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    FEATURE_NAME_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NAME_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    HASH_BUCKET_SIZE_FIELD_NUMBER: _ClassVar[int]
    NUM_BUCKETS_FIELD_NUMBER: _ClassVar[int]
    VOCAB_LIST_FIELD_NUMBER: _ClassVar[int]
    VOCAB_DICT_FIELD_NUMBER: _ClassVar[int]
    VALUE_DIM_FIELD_NUMBER: _ClassVar[int]
    POOLING_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    INIT_FN_FIELD_NUMBER: _ClassVar[int]
    USE_MASK_FIELD_NUMBER: _ClassVar[int]
    ZCH_FIELD_NUMBER: _ClassVar[int]
    VOCAB_FILE_FIELD_NUMBER: _ClassVar[int]
    ASSET_DIR_FIELD_NUMBER: _ClassVar[int]
    DYNAMICEMB_FIELD_NUMBER: _ClassVar[int]
    FG_ENCODED_DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_BUCKETIZE_VALUE_FIELD_NUMBER: _ClassVar[int]
    FG_VALUE_TYPE_FIELD_NUMBER: _ClassVar[int]
    TRAINABLE_FIELD_NUMBER: _ClassVar[int]
    STUB_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_DELIM_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    feature_name: str
    expression: _containers.RepeatedScalarFieldContainer[str]
    embedding_name: str
    embedding_dim: int
    hash_bucket_size: int
    num_buckets: int
    vocab_list: _containers.RepeatedScalarFieldContainer[str]
    vocab_dict: _containers.ScalarMap[str, int]
    value_dim: int
    pooling: str
    default_value: str
    separator: str
    init_fn: str
    use_mask: bool
    zch: ZeroCollisionHash
    vocab_file: str
    asset_dir: str
    dynamicemb: DynamicEmbedding
    fg_encoded_default_value: str
    default_bucketize_value: int
    fg_value_type: str
    trainable: bool
    stub_type: bool
    data_type: str
    embedding_constraints: _sharding_pb2.ParameterConstraints
    sequence_length: int
    sequence_delim: str
    sequence_fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, feature_name: _Optional[str] = ..., expression: _Optional[_Iterable[str]] = ..., embedding_name: _Optional[str] = ..., embedding_dim: _Optional[int] = ..., hash_bucket_size: _Optional[int] = ..., num_buckets: _Optional[int] = ..., vocab_list: _Optional[_Iterable[str]] = ..., vocab_dict: _Optional[_Mapping[str, int]] = ..., value_dim: _Optional[int] = ..., pooling: _Optional[str] = ..., default_value: _Optional[str] = ..., separator: _Optional[str] = ..., init_fn: _Optional[str] = ..., use_mask: _Optional[bool] = ..., zch: _Optional[_Union[ZeroCollisionHash, _Mapping]] = ..., vocab_file: _Optional[str] = ..., asset_dir: _Optional[str] = ..., dynamicemb: _Optional[_Union[DynamicEmbedding, _Mapping]] = ..., fg_encoded_default_value: _Optional[str] = ..., default_bucketize_value: _Optional[int] = ..., fg_value_type: _Optional[str] = ..., trainable: _Optional[bool] = ..., stub_type: _Optional[bool] = ..., data_type: _Optional[str] = ..., embedding_constraints: _Optional[_Union[_sharding_pb2.ParameterConstraints, _Mapping]] = ..., sequence_length: _Optional[int] = ..., sequence_delim: _Optional[str] = ..., sequence_fields: _Optional[_Iterable[str]] = ...) -> None: ...

class CombineFeature(_message.Message):
    __slots__ = ("feature_name", "expression", "embedding_name", "embedding_dim", "value_map", "boundaries", "num_buckets", "pooling", "default_value", "separator", "normalizer", "init_fn", "use_mask", "combiner", "fg_encoded_default_value", "trainable", "stub_type", "data_type", "autodis", "mlp", "embedding_constraints", "sequence_length", "sequence_delim", "sequence_fields")
    class ValueMapEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    FEATURE_NAME_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NAME_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    VALUE_MAP_FIELD_NUMBER: _ClassVar[int]
    BOUNDARIES_FIELD_NUMBER: _ClassVar[int]
    NUM_BUCKETS_FIELD_NUMBER: _ClassVar[int]
    POOLING_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    NORMALIZER_FIELD_NUMBER: _ClassVar[int]
    INIT_FN_FIELD_NUMBER: _ClassVar[int]
    USE_MASK_FIELD_NUMBER: _ClassVar[int]
    COMBINER_FIELD_NUMBER: _ClassVar[int]
    FG_ENCODED_DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    TRAINABLE_FIELD_NUMBER: _ClassVar[int]
    STUB_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    AUTODIS_FIELD_NUMBER: _ClassVar[int]
    MLP_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_DELIM_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    feature_name: str
    expression: str
    embedding_name: str
    embedding_dim: int
    value_map: _containers.ScalarMap[str, float]
    boundaries: _containers.RepeatedScalarFieldContainer[float]
    num_buckets: int
    pooling: str
    default_value: str
    separator: str
    normalizer: str
    init_fn: str
    use_mask: bool
    combiner: str
    fg_encoded_default_value: str
    trainable: bool
    stub_type: bool
    data_type: str
    autodis: AutoDisEmbedding
    mlp: MLPEmbedding
    embedding_constraints: _sharding_pb2.ParameterConstraints
    sequence_length: int
    sequence_delim: str
    sequence_fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, feature_name: _Optional[str] = ..., expression: _Optional[str] = ..., embedding_name: _Optional[str] = ..., embedding_dim: _Optional[int] = ..., value_map: _Optional[_Mapping[str, float]] = ..., boundaries: _Optional[_Iterable[float]] = ..., num_buckets: _Optional[int] = ..., pooling: _Optional[str] = ..., default_value: _Optional[str] = ..., separator: _Optional[str] = ..., normalizer: _Optional[str] = ..., init_fn: _Optional[str] = ..., use_mask: _Optional[bool] = ..., combiner: _Optional[str] = ..., fg_encoded_default_value: _Optional[str] = ..., trainable: _Optional[bool] = ..., stub_type: _Optional[bool] = ..., data_type: _Optional[str] = ..., autodis: _Optional[_Union[AutoDisEmbedding, _Mapping]] = ..., mlp: _Optional[_Union[MLPEmbedding, _Mapping]] = ..., embedding_constraints: _Optional[_Union[_sharding_pb2.ParameterConstraints, _Mapping]] = ..., sequence_length: _Optional[int] = ..., sequence_delim: _Optional[str] = ..., sequence_fields: _Optional[_Iterable[str]] = ...) -> None: ...

class ComboFeature(_message.Message):
    __slots__ = ("feature_name", "expression", "embedding_name", "embedding_dim", "hash_bucket_size", "vocab_list", "vocab_dict", "value_dim", "pooling", "default_value", "separator", "init_fn", "use_mask", "zch", "vocab_file", "asset_dir", "dynamicemb", "fg_encoded_default_value", "default_bucketize_value", "trainable", "stub_type", "data_type", "embedding_constraints", "sequence_length", "sequence_delim", "sequence_fields")
    class VocabDictEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    FEATURE_NAME_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NAME_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    HASH_BUCKET_SIZE_FIELD_NUMBER: _ClassVar[int]
    VOCAB_LIST_FIELD_NUMBER: _ClassVar[int]
    VOCAB_DICT_FIELD_NUMBER: _ClassVar[int]
    VALUE_DIM_FIELD_NUMBER: _ClassVar[int]
    POOLING_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    INIT_FN_FIELD_NUMBER: _ClassVar[int]
    USE_MASK_FIELD_NUMBER: _ClassVar[int]
    ZCH_FIELD_NUMBER: _ClassVar[int]
    VOCAB_FILE_FIELD_NUMBER: _ClassVar[int]
    ASSET_DIR_FIELD_NUMBER: _ClassVar[int]
    DYNAMICEMB_FIELD_NUMBER: _ClassVar[int]
    FG_ENCODED_DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_BUCKETIZE_VALUE_FIELD_NUMBER: _ClassVar[int]
    TRAINABLE_FIELD_NUMBER: _ClassVar[int]
    STUB_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_DELIM_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    feature_name: str
    expression: _containers.RepeatedScalarFieldContainer[str]
    embedding_name: str
    embedding_dim: int
    hash_bucket_size: int
    vocab_list: _containers.RepeatedScalarFieldContainer[str]
    vocab_dict: _containers.ScalarMap[str, int]
    value_dim: int
    pooling: str
    default_value: str
    separator: str
    init_fn: str
    use_mask: bool
    zch: ZeroCollisionHash
    vocab_file: str
    asset_dir: str
    dynamicemb: DynamicEmbedding
    fg_encoded_default_value: str
    default_bucketize_value: int
    trainable: bool
    stub_type: bool
    data_type: str
    embedding_constraints: _sharding_pb2.ParameterConstraints
    sequence_length: int
    sequence_delim: str
    sequence_fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, feature_name: _Optional[str] = ..., expression: _Optional[_Iterable[str]] = ..., embedding_name: _Optional[str] = ..., embedding_dim: _Optional[int] = ..., hash_bucket_size: _Optional[int] = ..., vocab_list: _Optional[_Iterable[str]] = ..., vocab_dict: _Optional[_Mapping[str, int]] = ..., value_dim: _Optional[int] = ..., pooling: _Optional[str] = ..., default_value: _Optional[str] = ..., separator: _Optional[str] = ..., init_fn: _Optional[str] = ..., use_mask: _Optional[bool] = ..., zch: _Optional[_Union[ZeroCollisionHash, _Mapping]] = ..., vocab_file: _Optional[str] = ..., asset_dir: _Optional[str] = ..., dynamicemb: _Optional[_Union[DynamicEmbedding, _Mapping]] = ..., fg_encoded_default_value: _Optional[str] = ..., default_bucketize_value: _Optional[int] = ..., trainable: _Optional[bool] = ..., stub_type: _Optional[bool] = ..., data_type: _Optional[str] = ..., embedding_constraints: _Optional[_Union[_sharding_pb2.ParameterConstraints, _Mapping]] = ..., sequence_length: _Optional[int] = ..., sequence_delim: _Optional[str] = ..., sequence_fields: _Optional[_Iterable[str]] = ...) -> None: ...

class CustomFeature(_message.Message):
    __slots__ = ("feature_name", "operator_name", "operator_lib_file", "operator_params", "is_op_thread_safe", "expression", "embedding_name", "embedding_dim", "boundaries", "hash_bucket_size", "num_buckets", "vocab_list", "vocab_dict", "pooling", "default_value", "separator", "normalizer", "init_fn", "value_dim", "use_mask", "zch", "vocab_file", "asset_dir", "dynamicemb", "fg_encoded_default_value", "default_bucketize_value", "trainable", "stub_type", "data_type", "autodis", "mlp", "embedding_constraints", "sequence_length", "sequence_delim", "sequence_fields")
    class VocabDictEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    FEATURE_NAME_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_NAME_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_LIB_FILE_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_PARAMS_FIELD_NUMBER: _ClassVar[int]
    IS_OP_THREAD_SAFE_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NAME_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    BOUNDARIES_FIELD_NUMBER: _ClassVar[int]
    HASH_BUCKET_SIZE_FIELD_NUMBER: _ClassVar[int]
    NUM_BUCKETS_FIELD_NUMBER: _ClassVar[int]
    VOCAB_LIST_FIELD_NUMBER: _ClassVar[int]
    VOCAB_DICT_FIELD_NUMBER: _ClassVar[int]
    POOLING_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    NORMALIZER_FIELD_NUMBER: _ClassVar[int]
    INIT_FN_FIELD_NUMBER: _ClassVar[int]
    VALUE_DIM_FIELD_NUMBER: _ClassVar[int]
    USE_MASK_FIELD_NUMBER: _ClassVar[int]
    ZCH_FIELD_NUMBER: _ClassVar[int]
    VOCAB_FILE_FIELD_NUMBER: _ClassVar[int]
    ASSET_DIR_FIELD_NUMBER: _ClassVar[int]
    DYNAMICEMB_FIELD_NUMBER: _ClassVar[int]
    FG_ENCODED_DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_BUCKETIZE_VALUE_FIELD_NUMBER: _ClassVar[int]
    TRAINABLE_FIELD_NUMBER: _ClassVar[int]
    STUB_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    AUTODIS_FIELD_NUMBER: _ClassVar[int]
    MLP_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_DELIM_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    feature_name: str
    operator_name: str
    operator_lib_file: str
    operator_params: _struct_pb2.Struct
    is_op_thread_safe: bool
    expression: _containers.RepeatedScalarFieldContainer[str]
    embedding_name: str
    embedding_dim: int
    boundaries: _containers.RepeatedScalarFieldContainer[float]
    hash_bucket_size: int
    num_buckets: int
    vocab_list: _containers.RepeatedScalarFieldContainer[str]
    vocab_dict: _containers.ScalarMap[str, int]
    pooling: str
    default_value: str
    separator: str
    normalizer: str
    init_fn: str
    value_dim: int
    use_mask: bool
    zch: ZeroCollisionHash
    vocab_file: str
    asset_dir: str
    dynamicemb: DynamicEmbedding
    fg_encoded_default_value: str
    default_bucketize_value: int
    trainable: bool
    stub_type: bool
    data_type: str
    autodis: AutoDisEmbedding
    mlp: MLPEmbedding
    embedding_constraints: _sharding_pb2.ParameterConstraints
    sequence_length: int
    sequence_delim: str
    sequence_fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, feature_name: _Optional[str] = ..., operator_name: _Optional[str] = ..., operator_lib_file: _Optional[str] = ..., operator_params: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., is_op_thread_safe: _Optional[bool] = ..., expression: _Optional[_Iterable[str]] = ..., embedding_name: _Optional[str] = ..., embedding_dim: _Optional[int] = ..., boundaries: _Optional[_Iterable[float]] = ..., hash_bucket_size: _Optional[int] = ..., num_buckets: _Optional[int] = ..., vocab_list: _Optional[_Iterable[str]] = ..., vocab_dict: _Optional[_Mapping[str, int]] = ..., pooling: _Optional[str] = ..., default_value: _Optional[str] = ..., separator: _Optional[str] = ..., normalizer: _Optional[str] = ..., init_fn: _Optional[str] = ..., value_dim: _Optional[int] = ..., use_mask: _Optional[bool] = ..., zch: _Optional[_Union[ZeroCollisionHash, _Mapping]] = ..., vocab_file: _Optional[str] = ..., asset_dir: _Optional[str] = ..., dynamicemb: _Optional[_Union[DynamicEmbedding, _Mapping]] = ..., fg_encoded_default_value: _Optional[str] = ..., default_bucketize_value: _Optional[int] = ..., trainable: _Optional[bool] = ..., stub_type: _Optional[bool] = ..., data_type: _Optional[str] = ..., autodis: _Optional[_Union[AutoDisEmbedding, _Mapping]] = ..., mlp: _Optional[_Union[MLPEmbedding, _Mapping]] = ..., embedding_constraints: _Optional[_Union[_sharding_pb2.ParameterConstraints, _Mapping]] = ..., sequence_length: _Optional[int] = ..., sequence_delim: _Optional[str] = ..., sequence_fields: _Optional[_Iterable[str]] = ...) -> None: ...

class DistanceLFU_EvictionPolicy(_message.Message):
    __slots__ = ("decay_exponent",)
    DECAY_EXPONENT_FIELD_NUMBER: _ClassVar[int]
    decay_exponent: float
    def __init__(self, decay_exponent: _Optional[float] = ...) -> None: ...

class DynamicEmbFrequencyAdmissionStrategy(_message.Message):
    __slots__ = ("threshold", "initializer_args", "counter_capacity", "counter_bucket_capacity")
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    INITIALIZER_ARGS_FIELD_NUMBER: _ClassVar[int]
    COUNTER_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    COUNTER_BUCKET_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    threshold: int
    initializer_args: DynamicEmbInitializerArgs
    counter_capacity: int
    counter_bucket_capacity: int
    def __init__(self, threshold: _Optional[int] = ..., initializer_args: _Optional[_Union[DynamicEmbInitializerArgs, _Mapping]] = ..., counter_capacity: _Optional[int] = ..., counter_bucket_capacity: _Optional[int] = ...) -> None: ...

class DynamicEmbInitializerArgs(_message.Message):
    __slots__ = ("mode", "mean", "std_dev", "lower", "upper", "value")
    MODE_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    STD_DEV_FIELD_NUMBER: _ClassVar[int]
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    mode: str
    mean: float
    std_dev: float
    lower: float
    upper: float
    value: float
    def __init__(self, mode: _Optional[str] = ..., mean: _Optional[float] = ..., std_dev: _Optional[float] = ..., lower: _Optional[float] = ..., upper: _Optional[float] = ..., value: _Optional[float] = ...) -> None: ...

class DynamicEmbedding(_message.Message):
    __slots__ = ("initializer_args", "eval_initializer_args", "score_strategy", "max_capacity", "cache_load_factor", "init_capacity_per_rank", "init_table", "bucket_capacity", "frequency_admission_strategy")
    INITIALIZER_ARGS_FIELD_NUMBER: _ClassVar[int]
    EVAL_INITIALIZER_ARGS_FIELD_NUMBER: _ClassVar[int]
    SCORE_STRATEGY_FIELD_NUMBER: _ClassVar[int]
    MAX_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    CACHE_LOAD_FACTOR_FIELD_NUMBER: _ClassVar[int]
    INIT_CAPACITY_PER_RANK_FIELD_NUMBER: _ClassVar[int]
    INIT_TABLE_FIELD_NUMBER: _ClassVar[int]
    BUCKET_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    FREQUENCY_ADMISSION_STRATEGY_FIELD_NUMBER: _ClassVar[int]
    initializer_args: DynamicEmbInitializerArgs
    eval_initializer_args: DynamicEmbInitializerArgs
    score_strategy: str
    max_capacity: int
    cache_load_factor: float
    init_capacity_per_rank: int
    init_table: str
    bucket_capacity: int
    frequency_admission_strategy: DynamicEmbFrequencyAdmissionStrategy
    def __init__(self, initializer_args: _Optional[_Union[DynamicEmbInitializerArgs, _Mapping]] = ..., eval_initializer_args: _Optional[_Union[DynamicEmbInitializerArgs, _Mapping]] = ..., score_strategy: _Optional[str] = ..., max_capacity: _Optional[int] = ..., cache_load_factor: _Optional[float] = ..., init_capacity_per_rank: _Optional[int] = ..., init_table: _Optional[str] = ..., bucket_capacity: _Optional[int] = ..., frequency_admission_strategy: _Optional[_Union[DynamicEmbFrequencyAdmissionStrategy, _Mapping]] = ...) -> None: ...

class ExprFeature(_message.Message):
    __slots__ = ("feature_name", "expression", "variables", "embedding_name", "embedding_dim", "boundaries", "separator", "fill_missing", "pooling", "default_value", "init_fn", "use_mask", "value_dim", "fg_encoded_default_value", "trainable", "stub_type", "data_type", "autodis", "mlp", "embedding_constraints", "sequence_length", "sequence_delim", "sequence_fields")
    FEATURE_NAME_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    VARIABLES_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NAME_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    BOUNDARIES_FIELD_NUMBER: _ClassVar[int]
    SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    FILL_MISSING_FIELD_NUMBER: _ClassVar[int]
    POOLING_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    INIT_FN_FIELD_NUMBER: _ClassVar[int]
    USE_MASK_FIELD_NUMBER: _ClassVar[int]
    VALUE_DIM_FIELD_NUMBER: _ClassVar[int]
    FG_ENCODED_DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    TRAINABLE_FIELD_NUMBER: _ClassVar[int]
    STUB_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    AUTODIS_FIELD_NUMBER: _ClassVar[int]
    MLP_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_DELIM_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    feature_name: str
    expression: str
    variables: _containers.RepeatedScalarFieldContainer[str]
    embedding_name: str
    embedding_dim: int
    boundaries: _containers.RepeatedScalarFieldContainer[float]
    separator: str
    fill_missing: float
    pooling: str
    default_value: str
    init_fn: str
    use_mask: bool
    value_dim: int
    fg_encoded_default_value: str
    trainable: bool
    stub_type: bool
    data_type: str
    autodis: AutoDisEmbedding
    mlp: MLPEmbedding
    embedding_constraints: _sharding_pb2.ParameterConstraints
    sequence_length: int
    sequence_delim: str
    sequence_fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, feature_name: _Optional[str] = ..., expression: _Optional[str] = ..., variables: _Optional[_Iterable[str]] = ..., embedding_name: _Optional[str] = ..., embedding_dim: _Optional[int] = ..., boundaries: _Optional[_Iterable[float]] = ..., separator: _Optional[str] = ..., fill_missing: _Optional[float] = ..., pooling: _Optional[str] = ..., default_value: _Optional[str] = ..., init_fn: _Optional[str] = ..., use_mask: _Optional[bool] = ..., value_dim: _Optional[int] = ..., fg_encoded_default_value: _Optional[str] = ..., trainable: _Optional[bool] = ..., stub_type: _Optional[bool] = ..., data_type: _Optional[str] = ..., autodis: _Optional[_Union[AutoDisEmbedding, _Mapping]] = ..., mlp: _Optional[_Union[MLPEmbedding, _Mapping]] = ..., embedding_constraints: _Optional[_Union[_sharding_pb2.ParameterConstraints, _Mapping]] = ..., sequence_length: _Optional[int] = ..., sequence_delim: _Optional[str] = ..., sequence_fields: _Optional[_Iterable[str]] = ...) -> None: ...

class FeatureConfig(_message.Message):
    __slots__ = ("id_feature", "raw_feature", "combo_feature", "lookup_feature", "match_feature", "sequence_feature", "expr_feature", "overlap_feature", "tokenize_feature", "custom_feature", "kv_dot_product", "bool_mask_feature", "combine_feature", "sequence_id_feature", "sequence_raw_feature", "sequence_combo_feature", "sequence_lookup_feature", "sequence_match_feature", "sequence_expr_feature", "sequence_overlap_feature", "sequence_tokenize_feature", "sequence_custom_feature", "sequence_kv_dot_product", "sequence_bool_mask_feature", "sequence_combine_feature")
    Extensions: _python_message._ExtensionDict
    ID_FEATURE_FIELD_NUMBER: _ClassVar[int]
    RAW_FEATURE_FIELD_NUMBER: _ClassVar[int]
    COMBO_FEATURE_FIELD_NUMBER: _ClassVar[int]
    LOOKUP_FEATURE_FIELD_NUMBER: _ClassVar[int]
    MATCH_FEATURE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FEATURE_FIELD_NUMBER: _ClassVar[int]
    EXPR_FEATURE_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FEATURE_FIELD_NUMBER: _ClassVar[int]
    TOKENIZE_FEATURE_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_FEATURE_FIELD_NUMBER: _ClassVar[int]
    KV_DOT_PRODUCT_FIELD_NUMBER: _ClassVar[int]
    BOOL_MASK_FEATURE_FIELD_NUMBER: _ClassVar[int]
    COMBINE_FEATURE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_ID_FEATURE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_RAW_FEATURE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_COMBO_FEATURE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LOOKUP_FEATURE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_MATCH_FEATURE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_EXPR_FEATURE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_OVERLAP_FEATURE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_TOKENIZE_FEATURE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_CUSTOM_FEATURE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_KV_DOT_PRODUCT_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_BOOL_MASK_FEATURE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_COMBINE_FEATURE_FIELD_NUMBER: _ClassVar[int]
    id_feature: IdFeature
    raw_feature: RawFeature
    combo_feature: ComboFeature
    lookup_feature: LookupFeature
    match_feature: MatchFeature
    sequence_feature: SequenceFeature
    expr_feature: ExprFeature
    overlap_feature: OverlapFeature
    tokenize_feature: TokenizeFeature
    custom_feature: CustomFeature
    kv_dot_product: KvDotProduct
    bool_mask_feature: BoolMaskFeature
    combine_feature: CombineFeature
    sequence_id_feature: IdFeature
    sequence_raw_feature: RawFeature
    sequence_combo_feature: ComboFeature
    sequence_lookup_feature: LookupFeature
    sequence_match_feature: MatchFeature
    sequence_expr_feature: ExprFeature
    sequence_overlap_feature: OverlapFeature
    sequence_tokenize_feature: TokenizeFeature
    sequence_custom_feature: CustomFeature
    sequence_kv_dot_product: KvDotProduct
    sequence_bool_mask_feature: BoolMaskFeature
    sequence_combine_feature: CombineFeature
    def __init__(self, id_feature: _Optional[_Union[IdFeature, _Mapping]] = ..., raw_feature: _Optional[_Union[RawFeature, _Mapping]] = ..., combo_feature: _Optional[_Union[ComboFeature, _Mapping]] = ..., lookup_feature: _Optional[_Union[LookupFeature, _Mapping]] = ..., match_feature: _Optional[_Union[MatchFeature, _Mapping]] = ..., sequence_feature: _Optional[_Union[SequenceFeature, _Mapping]] = ..., expr_feature: _Optional[_Union[ExprFeature, _Mapping]] = ..., overlap_feature: _Optional[_Union[OverlapFeature, _Mapping]] = ..., tokenize_feature: _Optional[_Union[TokenizeFeature, _Mapping]] = ..., custom_feature: _Optional[_Union[CustomFeature, _Mapping]] = ..., kv_dot_product: _Optional[_Union[KvDotProduct, _Mapping]] = ..., bool_mask_feature: _Optional[_Union[BoolMaskFeature, _Mapping]] = ..., combine_feature: _Optional[_Union[CombineFeature, _Mapping]] = ..., sequence_id_feature: _Optional[_Union[IdFeature, _Mapping]] = ..., sequence_raw_feature: _Optional[_Union[RawFeature, _Mapping]] = ..., sequence_combo_feature: _Optional[_Union[ComboFeature, _Mapping]] = ..., sequence_lookup_feature: _Optional[_Union[LookupFeature, _Mapping]] = ..., sequence_match_feature: _Optional[_Union[MatchFeature, _Mapping]] = ..., sequence_expr_feature: _Optional[_Union[ExprFeature, _Mapping]] = ..., sequence_overlap_feature: _Optional[_Union[OverlapFeature, _Mapping]] = ..., sequence_tokenize_feature: _Optional[_Union[TokenizeFeature, _Mapping]] = ..., sequence_custom_feature: _Optional[_Union[CustomFeature, _Mapping]] = ..., sequence_kv_dot_product: _Optional[_Union[KvDotProduct, _Mapping]] = ..., sequence_bool_mask_feature: _Optional[_Union[BoolMaskFeature, _Mapping]] = ..., sequence_combine_feature: _Optional[_Union[CombineFeature, _Mapping]] = ...) -> None: ...

class IdFeature(_message.Message):
    __slots__ = ("feature_name", "expression", "embedding_name", "embedding_dim", "hash_bucket_size", "num_buckets", "vocab_list", "vocab_dict", "value_dim", "pooling", "default_value", "separator", "weighted", "init_fn", "use_mask", "zch", "vocab_file", "asset_dir", "dynamicemb", "fg_encoded_default_value", "default_bucketize_value", "fg_value_type", "trainable", "stub_type", "data_type", "embedding_constraints", "sequence_length", "sequence_delim", "sequence_fields")
    class VocabDictEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    FEATURE_NAME_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NAME_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    HASH_BUCKET_SIZE_FIELD_NUMBER: _ClassVar[int]
    NUM_BUCKETS_FIELD_NUMBER: _ClassVar[int]
    VOCAB_LIST_FIELD_NUMBER: _ClassVar[int]
    VOCAB_DICT_FIELD_NUMBER: _ClassVar[int]
    VALUE_DIM_FIELD_NUMBER: _ClassVar[int]
    POOLING_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    WEIGHTED_FIELD_NUMBER: _ClassVar[int]
    INIT_FN_FIELD_NUMBER: _ClassVar[int]
    USE_MASK_FIELD_NUMBER: _ClassVar[int]
    ZCH_FIELD_NUMBER: _ClassVar[int]
    VOCAB_FILE_FIELD_NUMBER: _ClassVar[int]
    ASSET_DIR_FIELD_NUMBER: _ClassVar[int]
    DYNAMICEMB_FIELD_NUMBER: _ClassVar[int]
    FG_ENCODED_DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_BUCKETIZE_VALUE_FIELD_NUMBER: _ClassVar[int]
    FG_VALUE_TYPE_FIELD_NUMBER: _ClassVar[int]
    TRAINABLE_FIELD_NUMBER: _ClassVar[int]
    STUB_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_DELIM_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    feature_name: str
    expression: str
    embedding_name: str
    embedding_dim: int
    hash_bucket_size: int
    num_buckets: int
    vocab_list: _containers.RepeatedScalarFieldContainer[str]
    vocab_dict: _containers.ScalarMap[str, int]
    value_dim: int
    pooling: str
    default_value: str
    separator: str
    weighted: bool
    init_fn: str
    use_mask: bool
    zch: ZeroCollisionHash
    vocab_file: str
    asset_dir: str
    dynamicemb: DynamicEmbedding
    fg_encoded_default_value: str
    default_bucketize_value: int
    fg_value_type: str
    trainable: bool
    stub_type: bool
    data_type: str
    embedding_constraints: _sharding_pb2.ParameterConstraints
    sequence_length: int
    sequence_delim: str
    sequence_fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, feature_name: _Optional[str] = ..., expression: _Optional[str] = ..., embedding_name: _Optional[str] = ..., embedding_dim: _Optional[int] = ..., hash_bucket_size: _Optional[int] = ..., num_buckets: _Optional[int] = ..., vocab_list: _Optional[_Iterable[str]] = ..., vocab_dict: _Optional[_Mapping[str, int]] = ..., value_dim: _Optional[int] = ..., pooling: _Optional[str] = ..., default_value: _Optional[str] = ..., separator: _Optional[str] = ..., weighted: _Optional[bool] = ..., init_fn: _Optional[str] = ..., use_mask: _Optional[bool] = ..., zch: _Optional[_Union[ZeroCollisionHash, _Mapping]] = ..., vocab_file: _Optional[str] = ..., asset_dir: _Optional[str] = ..., dynamicemb: _Optional[_Union[DynamicEmbedding, _Mapping]] = ..., fg_encoded_default_value: _Optional[str] = ..., default_bucketize_value: _Optional[int] = ..., fg_value_type: _Optional[str] = ..., trainable: _Optional[bool] = ..., stub_type: _Optional[bool] = ..., data_type: _Optional[str] = ..., embedding_constraints: _Optional[_Union[_sharding_pb2.ParameterConstraints, _Mapping]] = ..., sequence_length: _Optional[int] = ..., sequence_delim: _Optional[str] = ..., sequence_fields: _Optional[_Iterable[str]] = ...) -> None: ...

class KvDotProduct(_message.Message):
    __slots__ = ("feature_name", "query", "document", "embedding_name", "embedding_dim", "boundaries", "separator", "kv_delimiter", "normalizer", "pooling", "default_value", "init_fn", "use_mask", "fg_encoded_default_value", "trainable", "stub_type", "data_type", "autodis", "mlp", "embedding_constraints", "sequence_length", "sequence_delim", "sequence_fields", "kv_separator")
    FEATURE_NAME_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NAME_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    BOUNDARIES_FIELD_NUMBER: _ClassVar[int]
    SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    KV_DELIMITER_FIELD_NUMBER: _ClassVar[int]
    NORMALIZER_FIELD_NUMBER: _ClassVar[int]
    POOLING_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    INIT_FN_FIELD_NUMBER: _ClassVar[int]
    USE_MASK_FIELD_NUMBER: _ClassVar[int]
    FG_ENCODED_DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    TRAINABLE_FIELD_NUMBER: _ClassVar[int]
    STUB_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    AUTODIS_FIELD_NUMBER: _ClassVar[int]
    MLP_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_DELIM_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    KV_SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    feature_name: str
    query: str
    document: str
    embedding_name: str
    embedding_dim: int
    boundaries: _containers.RepeatedScalarFieldContainer[float]
    separator: str
    kv_delimiter: float
    normalizer: str
    pooling: str
    default_value: str
    init_fn: str
    use_mask: bool
    fg_encoded_default_value: str
    trainable: bool
    stub_type: bool
    data_type: str
    autodis: AutoDisEmbedding
    mlp: MLPEmbedding
    embedding_constraints: _sharding_pb2.ParameterConstraints
    sequence_length: int
    sequence_delim: str
    sequence_fields: _containers.RepeatedScalarFieldContainer[str]
    kv_separator: str
    def __init__(self, feature_name: _Optional[str] = ..., query: _Optional[str] = ..., document: _Optional[str] = ..., embedding_name: _Optional[str] = ..., embedding_dim: _Optional[int] = ..., boundaries: _Optional[_Iterable[float]] = ..., separator: _Optional[str] = ..., kv_delimiter: _Optional[float] = ..., normalizer: _Optional[str] = ..., pooling: _Optional[str] = ..., default_value: _Optional[str] = ..., init_fn: _Optional[str] = ..., use_mask: _Optional[bool] = ..., fg_encoded_default_value: _Optional[str] = ..., trainable: _Optional[bool] = ..., stub_type: _Optional[bool] = ..., data_type: _Optional[str] = ..., autodis: _Optional[_Union[AutoDisEmbedding, _Mapping]] = ..., mlp: _Optional[_Union[MLPEmbedding, _Mapping]] = ..., embedding_constraints: _Optional[_Union[_sharding_pb2.ParameterConstraints, _Mapping]] = ..., sequence_length: _Optional[int] = ..., sequence_delim: _Optional[str] = ..., sequence_fields: _Optional[_Iterable[str]] = ..., kv_separator: _Optional[str] = ...) -> None: ...

class LFU_EvictionPolicy(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LRU_EvictionPolicy(_message.Message):
    __slots__ = ("decay_exponent",)
    DECAY_EXPONENT_FIELD_NUMBER: _ClassVar[int]
    decay_exponent: float
    def __init__(self, decay_exponent: _Optional[float] = ...) -> None: ...

class LookupFeature(_message.Message):
    __slots__ = ("feature_name", "map", "key", "embedding_name", "embedding_dim", "boundaries", "hash_bucket_size", "num_buckets", "vocab_list", "vocab_dict", "pooling", "combiner", "default_value", "separator", "need_discrete", "need_key", "normalizer", "init_fn", "value_dim", "value_separator", "use_mask", "zch", "vocab_file", "asset_dir", "dynamicemb", "fg_encoded_default_value", "default_bucketize_value", "fg_value_type", "trainable", "stub_type", "data_type", "autodis", "mlp", "embedding_constraints", "sequence_length", "sequence_delim", "sequence_fields")
    class VocabDictEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    FEATURE_NAME_FIELD_NUMBER: _ClassVar[int]
    MAP_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NAME_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    BOUNDARIES_FIELD_NUMBER: _ClassVar[int]
    HASH_BUCKET_SIZE_FIELD_NUMBER: _ClassVar[int]
    NUM_BUCKETS_FIELD_NUMBER: _ClassVar[int]
    VOCAB_LIST_FIELD_NUMBER: _ClassVar[int]
    VOCAB_DICT_FIELD_NUMBER: _ClassVar[int]
    POOLING_FIELD_NUMBER: _ClassVar[int]
    COMBINER_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    NEED_DISCRETE_FIELD_NUMBER: _ClassVar[int]
    NEED_KEY_FIELD_NUMBER: _ClassVar[int]
    NORMALIZER_FIELD_NUMBER: _ClassVar[int]
    INIT_FN_FIELD_NUMBER: _ClassVar[int]
    VALUE_DIM_FIELD_NUMBER: _ClassVar[int]
    VALUE_SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    USE_MASK_FIELD_NUMBER: _ClassVar[int]
    ZCH_FIELD_NUMBER: _ClassVar[int]
    VOCAB_FILE_FIELD_NUMBER: _ClassVar[int]
    ASSET_DIR_FIELD_NUMBER: _ClassVar[int]
    DYNAMICEMB_FIELD_NUMBER: _ClassVar[int]
    FG_ENCODED_DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_BUCKETIZE_VALUE_FIELD_NUMBER: _ClassVar[int]
    FG_VALUE_TYPE_FIELD_NUMBER: _ClassVar[int]
    TRAINABLE_FIELD_NUMBER: _ClassVar[int]
    STUB_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    AUTODIS_FIELD_NUMBER: _ClassVar[int]
    MLP_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_DELIM_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    feature_name: str
    map: str
    key: str
    embedding_name: str
    embedding_dim: int
    boundaries: _containers.RepeatedScalarFieldContainer[float]
    hash_bucket_size: int
    num_buckets: int
    vocab_list: _containers.RepeatedScalarFieldContainer[str]
    vocab_dict: _containers.ScalarMap[str, int]
    pooling: str
    combiner: str
    default_value: str
    separator: str
    need_discrete: bool
    need_key: bool
    normalizer: str
    init_fn: str
    value_dim: int
    value_separator: str
    use_mask: bool
    zch: ZeroCollisionHash
    vocab_file: str
    asset_dir: str
    dynamicemb: DynamicEmbedding
    fg_encoded_default_value: str
    default_bucketize_value: int
    fg_value_type: str
    trainable: bool
    stub_type: bool
    data_type: str
    autodis: AutoDisEmbedding
    mlp: MLPEmbedding
    embedding_constraints: _sharding_pb2.ParameterConstraints
    sequence_length: int
    sequence_delim: str
    sequence_fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, feature_name: _Optional[str] = ..., map: _Optional[str] = ..., key: _Optional[str] = ..., embedding_name: _Optional[str] = ..., embedding_dim: _Optional[int] = ..., boundaries: _Optional[_Iterable[float]] = ..., hash_bucket_size: _Optional[int] = ..., num_buckets: _Optional[int] = ..., vocab_list: _Optional[_Iterable[str]] = ..., vocab_dict: _Optional[_Mapping[str, int]] = ..., pooling: _Optional[str] = ..., combiner: _Optional[str] = ..., default_value: _Optional[str] = ..., separator: _Optional[str] = ..., need_discrete: _Optional[bool] = ..., need_key: _Optional[bool] = ..., normalizer: _Optional[str] = ..., init_fn: _Optional[str] = ..., value_dim: _Optional[int] = ..., value_separator: _Optional[str] = ..., use_mask: _Optional[bool] = ..., zch: _Optional[_Union[ZeroCollisionHash, _Mapping]] = ..., vocab_file: _Optional[str] = ..., asset_dir: _Optional[str] = ..., dynamicemb: _Optional[_Union[DynamicEmbedding, _Mapping]] = ..., fg_encoded_default_value: _Optional[str] = ..., default_bucketize_value: _Optional[int] = ..., fg_value_type: _Optional[str] = ..., trainable: _Optional[bool] = ..., stub_type: _Optional[bool] = ..., data_type: _Optional[str] = ..., autodis: _Optional[_Union[AutoDisEmbedding, _Mapping]] = ..., mlp: _Optional[_Union[MLPEmbedding, _Mapping]] = ..., embedding_constraints: _Optional[_Union[_sharding_pb2.ParameterConstraints, _Mapping]] = ..., sequence_length: _Optional[int] = ..., sequence_delim: _Optional[str] = ..., sequence_fields: _Optional[_Iterable[str]] = ...) -> None: ...

class MLPEmbedding(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MatchFeature(_message.Message):
    __slots__ = ("feature_name", "nested_map", "pkey", "skey", "embedding_name", "embedding_dim", "boundaries", "hash_bucket_size", "num_buckets", "vocab_list", "vocab_dict", "pooling", "default_value", "separator", "need_discrete", "show_pkey", "show_skey", "normalizer", "init_fn", "value_dim", "use_mask", "zch", "vocab_file", "asset_dir", "dynamicemb", "fg_encoded_default_value", "default_bucketize_value", "fg_value_type", "trainable", "stub_type", "data_type", "autodis", "mlp", "embedding_constraints", "sequence_length", "sequence_delim", "sequence_fields")
    class VocabDictEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    FEATURE_NAME_FIELD_NUMBER: _ClassVar[int]
    NESTED_MAP_FIELD_NUMBER: _ClassVar[int]
    PKEY_FIELD_NUMBER: _ClassVar[int]
    SKEY_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NAME_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    BOUNDARIES_FIELD_NUMBER: _ClassVar[int]
    HASH_BUCKET_SIZE_FIELD_NUMBER: _ClassVar[int]
    NUM_BUCKETS_FIELD_NUMBER: _ClassVar[int]
    VOCAB_LIST_FIELD_NUMBER: _ClassVar[int]
    VOCAB_DICT_FIELD_NUMBER: _ClassVar[int]
    POOLING_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    NEED_DISCRETE_FIELD_NUMBER: _ClassVar[int]
    SHOW_PKEY_FIELD_NUMBER: _ClassVar[int]
    SHOW_SKEY_FIELD_NUMBER: _ClassVar[int]
    NORMALIZER_FIELD_NUMBER: _ClassVar[int]
    INIT_FN_FIELD_NUMBER: _ClassVar[int]
    VALUE_DIM_FIELD_NUMBER: _ClassVar[int]
    USE_MASK_FIELD_NUMBER: _ClassVar[int]
    ZCH_FIELD_NUMBER: _ClassVar[int]
    VOCAB_FILE_FIELD_NUMBER: _ClassVar[int]
    ASSET_DIR_FIELD_NUMBER: _ClassVar[int]
    DYNAMICEMB_FIELD_NUMBER: _ClassVar[int]
    FG_ENCODED_DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_BUCKETIZE_VALUE_FIELD_NUMBER: _ClassVar[int]
    FG_VALUE_TYPE_FIELD_NUMBER: _ClassVar[int]
    TRAINABLE_FIELD_NUMBER: _ClassVar[int]
    STUB_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    AUTODIS_FIELD_NUMBER: _ClassVar[int]
    MLP_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_DELIM_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    feature_name: str
    nested_map: str
    pkey: str
    skey: str
    embedding_name: str
    embedding_dim: int
    boundaries: _containers.RepeatedScalarFieldContainer[float]
    hash_bucket_size: int
    num_buckets: int
    vocab_list: _containers.RepeatedScalarFieldContainer[str]
    vocab_dict: _containers.ScalarMap[str, int]
    pooling: str
    default_value: str
    separator: str
    need_discrete: bool
    show_pkey: bool
    show_skey: bool
    normalizer: str
    init_fn: str
    value_dim: int
    use_mask: bool
    zch: ZeroCollisionHash
    vocab_file: str
    asset_dir: str
    dynamicemb: DynamicEmbedding
    fg_encoded_default_value: str
    default_bucketize_value: int
    fg_value_type: str
    trainable: bool
    stub_type: bool
    data_type: str
    autodis: AutoDisEmbedding
    mlp: MLPEmbedding
    embedding_constraints: _sharding_pb2.ParameterConstraints
    sequence_length: int
    sequence_delim: str
    sequence_fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, feature_name: _Optional[str] = ..., nested_map: _Optional[str] = ..., pkey: _Optional[str] = ..., skey: _Optional[str] = ..., embedding_name: _Optional[str] = ..., embedding_dim: _Optional[int] = ..., boundaries: _Optional[_Iterable[float]] = ..., hash_bucket_size: _Optional[int] = ..., num_buckets: _Optional[int] = ..., vocab_list: _Optional[_Iterable[str]] = ..., vocab_dict: _Optional[_Mapping[str, int]] = ..., pooling: _Optional[str] = ..., default_value: _Optional[str] = ..., separator: _Optional[str] = ..., need_discrete: _Optional[bool] = ..., show_pkey: _Optional[bool] = ..., show_skey: _Optional[bool] = ..., normalizer: _Optional[str] = ..., init_fn: _Optional[str] = ..., value_dim: _Optional[int] = ..., use_mask: _Optional[bool] = ..., zch: _Optional[_Union[ZeroCollisionHash, _Mapping]] = ..., vocab_file: _Optional[str] = ..., asset_dir: _Optional[str] = ..., dynamicemb: _Optional[_Union[DynamicEmbedding, _Mapping]] = ..., fg_encoded_default_value: _Optional[str] = ..., default_bucketize_value: _Optional[int] = ..., fg_value_type: _Optional[str] = ..., trainable: _Optional[bool] = ..., stub_type: _Optional[bool] = ..., data_type: _Optional[str] = ..., autodis: _Optional[_Union[AutoDisEmbedding, _Mapping]] = ..., mlp: _Optional[_Union[MLPEmbedding, _Mapping]] = ..., embedding_constraints: _Optional[_Union[_sharding_pb2.ParameterConstraints, _Mapping]] = ..., sequence_length: _Optional[int] = ..., sequence_delim: _Optional[str] = ..., sequence_fields: _Optional[_Iterable[str]] = ...) -> None: ...

class OverlapFeature(_message.Message):
    __slots__ = ("feature_name", "query", "title", "method", "embedding_name", "embedding_dim", "boundaries", "normalizer", "pooling", "separator", "init_fn", "use_mask", "fg_encoded_default_value", "trainable", "stub_type", "data_type", "autodis", "mlp", "embedding_constraints", "sequence_length", "sequence_delim", "sequence_fields")
    FEATURE_NAME_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NAME_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    BOUNDARIES_FIELD_NUMBER: _ClassVar[int]
    NORMALIZER_FIELD_NUMBER: _ClassVar[int]
    POOLING_FIELD_NUMBER: _ClassVar[int]
    SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    INIT_FN_FIELD_NUMBER: _ClassVar[int]
    USE_MASK_FIELD_NUMBER: _ClassVar[int]
    FG_ENCODED_DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    TRAINABLE_FIELD_NUMBER: _ClassVar[int]
    STUB_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    AUTODIS_FIELD_NUMBER: _ClassVar[int]
    MLP_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_DELIM_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    feature_name: str
    query: str
    title: str
    method: str
    embedding_name: str
    embedding_dim: int
    boundaries: _containers.RepeatedScalarFieldContainer[float]
    normalizer: str
    pooling: str
    separator: str
    init_fn: str
    use_mask: bool
    fg_encoded_default_value: str
    trainable: bool
    stub_type: bool
    data_type: str
    autodis: AutoDisEmbedding
    mlp: MLPEmbedding
    embedding_constraints: _sharding_pb2.ParameterConstraints
    sequence_length: int
    sequence_delim: str
    sequence_fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, feature_name: _Optional[str] = ..., query: _Optional[str] = ..., title: _Optional[str] = ..., method: _Optional[str] = ..., embedding_name: _Optional[str] = ..., embedding_dim: _Optional[int] = ..., boundaries: _Optional[_Iterable[float]] = ..., normalizer: _Optional[str] = ..., pooling: _Optional[str] = ..., separator: _Optional[str] = ..., init_fn: _Optional[str] = ..., use_mask: _Optional[bool] = ..., fg_encoded_default_value: _Optional[str] = ..., trainable: _Optional[bool] = ..., stub_type: _Optional[bool] = ..., data_type: _Optional[str] = ..., autodis: _Optional[_Union[AutoDisEmbedding, _Mapping]] = ..., mlp: _Optional[_Union[MLPEmbedding, _Mapping]] = ..., embedding_constraints: _Optional[_Union[_sharding_pb2.ParameterConstraints, _Mapping]] = ..., sequence_length: _Optional[int] = ..., sequence_delim: _Optional[str] = ..., sequence_fields: _Optional[_Iterable[str]] = ...) -> None: ...

class RawFeature(_message.Message):
    __slots__ = ("feature_name", "expression", "embedding_name", "embedding_dim", "boundaries", "value_dim", "normalizer", "pooling", "default_value", "separator", "init_fn", "use_mask", "fg_encoded_default_value", "trainable", "stub_type", "data_type", "autodis", "mlp", "embedding_constraints", "sequence_length", "sequence_delim", "sequence_fields")
    FEATURE_NAME_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NAME_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    BOUNDARIES_FIELD_NUMBER: _ClassVar[int]
    VALUE_DIM_FIELD_NUMBER: _ClassVar[int]
    NORMALIZER_FIELD_NUMBER: _ClassVar[int]
    POOLING_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    INIT_FN_FIELD_NUMBER: _ClassVar[int]
    USE_MASK_FIELD_NUMBER: _ClassVar[int]
    FG_ENCODED_DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    TRAINABLE_FIELD_NUMBER: _ClassVar[int]
    STUB_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    AUTODIS_FIELD_NUMBER: _ClassVar[int]
    MLP_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_DELIM_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    feature_name: str
    expression: str
    embedding_name: str
    embedding_dim: int
    boundaries: _containers.RepeatedScalarFieldContainer[float]
    value_dim: int
    normalizer: str
    pooling: str
    default_value: str
    separator: str
    init_fn: str
    use_mask: bool
    fg_encoded_default_value: str
    trainable: bool
    stub_type: bool
    data_type: str
    autodis: AutoDisEmbedding
    mlp: MLPEmbedding
    embedding_constraints: _sharding_pb2.ParameterConstraints
    sequence_length: int
    sequence_delim: str
    sequence_fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, feature_name: _Optional[str] = ..., expression: _Optional[str] = ..., embedding_name: _Optional[str] = ..., embedding_dim: _Optional[int] = ..., boundaries: _Optional[_Iterable[float]] = ..., value_dim: _Optional[int] = ..., normalizer: _Optional[str] = ..., pooling: _Optional[str] = ..., default_value: _Optional[str] = ..., separator: _Optional[str] = ..., init_fn: _Optional[str] = ..., use_mask: _Optional[bool] = ..., fg_encoded_default_value: _Optional[str] = ..., trainable: _Optional[bool] = ..., stub_type: _Optional[bool] = ..., data_type: _Optional[str] = ..., autodis: _Optional[_Union[AutoDisEmbedding, _Mapping]] = ..., mlp: _Optional[_Union[MLPEmbedding, _Mapping]] = ..., embedding_constraints: _Optional[_Union[_sharding_pb2.ParameterConstraints, _Mapping]] = ..., sequence_length: _Optional[int] = ..., sequence_delim: _Optional[str] = ..., sequence_fields: _Optional[_Iterable[str]] = ...) -> None: ...

class SeqFeatureConfig(_message.Message):
    __slots__ = ("id_feature", "raw_feature", "combo_feature", "lookup_feature", "match_feature", "expr_feature", "overlap_feature", "tokenize_feature", "custom_feature", "kv_dot_product", "bool_mask_feature", "combine_feature")
    Extensions: _python_message._ExtensionDict
    ID_FEATURE_FIELD_NUMBER: _ClassVar[int]
    RAW_FEATURE_FIELD_NUMBER: _ClassVar[int]
    COMBO_FEATURE_FIELD_NUMBER: _ClassVar[int]
    LOOKUP_FEATURE_FIELD_NUMBER: _ClassVar[int]
    MATCH_FEATURE_FIELD_NUMBER: _ClassVar[int]
    EXPR_FEATURE_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FEATURE_FIELD_NUMBER: _ClassVar[int]
    TOKENIZE_FEATURE_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_FEATURE_FIELD_NUMBER: _ClassVar[int]
    KV_DOT_PRODUCT_FIELD_NUMBER: _ClassVar[int]
    BOOL_MASK_FEATURE_FIELD_NUMBER: _ClassVar[int]
    COMBINE_FEATURE_FIELD_NUMBER: _ClassVar[int]
    id_feature: IdFeature
    raw_feature: RawFeature
    combo_feature: ComboFeature
    lookup_feature: LookupFeature
    match_feature: MatchFeature
    expr_feature: ExprFeature
    overlap_feature: OverlapFeature
    tokenize_feature: TokenizeFeature
    custom_feature: CustomFeature
    kv_dot_product: KvDotProduct
    bool_mask_feature: BoolMaskFeature
    combine_feature: CombineFeature
    def __init__(self, id_feature: _Optional[_Union[IdFeature, _Mapping]] = ..., raw_feature: _Optional[_Union[RawFeature, _Mapping]] = ..., combo_feature: _Optional[_Union[ComboFeature, _Mapping]] = ..., lookup_feature: _Optional[_Union[LookupFeature, _Mapping]] = ..., match_feature: _Optional[_Union[MatchFeature, _Mapping]] = ..., expr_feature: _Optional[_Union[ExprFeature, _Mapping]] = ..., overlap_feature: _Optional[_Union[OverlapFeature, _Mapping]] = ..., tokenize_feature: _Optional[_Union[TokenizeFeature, _Mapping]] = ..., custom_feature: _Optional[_Union[CustomFeature, _Mapping]] = ..., kv_dot_product: _Optional[_Union[KvDotProduct, _Mapping]] = ..., bool_mask_feature: _Optional[_Union[BoolMaskFeature, _Mapping]] = ..., combine_feature: _Optional[_Union[CombineFeature, _Mapping]] = ...) -> None: ...

class SequenceFeature(_message.Message):
    __slots__ = ("sequence_name", "sequence_length", "sequence_delim", "sequence_pk", "features")
    SEQUENCE_NAME_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_DELIM_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_PK_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    sequence_name: str
    sequence_length: int
    sequence_delim: str
    sequence_pk: str
    features: _containers.RepeatedCompositeFieldContainer[SeqFeatureConfig]
    def __init__(self, sequence_name: _Optional[str] = ..., sequence_length: _Optional[int] = ..., sequence_delim: _Optional[str] = ..., sequence_pk: _Optional[str] = ..., features: _Optional[_Iterable[_Union[SeqFeatureConfig, _Mapping]]] = ...) -> None: ...

class TextNormalizer(_message.Message):
    __slots__ = ("max_length", "stop_char_file", "norm_options")
    MAX_LENGTH_FIELD_NUMBER: _ClassVar[int]
    STOP_CHAR_FILE_FIELD_NUMBER: _ClassVar[int]
    NORM_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    max_length: int
    stop_char_file: str
    norm_options: _containers.RepeatedScalarFieldContainer[TextNormalizeOption]
    def __init__(self, max_length: _Optional[int] = ..., stop_char_file: _Optional[str] = ..., norm_options: _Optional[_Iterable[_Union[TextNormalizeOption, str]]] = ...) -> None: ...

class TokenizeFeature(_message.Message):
    __slots__ = ("feature_name", "expression", "embedding_name", "embedding_dim", "text_normalizer", "vocab_file", "asset_dir", "pooling", "default_value", "tokenizer_type", "init_fn", "use_mask", "fg_encoded_default_value", "trainable", "stub_type", "data_type", "embedding_constraints", "sequence_length", "sequence_delim", "sequence_fields", "tokens_as_sequence")
    FEATURE_NAME_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NAME_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    TEXT_NORMALIZER_FIELD_NUMBER: _ClassVar[int]
    VOCAB_FILE_FIELD_NUMBER: _ClassVar[int]
    ASSET_DIR_FIELD_NUMBER: _ClassVar[int]
    POOLING_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_TYPE_FIELD_NUMBER: _ClassVar[int]
    INIT_FN_FIELD_NUMBER: _ClassVar[int]
    USE_MASK_FIELD_NUMBER: _ClassVar[int]
    FG_ENCODED_DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    TRAINABLE_FIELD_NUMBER: _ClassVar[int]
    STUB_TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_DELIM_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_AS_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    feature_name: str
    expression: str
    embedding_name: str
    embedding_dim: int
    text_normalizer: TextNormalizer
    vocab_file: str
    asset_dir: str
    pooling: str
    default_value: str
    tokenizer_type: str
    init_fn: str
    use_mask: bool
    fg_encoded_default_value: str
    trainable: bool
    stub_type: bool
    data_type: str
    embedding_constraints: _sharding_pb2.ParameterConstraints
    sequence_length: int
    sequence_delim: str
    sequence_fields: _containers.RepeatedScalarFieldContainer[str]
    tokens_as_sequence: bool
    def __init__(self, feature_name: _Optional[str] = ..., expression: _Optional[str] = ..., embedding_name: _Optional[str] = ..., embedding_dim: _Optional[int] = ..., text_normalizer: _Optional[_Union[TextNormalizer, _Mapping]] = ..., vocab_file: _Optional[str] = ..., asset_dir: _Optional[str] = ..., pooling: _Optional[str] = ..., default_value: _Optional[str] = ..., tokenizer_type: _Optional[str] = ..., init_fn: _Optional[str] = ..., use_mask: _Optional[bool] = ..., fg_encoded_default_value: _Optional[str] = ..., trainable: _Optional[bool] = ..., stub_type: _Optional[bool] = ..., data_type: _Optional[str] = ..., embedding_constraints: _Optional[_Union[_sharding_pb2.ParameterConstraints, _Mapping]] = ..., sequence_length: _Optional[int] = ..., sequence_delim: _Optional[str] = ..., sequence_fields: _Optional[_Iterable[str]] = ..., tokens_as_sequence: _Optional[bool] = ...) -> None: ...

class Hash_EvictionPolicy(_message.Message):
    __slots__ = ("ttl_ms", "admission_count", "admission_capacity", "buckets", "max_probe")
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    ADMISSION_COUNT_FIELD_NUMBER: _ClassVar[int]
    ADMISSION_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    BUCKETS_FIELD_NUMBER: _ClassVar[int]
    MAX_PROBE_FIELD_NUMBER: _ClassVar[int]
    ttl_ms: int
    admission_count: int
    admission_capacity: int
    buckets: int
    max_probe: int
    def __init__(self, ttl_ms: _Optional[int] = ..., admission_count: _Optional[int] = ..., admission_capacity: _Optional[int] = ..., buckets: _Optional[int] = ..., max_probe: _Optional[int] = ...) -> None: ...

class ZeroCollisionHash(_message.Message):
    __slots__ = ("zch_size", "eviction_interval", "threshold_filtering_func", "lfu", "lru", "distance_lfu", "hash")
    ZCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    EVICTION_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FILTERING_FUNC_FIELD_NUMBER: _ClassVar[int]
    LFU_FIELD_NUMBER: _ClassVar[int]
    LRU_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_LFU_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    zch_size: int
    eviction_interval: int
    threshold_filtering_func: str
    lfu: LFU_EvictionPolicy
    lru: LRU_EvictionPolicy
    distance_lfu: DistanceLFU_EvictionPolicy
    hash: Hash_EvictionPolicy
    def __init__(self, zch_size: _Optional[int] = ..., eviction_interval: _Optional[int] = ..., threshold_filtering_func: _Optional[str] = ..., lfu: _Optional[_Union[LFU_EvictionPolicy, _Mapping]] = ..., lru: _Optional[_Union[LRU_EvictionPolicy, _Mapping]] = ..., distance_lfu: _Optional[_Union[DistanceLFU_EvictionPolicy, _Mapping]] = ..., hash: _Optional[_Union[Hash_EvictionPolicy, _Mapping]] = ...) -> None: ...
