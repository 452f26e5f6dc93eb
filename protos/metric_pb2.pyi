from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AUC(_message.Message):
    __slots__ = ("thresholds",)
    THRESHOLDS_FIELD_NUMBER: _ClassVar[int]
    thresholds: int
    def __init__(self, thresholds: _Optional[int] = ...) -> None: ...

class Accuracy(_message.Message):
    __slots__ = ("threshold", "top_k")
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    threshold: float
    top_k: int
    def __init__(self, threshold: _Optional[float] = ..., top_k: _Optional[int] = ...) -> None: ...

class BinaryCrossEntropy(_message.Message):
    __slots__ = ("label_smoothing",)
    LABEL_SMOOTHING_FIELD_NUMBER: _ClassVar[int]
    label_smoothing: float
    def __init__(self, label_smoothing: _Optional[float] = ...) -> None: ...

class BinaryFocalLoss(_message.Message):
    __slots__ = ("gamma", "alpha")
    GAMMA_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    gamma: float
    alpha: float
    def __init__(self, gamma: _Optional[float] = ..., alpha: _Optional[float] = ...) -> None: ...

class GroupedAUC(_message.Message):
    __slots__ = ("grouping_key",)
    GROUPING_KEY_FIELD_NUMBER: _ClassVar[int]
    grouping_key: str
    def __init__(self, grouping_key: _Optional[str] = ...) -> None: ...

class GroupedXAUC(_message.Message):
    __slots__ = ("grouping_key", "max_pairs_per_group")
    GROUPING_KEY_FIELD_NUMBER: _ClassVar[int]
    MAX_PAIRS_PER_GROUP_FIELD_NUMBER: _ClassVar[int]
    grouping_key: str
    max_pairs_per_group: int
    def __init__(self, grouping_key: _Optional[str] = ..., max_pairs_per_group: _Optional[int] = ...) -> None: ...

class JRCLoss(_message.Message):
    __slots__ = ("session_name", "alpha")
    SESSION_NAME_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    session_name: str
    alpha: float
    def __init__(self, session_name: _Optional[str] = ..., alpha: _Optional[float] = ...) -> None: ...

