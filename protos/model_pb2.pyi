from protos import metric_pb2 as _metric_pb2
from protos import module_pb2 as _module_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf.internal import python_message as _python_message
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Kernel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRITON: _ClassVar[Kernel]
    PYTORCH: _ClassVar[Kernel]
    CUTLASS: _ClassVar[Kernel]

class Similarity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COSINE: _ClassVar[Similarity]
    INNER_PRODUCT: _ClassVar[Similarity]
    EUCLID: _ClassVar[Similarity]
TRITON: Kernel
PYTORCH: Kernel
CUTLASS: Kernel
COSINE: Similarity
INNER_PRODUCT: Similarity
EUCLID: Similarity

class B2ICapsule(_message.Message):
    __slots__ = ("max_k", "max_seq_len", "high_dim", "num_iters", "routing_logits_scale", "routing_logits_stddev", "squash_pow", "const_caps_num", "routing_init_method")
    MAX_K_FIELD_NUMBER: _ClassVar[int]
    MAX_SEQ_LEN_FIELD_NUMBER: _ClassVar[int]
    HIGH_DIM_FIELD_NUMBER: _ClassVar[int]
    NUM_ITERS_FIELD_NUMBER: _ClassVar[int]
    ROUTING_LOGITS_SCALE_FIELD_NUMBER: _ClassVar[int]
    ROUTING_LOGITS_STDDEV_FIELD_NUMBER: _ClassVar[int]
    SQUASH_POW_FIELD_NUMBER: _ClassVar[int]
    CONST_CAPS_NUM_FIELD_NUMBER: _ClassVar[int]
    ROUTING_INIT_METHOD_FIELD_NUMBER: _ClassVar[int]
    max_k: int
    max_seq_len: int
    high_dim: int
    num_iters: int
    routing_logits_scale: float
    routing_logits_stddev: float
    squash_pow: float
    const_caps_num: bool
    routing_init_method: str
    def __init__(self, max_k: _Optional[int] = ..., max_seq_len: _Optional[int] = ..., high_dim: _Optional[int] = ..., num_iters: _Optional[int] = ..., routing_logits_scale: _Optional[float] = ..., routing_logits_stddev: _Optional[float] = ..., squash_pow: _Optional[float] = ..., const_caps_num: _Optional[bool] = ..., routing_init_method: _Optional[str] = ...) -> None: ...

class BayesTaskTower(_message.Message):
    __slots__ = ("tower_name", "label_name", "metrics", "losses", "num_class", "mlp", "weight", "relation_tower_names", "relation_mlp", "sample_weight_name", "task_space_indicator_label", "in_task_space_weight", "out_task_space_weight", "pareto_min_loss_weight", "train_metrics")
    TOWER_NAME_FIELD_NUMBER: _ClassVar[int]
    LABEL_NAME_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    NUM_CLASS_FIELD_NUMBER: _ClassVar[int]
    MLP_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    RELATION_TOWER_NAMES_FIELD_NUMBER: _ClassVar[int]
    RELATION_MLP_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_WEIGHT_NAME_FIELD_NUMBER: _ClassVar[int]
    TASK_SPACE_INDICATOR_LABEL_FIELD_NUMBER: _ClassVar[int]
    IN_TASK_SPACE_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    OUT_TASK_SPACE_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PARETO_MIN_LOSS_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TRAIN_METRICS_FIELD_NUMBER: _ClassVar[int]
    tower_name: str
    label_name: str
    metrics: _containers.RepeatedCompositeFieldContainer[_metric_pb2.MetricConfig]
    losses: _containers.RepeatedCompositeFieldContainer[_metric_pb2.LossConfig]
    num_class: int
    mlp: _module_pb2.MLP
    weight: float
    relation_tower_names: _containers.RepeatedScalarFieldContainer[str]
    relation_mlp: _module_pb2.MLP
    sample_weight_name: str
    task_space_indicator_label: str
    in_task_space_weight: float
    out_task_space_weight: float
    pareto_min_loss_weight: float
    train_metrics: _containers.RepeatedCompositeFieldContainer[_metric_pb2.TrainMetricConfig]
    def __init__(self, tower_name: _Optional[str] = ..., label_name: _Optional[str] = ..., metrics: _Optional[_Iterable[_Union[_metric_pb2.MetricConfig, _Mapping]]] = ..., losses: _Optional[_Iterable[_Union[_metric_pb2.LossConfig, _Mapping]]] = ..., num_class: _Optional[int] = ..., mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., weight: _Optional[float] = ..., relation_tower_names: _Optional[_Iterable[str]] = ..., relation_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., sample_weight_name: _Optional[str] = ..., task_space_indicator_label: _Optional[str] = ..., in_task_space_weight: _Optional[float] = ..., out_task_space_weight: _Optional[float] = ..., pareto_min_loss_weight: _Optional[float] = ..., train_metrics: _Optional[_Iterable[_Union[_metric_pb2.TrainMetricConfig, _Mapping]]] = ...) -> None: ...

class CIN(_message.Message):
    __slots__ = ("cin_layer_size",)
    CIN_LAYER_SIZE_FIELD_NUMBER: _ClassVar[int]
    cin_layer_size: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, cin_layer_size: _Optional[_Iterable[int]] = ...) -> None: ...

class ContrastiveConfig(_message.Message):
    __slots__ = ("pair_feature_group", "pair_flag_feature_group")
    PAIR_FEATURE_GROUP_FIELD_NUMBER: _ClassVar[int]
    PAIR_FLAG_FEATURE_GROUP_FIELD_NUMBER: _ClassVar[int]
    pair_feature_group: str
    pair_flag_feature_group: str
    def __init__(self, pair_feature_group: _Optional[str] = ..., pair_flag_feature_group: _Optional[str] = ...) -> None: ...

class Cross(_message.Message):
    __slots__ = ("cross_num",)
    CROSS_NUM_FIELD_NUMBER: _ClassVar[int]
    cross_num: int
    def __init__(self, cross_num: _Optional[int] = ...) -> None: ...

class CrossV2(_message.Message):
    __slots__ = ("cross_num", "low_rank")
    CROSS_NUM_FIELD_NUMBER: _ClassVar[int]
    LOW_RANK_FIELD_NUMBER: _ClassVar[int]
    cross_num: int
    low_rank: int
    def __init__(self, cross_num: _Optional[int] = ..., low_rank: _Optional[int] = ...) -> None: ...

class DAT(_message.Message):
    __slots__ = ("user_tower", "item_tower", "output_dim", "similarity", "temperature", "in_batch_negative", "amm_i_weight", "amm_u_weight")
    USER_TOWER_FIELD_NUMBER: _ClassVar[int]
    ITEM_TOWER_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_DIM_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    IN_BATCH_NEGATIVE_FIELD_NUMBER: _ClassVar[int]
    AMM_I_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    AMM_U_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    user_tower: DATTower
    item_tower: DATTower
    output_dim: int
    similarity: Similarity
    temperature: float
    in_batch_negative: bool
    amm_i_weight: float
    amm_u_weight: float
    def __init__(self, user_tower: _Optional[_Union[DATTower, _Mapping]] = ..., item_tower: _Optional[_Union[DATTower, _Mapping]] = ..., output_dim: _Optional[int] = ..., similarity: _Optional[_Union[Similarity, str]] = ..., temperature: _Optional[float] = ..., in_batch_negative: _Optional[bool] = ..., amm_i_weight: _Optional[float] = ..., amm_u_weight: _Optional[float] = ...) -> None: ...

class DATTower(_message.Message):
    __slots__ = ("input", "augment_input", "mlp")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    AUGMENT_INPUT_FIELD_NUMBER: _ClassVar[int]
    MLP_FIELD_NUMBER: _ClassVar[int]
    input: str
    augment_input: str
    mlp: _module_pb2.MLP
    def __init__(self, input: _Optional[str] = ..., augment_input: _Optional[str] = ..., mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ...) -> None: ...

class DBMTL(_message.Message):
    __slots__ = ("bottom_mlp", "expert_mlp", "gate_mlp", "num_expert", "task_towers", "mask_net")
    BOTTOM_MLP_FIELD_NUMBER: _ClassVar[int]
    EXPERT_MLP_FIELD_NUMBER: _ClassVar[int]
    GATE_MLP_FIELD_NUMBER: _ClassVar[int]
    NUM_EXPERT_FIELD_NUMBER: _ClassVar[int]
    TASK_TOWERS_FIELD_NUMBER: _ClassVar[int]
    MASK_NET_FIELD_NUMBER: _ClassVar[int]
    bottom_mlp: _module_pb2.MLP
    expert_mlp: _module_pb2.MLP
    gate_mlp: _module_pb2.MLP
    num_expert: int
    task_towers: _containers.RepeatedCompositeFieldContainer[BayesTaskTower]
    mask_net: MaskNetModule
    def __init__(self, bottom_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., expert_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., gate_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., num_expert: _Optional[int] = ..., task_towers: _Optional[_Iterable[_Union[BayesTaskTower, _Mapping]]] = ..., mask_net: _Optional[_Union[MaskNetModule, _Mapping]] = ...) -> None: ...

