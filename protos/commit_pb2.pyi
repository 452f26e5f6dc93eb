from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Cursor(_message.Message):
    __slots__ = ("topic", "topic_id", "partition", "leader_epoch", "offset", "row")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    offset: int
    row: int
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ..., partition: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., offset: _Optional[int] = ..., row: _Optional[int] = ...) -> None: ...

class Watermark(_message.Message):
    __slots__ = ("topic", "partition", "event_time_ms")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    event_time_ms: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., event_time_ms: _Optional[int] = ...) -> None: ...

class Accounting(_message.Message):
    __slots__ = ("topic", "received", "trained", "late", "dead_lettered", "filtered", "duplicate", "remainder")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    TRAINED_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERED_FIELD_NUMBER: _ClassVar[int]
    FILTERED_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    REMAINDER_FIELD_NUMBER: _ClassVar[int]
    topic: str
    received: int
    trained: int
    late: int
    dead_lettered: int
    filtered: int
    duplicate: int
    remainder: int
    def __init__(self, topic: _Optional[str] = ..., received: _Optional[int] = ..., trained: _Optional[int] = ..., late: _Optional[int] = ..., dead_lettered: _Optional[int] = ..., filtered: _Optional[int] = ..., duplicate: _Optional[int] = ..., remainder: _Optional[int] = ...) -> None: ...

class BatchCut(_message.Message):
    __slots__ = ("step", "rank", "rows")
    STEP_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    step: int
    rank: int
    rows: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, step: _Optional[int] = ..., rank: _Optional[int] = ..., rows: _Optional[_Iterable[int]] = ...) -> None: ...

class SeenIds(_message.Message):
    __slots__ = ("topic", "partition", "ids", "event_time_ms")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    ids: _containers.RepeatedScalarFieldContainer[int]
    event_time_ms: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., ids: _Optional[_Iterable[int]] = ..., event_time_ms: _Optional[_Iterable[int]] = ...) -> None: ...

class StreamState(_message.Message):
    __slots__ = ("cursors", "watermarks", "accounting", "partitions", "cuts", "seen", "epoch")
    CURSORS_FIELD_NUMBER: _ClassVar[int]
    WATERMARKS_FIELD_NUMBER: _ClassVar[int]
    ACCOUNTING_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CUTS_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    cursors: _containers.RepeatedCompositeFieldContainer[Cursor]
    watermarks: _containers.RepeatedCompositeFieldContainer[Watermark]
    accounting: _containers.RepeatedCompositeFieldContainer[Accounting]
    partitions: _containers.RepeatedCompositeFieldContainer[Cursor]
    cuts: _containers.RepeatedCompositeFieldContainer[BatchCut]
    seen: _containers.RepeatedCompositeFieldContainer[SeenIds]
    epoch: int
    def __init__(self, cursors: _Optional[_Iterable[_Union[Cursor, _Mapping]]] = ..., watermarks: _Optional[_Iterable[_Union[Watermark, _Mapping]]] = ..., accounting: _Optional[_Iterable[_Union[Accounting, _Mapping]]] = ..., partitions: _Optional[_Iterable[_Union[Cursor, _Mapping]]] = ..., cuts: _Optional[_Iterable[_Union[BatchCut, _Mapping]]] = ..., seen: _Optional[_Iterable[_Union[SeenIds, _Mapping]]] = ..., epoch: _Optional[int] = ...) -> None: ...
