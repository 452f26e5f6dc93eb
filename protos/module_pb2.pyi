from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FeatureGroupType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEEP: _ClassVar[FeatureGroupType]
    WIDE: _ClassVar[FeatureGroupType]
    SEQUENCE: _ClassVar[FeatureGroupType]
    JAGGED_SEQUENCE: _ClassVar[FeatureGroupType]
DEEP: FeatureGroupType
WIDE: FeatureGroupType
SEQUENCE: FeatureGroupType
JAGGED_SEQUENCE: FeatureGroupType

class DINEncoder(_message.Message):
    __slots__ = ("name", "input", "attn_mlp", "max_seq_length")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    ATTN_MLP_FIELD_NUMBER: _ClassVar[int]
    MAX_SEQ_LENGTH_FIELD_NUMBER: _ClassVar[int]
    name: str
    input: str
    attn_mlp: MLP
    max_seq_length: int
    def __init__(self, name: _Optional[str] = ..., input: _Optional[str] = ..., attn_mlp: _Optional[_Union[MLP, _Mapping]] = ..., max_seq_length: _Optional[int] = ...) -> None: ...

class FeatureGroupConfig(_message.Message):
    __slots__ = ("group_name", "feature_names", "group_type", "sequence_groups", "sequence_encoders", "embedding_name_suffix")
    GROUP_NAME_FIELD_NUMBER: _ClassVar[int]
    FEATURE_NAMES_FIELD_NUMBER: _ClassVar[int]
    GROUP_TYPE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_GROUPS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_ENCODERS_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NAME_SUFFIX_FIELD_NUMBER: _ClassVar[int]
    group_name: str
    feature_names: _containers.RepeatedScalarFieldContainer[str]
    group_type: FeatureGroupType
    sequence_groups: _containers.RepeatedCompositeFieldContainer[SeqGroupConfig]
    sequence_encoders: _containers.RepeatedCompositeFieldContainer[SeqEncoderConfig]
    embedding_name_suffix: str
    def __init__(self, group_name: _Optional[str] = ..., feature_names: _Optional[_Iterable[str]] = ..., group_type: _Optional[_Union[FeatureGroupType, str]] = ..., sequence_groups: _Optional[_Iterable[_Union[SeqGroupConfig, _Mapping]]] = ..., sequence_encoders: _Optional[_Iterable[_Union[SeqEncoderConfig, _Mapping]]] = ..., embedding_name_suffix: _Optional[str] = ...) -> None: ...

class MLP(_message.Message):
    __slots__ = ("hidden_units", "dropout_ratio", "activation", "use_bn", "bias", "use_ln")
    HIDDEN_UNITS_FIELD_NUMBER: _ClassVar[int]
    DROPOUT_RATIO_FIELD_NUMBER: _ClassVar[int]
    ACTIVATION_FIELD_NUMBER: _ClassVar[int]
    USE_BN_FIELD_NUMBER: _ClassVar[int]
    BIAS_FIELD_NUMBER: _ClassVar[int]
    USE_LN_FIELD_NUMBER: _ClassVar[int]
    hidden_units: _containers.RepeatedScalarFieldContainer[int]
    dropout_ratio: _containers.RepeatedScalarFieldContainer[float]
    activation: str
    use_bn: bool
    bias: bool
    use_ln: bool
    def __init__(self, hidden_units: _Optional[_Iterable[int]] = ..., dropout_ratio: _Optional[_Iterable[float]] = ..., activation: _Optional[str] = ..., use_bn: _Optional[bool] = ..., bias: _Optional[bool] = ..., use_ln: _Optional[bool] = ...) -> None: ...

class MultiWindowDINEncoder(_message.Message):
    __slots__ = ("name", "input", "attn_mlp", "windows_len")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    ATTN_MLP_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_LEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    input: str
    attn_mlp: MLP
    windows_len: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., input: _Optional[str] = ..., attn_mlp: _Optional[_Union[MLP, _Mapping]] = ..., windows_len: _Optional[_Iterable[int]] = ...) -> None: ...

class PoolingEncoder(_message.Message):
    __slots__ = ("name", "input", "pooling_type", "max_seq_length")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    POOLING_TYPE_FIELD_NUMBER: _ClassVar[int]
    MAX_SEQ_LENGTH_FIELD_NUMBER: _ClassVar[int]
    name: str
    input: str
    pooling_type: str
    max_seq_length: int
    def __init__(self, name: _Optional[str] = ..., input: _Optional[str] = ..., pooling_type: _Optional[str] = ..., max_seq_length: _Optional[int] = ...) -> None: ...

