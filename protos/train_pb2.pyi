from protos import sharding_pb2 as _sharding_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DeltaEmbeddingQuantType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DELTA_EMBEDDING_QUANT_NONE: _ClassVar[DeltaEmbeddingQuantType]
    DELTA_EMBEDDING_QUANT_INT8: _ClassVar[DeltaEmbeddingQuantType]

class WeightDecayMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NONE: _ClassVar[WeightDecayMode]
    L2: _ClassVar[WeightDecayMode]
    DECOUPLE: _ClassVar[WeightDecayMode]
DELTA_EMBEDDING_QUANT_NONE: DeltaEmbeddingQuantType
DELTA_EMBEDDING_QUANT_INT8: DeltaEmbeddingQuantType
NONE: WeightDecayMode
L2: WeightDecayMode
DECOUPLE: WeightDecayMode

class AdadeltaOptimizer(_message.Message):
    __slots__ = ("lr", "rho", "eps", "weight_decay")
    LR_FIELD_NUMBER: _ClassVar[int]
    RHO_FIELD_NUMBER: _ClassVar[int]
    EPS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    lr: float
    rho: float
    eps: float
    weight_decay: float
    def __init__(self, lr: _Optional[float] = ..., rho: _Optional[float] = ..., eps: _Optional[float] = ..., weight_decay: _Optional[float] = ...) -> None: ...

class AdagradOptimizer(_message.Message):
    __slots__ = ("lr", "weight_decay", "initial_accumulator_value", "eps", "fused")
    LR_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    INITIAL_ACCUMULATOR_VALUE_FIELD_NUMBER: _ClassVar[int]
    EPS_FIELD_NUMBER: _ClassVar[int]
    FUSED_FIELD_NUMBER: _ClassVar[int]
    lr: float
    weight_decay: float
    initial_accumulator_value: float
    eps: float
    fused: bool
    def __init__(self, lr: _Optional[float] = ..., weight_decay: _Optional[float] = ..., initial_accumulator_value: _Optional[float] = ..., eps: _Optional[float] = ..., fused: _Optional[bool] = ...) -> None: ...

class AdamOptimizer(_message.Message):
    __slots__ = ("lr", "beta1", "beta2", "weight_decay", "eps", "amsgrad", "fused")
    LR_FIELD_NUMBER: _ClassVar[int]
    BETA1_FIELD_NUMBER: _ClassVar[int]
    BETA2_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    EPS_FIELD_NUMBER: _ClassVar[int]
    AMSGRAD_FIELD_NUMBER: _ClassVar[int]
    FUSED_FIELD_NUMBER: _ClassVar[int]
    lr: float
    beta1: float
    beta2: float
    weight_decay: float
    eps: float
    amsgrad: bool
    fused: bool
    def __init__(self, lr: _Optional[float] = ..., beta1: _Optional[float] = ..., beta2: _Optional[float] = ..., weight_decay: _Optional[float] = ..., eps: _Optional[float] = ..., amsgrad: _Optional[bool] = ..., fused: _Optional[bool] = ...) -> None: ...

class AdamWOptimizer(_message.Message):
    __slots__ = ("lr", "beta1", "beta2", "weight_decay", "eps", "amsgrad", "fused")
    LR_FIELD_NUMBER: _ClassVar[int]
    BETA1_FIELD_NUMBER: _ClassVar[int]
    BETA2_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    EPS_FIELD_NUMBER: _ClassVar[int]
    AMSGRAD_FIELD_NUMBER: _ClassVar[int]
    FUSED_FIELD_NUMBER: _ClassVar[int]
    lr: float
    beta1: float
    beta2: float
    weight_decay: float
    eps: float
    amsgrad: bool
    fused: bool
    def __init__(self, lr: _Optional[float] = ..., beta1: _Optional[float] = ..., beta2: _Optional[float] = ..., weight_decay: _Optional[float] = ..., eps: _Optional[float] = ..., amsgrad: _Optional[bool] = ..., fused: _Optional[bool] = ...) -> None: ...