class DC2VR(_message.Message):
    __slots__ = ("bottom_mlp", "expert_mlp", "gate_mlp", "num_expert", "task_towers")
    BOTTOM_MLP_FIELD_NUMBER: _ClassVar[int]
    EXPERT_MLP_FIELD_NUMBER: _ClassVar[int]
    GATE_MLP_FIELD_NUMBER: _ClassVar[int]
    NUM_EXPERT_FIELD_NUMBER: _ClassVar[int]
    TASK_TOWERS_FIELD_NUMBER: _ClassVar[int]
    bottom_mlp: _module_pb2.MLP
    expert_mlp: _module_pb2.MLP
    gate_mlp: _module_pb2.MLP
    num_expert: int
    task_towers: _containers.RepeatedCompositeFieldContainer[InterventionTaskTower]
    def __init__(self, bottom_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., expert_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., gate_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., num_expert: _Optional[int] = ..., task_towers: _Optional[_Iterable[_Union[InterventionTaskTower, _Mapping]]] = ...) -> None: ...

class DCNV1(_message.Message):
    __slots__ = ("cross", "deep", "final")
    CROSS_FIELD_NUMBER: _ClassVar[int]
    DEEP_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    cross: Cross
    deep: _module_pb2.MLP
    final: _module_pb2.MLP
    def __init__(self, cross: _Optional[_Union[Cross, _Mapping]] = ..., deep: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., final: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ...) -> None: ...

class DCNV2(_message.Message):
    __slots__ = ("backbone", "cross", "deep", "final")
    BACKBONE_FIELD_NUMBER: _ClassVar[int]
    CROSS_FIELD_NUMBER: _ClassVar[int]
    DEEP_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    backbone: _module_pb2.MLP
    cross: CrossV2
    deep: _module_pb2.MLP
    final: _module_pb2.MLP
    def __init__(self, backbone: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., cross: _Optional[_Union[CrossV2, _Mapping]] = ..., deep: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., final: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ...) -> None: ...

class DINTower(_message.Message):
    __slots__ = ("input", "attn_mlp")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    ATTN_MLP_FIELD_NUMBER: _ClassVar[int]
    input: str
    attn_mlp: _module_pb2.MLP
    def __init__(self, input: _Optional[str] = ..., attn_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ...) -> None: ...

class DLRM(_message.Message):
    __slots__ = ("dense_mlp", "arch_with_sparse", "final")
    DENSE_MLP_FIELD_NUMBER: _ClassVar[int]
    ARCH_WITH_SPARSE_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    dense_mlp: _module_pb2.MLP
    arch_with_sparse: bool
    final: _module_pb2.MLP
    def __init__(self, dense_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., arch_with_sparse: _Optional[bool] = ..., final: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ...) -> None: ...

class DSSM(_message.Message):
    __slots__ = ("user_tower", "item_tower", "output_dim", "similarity", "temperature", "in_batch_negative")
    USER_TOWER_FIELD_NUMBER: _ClassVar[int]
    ITEM_TOWER_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_DIM_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    IN_BATCH_NEGATIVE_FIELD_NUMBER: _ClassVar[int]
    user_tower: _module_pb2.Tower
    item_tower: _module_pb2.Tower
    output_dim: int
    similarity: Similarity
    temperature: float
    in_batch_negative: bool
    def __init__(self, user_tower: _Optional[_Union[_module_pb2.Tower, _Mapping]] = ..., item_tower: _Optional[_Union[_module_pb2.Tower, _Mapping]] = ..., output_dim: _Optional[int] = ..., similarity: _Optional[_Union[Similarity, str]] = ..., temperature: _Optional[float] = ..., in_batch_negative: _Optional[bool] = ...) -> None: ...

class DSSMV2(_message.Message):
    __slots__ = ("user_tower", "item_tower", "output_dim", "similarity", "temperature", "in_batch_negative")
    USER_TOWER_FIELD_NUMBER: _ClassVar[int]
    ITEM_TOWER_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_DIM_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    IN_BATCH_NEGATIVE_FIELD_NUMBER: _ClassVar[int]
    user_tower: _module_pb2.Tower
    item_tower: _module_pb2.Tower
    output_dim: int
    similarity: Similarity
    temperature: float
    in_batch_negative: bool
    def __init__(self, user_tower: _Optional[_Union[_module_pb2.Tower, _Mapping]] = ..., item_tower: _Optional[_Union[_module_pb2.Tower, _Mapping]] = ..., output_dim: _Optional[int] = ..., similarity: _Optional[_Union[Similarity, str]] = ..., temperature: _Optional[float] = ..., in_batch_negative: _Optional[bool] = ...) -> None: ...

class DeepFM(_message.Message):
    __slots__ = ("deep", "final", "wide_embedding_dim", "wide_init_fn")
    DEEP_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    WIDE_EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    WIDE_INIT_FN_FIELD_NUMBER: _ClassVar[int]
    deep: _module_pb2.MLP
    final: _module_pb2.MLP
    wide_embedding_dim: int
    wide_init_fn: str
    def __init__(self, deep: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., final: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., wide_embedding_dim: _Optional[int] = ..., wide_init_fn: _Optional[str] = ...) -> None: ...

class DlrmHSTU(_message.Message):
    __slots__ = ("hstu", "fusion_mtl_tower", "max_seq_len", "item_embedding_hidden_dim", "enable_global_average_loss", "sequence_timestamp_is_ascending", "concat_contextual_features")
    HSTU_FIELD_NUMBER: _ClassVar[int]
    FUSION_MTL_TOWER_FIELD_NUMBER: _ClassVar[int]
    MAX_SEQ_LEN_FIELD_NUMBER: _ClassVar[int]
    ITEM_EMBEDDING_HIDDEN_DIM_FIELD_NUMBER: _ClassVar[int]
    ENABLE_GLOBAL_AVERAGE_LOSS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_TIMESTAMP_IS_ASCENDING_FIELD_NUMBER: _ClassVar[int]
    CONCAT_CONTEXTUAL_FEATURES_FIELD_NUMBER: _ClassVar[int]
    hstu: HSTU
    fusion_mtl_tower: FusionMTLTower
    max_seq_len: int
    item_embedding_hidden_dim: int
    enable_global_average_loss: bool
    sequence_timestamp_is_ascending: bool
    concat_contextual_features: bool
    def __init__(self, hstu: _Optional[_Union[HSTU, _Mapping]] = ..., fusion_mtl_tower: _Optional[_Union[FusionMTLTower, _Mapping]] = ..., max_seq_len: _Optional[int] = ..., item_embedding_hidden_dim: _Optional[int] = ..., enable_global_average_loss: _Optional[bool] = ..., sequence_timestamp_is_ascending: _Optional[bool] = ..., concat_contextual_features: _Optional[bool] = ...) -> None: ...

class ExtractionNetwork(_message.Message):
    __slots__ = ("network_name", "expert_num_per_task", "share_num", "task_expert_net", "share_expert_net")
    NETWORK_NAME_FIELD_NUMBER: _ClassVar[int]
    EXPERT_NUM_PER_TASK_FIELD_NUMBER: _ClassVar[int]
    SHARE_NUM_FIELD_NUMBER: _ClassVar[int]
    TASK_EXPERT_NET_FIELD_NUMBER: _ClassVar[int]
    SHARE_EXPERT_NET_FIELD_NUMBER: _ClassVar[int]
    network_name: str
    expert_num_per_task: int
    share_num: int
    task_expert_net: _module_pb2.MLP
    share_expert_net: _module_pb2.MLP
    def __init__(self, network_name: _Optional[str] = ..., expert_num_per_task: _Optional[int] = ..., share_num: _Optional[int] = ..., task_expert_net: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., share_expert_net: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ...) -> None: ...

