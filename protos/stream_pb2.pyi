from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MessageFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ARROW_IPC: _ClassVar[MessageFormat]
    ARROW_IPC_BATCH: _ClassVar[MessageFormat]
    PROTOBUF: _ClassVar[MessageFormat]
    JSON: _ClassVar[MessageFormat]

class StartPosition(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EARLIEST: _ClassVar[StartPosition]
    LATEST: _ClassVar[StartPosition]
    TIMESTAMP: _ClassVar[StartPosition]

class LostOffsetPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FAIL: _ClassVar[LostOffsetPolicy]
    SKIP_TO_EARLIEST: _ClassVar[LostOffsetPolicy]

class TimeUnit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MILLISECONDS: _ClassVar[TimeUnit]
    SECONDS: _ClassVar[TimeUnit]
    MICROSECONDS: _ClassVar[TimeUnit]
ARROW_IPC: MessageFormat
ARROW_IPC_BATCH: MessageFormat
PROTOBUF: MessageFormat
JSON: MessageFormat
EARLIEST: StartPosition
LATEST: StartPosition
TIMESTAMP: StartPosition
FAIL: LostOffsetPolicy
SKIP_TO_EARLIEST: LostOffsetPolicy
MILLISECONDS: TimeUnit
SECONDS: TimeUnit
MICROSECONDS: TimeUnit

class KafkaSecurity(_message.Message):
    __slots__ = ("security_protocol", "sasl_mechanism", "username_file", "password_file", "ca_file", "certificate_file", "key_file", "key_password_file")
    SECURITY_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    SASL_MECHANISM_FIELD_NUMBER: _ClassVar[int]
    USERNAME_FILE_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FILE_FIELD_NUMBER: _ClassVar[int]
    CA_FILE_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FILE_FIELD_NUMBER: _ClassVar[int]
    KEY_FILE_FIELD_NUMBER: _ClassVar[int]
    KEY_PASSWORD_FILE_FIELD_NUMBER: _ClassVar[int]
    security_protocol: str
    sasl_mechanism: str
    username_file: str
    password_file: str
    ca_file: str
    certificate_file: str
    key_file: str
    key_password_file: str
    def __init__(self, security_protocol: _Optional[str] = ..., sasl_mechanism: _Optional[str] = ..., username_file: _Optional[str] = ..., password_file: _Optional[str] = ..., ca_file: _Optional[str] = ..., certificate_file: _Optional[str] = ..., key_file: _Optional[str] = ..., key_password_file: _Optional[str] = ...) -> None: ...

class RowFilter(_message.Message):
    __slots__ = ("column", "operator", "value")
    class Operator(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        EQ: _ClassVar[RowFilter.Operator]
        NE: _ClassVar[RowFilter.Operator]
        LT: _ClassVar[RowFilter.Operator]
        LE: _ClassVar[RowFilter.Operator]
        GT: _ClassVar[RowFilter.Operator]
        GE: _ClassVar[RowFilter.Operator]
    EQ: RowFilter.Operator
    NE: RowFilter.Operator
    LT: RowFilter.Operator
    LE: RowFilter.Operator
    GT: RowFilter.Operator
    GE: RowFilter.Operator
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    column: str
    operator: RowFilter.Operator
    value: str
    def __init__(self, column: _Optional[str] = ..., operator: _Optional[_Union[RowFilter.Operator, str]] = ..., value: _Optional[str] = ...) -> None: ...

class DeadLetterConfig(_message.Message):
    __slots__ = ("topic", "path", "max_share", "window_rows")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    MAX_SHARE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_ROWS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    path: str
    max_share: float
    window_rows: int
    def __init__(self, topic: _Optional[str] = ..., path: _Optional[str] = ..., max_share: _Optional[float] = ..., window_rows: _Optional[int] = ...) -> None: ...

class StreamConfig(_message.Message):
    __slots__ = ("brokers", "topic", "format", "protobuf_message", "protobuf_descriptor_file", "group_id", "start", "start_timestamp_ms", "stop_at_end", "stop_timestamp_ms", "stop_idle_ms", "lost_offset", "partition_refresh_ms", "broker_wait_ms", "event_time_field", "event_time_unit", "allowed_lateness_ms", "max_future_ms", "idle_partition_ms", "event_id_field", "duplicate_window_ms", "filters", "linger_ms", "prefetch_batches", "fetch_max_bytes", "dead_letters", "security")
    BROKERS_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    PROTOBUF_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PROTOBUF_DESCRIPTOR_FILE_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    START_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    STOP_AT_END_FIELD_NUMBER: _ClassVar[int]
    STOP_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    STOP_IDLE_MS_FIELD_NUMBER: _ClassVar[int]
    LOST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    PARTITION_REFRESH_MS_FIELD_NUMBER: _ClassVar[int]
    BROKER_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_UNIT_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_LATENESS_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_FUTURE_MS_FIELD_NUMBER: _ClassVar[int]
    IDLE_PARTITION_MS_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_WINDOW_MS_FIELD_NUMBER: _ClassVar[int]
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    LINGER_MS_FIELD_NUMBER: _ClassVar[int]
    PREFETCH_BATCHES_FIELD_NUMBER: _ClassVar[int]
    FETCH_MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    SECURITY_FIELD_NUMBER: _ClassVar[int]
    brokers: str
    topic: str
    format: MessageFormat
    protobuf_message: str
    protobuf_descriptor_file: str
    group_id: str
    start: StartPosition
    start_timestamp_ms: int
    stop_at_end: bool
    stop_timestamp_ms: int
    stop_idle_ms: int
    lost_offset: LostOffsetPolicy
    partition_refresh_ms: int
    broker_wait_ms: int
    event_time_field: str
    event_time_unit: TimeUnit
    allowed_lateness_ms: int
    max_future_ms: int
    idle_partition_ms: int
    event_id_field: str
    duplicate_window_ms: int
    filters: _containers.RepeatedCompositeFieldContainer[RowFilter]
    linger_ms: int
    prefetch_batches: int
    fetch_max_bytes: int
    dead_letters: DeadLetterConfig
    security: KafkaSecurity
    def __init__(self, brokers: _Optional[str] = ..., topic: _Optional[str] = ..., format: _Optional[_Union[MessageFormat, str]] = ..., protobuf_message: _Optional[str] = ..., protobuf_descriptor_file: _Optional[str] = ..., group_id: _Optional[str] = ..., start: _Optional[_Union[StartPosition, str]] = ..., start_timestamp_ms: _Optional[int] = ..., stop_at_end: _Optional[bool] = ..., stop_timestamp_ms: _Optional[int] = ..., stop_idle_ms: _Optional[int] = ..., lost_offset: _Optional[_Union[LostOffsetPolicy, str]] = ..., partition_refresh_ms: _Optional[int] = ..., broker_wait_ms: _Optional[int] = ..., event_time_field: _Optional[str] = ..., event_time_unit: _Optional[_Union[TimeUnit, str]] = ..., allowed_lateness_ms: _Optional[int] = ..., max_future_ms: _Optional[int] = ..., idle_partition_ms: _Optional[int] = ..., event_id_field: _Optional[str] = ..., duplicate_window_ms: _Optional[int] = ..., filters: _Optional[_Iterable[_Union[RowFilter, _Mapping]]] = ..., linger_ms: _Optional[int] = ..., prefetch_batches: _Optional[int] = ..., fetch_max_bytes: _Optional[int] = ..., dead_letters: _Optional[_Union[DeadLetterConfig, _Mapping]] = ..., security: _Optional[_Union[KafkaSecurity, _Mapping]] = ...) -> None: ...