class SelfAttentionEncoder(_message.Message):
    __slots__ = ("name", "input", "multihead_attn_dim", "num_heads", "dropout", "max_seq_length")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    MULTIHEAD_ATTN_DIM_FIELD_NUMBER: _ClassVar[int]
    NUM_HEADS_FIELD_NUMBER: _ClassVar[int]
    DROPOUT_FIELD_NUMBER: _ClassVar[int]
    MAX_SEQ_LENGTH_FIELD_NUMBER: _ClassVar[int]
    name: str
    input: str
    multihead_attn_dim: int
    num_heads: int
    dropout: float
    max_seq_length: int
    def __init__(self, name: _Optional[str] = ..., input: _Optional[str] = ..., multihead_attn_dim: _Optional[int] = ..., num_heads: _Optional[int] = ..., dropout: _Optional[float] = ..., max_seq_length: _Optional[int] = ...) -> None: ...

class SeqEncoderConfig(_message.Message):
    __slots__ = ("din_encoder", "simple_attention", "pooling_encoder", "multi_window_din_encoder", "self_attention_encoder")
    DIN_ENCODER_FIELD_NUMBER: _ClassVar[int]
    SIMPLE_ATTENTION_FIELD_NUMBER: _ClassVar[int]
    POOLING_ENCODER_FIELD_NUMBER: _ClassVar[int]
    MULTI_WINDOW_DIN_ENCODER_FIELD_NUMBER: _ClassVar[int]
    SELF_ATTENTION_ENCODER_FIELD_NUMBER: _ClassVar[int]
    din_encoder: DINEncoder
    simple_attention: SimpleAttention
    pooling_encoder: PoolingEncoder
    multi_window_din_encoder: MultiWindowDINEncoder
    self_attention_encoder: SelfAttentionEncoder
    def __init__(self, din_encoder: _Optional[_Union[DINEncoder, _Mapping]] = ..., simple_attention: _Optional[_Union[SimpleAttention, _Mapping]] = ..., pooling_encoder: _Optional[_Union[PoolingEncoder, _Mapping]] = ..., multi_window_din_encoder: _Optional[_Union[MultiWindowDINEncoder, _Mapping]] = ..., self_attention_encoder: _Optional[_Union[SelfAttentionEncoder, _Mapping]] = ...) -> None: ...

class SeqGroupConfig(_message.Message):
    __slots__ = ("group_name", "feature_names", "embedding_name_suffix")
    GROUP_NAME_FIELD_NUMBER: _ClassVar[int]
    FEATURE_NAMES_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_NAME_SUFFIX_FIELD_NUMBER: _ClassVar[int]
    group_name: str
    feature_names: _containers.RepeatedScalarFieldContainer[str]
    embedding_name_suffix: str
    def __init__(self, group_name: _Optional[str] = ..., feature_names: _Optional[_Iterable[str]] = ..., embedding_name_suffix: _Optional[str] = ...) -> None: ...

class SimpleAttention(_message.Message):
    __slots__ = ("name", "input", "max_seq_length")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    MAX_SEQ_LENGTH_FIELD_NUMBER: _ClassVar[int]
    name: str
    input: str
    max_seq_length: int
    def __init__(self, name: _Optional[str] = ..., input: _Optional[str] = ..., max_seq_length: _Optional[int] = ...) -> None: ...

class Tower(_message.Message):
    __slots__ = ("input", "mlp")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    MLP_FIELD_NUMBER: _ClassVar[int]
    input: str
    mlp: MLP
    def __init__(self, input: _Optional[str] = ..., mlp: _Optional[_Union[MLP, _Mapping]] = ...) -> None: ...

class VariationalDropout(_message.Message):
    __slots__ = ("regularization_lambda", "embedding_wise_variational_dropout")
    REGULARIZATION_LAMBDA_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_WISE_VARIATIONAL_DROPOUT_FIELD_NUMBER: _ClassVar[int]
    regularization_lambda: float
    embedding_wise_variational_dropout: bool
    def __init__(self, regularization_lambda: _Optional[float] = ..., embedding_wise_variational_dropout: _Optional[bool] = ...) -> None: ...