class FaissKmeansConfig(_message.Message):
    __slots__ = ("niter", "nredo", "seed", "max_points_per_centroid", "min_points_per_centroid", "spherical", "verbose")
    NITER_FIELD_NUMBER: _ClassVar[int]
    NREDO_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    MAX_POINTS_PER_CENTROID_FIELD_NUMBER: _ClassVar[int]
    MIN_POINTS_PER_CENTROID_FIELD_NUMBER: _ClassVar[int]
    SPHERICAL_FIELD_NUMBER: _ClassVar[int]
    VERBOSE_FIELD_NUMBER: _ClassVar[int]
    niter: int
    nredo: int
    seed: int
    max_points_per_centroid: int
    min_points_per_centroid: int
    spherical: bool
    verbose: bool
    def __init__(self, niter: _Optional[int] = ..., nredo: _Optional[int] = ..., seed: _Optional[int] = ..., max_points_per_centroid: _Optional[int] = ..., min_points_per_centroid: _Optional[int] = ..., spherical: _Optional[bool] = ..., verbose: _Optional[bool] = ...) -> None: ...

class FusionMTLTower(_message.Message):
    __slots__ = ("mlp", "task_configs")
    MLP_FIELD_NUMBER: _ClassVar[int]
    TASK_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    mlp: _module_pb2.MLP
    task_configs: _containers.RepeatedCompositeFieldContainer[FusionSubTaskConfig]
    def __init__(self, mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., task_configs: _Optional[_Iterable[_Union[FusionSubTaskConfig, _Mapping]]] = ...) -> None: ...

class FusionSubTaskConfig(_message.Message):
    __slots__ = ("task_name", "label_name", "task_bitmask", "losses", "num_class", "metrics", "weight", "train_metrics")
    TASK_NAME_FIELD_NUMBER: _ClassVar[int]
    LABEL_NAME_FIELD_NUMBER: _ClassVar[int]
    TASK_BITMASK_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    NUM_CLASS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TRAIN_METRICS_FIELD_NUMBER: _ClassVar[int]
    task_name: str
    label_name: str
    task_bitmask: int
    losses: _containers.RepeatedCompositeFieldContainer[_metric_pb2.LossConfig]
    num_class: int
    metrics: _containers.RepeatedCompositeFieldContainer[_metric_pb2.MetricConfig]
    weight: float
    train_metrics: _containers.RepeatedCompositeFieldContainer[_metric_pb2.TrainMetricConfig]
    def __init__(self, task_name: _Optional[str] = ..., label_name: _Optional[str] = ..., task_bitmask: _Optional[int] = ..., losses: _Optional[_Iterable[_Union[_metric_pb2.LossConfig, _Mapping]]] = ..., num_class: _Optional[int] = ..., metrics: _Optional[_Iterable[_Union[_metric_pb2.MetricConfig, _Mapping]]] = ..., weight: _Optional[float] = ..., train_metrics: _Optional[_Iterable[_Union[_metric_pb2.TrainMetricConfig, _Mapping]]] = ...) -> None: ...

class GRActionEncoder(_message.Message):
    __slots__ = ("simple_action_encoder",)
    SIMPLE_ACTION_ENCODER_FIELD_NUMBER: _ClassVar[int]
    simple_action_encoder: GRSimpleActionEncoder
    def __init__(self, simple_action_encoder: _Optional[_Union[GRSimpleActionEncoder, _Mapping]] = ...) -> None: ...

class GRContentEncoder(_message.Message):
    __slots__ = ("slice_content_encoder", "pad_content_encoder", "mlp_content_encoder")
    SLICE_CONTENT_ENCODER_FIELD_NUMBER: _ClassVar[int]
    PAD_CONTENT_ENCODER_FIELD_NUMBER: _ClassVar[int]
    MLP_CONTENT_ENCODER_FIELD_NUMBER: _ClassVar[int]
    slice_content_encoder: GRSliceContentEncoder
    pad_content_encoder: GRPadContentEncoder
    mlp_content_encoder: GRMLPContentEncoder
    def __init__(self, slice_content_encoder: _Optional[_Union[GRSliceContentEncoder, _Mapping]] = ..., pad_content_encoder: _Optional[_Union[GRPadContentEncoder, _Mapping]] = ..., mlp_content_encoder: _Optional[_Union[GRMLPContentEncoder, _Mapping]] = ...) -> None: ...

class GRContextualInterleavePreprocessor(_message.Message):
    __slots__ = ("action_encoder", "enable_interleaving", "action_mlp", "content_encoder", "content_mlp")
    ACTION_ENCODER_FIELD_NUMBER: _ClassVar[int]
    ENABLE_INTERLEAVING_FIELD_NUMBER: _ClassVar[int]
    ACTION_MLP_FIELD_NUMBER: _ClassVar[int]
    CONTENT_ENCODER_FIELD_NUMBER: _ClassVar[int]
    CONTENT_MLP_FIELD_NUMBER: _ClassVar[int]
    action_encoder: GRActionEncoder
    enable_interleaving: bool
    action_mlp: GRContextualizedMLP
    content_encoder: GRContentEncoder
    content_mlp: GRContextualizedMLP
    def __init__(self, action_encoder: _Optional[_Union[GRActionEncoder, _Mapping]] = ..., enable_interleaving: _Optional[bool] = ..., action_mlp: _Optional[_Union[GRContextualizedMLP, _Mapping]] = ..., content_encoder: _Optional[_Union[GRContentEncoder, _Mapping]] = ..., content_mlp: _Optional[_Union[GRContextualizedMLP, _Mapping]] = ...) -> None: ...

class GRContextualPreprocessor(_message.Message):
    __slots__ = ("action_encoder", "action_mlp", "content_encoder", "content_mlp")
    ACTION_ENCODER_FIELD_NUMBER: _ClassVar[int]
    ACTION_MLP_FIELD_NUMBER: _ClassVar[int]
    CONTENT_ENCODER_FIELD_NUMBER: _ClassVar[int]
    CONTENT_MLP_FIELD_NUMBER: _ClassVar[int]
    action_encoder: GRActionEncoder
    action_mlp: GRContextualizedMLP
    content_encoder: GRContentEncoder
    content_mlp: GRContextualizedMLP
    def __init__(self, action_encoder: _Optional[_Union[GRActionEncoder, _Mapping]] = ..., action_mlp: _Optional[_Union[GRContextualizedMLP, _Mapping]] = ..., content_encoder: _Optional[_Union[GRContentEncoder, _Mapping]] = ..., content_mlp: _Optional[_Union[GRContextualizedMLP, _Mapping]] = ...) -> None: ...

class GRContextualizedMLP(_message.Message):
    __slots__ = ("simple_mlp", "parameterized_mlp")
    SIMPLE_MLP_FIELD_NUMBER: _ClassVar[int]
    PARAMETERIZED_MLP_FIELD_NUMBER: _ClassVar[int]
    simple_mlp: GRSimpleContextualizedMLP
    parameterized_mlp: GRParameterizedContextualizedMLP
    def __init__(self, simple_mlp: _Optional[_Union[GRSimpleContextualizedMLP, _Mapping]] = ..., parameterized_mlp: _Optional[_Union[GRParameterizedContextualizedMLP, _Mapping]] = ...) -> None: ...

class GRInputPreprocessor(_message.Message):
    __slots__ = ("contextual_preprocessor", "contextual_interleave_preprocessor", "uih_preprocessor")
    CONTEXTUAL_PREPROCESSOR_FIELD_NUMBER: _ClassVar[int]
    CONTEXTUAL_INTERLEAVE_PREPROCESSOR_FIELD_NUMBER: _ClassVar[int]
    UIH_PREPROCESSOR_FIELD_NUMBER: _ClassVar[int]
    contextual_preprocessor: GRContextualPreprocessor
    contextual_interleave_preprocessor: GRContextualInterleavePreprocessor
    uih_preprocessor: GRUIHPreprocessor
    def __init__(self, contextual_preprocessor: _Optional[_Union[GRContextualPreprocessor, _Mapping]] = ..., contextual_interleave_preprocessor: _Optional[_Union[GRContextualInterleavePreprocessor, _Mapping]] = ..., uih_preprocessor: _Optional[_Union[GRUIHPreprocessor, _Mapping]] = ...) -> None: ...

