from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RowEncoding(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FP32: _ClassVar[RowEncoding]
    FP16: _ClassVar[RowEncoding]
    INT8: _ClassVar[RowEncoding]
    INT4: _ClassVar[RowEncoding]

class DenseRuntime(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AOT_INDUCTOR: _ClassVar[DenseRuntime]
    TORCH_SCRIPT: _ClassVar[DenseRuntime]
    EAGER: _ClassVar[DenseRuntime]
FP32: RowEncoding
FP16: RowEncoding
INT8: RowEncoding
INT4: RowEncoding
AOT_INDUCTOR: DenseRuntime
TORCH_SCRIPT: DenseRuntime
EAGER: DenseRuntime

class GateConfig(_message.Message):
    __slots__ = ("max_auc_drop", "min_metric_rows", "max_rows")
    MAX_AUC_DROP_FIELD_NUMBER: _ClassVar[int]
    MIN_METRIC_ROWS_FIELD_NUMBER: _ClassVar[int]
    MAX_ROWS_FIELD_NUMBER: _ClassVar[int]
    max_auc_drop: float
    min_metric_rows: int
    max_rows: int
    def __init__(self, max_auc_drop: _Optional[float] = ..., min_metric_rows: _Optional[int] = ..., max_rows: _Optional[int] = ...) -> None: ...

class PublishConfig(_message.Message):
    __slots__ = ("row_encoding", "dense_runtime", "gate", "poll_interval_ms", "notify_topic", "signing_key_file", "verify_key_file", "keep_versions", "rebase_after_deltas")
    ROW_ENCODING_FIELD_NUMBER: _ClassVar[int]
    DENSE_RUNTIME_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    POLL_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    NOTIFY_TOPIC_FIELD_NUMBER: _ClassVar[int]
    SIGNING_KEY_FILE_FIELD_NUMBER: _ClassVar[int]
    VERIFY_KEY_FILE_FIELD_NUMBER: _ClassVar[int]
    KEEP_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    REBASE_AFTER_DELTAS_FIELD_NUMBER: _ClassVar[int]
    row_encoding: RowEncoding
    dense_runtime: DenseRuntime
    gate: GateConfig
    poll_interval_ms: int
    notify_topic: str
    signing_key_file: str
    verify_key_file: str
    keep_versions: int
    rebase_after_deltas: int
    def __init__(self, row_encoding: _Optional[_Union[RowEncoding, str]] = ..., dense_runtime: _Optional[_Union[DenseRuntime, str]] = ..., gate: _Optional[_Union[GateConfig, _Mapping]] = ..., poll_interval_ms: _Optional[int] = ..., notify_topic: _Optional[str] = ..., signing_key_file: _Optional[str] = ..., verify_key_file: _Optional[str] = ..., keep_versions: _Optional[int] = ..., rebase_after_deltas: _Optional[int] = ...) -> None: ...

class ServeConfig(_message.Message):
    __slots__ = ("max_request_bytes", "max_concurrent_requests", "drain_ms", "staleness_alert_ms", "unready_when_stale", "max_connections")
    MAX_REQUEST_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    DRAIN_MS_FIELD_NUMBER: _ClassVar[int]
    STALENESS_ALERT_MS_FIELD_NUMBER: _ClassVar[int]
    UNREADY_WHEN_STALE_FIELD_NUMBER: _ClassVar[int]
    MAX_CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
    max_request_bytes: int
    max_concurrent_requests: int
    drain_ms: int
    staleness_alert_ms: int
    unready_when_stale: bool
    max_connections: int
    def __init__(self, max_request_bytes: _Optional[int] = ..., max_concurrent_requests: _Optional[int] = ..., drain_ms: _Optional[int] = ..., staleness_alert_ms: _Optional[int] = ..., unready_when_stale: _Optional[bool] = ..., max_connections: _Optional[int] = ...) -> None: ...
