from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class EvalConfig(_message.Message):
    __slots__ = ("num_steps", "log_step_count_steps", "use_dense_ema")
    NUM_STEPS_FIELD_NUMBER: _ClassVar[int]
    LOG_STEP_COUNT_STEPS_FIELD_NUMBER: _ClassVar[int]
    USE_DENSE_EMA_FIELD_NUMBER: _ClassVar[int]
    num_steps: int
    log_step_count_steps: int
    use_dense_ema: bool
    def __init__(self, num_steps: _Optional[int] = ..., log_step_count_steps: _Optional[int] = ..., use_dense_ema: _Optional[bool] = ...) -> None: ...