class GRL2NormPostprocessor(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GRLayerNormPostprocessor(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GRMLPContentEncoder(_message.Message):
    __slots__ = ("uih_mlp", "target_mlp")
    UIH_MLP_FIELD_NUMBER: _ClassVar[int]
    TARGET_MLP_FIELD_NUMBER: _ClassVar[int]
    uih_mlp: _module_pb2.MLP
    target_mlp: _module_pb2.MLP
    def __init__(self, uih_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., target_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ...) -> None: ...

class GROutputPostprocessor(_message.Message):
    __slots__ = ("l2norm_postprocessor", "layernorm_postprocessor", "timestamp_layernorm_postprocessor")
    L2NORM_POSTPROCESSOR_FIELD_NUMBER: _ClassVar[int]
    LAYERNORM_POSTPROCESSOR_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_LAYERNORM_POSTPROCESSOR_FIELD_NUMBER: _ClassVar[int]
    l2norm_postprocessor: GRL2NormPostprocessor
    layernorm_postprocessor: GRLayerNormPostprocessor
    timestamp_layernorm_postprocessor: GRTimestampLayerNormPostprocessor
    def __init__(self, l2norm_postprocessor: _Optional[_Union[GRL2NormPostprocessor, _Mapping]] = ..., layernorm_postprocessor: _Optional[_Union[GRLayerNormPostprocessor, _Mapping]] = ..., timestamp_layernorm_postprocessor: _Optional[_Union[GRTimestampLayerNormPostprocessor, _Mapping]] = ...) -> None: ...

class GRPadContentEncoder(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GRParameterizedContextualizedMLP(_message.Message):
    __slots__ = ("hidden_dim", "contextual_dropout_ratio")
    HIDDEN_DIM_FIELD_NUMBER: _ClassVar[int]
    CONTEXTUAL_DROPOUT_RATIO_FIELD_NUMBER: _ClassVar[int]
    hidden_dim: int
    contextual_dropout_ratio: float
    def __init__(self, hidden_dim: _Optional[int] = ..., contextual_dropout_ratio: _Optional[float] = ...) -> None: ...

class GRPositionalEncoder(_message.Message):
    __slots__ = ("num_position_buckets", "num_time_buckets", "use_time_encoding", "time_bucket_fn", "time_bucket_increments")
    NUM_POSITION_BUCKETS_FIELD_NUMBER: _ClassVar[int]
    NUM_TIME_BUCKETS_FIELD_NUMBER: _ClassVar[int]
    USE_TIME_ENCODING_FIELD_NUMBER: _ClassVar[int]
    TIME_BUCKET_FN_FIELD_NUMBER: _ClassVar[int]
    TIME_BUCKET_INCREMENTS_FIELD_NUMBER: _ClassVar[int]
    num_position_buckets: int
    num_time_buckets: int
    use_time_encoding: bool
    time_bucket_fn: str
    time_bucket_increments: float
    def __init__(self, num_position_buckets: _Optional[int] = ..., num_time_buckets: _Optional[int] = ..., use_time_encoding: _Optional[bool] = ..., time_bucket_fn: _Optional[str] = ..., time_bucket_increments: _Optional[float] = ...) -> None: ...

class GRSimpleActionEncoder(_message.Message):
    __slots__ = ("action_embedding_dim", "action_weights", "watchtime_to_action_thresholds", "watchtime_to_action_weights", "embedding_init_std")
    ACTION_EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    ACTION_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WATCHTIME_TO_ACTION_THRESHOLDS_FIELD_NUMBER: _ClassVar[int]
    WATCHTIME_TO_ACTION_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_INIT_STD_FIELD_NUMBER: _ClassVar[int]
    action_embedding_dim: int
    action_weights: _containers.RepeatedScalarFieldContainer[int]
    watchtime_to_action_thresholds: _containers.RepeatedScalarFieldContainer[int]
    watchtime_to_action_weights: _containers.RepeatedScalarFieldContainer[int]
    embedding_init_std: float
    def __init__(self, action_embedding_dim: _Optional[int] = ..., action_weights: _Optional[_Iterable[int]] = ..., watchtime_to_action_thresholds: _Optional[_Iterable[int]] = ..., watchtime_to_action_weights: _Optional[_Iterable[int]] = ..., embedding_init_std: _Optional[float] = ...) -> None: ...

class GRSimpleContextualizedMLP(_message.Message):
    __slots__ = ("hidden_dim",)
    HIDDEN_DIM_FIELD_NUMBER: _ClassVar[int]
    hidden_dim: int
    def __init__(self, hidden_dim: _Optional[int] = ...) -> None: ...

class GRSliceContentEncoder(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GRTimestampLayerNormPostprocessor(_message.Message):
    __slots__ = ("time_duration_period_units", "time_duration_units_per_period")
    TIME_DURATION_PERIOD_UNITS_FIELD_NUMBER: _ClassVar[int]
    TIME_DURATION_UNITS_PER_PERIOD_FIELD_NUMBER: _ClassVar[int]
    time_duration_period_units: _containers.RepeatedScalarFieldContainer[int]
    time_duration_units_per_period: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, time_duration_period_units: _Optional[_Iterable[int]] = ..., time_duration_units_per_period: _Optional[_Iterable[int]] = ...) -> None: ...

class GRUIHPreprocessor(_message.Message):
    __slots__ = ("action_encoder", "action_mlp")
    ACTION_ENCODER_FIELD_NUMBER: _ClassVar[int]
    ACTION_MLP_FIELD_NUMBER: _ClassVar[int]
    action_encoder: GRActionEncoder
    action_mlp: GRContextualizedMLP
    def __init__(self, action_encoder: _Optional[_Union[GRActionEncoder, _Mapping]] = ..., action_mlp: _Optional[_Union[GRContextualizedMLP, _Mapping]] = ...) -> None: ...

class HSTU(_message.Message):
    __slots__ = ("stu", "input_dropout_ratio", "attn_num_layers", "positional_encoder", "input_preprocessor", "output_postprocessor", "attn_truncation_split_layer", "attn_truncation_tail_len", "name")
    STU_FIELD_NUMBER: _ClassVar[int]
    INPUT_DROPOUT_RATIO_FIELD_NUMBER: _ClassVar[int]
    ATTN_NUM_LAYERS_FIELD_NUMBER: _ClassVar[int]
    POSITIONAL_ENCODER_FIELD_NUMBER: _ClassVar[int]
    INPUT_PREPROCESSOR_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_POSTPROCESSOR_FIELD_NUMBER: _ClassVar[int]
    ATTN_TRUNCATION_SPLIT_LAYER_FIELD_NUMBER: _ClassVar[int]
    ATTN_TRUNCATION_TAIL_LEN_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    stu: STU
    input_dropout_ratio: float
    attn_num_layers: int
    positional_encoder: GRPositionalEncoder
    input_preprocessor: GRInputPreprocessor
    output_postprocessor: GROutputPostprocessor
    attn_truncation_split_layer: int
    attn_truncation_tail_len: int
    name: str
    def __init__(self, stu: _Optional[_Union[STU, _Mapping]] = ..., input_dropout_ratio: _Optional[float] = ..., attn_num_layers: _Optional[int] = ..., positional_encoder: _Optional[_Union[GRPositionalEncoder, _Mapping]] = ..., input_preprocessor: _Optional[_Union[GRInputPreprocessor, _Mapping]] = ..., output_postprocessor: _Optional[_Union[GROutputPostprocessor, _Mapping]] = ..., attn_truncation_split_layer: _Optional[int] = ..., attn_truncation_tail_len: _Optional[int] = ..., name: _Optional[str] = ...) -> None: ...

class HSTUMatch(_message.Message):
    __slots__ = ("user_tower", "similarity", "temperature", "in_batch_negative", "item_tower", "output_dim", "sequence_timestamp_is_ascending")
    USER_TOWER_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    IN_BATCH_NEGATIVE_FIELD_NUMBER: _ClassVar[int]
    ITEM_TOWER_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_DIM_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_TIMESTAMP_IS_ASCENDING_FIELD_NUMBER: _ClassVar[int]
    user_tower: HSTUUserTower
    similarity: Similarity
    temperature: float
    in_batch_negative: bool
    item_tower: _module_pb2.Tower
    output_dim: int
    sequence_timestamp_is_ascending: bool
    def __init__(self, user_tower: _Optional[_Union[HSTUUserTower, _Mapping]] = ..., similarity: _Optional[_Union[Similarity, str]] = ..., temperature: _Optional[float] = ..., in_batch_negative: _Optional[bool] = ..., item_tower: _Optional[_Union[_module_pb2.Tower, _Mapping]] = ..., output_dim: _Optional[int] = ..., sequence_timestamp_is_ascending: _Optional[bool] = ...) -> None: ...

class HSTUUserTower(_message.Message):
    __slots__ = ("input", "hstu", "max_seq_len")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    HSTU_FIELD_NUMBER: _ClassVar[int]
    MAX_SEQ_LEN_FIELD_NUMBER: _ClassVar[int]
    input: str
    hstu: HSTU
    max_seq_len: int
    def __init__(self, input: _Optional[str] = ..., hstu: _Optional[_Union[HSTU, _Mapping]] = ..., max_seq_len: _Optional[int] = ...) -> None: ...

class InterventionTaskTower(_message.Message):
    __slots__ = ("tower_name", "label_name", "metrics", "losses", "num_class", "mlp", "weight", "intervention_tower_names", "low_rank_dim", "dropout_ratio", "task_space_indicator_label", "in_task_space_weight", "out_task_space_weight", "pareto_min_loss_weight", "train_metrics")
    TOWER_NAME_FIELD_NUMBER: _ClassVar[int]
    LABEL_NAME_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    NUM_CLASS_FIELD_NUMBER: _ClassVar[int]
    MLP_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    INTERVENTION_TOWER_NAMES_FIELD_NUMBER: _ClassVar[int]
    LOW_RANK_DIM_FIELD_NUMBER: _ClassVar[int]
    DROPOUT_RATIO_FIELD_NUMBER: _ClassVar[int]
    TASK_SPACE_INDICATOR_LABEL_FIELD_NUMBER: _ClassVar[int]
    IN_TASK_SPACE_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    OUT_TASK_SPACE_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PARETO_MIN_LOSS_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TRAIN_METRICS_FIELD_NUMBER: _ClassVar[int]
    tower_name: str
    label_name: str
    metrics: _containers.RepeatedCompositeFieldContainer[_metric_pb2.MetricConfig]
    losses: _containers.RepeatedCompositeFieldContainer[_metric_pb2.LossConfig]
    num_class: int
    mlp: _module_pb2.MLP
    weight: float
    intervention_tower_names: _containers.RepeatedScalarFieldContainer[str]
    low_rank_dim: int
    dropout_ratio: float
    task_space_indicator_label: str
    in_task_space_weight: float
    out_task_space_weight: float
    pareto_min_loss_weight: float
    train_metrics: _containers.RepeatedCompositeFieldContainer[_metric_pb2.TrainMetricConfig]
    def __init__(self, tower_name: _Optional[str] = ..., label_name: _Optional[str] = ..., metrics: _Optional[_Iterable[_Union[_metric_pb2.MetricConfig, _Mapping]]] = ..., losses: _Optional[_Iterable[_Union[_metric_pb2.LossConfig, _Mapping]]] = ..., num_class: _Optional[int] = ..., mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., weight: _Optional[float] = ..., intervention_tower_names: _Optional[_Iterable[str]] = ..., low_rank_dim: _Optional[int] = ..., dropout_ratio: _Optional[float] = ..., task_space_indicator_label: _Optional[str] = ..., in_task_space_weight: _Optional[float] = ..., out_task_space_weight: _Optional[float] = ..., pareto_min_loss_weight: _Optional[float] = ..., train_metrics: _Optional[_Iterable[_Union[_metric_pb2.TrainMetricConfig, _Mapping]]] = ...) -> None: ...

class MIND(_message.Message):
    __slots__ = ("user_tower", "item_tower", "simi_pow", "similarity", "in_batch_negative", "temperature", "output_dim")
    USER_TOWER_FIELD_NUMBER: _ClassVar[int]
    ITEM_TOWER_FIELD_NUMBER: _ClassVar[int]
    SIMI_POW_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    IN_BATCH_NEGATIVE_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_DIM_FIELD_NUMBER: _ClassVar[int]
    user_tower: MINDUserTower
    item_tower: _module_pb2.Tower
    simi_pow: float
    similarity: Similarity
    in_batch_negative: bool
    temperature: float
    output_dim: int
    def __init__(self, user_tower: _Optional[_Union[MINDUserTower, _Mapping]] = ..., item_tower: _Optional[_Union[_module_pb2.Tower, _Mapping]] = ..., simi_pow: _Optional[float] = ..., similarity: _Optional[_Union[Similarity, str]] = ..., in_batch_negative: _Optional[bool] = ..., temperature: _Optional[float] = ..., output_dim: _Optional[int] = ...) -> None: ...

class MINDUserTower(_message.Message):
    __slots__ = ("input", "history_input", "user_mlp", "hist_seq_mlp", "user_seq_combine", "capsule_config", "concat_mlp")
    class UserSeqCombineMethod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CONCAT: _ClassVar[MINDUserTower.UserSeqCombineMethod]
        SUM: _ClassVar[MINDUserTower.UserSeqCombineMethod]
    CONCAT: MINDUserTower.UserSeqCombineMethod
    SUM: MINDUserTower.UserSeqCombineMethod
    INPUT_FIELD_NUMBER: _ClassVar[int]
    HISTORY_INPUT_FIELD_NUMBER: _ClassVar[int]
    USER_MLP_FIELD_NUMBER: _ClassVar[int]
    HIST_SEQ_MLP_FIELD_NUMBER: _ClassVar[int]
    USER_SEQ_COMBINE_FIELD_NUMBER: _ClassVar[int]
    CAPSULE_CONFIG_FIELD_NUMBER: _ClassVar[int]
    CONCAT_MLP_FIELD_NUMBER: _ClassVar[int]
    input: str
    history_input: str
    user_mlp: _module_pb2.MLP
    hist_seq_mlp: _module_pb2.MLP
    user_seq_combine: MINDUserTower.UserSeqCombineMethod
    capsule_config: B2ICapsule
    concat_mlp: _module_pb2.MLP
    def __init__(self, input: _Optional[str] = ..., history_input: _Optional[str] = ..., user_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., hist_seq_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., user_seq_combine: _Optional[_Union[MINDUserTower.UserSeqCombineMethod, str]] = ..., capsule_config: _Optional[_Union[B2ICapsule, _Mapping]] = ..., concat_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ...) -> None: ...

class MMoE(_message.Message):
    __slots__ = ("expert_mlp", "gate_mlp", "num_expert", "task_towers")
    EXPERT_MLP_FIELD_NUMBER: _ClassVar[int]
    GATE_MLP_FIELD_NUMBER: _ClassVar[int]
    NUM_EXPERT_FIELD_NUMBER: _ClassVar[int]
    TASK_TOWERS_FIELD_NUMBER: _ClassVar[int]
    expert_mlp: _module_pb2.MLP
    gate_mlp: _module_pb2.MLP
    num_expert: int
    task_towers: _containers.RepeatedCompositeFieldContainer[TaskTower]
    def __init__(self, expert_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., gate_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., num_expert: _Optional[int] = ..., task_towers: _Optional[_Iterable[_Union[TaskTower, _Mapping]]] = ...) -> None: ...

class MaskBlock(_message.Message):
    __slots__ = ("reduction_ratio", "aggregation_dim", "hidden_dim")
    REDUCTION_RATIO_FIELD_NUMBER: _ClassVar[int]
    AGGREGATION_DIM_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_DIM_FIELD_NUMBER: _ClassVar[int]
    reduction_ratio: float
    aggregation_dim: int
    hidden_dim: int
    def __init__(self, reduction_ratio: _Optional[float] = ..., aggregation_dim: _Optional[int] = ..., hidden_dim: _Optional[int] = ...) -> None: ...

class MaskNet(_message.Message):
    __slots__ = ("mask_net_module",)
    MASK_NET_MODULE_FIELD_NUMBER: _ClassVar[int]
    mask_net_module: MaskNetModule
    def __init__(self, mask_net_module: _Optional[_Union[MaskNetModule, _Mapping]] = ...) -> None: ...

class MaskNetModule(_message.Message):
    __slots__ = ("n_mask_blocks", "mask_block", "top_mlp", "use_parallel")
    N_MASK_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    MASK_BLOCK_FIELD_NUMBER: _ClassVar[int]
    TOP_MLP_FIELD_NUMBER: _ClassVar[int]
    USE_PARALLEL_FIELD_NUMBER: _ClassVar[int]
    n_mask_blocks: int
    mask_block: MaskBlock
    top_mlp: _module_pb2.MLP
    use_parallel: bool
    def __init__(self, n_mask_blocks: _Optional[int] = ..., mask_block: _Optional[_Union[MaskBlock, _Mapping]] = ..., top_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., use_parallel: _Optional[bool] = ...) -> None: ...

class ModelConfig(_message.Message):
    __slots__ = ("feature_groups", "num_class", "losses", "metrics", "train_metrics", "variational_dropout", "kernel", "use_pareto_loss_weight", "dlrm", "deepfm", "multi_tower", "multi_tower_din", "mask_net", "wide_and_deep", "dcn_v1", "dcn_v2", "xdeepfm", "wukong", "simple_multi_task", "mmoe", "dbmtl", "ple", "dc2vr", "dlrm_hstu", "pepnet", "ultra_hstu", "dssm", "dssm_v2", "dat", "hstu_match", "mind", "tdm", "rocket_launching", "sid_rqvae", "sid_rqkmeans")
    Extensions: _python_message._ExtensionDict
    FEATURE_GROUPS_FIELD_NUMBER: _ClassVar[int]
    NUM_CLASS_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    TRAIN_METRICS_FIELD_NUMBER: _ClassVar[int]
    VARIATIONAL_DROPOUT_FIELD_NUMBER: _ClassVar[int]
    KERNEL_FIELD_NUMBER: _ClassVar[int]
    USE_PARETO_LOSS_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    DLRM_FIELD_NUMBER: _ClassVar[int]
    DEEPFM_FIELD_NUMBER: _ClassVar[int]
    MULTI_TOWER_FIELD_NUMBER: _ClassVar[int]
    MULTI_TOWER_DIN_FIELD_NUMBER: _ClassVar[int]
    MASK_NET_FIELD_NUMBER: _ClassVar[int]
    WIDE_AND_DEEP_FIELD_NUMBER: _ClassVar[int]
    DCN_V1_FIELD_NUMBER: _ClassVar[int]
    DCN_V2_FIELD_NUMBER: _ClassVar[int]
    XDEEPFM_FIELD_NUMBER: _ClassVar[int]
    WUKONG_FIELD_NUMBER: _ClassVar[int]
    SIMPLE_MULTI_TASK_FIELD_NUMBER: _ClassVar[int]
    MMOE_FIELD_NUMBER: _ClassVar[int]
    DBMTL_FIELD_NUMBER: _ClassVar[int]
    PLE_FIELD_NUMBER: _ClassVar[int]
    DC2VR_FIELD_NUMBER: _ClassVar[int]
    DLRM_HSTU_FIELD_NUMBER: _ClassVar[int]
    PEPNET_FIELD_NUMBER: _ClassVar[int]
    ULTRA_HSTU_FIELD_NUMBER: _ClassVar[int]
    DSSM_FIELD_NUMBER: _ClassVar[int]
    DSSM_V2_FIELD_NUMBER: _ClassVar[int]
    DAT_FIELD_NUMBER: _ClassVar[int]
    HSTU_MATCH_FIELD_NUMBER: _ClassVar[int]
    MIND_FIELD_NUMBER: _ClassVar[int]
    TDM_FIELD_NUMBER: _ClassVar[int]
    ROCKET_LAUNCHING_FIELD_NUMBER: _ClassVar[int]
    SID_RQVAE_FIELD_NUMBER: _ClassVar[int]
    SID_RQKMEANS_FIELD_NUMBER: _ClassVar[int]
    feature_groups: _containers.RepeatedCompositeFieldContainer[_module_pb2.FeatureGroupConfig]
    num_class: int
    losses: _containers.RepeatedCompositeFieldContainer[_metric_pb2.LossConfig]
    metrics: _containers.RepeatedCompositeFieldContainer[_metric_pb2.MetricConfig]
    train_metrics: _containers.RepeatedCompositeFieldContainer[_metric_pb2.TrainMetricConfig]
    variational_dropout: _module_pb2.VariationalDropout
    kernel: Kernel
    use_pareto_loss_weight: bool
    dlrm: DLRM
    deepfm: DeepFM
    multi_tower: MultiTower
    multi_tower_din: MultiTowerDIN
    mask_net: MaskNet
    wide_and_deep: WideAndDeep
    dcn_v1: DCNV1
    dcn_v2: DCNV2
    xdeepfm: xDeepFM
    wukong: WuKong
    simple_multi_task: SimpleMultiTask
    mmoe: MMoE
    dbmtl: DBMTL
    ple: PLE
    dc2vr: DC2VR
    dlrm_hstu: DlrmHSTU
    pepnet: PEPNet
    ultra_hstu: UltraHSTU
    dssm: DSSM
    dssm_v2: DSSMV2
    dat: DAT
    hstu_match: HSTUMatch
    mind: MIND
    tdm: TDM
    rocket_launching: RocketLaunching
    sid_rqvae: SidRqvae
    sid_rqkmeans: SidRqkmeans
    def __init__(self, feature_groups: _Optional[_Iterable[_Union[_module_pb2.FeatureGroupConfig, _Mapping]]] = ..., num_class: _Optional[int] = ..., losses: _Optional[_Iterable[_Union[_metric_pb2.LossConfig, _Mapping]]] = ..., metrics: _Optional[_Iterable[_Union[_metric_pb2.MetricConfig, _Mapping]]] = ..., train_metrics: _Optional[_Iterable[_Union[_metric_pb2.TrainMetricConfig, _Mapping]]] = ..., variational_dropout: _Optional[_Union[_module_pb2.VariationalDropout, _Mapping]] = ..., kernel: _Optional[_Union[Kernel, str]] = ..., use_pareto_loss_weight: _Optional[bool] = ..., dlrm: _Optional[_Union[DLRM, _Mapping]] = ..., deepfm: _Optional[_Union[DeepFM, _Mapping]] = ..., multi_tower: _Optional[_Union[MultiTower, _Mapping]] = ..., multi_tower_din: _Optional[_Union[MultiTowerDIN, _Mapping]] = ..., mask_net: _Optional[_Union[MaskNet, _Mapping]] = ..., wide_and_deep: _Optional[_Union[WideAndDeep, _Mapping]] = ..., dcn_v1: _Optional[_Union[DCNV1, _Mapping]] = ..., dcn_v2: _Optional[_Union[DCNV2, _Mapping]] = ..., xdeepfm: _Optional[_Union[xDeepFM, _Mapping]] = ..., wukong: _Optional[_Union[WuKong, _Mapping]] = ..., simple_multi_task: _Optional[_Union[SimpleMultiTask, _Mapping]] = ..., mmoe: _Optional[_Union[MMoE, _Mapping]] = ..., dbmtl: _Optional[_Union[DBMTL, _Mapping]] = ..., ple: _Optional[_Union[PLE, _Mapping]] = ..., dc2vr: _Optional[_Union[DC2VR, _Mapping]] = ..., dlrm_hstu: _Optional[_Union[DlrmHSTU, _Mapping]] = ..., pepnet: _Optional[_Union[PEPNet, _Mapping]] = ..., ultra_hstu: _Optional[_Union[UltraHSTU, _Mapping]] = ..., dssm: _Optional[_Union[DSSM, _Mapping]] = ..., dssm_v2: _Optional[_Union[DSSMV2, _Mapping]] = ..., dat: _Optional[_Union[DAT, _Mapping]] = ..., hstu_match: _Optional[_Union[HSTUMatch, _Mapping]] = ..., mind: _Optional[_Union[MIND, _Mapping]] = ..., tdm: _Optional[_Union[TDM, _Mapping]] = ..., rocket_launching: _Optional[_Union[RocketLaunching, _Mapping]] = ..., sid_rqvae: _Optional[_Union[SidRqvae, _Mapping]] = ..., sid_rqkmeans: _Optional[_Union[SidRqkmeans, _Mapping]] = ...) -> None: ...

class MultiTower(_message.Message):
    __slots__ = ("towers", "final")
    TOWERS_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    towers: _containers.RepeatedCompositeFieldContainer[_module_pb2.Tower]
    final: _module_pb2.MLP
    def __init__(self, towers: _Optional[_Iterable[_Union[_module_pb2.Tower, _Mapping]]] = ..., final: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ...) -> None: ...

class MultiTowerDIN(_message.Message):
    __slots__ = ("towers", "din_towers", "final")
    TOWERS_FIELD_NUMBER: _ClassVar[int]
    DIN_TOWERS_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    towers: _containers.RepeatedCompositeFieldContainer[_module_pb2.Tower]
    din_towers: _containers.RepeatedCompositeFieldContainer[DINTower]
    final: _module_pb2.MLP
    def __init__(self, towers: _Optional[_Iterable[_Union[_module_pb2.Tower, _Mapping]]] = ..., din_towers: _Optional[_Iterable[_Union[DINTower, _Mapping]]] = ..., final: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ...) -> None: ...

class MultiWindowDINTower(_message.Message):
    __slots__ = ("windows_len", "attn_mlp")
    WINDOWS_LEN_FIELD_NUMBER: _ClassVar[int]
    ATTN_MLP_FIELD_NUMBER: _ClassVar[int]
    windows_len: _containers.RepeatedScalarFieldContainer[int]
    attn_mlp: _module_pb2.MLP
    def __init__(self, windows_len: _Optional[_Iterable[int]] = ..., attn_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ...) -> None: ...

class PEPNet(_message.Message):
    __slots__ = ("epnet_hidden_unit", "epnet_gamma", "ppnet_hidden_units", "ppnet_activation", "ppnet_dropout_ratio", "ppnet_gamma", "domain_input_name", "task_domain_num", "task_towers")
    EPNET_HIDDEN_UNIT_FIELD_NUMBER: _ClassVar[int]
    EPNET_GAMMA_FIELD_NUMBER: _ClassVar[int]
    PPNET_HIDDEN_UNITS_FIELD_NUMBER: _ClassVar[int]
    PPNET_ACTIVATION_FIELD_NUMBER: _ClassVar[int]
    PPNET_DROPOUT_RATIO_FIELD_NUMBER: _ClassVar[int]
    PPNET_GAMMA_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_INPUT_NAME_FIELD_NUMBER: _ClassVar[int]
    TASK_DOMAIN_NUM_FIELD_NUMBER: _ClassVar[int]
    TASK_TOWERS_FIELD_NUMBER: _ClassVar[int]
    epnet_hidden_unit: int
    epnet_gamma: float
    ppnet_hidden_units: _containers.RepeatedScalarFieldContainer[int]
    ppnet_activation: str
    ppnet_dropout_ratio: _containers.RepeatedScalarFieldContainer[float]
    ppnet_gamma: float
    domain_input_name: str
    task_domain_num: int
    task_towers: _containers.RepeatedCompositeFieldContainer[TaskTower]
    def __init__(self, epnet_hidden_unit: _Optional[int] = ..., epnet_gamma: _Optional[float] = ..., ppnet_hidden_units: _Optional[_Iterable[int]] = ..., ppnet_activation: _Optional[str] = ..., ppnet_dropout_ratio: _Optional[_Iterable[float]] = ..., ppnet_gamma: _Optional[float] = ..., domain_input_name: _Optional[str] = ..., task_domain_num: _Optional[int] = ..., task_towers: _Optional[_Iterable[_Union[TaskTower, _Mapping]]] = ...) -> None: ...

class PLE(_message.Message):
    __slots__ = ("extraction_networks", "task_towers")
    EXTRACTION_NETWORKS_FIELD_NUMBER: _ClassVar[int]
    TASK_TOWERS_FIELD_NUMBER: _ClassVar[int]
    extraction_networks: _containers.RepeatedCompositeFieldContainer[ExtractionNetwork]
    task_towers: _containers.RepeatedCompositeFieldContainer[TaskTower]
    def __init__(self, extraction_networks: _Optional[_Iterable[_Union[ExtractionNetwork, _Mapping]]] = ..., task_towers: _Optional[_Iterable[_Union[TaskTower, _Mapping]]] = ...) -> None: ...

class RocketLaunching(_message.Message):
    __slots__ = ("share_mlp", "booster_mlp", "light_mlp", "feature_based_distillation", "feature_distillation_function")
    SHARE_MLP_FIELD_NUMBER: _ClassVar[int]
    BOOSTER_MLP_FIELD_NUMBER: _ClassVar[int]
    LIGHT_MLP_FIELD_NUMBER: _ClassVar[int]
    FEATURE_BASED_DISTILLATION_FIELD_NUMBER: _ClassVar[int]
    FEATURE_DISTILLATION_FUNCTION_FIELD_NUMBER: _ClassVar[int]
    share_mlp: _module_pb2.MLP
    booster_mlp: _module_pb2.MLP
    light_mlp: _module_pb2.MLP
    feature_based_distillation: bool
    feature_distillation_function: Similarity
    def __init__(self, share_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., booster_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., light_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., feature_based_distillation: _Optional[bool] = ..., feature_distillation_function: _Optional[_Union[Similarity, str]] = ...) -> None: ...

class STU(_message.Message):
    __slots__ = ("embedding_dim", "num_heads", "hidden_dim", "attention_dim", "output_dropout_ratio", "max_attn_len", "attn_alpha", "use_group_norm", "recompute_normed_x", "recompute_uvqk", "recompute_y", "sort_by_length", "contextual_seq_len", "sla_k1", "sla_k2", "scaling_seqlen")
    EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    NUM_HEADS_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_DIM_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_DIM_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_DROPOUT_RATIO_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTN_LEN_FIELD_NUMBER: _ClassVar[int]
    ATTN_ALPHA_FIELD_NUMBER: _ClassVar[int]
    USE_GROUP_NORM_FIELD_NUMBER: _ClassVar[int]
    RECOMPUTE_NORMED_X_FIELD_NUMBER: _ClassVar[int]
    RECOMPUTE_UVQK_FIELD_NUMBER: _ClassVar[int]
    RECOMPUTE_Y_FIELD_NUMBER: _ClassVar[int]
    SORT_BY_LENGTH_FIELD_NUMBER: _ClassVar[int]
    CONTEXTUAL_SEQ_LEN_FIELD_NUMBER: _ClassVar[int]
    SLA_K1_FIELD_NUMBER: _ClassVar[int]
    SLA_K2_FIELD_NUMBER: _ClassVar[int]
    SCALING_SEQLEN_FIELD_NUMBER: _ClassVar[int]
    embedding_dim: int
    num_heads: int
    hidden_dim: int
    attention_dim: int
    output_dropout_ratio: float
    max_attn_len: int
    attn_alpha: float
    use_group_norm: bool
    recompute_normed_x: bool
    recompute_uvqk: bool
    recompute_y: bool
    sort_by_length: bool
    contextual_seq_len: int
    sla_k1: int
    sla_k2: int
    scaling_seqlen: int
    def __init__(self, embedding_dim: _Optional[int] = ..., num_heads: _Optional[int] = ..., hidden_dim: _Optional[int] = ..., attention_dim: _Optional[int] = ..., output_dropout_ratio: _Optional[float] = ..., max_attn_len: _Optional[int] = ..., attn_alpha: _Optional[float] = ..., use_group_norm: _Optional[bool] = ..., recompute_normed_x: _Optional[bool] = ..., recompute_uvqk: _Optional[bool] = ..., recompute_y: _Optional[bool] = ..., sort_by_length: _Optional[bool] = ..., contextual_seq_len: _Optional[int] = ..., sla_k1: _Optional[int] = ..., sla_k2: _Optional[int] = ..., scaling_seqlen: _Optional[int] = ...) -> None: ...

class SidCandidateOutputConfig(_message.Message):
    __slots__ = ("enabled", "topk", "strategy")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    TOPK_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    topk: int
    strategy: str
    def __init__(self, enabled: _Optional[bool] = ..., topk: _Optional[int] = ..., strategy: _Optional[str] = ...) -> None: ...

class SidRqkmeans(_message.Message):
    __slots__ = ("codebook", "normalize_residuals", "faiss_kmeans_kwargs", "train_sample_size", "candidate_output_config")
    CODEBOOK_FIELD_NUMBER: _ClassVar[int]
    NORMALIZE_RESIDUALS_FIELD_NUMBER: _ClassVar[int]
    FAISS_KMEANS_KWARGS_FIELD_NUMBER: _ClassVar[int]
    TRAIN_SAMPLE_SIZE_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_OUTPUT_CONFIG_FIELD_NUMBER: _ClassVar[int]
    codebook: _containers.RepeatedScalarFieldContainer[int]
    normalize_residuals: bool
    faiss_kmeans_kwargs: FaissKmeansConfig
    train_sample_size: int
    candidate_output_config: SidCandidateOutputConfig
    def __init__(self, codebook: _Optional[_Iterable[int]] = ..., normalize_residuals: _Optional[bool] = ..., faiss_kmeans_kwargs: _Optional[_Union[FaissKmeansConfig, _Mapping]] = ..., train_sample_size: _Optional[int] = ..., candidate_output_config: _Optional[_Union[SidCandidateOutputConfig, _Mapping]] = ...) -> None: ...

class SidRqvae(_message.Message):
    __slots__ = ("embed_dim", "hidden_dims", "codebook", "forward_mode", "normalize_residuals", "distance_type", "rotation_trick", "kmeans_init", "sinkhorn_config", "contrastive_config", "candidate_output_config")
    EMBED_DIM_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_DIMS_FIELD_NUMBER: _ClassVar[int]
    CODEBOOK_FIELD_NUMBER: _ClassVar[int]
    FORWARD_MODE_FIELD_NUMBER: _ClassVar[int]
    NORMALIZE_RESIDUALS_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    ROTATION_TRICK_FIELD_NUMBER: _ClassVar[int]
    KMEANS_INIT_FIELD_NUMBER: _ClassVar[int]
    SINKHORN_CONFIG_FIELD_NUMBER: _ClassVar[int]
    CONTRASTIVE_CONFIG_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_OUTPUT_CONFIG_FIELD_NUMBER: _ClassVar[int]
    embed_dim: int
    hidden_dims: _containers.RepeatedScalarFieldContainer[int]
    codebook: _containers.RepeatedScalarFieldContainer[int]
    forward_mode: str
    normalize_residuals: bool
    distance_type: str
    rotation_trick: bool
    kmeans_init: bool
    sinkhorn_config: SinkhornConfig
    contrastive_config: ContrastiveConfig
    candidate_output_config: SidCandidateOutputConfig
    def __init__(self, embed_dim: _Optional[int] = ..., hidden_dims: _Optional[_Iterable[int]] = ..., codebook: _Optional[_Iterable[int]] = ..., forward_mode: _Optional[str] = ..., normalize_residuals: _Optional[bool] = ..., distance_type: _Optional[str] = ..., rotation_trick: _Optional[bool] = ..., kmeans_init: _Optional[bool] = ..., sinkhorn_config: _Optional[_Union[SinkhornConfig, _Mapping]] = ..., contrastive_config: _Optional[_Union[ContrastiveConfig, _Mapping]] = ..., candidate_output_config: _Optional[_Union[SidCandidateOutputConfig, _Mapping]] = ...) -> None: ...

class SimpleMultiTask(_message.Message):
    __slots__ = ("task_towers",)
    TASK_TOWERS_FIELD_NUMBER: _ClassVar[int]
    task_towers: _containers.RepeatedCompositeFieldContainer[TaskTower]
    def __init__(self, task_towers: _Optional[_Iterable[_Union[TaskTower, _Mapping]]] = ...) -> None: ...

class SinkhornConfig(_message.Message):
    __slots__ = ("iters", "epsilon", "enabled")
    ITERS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    iters: int
    epsilon: float
    enabled: bool
    def __init__(self, iters: _Optional[int] = ..., epsilon: _Optional[float] = ..., enabled: _Optional[bool] = ...) -> None: ...

class TDM(_message.Message):
    __slots__ = ("multiwindow_din", "final")
    MULTIWINDOW_DIN_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    multiwindow_din: MultiWindowDINTower
    final: _module_pb2.MLP
    def __init__(self, multiwindow_din: _Optional[_Union[MultiWindowDINTower, _Mapping]] = ..., final: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ...) -> None: ...

class TaskTower(_message.Message):
    __slots__ = ("tower_name", "label_name", "metrics", "losses", "num_class", "mlp", "weight", "sample_weight_name", "task_space_indicator_label", "in_task_space_weight", "out_task_space_weight", "pareto_min_loss_weight", "train_metrics")
    TOWER_NAME_FIELD_NUMBER: _ClassVar[int]
    LABEL_NAME_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    NUM_CLASS_FIELD_NUMBER: _ClassVar[int]
    MLP_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_WEIGHT_NAME_FIELD_NUMBER: _ClassVar[int]
    TASK_SPACE_INDICATOR_LABEL_FIELD_NUMBER: _ClassVar[int]
    IN_TASK_SPACE_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    OUT_TASK_SPACE_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PARETO_MIN_LOSS_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TRAIN_METRICS_FIELD_NUMBER: _ClassVar[int]
    tower_name: str
    label_name: str
    metrics: _containers.RepeatedCompositeFieldContainer[_metric_pb2.MetricConfig]
    losses: _containers.RepeatedCompositeFieldContainer[_metric_pb2.LossConfig]
    num_class: int
    mlp: _module_pb2.MLP
    weight: float
    sample_weight_name: str
    task_space_indicator_label: str
    in_task_space_weight: float
    out_task_space_weight: float
    pareto_min_loss_weight: float
    train_metrics: _containers.RepeatedCompositeFieldContainer[_metric_pb2.TrainMetricConfig]
    def __init__(self, tower_name: _Optional[str] = ..., label_name: _Optional[str] = ..., metrics: _Optional[_Iterable[_Union[_metric_pb2.MetricConfig, _Mapping]]] = ..., losses: _Optional[_Iterable[_Union[_metric_pb2.LossConfig, _Mapping]]] = ..., num_class: _Optional[int] = ..., mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., weight: _Optional[float] = ..., sample_weight_name: _Optional[str] = ..., task_space_indicator_label: _Optional[str] = ..., in_task_space_weight: _Optional[float] = ..., out_task_space_weight: _Optional[float] = ..., pareto_min_loss_weight: _Optional[float] = ..., train_metrics: _Optional[_Iterable[_Union[_metric_pb2.TrainMetricConfig, _Mapping]]] = ...) -> None: ...

class UltraHSTU(_message.Message):
    __slots__ = ("hstu", "fusion_mtl_tower", "max_seq_len", "item_embedding_hidden_dim", "enable_global_average_loss", "sequence_timestamp_is_ascending", "concat_contextual_features")
    HSTU_FIELD_NUMBER: _ClassVar[int]
    FUSION_MTL_TOWER_FIELD_NUMBER: _ClassVar[int]
    MAX_SEQ_LEN_FIELD_NUMBER: _ClassVar[int]
    ITEM_EMBEDDING_HIDDEN_DIM_FIELD_NUMBER: _ClassVar[int]
    ENABLE_GLOBAL_AVERAGE_LOSS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_TIMESTAMP_IS_ASCENDING_FIELD_NUMBER: _ClassVar[int]
    CONCAT_CONTEXTUAL_FEATURES_FIELD_NUMBER: _ClassVar[int]
    hstu: _containers.RepeatedCompositeFieldContainer[HSTU]
    fusion_mtl_tower: FusionMTLTower
    max_seq_len: int
    item_embedding_hidden_dim: int
    enable_global_average_loss: bool
    sequence_timestamp_is_ascending: bool
    concat_contextual_features: bool
    def __init__(self, hstu: _Optional[_Iterable[_Union[HSTU, _Mapping]]] = ..., fusion_mtl_tower: _Optional[_Union[FusionMTLTower, _Mapping]] = ..., max_seq_len: _Optional[int] = ..., item_embedding_hidden_dim: _Optional[int] = ..., enable_global_average_loss: _Optional[bool] = ..., sequence_timestamp_is_ascending: _Optional[bool] = ..., concat_contextual_features: _Optional[bool] = ...) -> None: ...

class WideAndDeep(_message.Message):
    __slots__ = ("deep", "final", "wide_embedding_dim", "wide_init_fn")
    DEEP_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    WIDE_EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    WIDE_INIT_FN_FIELD_NUMBER: _ClassVar[int]
    deep: _module_pb2.MLP
    final: _module_pb2.MLP
    wide_embedding_dim: int
    wide_init_fn: str
    def __init__(self, deep: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., final: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., wide_embedding_dim: _Optional[int] = ..., wide_init_fn: _Optional[str] = ...) -> None: ...

class WuKong(_message.Message):
    __slots__ = ("dense_mlp", "wukong_layers", "final")
    DENSE_MLP_FIELD_NUMBER: _ClassVar[int]
    WUKONG_LAYERS_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    dense_mlp: _module_pb2.MLP
    wukong_layers: _containers.RepeatedCompositeFieldContainer[WuKongLayer]
    final: _module_pb2.MLP
    def __init__(self, dense_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., wukong_layers: _Optional[_Iterable[_Union[WuKongLayer, _Mapping]]] = ..., final: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ...) -> None: ...

class WuKongLayer(_message.Message):
    __slots__ = ("lcb_feature_num", "fmb_feature_num", "compressed_feature_num", "feature_num_mlp")
    LCB_FEATURE_NUM_FIELD_NUMBER: _ClassVar[int]
    FMB_FEATURE_NUM_FIELD_NUMBER: _ClassVar[int]
    COMPRESSED_FEATURE_NUM_FIELD_NUMBER: _ClassVar[int]
    FEATURE_NUM_MLP_FIELD_NUMBER: _ClassVar[int]
    lcb_feature_num: int
    fmb_feature_num: int
    compressed_feature_num: int
    feature_num_mlp: _module_pb2.MLP
    def __init__(self, lcb_feature_num: _Optional[int] = ..., fmb_feature_num: _Optional[int] = ..., compressed_feature_num: _Optional[int] = ..., feature_num_mlp: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ...) -> None: ...

class xDeepFM(_message.Message):
    __slots__ = ("cin", "deep", "final", "wide_embedding_dim", "wide_init_fn")
    CIN_FIELD_NUMBER: _ClassVar[int]
    DEEP_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    WIDE_EMBEDDING_DIM_FIELD_NUMBER: _ClassVar[int]
    WIDE_INIT_FN_FIELD_NUMBER: _ClassVar[int]
    cin: CIN
    deep: _module_pb2.MLP
    final: _module_pb2.MLP
    wide_embedding_dim: int
    wide_init_fn: str
    def __init__(self, cin: _Optional[_Union[CIN, _Mapping]] = ..., deep: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., final: _Optional[_Union[_module_pb2.MLP, _Mapping]] = ..., wide_embedding_dim: _Optional[int] = ..., wide_init_fn: _Optional[str] = ...) -> None: ...
