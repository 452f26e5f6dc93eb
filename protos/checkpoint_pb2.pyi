from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CheckpointConfig(_message.Message):
    __slots__ = ("commit_interval_ms", "commit_interval_steps", "compact_after_commits", "compact_after_bytes_ratio", "keep_bases", "keep_log_ms", "lock_dir", "s3", "compact_max_share")
    COMMIT_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    COMMIT_INTERVAL_STEPS_FIELD_NUMBER: _ClassVar[int]
    COMPACT_AFTER_COMMITS_FIELD_NUMBER: _ClassVar[int]
    COMPACT_AFTER_BYTES_RATIO_FIELD_NUMBER: _ClassVar[int]
    KEEP_BASES_FIELD_NUMBER: _ClassVar[int]
    KEEP_LOG_MS_FIELD_NUMBER: _ClassVar[int]
    LOCK_DIR_FIELD_NUMBER: _ClassVar[int]
    S3_FIELD_NUMBER: _ClassVar[int]
    COMPACT_MAX_SHARE_FIELD_NUMBER: _ClassVar[int]
    commit_interval_ms: int
    commit_interval_steps: int
    compact_after_commits: int
    compact_after_bytes_ratio: float
    keep_bases: int
    keep_log_ms: int
    lock_dir: str
    s3: S3Options
    compact_max_share: float
    def __init__(self, commit_interval_ms: _Optional[int] = ..., commit_interval_steps: _Optional[int] = ..., compact_after_commits: _Optional[int] = ..., compact_after_bytes_ratio: _Optional[float] = ..., keep_bases: _Optional[int] = ..., keep_log_ms: _Optional[int] = ..., lock_dir: _Optional[str] = ..., s3: _Optional[_Union[S3Options, _Mapping]] = ..., compact_max_share: _Optional[float] = ...) -> None: ...

class S3Options(_message.Message):
    __slots__ = ("endpoint", "region", "credentials_file", "allow_http")
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    CREDENTIALS_FILE_FIELD_NUMBER: _ClassVar[int]
    ALLOW_HTTP_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    region: str
    credentials_file: str
    allow_http: bool
    def __init__(self, endpoint: _Optional[str] = ..., region: _Optional[str] = ..., credentials_file: _Optional[str] = ..., allow_http: _Optional[bool] = ...) -> None: ...