class L2Loss(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LossConfig(_message.Message):
    __slots__ = ("binary_cross_entropy", "softmax_cross_entropy", "l2_loss", "jrc_loss", "binary_focal_loss", "recon_loss", "commitment_loss", "contrastive_loss")
    BINARY_CROSS_ENTROPY_FIELD_NUMBER: _ClassVar[int]
    SOFTMAX_CROSS_ENTROPY_FIELD_NUMBER: _ClassVar[int]
    L2_LOSS_FIELD_NUMBER: _ClassVar[int]
    JRC_LOSS_FIELD_NUMBER: _ClassVar[int]
    BINARY_FOCAL_LOSS_FIELD_NUMBER: _ClassVar[int]
    RECON_LOSS_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_LOSS_FIELD_NUMBER: _ClassVar[int]
    CONTRASTIVE_LOSS_FIELD_NUMBER: _ClassVar[int]
    binary_cross_entropy: BinaryCrossEntropy
    softmax_cross_entropy: SoftmaxCrossEntropy
    l2_loss: L2Loss
    jrc_loss: JRCLoss
    binary_focal_loss: BinaryFocalLoss
    recon_loss: SidReconLoss
    commitment_loss: SidCommitmentLoss
    contrastive_loss: SidContrastiveLoss
    def __init__(self, binary_cross_entropy: _Optional[_Union[BinaryCrossEntropy, _Mapping]] = ..., softmax_cross_entropy: _Optional[_Union[SoftmaxCrossEntropy, _Mapping]] = ..., l2_loss: _Optional[_Union[L2Loss, _Mapping]] = ..., jrc_loss: _Optional[_Union[JRCLoss, _Mapping]] = ..., binary_focal_loss: _Optional[_Union[BinaryFocalLoss, _Mapping]] = ..., recon_loss: _Optional[_Union[SidReconLoss, _Mapping]] = ..., commitment_loss: _Optional[_Union[SidCommitmentLoss, _Mapping]] = ..., contrastive_loss: _Optional[_Union[SidContrastiveLoss, _Mapping]] = ...) -> None: ...

class MeanAbsoluteError(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MeanSquaredError(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MetricConfig(_message.Message):
    __slots__ = ("auc", "multiclass_auc", "recall_at_k", "mean_absolute_error", "mean_squared_error", "accuracy", "grouped_auc", "xauc", "grouped_xauc", "normalized_entropy")
    AUC_FIELD_NUMBER: _ClassVar[int]
    MULTICLASS_AUC_FIELD_NUMBER: _ClassVar[int]
    RECALL_AT_K_FIELD_NUMBER: _ClassVar[int]
    MEAN_ABSOLUTE_ERROR_FIELD_NUMBER: _ClassVar[int]
    MEAN_SQUARED_ERROR_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    GROUPED_AUC_FIELD_NUMBER: _ClassVar[int]
    XAUC_FIELD_NUMBER: _ClassVar[int]
    GROUPED_XAUC_FIELD_NUMBER: _ClassVar[int]
    NORMALIZED_ENTROPY_FIELD_NUMBER: _ClassVar[int]
    auc: AUC
    multiclass_auc: MulticlassAUC
    recall_at_k: RecallAtK
    mean_absolute_error: MeanAbsoluteError
    mean_squared_error: MeanSquaredError
    accuracy: Accuracy
    grouped_auc: GroupedAUC
    xauc: XAUC
    grouped_xauc: GroupedXAUC
    normalized_entropy: NormalizedEntropy
    def __init__(self, auc: _Optional[_Union[AUC, _Mapping]] = ..., multiclass_auc: _Optional[_Union[MulticlassAUC, _Mapping]] = ..., recall_at_k: _Optional[_Union[RecallAtK, _Mapping]] = ..., mean_absolute_error: _Optional[_Union[MeanAbsoluteError, _Mapping]] = ..., mean_squared_error: _Optional[_Union[MeanSquaredError, _Mapping]] = ..., accuracy: _Optional[_Union[Accuracy, _Mapping]] = ..., grouped_auc: _Optional[_Union[GroupedAUC, _Mapping]] = ..., xauc: _Optional[_Union[XAUC, _Mapping]] = ..., grouped_xauc: _Optional[_Union[GroupedXAUC, _Mapping]] = ..., normalized_entropy: _Optional[_Union[NormalizedEntropy, _Mapping]] = ...) -> None: ...

class MulticlassAUC(_message.Message):
    __slots__ = ("thresholds", "average")
    THRESHOLDS_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_FIELD_NUMBER: _ClassVar[int]
    thresholds: int
    average: str
    def __init__(self, thresholds: _Optional[int] = ..., average: _Optional[str] = ...) -> None: ...

class NormalizedEntropy(_message.Message):
    __slots__ = ("eta",)
    ETA_FIELD_NUMBER: _ClassVar[int]
    eta: float
    def __init__(self, eta: _Optional[float] = ...) -> None: ...

class RecallAtK(_message.Message):
    __slots__ = ("top_k",)
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    top_k: int
    def __init__(self, top_k: _Optional[int] = ...) -> None: ...

class SidCommitmentLoss(_message.Message):
    __slots__ = ("latent_weight", "commitment_type")
    LATENT_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    latent_weight: _containers.RepeatedScalarFieldContainer[float]
    commitment_type: str
    def __init__(self, latent_weight: _Optional[_Iterable[float]] = ..., commitment_type: _Optional[str] = ...) -> None: ...

class SidContrastiveLoss(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SidReconLoss(_message.Message):
    __slots__ = ("recon_type",)
    RECON_TYPE_FIELD_NUMBER: _ClassVar[int]
    recon_type: str
    def __init__(self, recon_type: _Optional[str] = ...) -> None: ...

class SoftmaxCrossEntropy(_message.Message):
    __slots__ = ("label_smoothing",)
    LABEL_SMOOTHING_FIELD_NUMBER: _ClassVar[int]
    label_smoothing: float
    def __init__(self, label_smoothing: _Optional[float] = ...) -> None: ...

class TrainMetricConfig(_message.Message):
    __slots__ = ("auc", "recall_at_k", "mean_absolute_error", "mean_squared_error", "accuracy", "xauc", "decay_rate", "decay_step")
    AUC_FIELD_NUMBER: _ClassVar[int]
    RECALL_AT_K_FIELD_NUMBER: _ClassVar[int]
    MEAN_ABSOLUTE_ERROR_FIELD_NUMBER: _ClassVar[int]
    MEAN_SQUARED_ERROR_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    XAUC_FIELD_NUMBER: _ClassVar[int]
    DECAY_RATE_FIELD_NUMBER: _ClassVar[int]
    DECAY_STEP_FIELD_NUMBER: _ClassVar[int]
    auc: AUC
    recall_at_k: RecallAtK
    mean_absolute_error: MeanAbsoluteError
    mean_squared_error: MeanSquaredError
    accuracy: Accuracy
    xauc: XAUC
    decay_rate: float
    decay_step: int
    def __init__(self, auc: _Optional[_Union[AUC, _Mapping]] = ..., recall_at_k: _Optional[_Union[RecallAtK, _Mapping]] = ..., mean_absolute_error: _Optional[_Union[MeanAbsoluteError, _Mapping]] = ..., mean_squared_error: _Optional[_Union[MeanSquaredError, _Mapping]] = ..., accuracy: _Optional[_Union[Accuracy, _Mapping]] = ..., xauc: _Optional[_Union[XAUC, _Mapping]] = ..., decay_rate: _Optional[float] = ..., decay_step: _Optional[int] = ...) -> None: ...

class XAUC(_message.Message):
    __slots__ = ("sample_ratio", "max_pairs", "in_batch")
    SAMPLE_RATIO_FIELD_NUMBER: _ClassVar[int]
    MAX_PAIRS_FIELD_NUMBER: _ClassVar[int]
    IN_BATCH_FIELD_NUMBER: _ClassVar[int]
    sample_ratio: float
    max_pairs: int
    in_batch: bool
    def __init__(self, sample_ratio: _Optional[float] = ..., max_pairs: _Optional[int] = ..., in_batch: _Optional[bool] = ...) -> None: ...
