from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class ParameterConstraints(_message.Message):
    __slots__ = ("sharding_types", "compute_kernels")
    SHARDING_TYPES_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_KERNELS_FIELD_NUMBER: _ClassVar[int]
    sharding_types: _containers.RepeatedScalarFieldContainer[str]
    compute_kernels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, sharding_types: _Optional[_Iterable[str]] = ..., compute_kernels: _Optional[_Iterable[str]] = ...) -> None: ...
