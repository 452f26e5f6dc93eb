from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class ExportConfig(_message.Message):
    __slots__ = ("exporter_type", "best_exporter_metric", "metric_larger_is_better", "mixed_precision", "cudnn_allow_tf32", "cuda_matmul_allow_tf32", "use_dense_ema")
    EXPORTER_TYPE_FIELD_NUMBER: _ClassVar[int]
    BEST_EXPORTER_METRIC_FIELD_NUMBER: _ClassVar[int]
    METRIC_LARGER_IS_BETTER_FIELD_NUMBER: _ClassVar[int]
    MIXED_PRECISION_FIELD_NUMBER: _ClassVar[int]
    CUDNN_ALLOW_TF32_FIELD_NUMBER: _ClassVar[int]
    CUDA_MATMUL_ALLOW_TF32_FIELD_NUMBER: _ClassVar[int]
    USE_DENSE_EMA_FIELD_NUMBER: _ClassVar[int]
    exporter_type: str
    best_exporter_metric: str
    metric_larger_is_better: bool
    mixed_precision: str
    cudnn_allow_tf32: bool
    cuda_matmul_allow_tf32: bool
    use_dense_ema: bool
    def __init__(self, exporter_type: _Optional[str] = ..., best_exporter_metric: _Optional[str] = ..., metric_larger_is_better: _Optional[bool] = ..., mixed_precision: _Optional[str] = ..., cudnn_allow_tf32: _Optional[bool] = ..., cuda_matmul_allow_tf32: _Optional[bool] = ..., use_dense_ema: _Optional[bool] = ...) -> None: ...