class ConstantLR(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CosineAnnealingLR(_message.Message):
    __slots__ = ("T_max", "min_learning_rate", "warmup_learning_rate", "warmup_size", "by_epoch")
    T_MAX_FIELD_NUMBER: _ClassVar[int]
    MIN_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    WARMUP_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    WARMUP_SIZE_FIELD_NUMBER: _ClassVar[int]
    BY_EPOCH_FIELD_NUMBER: _ClassVar[int]
    T_max: int
    min_learning_rate: float
    warmup_learning_rate: float
    warmup_size: int
    by_epoch: bool
    def __init__(self, T_max: _Optional[int] = ..., min_learning_rate: _Optional[float] = ..., warmup_learning_rate: _Optional[float] = ..., warmup_size: _Optional[int] = ..., by_epoch: _Optional[bool] = ...) -> None: ...

class CosineAnnealingWarmRestartsLR(_message.Message):
    __slots__ = ("T_0", "T_mult", "min_learning_rate", "warmup_learning_rate", "warmup_size", "by_epoch")
    T_0_FIELD_NUMBER: _ClassVar[int]
    T_MULT_FIELD_NUMBER: _ClassVar[int]
    MIN_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    WARMUP_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    WARMUP_SIZE_FIELD_NUMBER: _ClassVar[int]
    BY_EPOCH_FIELD_NUMBER: _ClassVar[int]
    T_0: int
    T_mult: int
    min_learning_rate: float
    warmup_learning_rate: float
    warmup_size: int
    by_epoch: bool
    def __init__(self, T_0: _Optional[int] = ..., T_mult: _Optional[int] = ..., min_learning_rate: _Optional[float] = ..., warmup_learning_rate: _Optional[float] = ..., warmup_size: _Optional[int] = ..., by_epoch: _Optional[bool] = ...) -> None: ...

class DeltaEmbeddingDumpConfig(_message.Message):
    __slots__ = ("dump_interval_steps", "output_dir", "file_prefix", "feature_store_config", "dump_interval_minutes", "quant_type")
    DUMP_INTERVAL_STEPS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_DIR_FIELD_NUMBER: _ClassVar[int]
    FILE_PREFIX_FIELD_NUMBER: _ClassVar[int]
    FEATURE_STORE_CONFIG_FIELD_NUMBER: _ClassVar[int]
    DUMP_INTERVAL_MINUTES_FIELD_NUMBER: _ClassVar[int]
    QUANT_TYPE_FIELD_NUMBER: _ClassVar[int]
    dump_interval_steps: int
    output_dir: str
    file_prefix: str
    feature_store_config: FeatureStoreConfig
    dump_interval_minutes: int
    quant_type: DeltaEmbeddingQuantType
    def __init__(self, dump_interval_steps: _Optional[int] = ..., output_dir: _Optional[str] = ..., file_prefix: _Optional[str] = ..., feature_store_config: _Optional[_Union[FeatureStoreConfig, _Mapping]] = ..., dump_interval_minutes: _Optional[int] = ..., quant_type: _Optional[_Union[DeltaEmbeddingQuantType, str]] = ...) -> None: ...

class DenseOptimizer(_message.Message):
    __slots__ = ("sgd_optimizer", "adagrad_optimizer", "adam_optimizer", "adamw_optimizer", "adadelta_optimizer", "rmsprop_optimizer", "constant_learning_rate", "exponential_decay_learning_rate", "manual_step_learning_rate", "cosine_annealing_learning_rate", "cosine_annealing_warm_restarts_learning_rate", "part_optimizers", "ema")
    SGD_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    ADAGRAD_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    ADAM_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    ADAMW_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    ADADELTA_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    RMSPROP_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    CONSTANT_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    EXPONENTIAL_DECAY_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    MANUAL_STEP_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    COSINE_ANNEALING_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    COSINE_ANNEALING_WARM_RESTARTS_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    PART_OPTIMIZERS_FIELD_NUMBER: _ClassVar[int]
    EMA_FIELD_NUMBER: _ClassVar[int]
    sgd_optimizer: SGDOptimizer
    adagrad_optimizer: AdagradOptimizer
    adam_optimizer: AdamOptimizer
    adamw_optimizer: AdamWOptimizer
    adadelta_optimizer: AdadeltaOptimizer
    rmsprop_optimizer: RMSpropOptimizer
    constant_learning_rate: ConstantLR
    exponential_decay_learning_rate: ExponentialDecayLR
    manual_step_learning_rate: ManualStepLR
    cosine_annealing_learning_rate: CosineAnnealingLR
    cosine_annealing_warm_restarts_learning_rate: CosineAnnealingWarmRestartsLR
    part_optimizers: _containers.RepeatedCompositeFieldContainer[PartOptimizer]
    ema: EMAConfig
    def __init__(self, sgd_optimizer: _Optional[_Union[SGDOptimizer, _Mapping]] = ..., adagrad_optimizer: _Optional[_Union[AdagradOptimizer, _Mapping]] = ..., adam_optimizer: _Optional[_Union[AdamOptimizer, _Mapping]] = ..., adamw_optimizer: _Optional[_Union[AdamWOptimizer, _Mapping]] = ..., adadelta_optimizer: _Optional[_Union[AdadeltaOptimizer, _Mapping]] = ..., rmsprop_optimizer: _Optional[_Union[RMSpropOptimizer, _Mapping]] = ..., constant_learning_rate: _Optional[_Union[ConstantLR, _Mapping]] = ..., exponential_decay_learning_rate: _Optional[_Union[ExponentialDecayLR, _Mapping]] = ..., manual_step_learning_rate: _Optional[_Union[ManualStepLR, _Mapping]] = ..., cosine_annealing_learning_rate: _Optional[_Union[CosineAnnealingLR, _Mapping]] = ..., cosine_annealing_warm_restarts_learning_rate: _Optional[_Union[CosineAnnealingWarmRestartsLR, _Mapping]] = ..., part_optimizers: _Optional[_Iterable[_Union[PartOptimizer, _Mapping]]] = ..., ema: _Optional[_Union[EMAConfig, _Mapping]] = ...) -> None: ...

class EMAConfig(_message.Message):
    __slots__ = ("decay",)
    DECAY_FIELD_NUMBER: _ClassVar[int]
    decay: float
    def __init__(self, decay: _Optional[float] = ...) -> None: ...

class ExponentialDecayLR(_message.Message):
    __slots__ = ("decay_size", "decay_factor", "staircase", "warmup_learning_rate", "warmup_size", "min_learning_rate", "by_epoch")
    DECAY_SIZE_FIELD_NUMBER: _ClassVar[int]
    DECAY_FACTOR_FIELD_NUMBER: _ClassVar[int]
    STAIRCASE_FIELD_NUMBER: _ClassVar[int]
    WARMUP_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    WARMUP_SIZE_FIELD_NUMBER: _ClassVar[int]
    MIN_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    BY_EPOCH_FIELD_NUMBER: _ClassVar[int]
    decay_size: int
    decay_factor: float
    staircase: bool
    warmup_learning_rate: float
    warmup_size: int
    min_learning_rate: float
    by_epoch: bool
    def __init__(self, decay_size: _Optional[int] = ..., decay_factor: _Optional[float] = ..., staircase: _Optional[bool] = ..., warmup_learning_rate: _Optional[float] = ..., warmup_size: _Optional[int] = ..., min_learning_rate: _Optional[float] = ..., by_epoch: _Optional[bool] = ...) -> None: ...

class FeatureStoreConfig(_message.Message):
    __slots__ = ("region", "project_name", "feature_view_name", "version", "endpoint", "upload_batch_size", "max_retries", "retry_backoff_secs", "shutdown_timeout_secs", "max_pending_steps", "poll_interval_secs", "feature_view_ttl_secs", "feature_view_shard_count", "feature_view_replication_count", "retain_local_dump", "upload_format")
    REGION_FIELD_NUMBER: _ClassVar[int]
    PROJECT_NAME_FIELD_NUMBER: _ClassVar[int]
    FEATURE_VIEW_NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_RETRIES_FIELD_NUMBER: _ClassVar[int]
    RETRY_BACKOFF_SECS_FIELD_NUMBER: _ClassVar[int]
    SHUTDOWN_TIMEOUT_SECS_FIELD_NUMBER: _ClassVar[int]
    MAX_PENDING_STEPS_FIELD_NUMBER: _ClassVar[int]
    POLL_INTERVAL_SECS_FIELD_NUMBER: _ClassVar[int]
    FEATURE_VIEW_TTL_SECS_FIELD_NUMBER: _ClassVar[int]
    FEATURE_VIEW_SHARD_COUNT_FIELD_NUMBER: _ClassVar[int]
    FEATURE_VIEW_REPLICATION_COUNT_FIELD_NUMBER: _ClassVar[int]
    RETAIN_LOCAL_DUMP_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_FORMAT_FIELD_NUMBER: _ClassVar[int]
    region: str
    project_name: str
    feature_view_name: str
    version: str
    endpoint: str
    upload_batch_size: int
    max_retries: int
    retry_backoff_secs: int
    shutdown_timeout_secs: int
    max_pending_steps: int
    poll_interval_secs: int
    feature_view_ttl_secs: int
    feature_view_shard_count: int
    feature_view_replication_count: int
    retain_local_dump: bool
    upload_format: str
    def __init__(self, region: _Optional[str] = ..., project_name: _Optional[str] = ..., feature_view_name: _Optional[str] = ..., version: _Optional[str] = ..., endpoint: _Optional[str] = ..., upload_batch_size: _Optional[int] = ..., max_retries: _Optional[int] = ..., retry_backoff_secs: _Optional[int] = ..., shutdown_timeout_secs: _Optional[int] = ..., max_pending_steps: _Optional[int] = ..., poll_interval_secs: _Optional[int] = ..., feature_view_ttl_secs: _Optional[int] = ..., feature_view_shard_count: _Optional[int] = ..., feature_view_replication_count: _Optional[int] = ..., retain_local_dump: _Optional[bool] = ..., upload_format: _Optional[str] = ...) -> None: ...

class FusedAdadeltaOptimizer(_message.Message):
    __slots__ = ("lr", "rho", "eps", "weight_decay", "gradient_clipping", "max_gradient")
    LR_FIELD_NUMBER: _ClassVar[int]
    RHO_FIELD_NUMBER: _ClassVar[int]
    EPS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_CLIPPING_FIELD_NUMBER: _ClassVar[int]
    MAX_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    lr: float
    rho: float
    eps: float
    weight_decay: float
    gradient_clipping: bool
    max_gradient: float
    def __init__(self, lr: _Optional[float] = ..., rho: _Optional[float] = ..., eps: _Optional[float] = ..., weight_decay: _Optional[float] = ..., gradient_clipping: _Optional[bool] = ..., max_gradient: _Optional[float] = ...) -> None: ...

class FusedAdagradOptimizer(_message.Message):
    __slots__ = ("lr", "gradient_clipping", "max_gradient", "initial_accumulator_value")
    LR_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_CLIPPING_FIELD_NUMBER: _ClassVar[int]
    MAX_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    INITIAL_ACCUMULATOR_VALUE_FIELD_NUMBER: _ClassVar[int]
    lr: float
    gradient_clipping: bool
    max_gradient: float
    initial_accumulator_value: float
    def __init__(self, lr: _Optional[float] = ..., gradient_clipping: _Optional[bool] = ..., max_gradient: _Optional[float] = ..., initial_accumulator_value: _Optional[float] = ...) -> None: ...

class FusedAdamOptimizer(_message.Message):
    __slots__ = ("lr", "beta1", "beta2", "weight_decay", "gradient_clipping", "max_gradient")
    LR_FIELD_NUMBER: _ClassVar[int]
    BETA1_FIELD_NUMBER: _ClassVar[int]
    BETA2_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_CLIPPING_FIELD_NUMBER: _ClassVar[int]
    MAX_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    lr: float
    beta1: float
    beta2: float
    weight_decay: float
    gradient_clipping: bool
    max_gradient: float
    def __init__(self, lr: _Optional[float] = ..., beta1: _Optional[float] = ..., beta2: _Optional[float] = ..., weight_decay: _Optional[float] = ..., gradient_clipping: _Optional[bool] = ..., max_gradient: _Optional[float] = ...) -> None: ...

class FusedLAMBOptimizer(_message.Message):
    __slots__ = ("lr", "beta1", "beta2", "weight_decay", "gradient_clipping", "max_gradient")
    LR_FIELD_NUMBER: _ClassVar[int]
    BETA1_FIELD_NUMBER: _ClassVar[int]
    BETA2_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_CLIPPING_FIELD_NUMBER: _ClassVar[int]
    MAX_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    lr: float
    beta1: float
    beta2: float
    weight_decay: float
    gradient_clipping: bool
    max_gradient: float
    def __init__(self, lr: _Optional[float] = ..., beta1: _Optional[float] = ..., beta2: _Optional[float] = ..., weight_decay: _Optional[float] = ..., gradient_clipping: _Optional[bool] = ..., max_gradient: _Optional[float] = ...) -> None: ...

class FusedLarsSGDOptimizer(_message.Message):
    __slots__ = ("lr", "momentum", "weight_decay", "gradient_clipping", "max_gradient")
    LR_FIELD_NUMBER: _ClassVar[int]
    MOMENTUM_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_CLIPPING_FIELD_NUMBER: _ClassVar[int]
    MAX_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    lr: float
    momentum: float
    weight_decay: float
    gradient_clipping: bool
    max_gradient: float
    def __init__(self, lr: _Optional[float] = ..., momentum: _Optional[float] = ..., weight_decay: _Optional[float] = ..., gradient_clipping: _Optional[bool] = ..., max_gradient: _Optional[float] = ...) -> None: ...

class FusedPartialRowWiseAdamOptimizer(_message.Message):
    __slots__ = ("lr", "beta1", "beta2", "weight_decay", "gradient_clipping", "max_gradient")
    LR_FIELD_NUMBER: _ClassVar[int]
    BETA1_FIELD_NUMBER: _ClassVar[int]
    BETA2_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_CLIPPING_FIELD_NUMBER: _ClassVar[int]
    MAX_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    lr: float
    beta1: float
    beta2: float
    weight_decay: float
    gradient_clipping: bool
    max_gradient: float
    def __init__(self, lr: _Optional[float] = ..., beta1: _Optional[float] = ..., beta2: _Optional[float] = ..., weight_decay: _Optional[float] = ..., gradient_clipping: _Optional[bool] = ..., max_gradient: _Optional[float] = ...) -> None: ...

class FusedPartialRowWiseLAMBOptimizer(_message.Message):
    __slots__ = ("lr", "beta1", "beta2", "weight_decay", "gradient_clipping", "max_gradient")
    LR_FIELD_NUMBER: _ClassVar[int]
    BETA1_FIELD_NUMBER: _ClassVar[int]
    BETA2_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_CLIPPING_FIELD_NUMBER: _ClassVar[int]
    MAX_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    lr: float
    beta1: float
    beta2: float
    weight_decay: float
    gradient_clipping: bool
    max_gradient: float
    def __init__(self, lr: _Optional[float] = ..., beta1: _Optional[float] = ..., beta2: _Optional[float] = ..., weight_decay: _Optional[float] = ..., gradient_clipping: _Optional[bool] = ..., max_gradient: _Optional[float] = ...) -> None: ...

class FusedRMSpropOptimizer(_message.Message):
    __slots__ = ("lr", "alpha", "eps", "weight_decay", "gradient_clipping", "max_gradient")
    LR_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    EPS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_CLIPPING_FIELD_NUMBER: _ClassVar[int]
    MAX_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    lr: float
    alpha: float
    eps: float
    weight_decay: float
    gradient_clipping: bool
    max_gradient: float
    def __init__(self, lr: _Optional[float] = ..., alpha: _Optional[float] = ..., eps: _Optional[float] = ..., weight_decay: _Optional[float] = ..., gradient_clipping: _Optional[bool] = ..., max_gradient: _Optional[float] = ...) -> None: ...

class FusedRowWiseAdagradOptimizer(_message.Message):
    __slots__ = ("lr", "weight_decay", "weight_decay_mode", "gradient_clipping", "max_gradient")
    LR_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_MODE_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_CLIPPING_FIELD_NUMBER: _ClassVar[int]
    MAX_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    lr: float
    weight_decay: float
    weight_decay_mode: WeightDecayMode
    gradient_clipping: bool
    max_gradient: float
    def __init__(self, lr: _Optional[float] = ..., weight_decay: _Optional[float] = ..., weight_decay_mode: _Optional[_Union[WeightDecayMode, str]] = ..., gradient_clipping: _Optional[bool] = ..., max_gradient: _Optional[float] = ...) -> None: ...

class FusedSGDOptimizer(_message.Message):
    __slots__ = ("lr", "gradient_clipping", "max_gradient")
    LR_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_CLIPPING_FIELD_NUMBER: _ClassVar[int]
    MAX_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    lr: float
    gradient_clipping: bool
    max_gradient: float
    def __init__(self, lr: _Optional[float] = ..., gradient_clipping: _Optional[bool] = ..., max_gradient: _Optional[float] = ...) -> None: ...

class GradClipping(_message.Message):
    __slots__ = ("clipping_type", "max_gradient", "norm_type", "enable_global_grad_clip")
    CLIPPING_TYPE_FIELD_NUMBER: _ClassVar[int]
    MAX_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    NORM_TYPE_FIELD_NUMBER: _ClassVar[int]
    ENABLE_GLOBAL_GRAD_CLIP_FIELD_NUMBER: _ClassVar[int]
    clipping_type: str
    max_gradient: float
    norm_type: float
    enable_global_grad_clip: bool
    def __init__(self, clipping_type: _Optional[str] = ..., max_gradient: _Optional[float] = ..., norm_type: _Optional[float] = ..., enable_global_grad_clip: _Optional[bool] = ...) -> None: ...

class GradScaler(_message.Message):
    __slots__ = ("init_scale", "growth_factor", "backoff_factor", "growth_interval")
    INIT_SCALE_FIELD_NUMBER: _ClassVar[int]
    GROWTH_FACTOR_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FACTOR_FIELD_NUMBER: _ClassVar[int]
    GROWTH_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    init_scale: float
    growth_factor: float
    backoff_factor: float
    growth_interval: int
    def __init__(self, init_scale: _Optional[float] = ..., growth_factor: _Optional[float] = ..., backoff_factor: _Optional[float] = ..., growth_interval: _Optional[int] = ...) -> None: ...

class ManualStepLR(_message.Message):
    __slots__ = ("schedule_sizes", "learning_rates", "warmup", "by_epoch")
    SCHEDULE_SIZES_FIELD_NUMBER: _ClassVar[int]
    LEARNING_RATES_FIELD_NUMBER: _ClassVar[int]
    WARMUP_FIELD_NUMBER: _ClassVar[int]
    BY_EPOCH_FIELD_NUMBER: _ClassVar[int]
    schedule_sizes: _containers.RepeatedScalarFieldContainer[int]
    learning_rates: _containers.RepeatedScalarFieldContainer[float]
    warmup: bool
    by_epoch: bool
    def __init__(self, schedule_sizes: _Optional[_Iterable[int]] = ..., learning_rates: _Optional[_Iterable[float]] = ..., warmup: _Optional[bool] = ..., by_epoch: _Optional[bool] = ...) -> None: ...

class PartOptimizer(_message.Message):
    __slots__ = ("sgd_optimizer", "adagrad_optimizer", "adam_optimizer", "adamw_optimizer", "adadelta_optimizer", "rmsprop_optimizer", "regex_pattern", "constant_learning_rate", "exponential_decay_learning_rate", "manual_step_learning_rate", "cosine_annealing_learning_rate", "cosine_annealing_warm_restarts_learning_rate")
    SGD_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    ADAGRAD_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    ADAM_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    ADAMW_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    ADADELTA_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    RMSPROP_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    REGEX_PATTERN_FIELD_NUMBER: _ClassVar[int]
    CONSTANT_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    EXPONENTIAL_DECAY_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    MANUAL_STEP_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    COSINE_ANNEALING_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    COSINE_ANNEALING_WARM_RESTARTS_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    sgd_optimizer: SGDOptimizer
    adagrad_optimizer: AdagradOptimizer
    adam_optimizer: AdamOptimizer
    adamw_optimizer: AdamWOptimizer
    adadelta_optimizer: AdadeltaOptimizer
    rmsprop_optimizer: RMSpropOptimizer
    regex_pattern: str
    constant_learning_rate: ConstantLR
    exponential_decay_learning_rate: ExponentialDecayLR
    manual_step_learning_rate: ManualStepLR
    cosine_annealing_learning_rate: CosineAnnealingLR
    cosine_annealing_warm_restarts_learning_rate: CosineAnnealingWarmRestartsLR
    def __init__(self, sgd_optimizer: _Optional[_Union[SGDOptimizer, _Mapping]] = ..., adagrad_optimizer: _Optional[_Union[AdagradOptimizer, _Mapping]] = ..., adam_optimizer: _Optional[_Union[AdamOptimizer, _Mapping]] = ..., adamw_optimizer: _Optional[_Union[AdamWOptimizer, _Mapping]] = ..., adadelta_optimizer: _Optional[_Union[AdadeltaOptimizer, _Mapping]] = ..., rmsprop_optimizer: _Optional[_Union[RMSpropOptimizer, _Mapping]] = ..., regex_pattern: _Optional[str] = ..., constant_learning_rate: _Optional[_Union[ConstantLR, _Mapping]] = ..., exponential_decay_learning_rate: _Optional[_Union[ExponentialDecayLR, _Mapping]] = ..., manual_step_learning_rate: _Optional[_Union[ManualStepLR, _Mapping]] = ..., cosine_annealing_learning_rate: _Optional[_Union[CosineAnnealingLR, _Mapping]] = ..., cosine_annealing_warm_restarts_learning_rate: _Optional[_Union[CosineAnnealingWarmRestartsLR, _Mapping]] = ...) -> None: ...

class RMSpropOptimizer(_message.Message):
    __slots__ = ("lr", "alpha", "eps", "weight_decay")
    LR_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    EPS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    lr: float
    alpha: float
    eps: float
    weight_decay: float
    def __init__(self, lr: _Optional[float] = ..., alpha: _Optional[float] = ..., eps: _Optional[float] = ..., weight_decay: _Optional[float] = ...) -> None: ...

class SGDOptimizer(_message.Message):
    __slots__ = ("lr", "momentum", "weight_decay", "dampening", "nesterov", "fused")
    LR_FIELD_NUMBER: _ClassVar[int]
    MOMENTUM_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    DAMPENING_FIELD_NUMBER: _ClassVar[int]
    NESTEROV_FIELD_NUMBER: _ClassVar[int]
    FUSED_FIELD_NUMBER: _ClassVar[int]
    lr: float
    momentum: float
    weight_decay: float
    dampening: float
    nesterov: bool
    fused: bool
    def __init__(self, lr: _Optional[float] = ..., momentum: _Optional[float] = ..., weight_decay: _Optional[float] = ..., dampening: _Optional[float] = ..., nesterov: _Optional[bool] = ..., fused: _Optional[bool] = ...) -> None: ...

class SparseOptimizer(_message.Message):
    __slots__ = ("sgd_optimizer", "adagrad_optimizer", "adam_optimizer", "lars_sgd_optimizer", "lamb_optimizer", "partial_rowwise_lamb_optimizer", "partial_rowwise_adam_optimizer", "rowwise_adagrad_optimizer", "adadelta_optimizer", "rmsprop_optimizer", "constant_learning_rate", "exponential_decay_learning_rate", "manual_step_learning_rate", "cosine_annealing_learning_rate", "cosine_annealing_warm_restarts_learning_rate")
    SGD_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    ADAGRAD_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    ADAM_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    LARS_SGD_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    LAMB_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_ROWWISE_LAMB_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_ROWWISE_ADAM_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    ROWWISE_ADAGRAD_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    ADADELTA_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    RMSPROP_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    CONSTANT_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    EXPONENTIAL_DECAY_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    MANUAL_STEP_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    COSINE_ANNEALING_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    COSINE_ANNEALING_WARM_RESTARTS_LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    sgd_optimizer: FusedSGDOptimizer
    adagrad_optimizer: FusedAdagradOptimizer
    adam_optimizer: FusedAdamOptimizer
    lars_sgd_optimizer: FusedLarsSGDOptimizer
    lamb_optimizer: FusedLAMBOptimizer
    partial_rowwise_lamb_optimizer: FusedPartialRowWiseLAMBOptimizer
    partial_rowwise_adam_optimizer: FusedPartialRowWiseAdamOptimizer
    rowwise_adagrad_optimizer: FusedRowWiseAdagradOptimizer
    adadelta_optimizer: FusedAdadeltaOptimizer
    rmsprop_optimizer: FusedRMSpropOptimizer
    constant_learning_rate: ConstantLR
    exponential_decay_learning_rate: ExponentialDecayLR
    manual_step_learning_rate: ManualStepLR
    cosine_annealing_learning_rate: CosineAnnealingLR
    cosine_annealing_warm_restarts_learning_rate: CosineAnnealingWarmRestartsLR
    def __init__(self, sgd_optimizer: _Optional[_Union[FusedSGDOptimizer, _Mapping]] = ..., adagrad_optimizer: _Optional[_Union[FusedAdagradOptimizer, _Mapping]] = ..., adam_optimizer: _Optional[_Union[FusedAdamOptimizer, _Mapping]] = ..., lars_sgd_optimizer: _Optional[_Union[FusedLarsSGDOptimizer, _Mapping]] = ..., lamb_optimizer: _Optional[_Union[FusedLAMBOptimizer, _Mapping]] = ..., partial_rowwise_lamb_optimizer: _Optional[_Union[FusedPartialRowWiseLAMBOptimizer, _Mapping]] = ..., partial_rowwise_adam_optimizer: _Optional[_Union[FusedPartialRowWiseAdamOptimizer, _Mapping]] = ..., rowwise_adagrad_optimizer: _Optional[_Union[FusedRowWiseAdagradOptimizer, _Mapping]] = ..., adadelta_optimizer: _Optional[_Union[FusedAdadeltaOptimizer, _Mapping]] = ..., rmsprop_optimizer: _Optional[_Union[FusedRMSpropOptimizer, _Mapping]] = ..., constant_learning_rate: _Optional[_Union[ConstantLR, _Mapping]] = ..., exponential_decay_learning_rate: _Optional[_Union[ExponentialDecayLR, _Mapping]] = ..., manual_step_learning_rate: _Optional[_Union[ManualStepLR, _Mapping]] = ..., cosine_annealing_learning_rate: _Optional[_Union[CosineAnnealingLR, _Mapping]] = ..., cosine_annealing_warm_restarts_learning_rate: _Optional[_Union[CosineAnnealingWarmRestartsLR, _Mapping]] = ...) -> None: ...

class TrainConfig(_message.Message):
    __slots__ = ("sparse_optimizer", "dense_optimizer", "num_steps", "num_epochs", "save_checkpoints_steps", "fine_tune_checkpoint", "fine_tune_ckpt_param_map", "log_step_count_steps", "is_profiling", "use_tensorboard", "save_checkpoints_epochs", "tensorboard_summaries", "cudnn_allow_tf32", "cuda_matmul_allow_tf32", "global_embedding_constraints", "mixed_precision", "grad_scaler", "gradient_accumulation_steps", "grad_clipping", "keep_checkpoint_max", "save_checkpoints_timestamp_interval", "save_checkpoints_timestamps", "save_checkpoints_timestamp_quorum", "delta_embedding_dump_config")
    SPARSE_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    DENSE_OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    NUM_STEPS_FIELD_NUMBER: _ClassVar[int]
    NUM_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    SAVE_CHECKPOINTS_STEPS_FIELD_NUMBER: _ClassVar[int]
    FINE_TUNE_CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    FINE_TUNE_CKPT_PARAM_MAP_FIELD_NUMBER: _ClassVar[int]
    LOG_STEP_COUNT_STEPS_FIELD_NUMBER: _ClassVar[int]
    IS_PROFILING_FIELD_NUMBER: _ClassVar[int]
    USE_TENSORBOARD_FIELD_NUMBER: _ClassVar[int]
    SAVE_CHECKPOINTS_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    TENSORBOARD_SUMMARIES_FIELD_NUMBER: _ClassVar[int]
    CUDNN_ALLOW_TF32_FIELD_NUMBER: _ClassVar[int]
    CUDA_MATMUL_ALLOW_TF32_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_EMBEDDING_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    MIXED_PRECISION_FIELD_NUMBER: _ClassVar[int]
    GRAD_SCALER_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_ACCUMULATION_STEPS_FIELD_NUMBER: _ClassVar[int]
    GRAD_CLIPPING_FIELD_NUMBER: _ClassVar[int]
    KEEP_CHECKPOINT_MAX_FIELD_NUMBER: _ClassVar[int]
    SAVE_CHECKPOINTS_TIMESTAMP_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    SAVE_CHECKPOINTS_TIMESTAMPS_FIELD_NUMBER: _ClassVar[int]
    SAVE_CHECKPOINTS_TIMESTAMP_QUORUM_FIELD_NUMBER: _ClassVar[int]
    DELTA_EMBEDDING_DUMP_CONFIG_FIELD_NUMBER: _ClassVar[int]
    sparse_optimizer: SparseOptimizer
    dense_optimizer: DenseOptimizer
    num_steps: int
    num_epochs: int
    save_checkpoints_steps: int
    fine_tune_checkpoint: str
    fine_tune_ckpt_param_map: str
    log_step_count_steps: int
    is_profiling: bool
    use_tensorboard: bool
    save_checkpoints_epochs: int
    tensorboard_summaries: _containers.RepeatedScalarFieldContainer[str]
    cudnn_allow_tf32: bool
    cuda_matmul_allow_tf32: bool
    global_embedding_constraints: _sharding_pb2.ParameterConstraints
    mixed_precision: str
    grad_scaler: GradScaler
    gradient_accumulation_steps: int
    grad_clipping: GradClipping
    keep_checkpoint_max: int
    save_checkpoints_timestamp_interval: int
    save_checkpoints_timestamps: _containers.RepeatedScalarFieldContainer[int]
    save_checkpoints_timestamp_quorum: float
    delta_embedding_dump_config: DeltaEmbeddingDumpConfig
    def __init__(self, sparse_optimizer: _Optional[_Union[SparseOptimizer, _Mapping]] = ..., dense_optimizer: _Optional[_Union[DenseOptimizer, _Mapping]] = ..., num_steps: _Optional[int] = ..., num_epochs: _Optional[int] = ..., save_checkpoints_steps: _Optional[int] = ..., fine_tune_checkpoint: _Optional[str] = ..., fine_tune_ckpt_param_map: _Optional[str] = ..., log_step_count_steps: _Optional[int] = ..., is_profiling: _Optional[bool] = ..., use_tensorboard: _Optional[bool] = ..., save_checkpoints_epochs: _Optional[int] = ..., tensorboard_summaries: _Optional[_Iterable[str]] = ..., cudnn_allow_tf32: _Optional[bool] = ..., cuda_matmul_allow_tf32: _Optional[bool] = ..., global_embedding_constraints: _Optional[_Union[_sharding_pb2.ParameterConstraints, _Mapping]] = ..., mixed_precision: _Optional[str] = ..., grad_scaler: _Optional[_Union[GradScaler, _Mapping]] = ..., gradient_accumulation_steps: _Optional[int] = ..., grad_clipping: _Optional[_Union[GradClipping, _Mapping]] = ..., keep_checkpoint_max: _Optional[int] = ..., save_checkpoints_timestamp_interval: _Optional[int] = ..., save_checkpoints_timestamps: _Optional[_Iterable[int]] = ..., save_checkpoints_timestamp_quorum: _Optional[float] = ..., delta_embedding_dump_config: _Optional[_Union[DeltaEmbeddingDumpConfig, _Mapping]] = ...) -> None: ...
