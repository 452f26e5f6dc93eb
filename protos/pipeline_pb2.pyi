from protos import checkpoint_pb2 as _checkpoint_pb2
from protos import data_pb2 as _data_pb2
from protos import eval_pb2 as _eval_pb2
from protos import export_pb2 as _export_pb2
from protos import feature_pb2 as _feature_pb2
from protos import model_pb2 as _model_pb2
from protos import publish_pb2 as _publish_pb2
from protos import stream_pb2 as _stream_pb2
from protos import train_pb2 as _train_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import python_message as _python_message
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EasyRecConfig(_message.Message):
    __slots__ = ("train_input_path", "eval_input_path", "model_dir", "train_config", "eval_config", "export_config", "data_config", "feature_configs", "model_config", "stream_config", "checkpoint_config", "publish_config", "serve_config", "seed", "plugins")
    Extensions: _python_message._ExtensionDict
    TRAIN_INPUT_PATH_FIELD_NUMBER: _ClassVar[int]
    EVAL_INPUT_PATH_FIELD_NUMBER: _ClassVar[int]
    MODEL_DIR_FIELD_NUMBER: _ClassVar[int]
    TRAIN_CONFIG_FIELD_NUMBER: _ClassVar[int]
    EVAL_CONFIG_FIELD_NUMBER: _ClassVar[int]
    EXPORT_CONFIG_FIELD_NUMBER: _ClassVar[int]
    DATA_CONFIG_FIELD_NUMBER: _ClassVar[int]
    FEATURE_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    MODEL_CONFIG_FIELD_NUMBER: _ClassVar[int]
    STREAM_CONFIG_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_CONFIG_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_CONFIG_FIELD_NUMBER: _ClassVar[int]
    SERVE_CONFIG_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    PLUGINS_FIELD_NUMBER: _ClassVar[int]
    train_input_path: str
    eval_input_path: str
    model_dir: str
    train_config: _train_pb2.TrainConfig
    eval_config: _eval_pb2.EvalConfig
    export_config: _export_pb2.ExportConfig
    data_config: _data_pb2.DataConfig
    feature_configs: _containers.RepeatedCompositeFieldContainer[_feature_pb2.FeatureConfig]
    model_config: _model_pb2.ModelConfig
    stream_config: _stream_pb2.StreamConfig
    checkpoint_config: _checkpoint_pb2.CheckpointConfig
    publish_config: _publish_pb2.PublishConfig
    serve_config: _publish_pb2.ServeConfig
    seed: int
    plugins: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, train_input_path: _Optional[str] = ..., eval_input_path: _Optional[str] = ..., model_dir: _Optional[str] = ..., train_config: _Optional[_Union[_train_pb2.TrainConfig, _Mapping]] = ..., eval_config: _Optional[_Union[_eval_pb2.EvalConfig, _Mapping]] = ..., export_config: _Optional[_Union[_export_pb2.ExportConfig, _Mapping]] = ..., data_config: _Optional[_Union[_data_pb2.DataConfig, _Mapping]] = ..., feature_configs: _Optional[_Iterable[_Union[_feature_pb2.FeatureConfig, _Mapping]]] = ..., model_config: _Optional[_Union[_model_pb2.ModelConfig, _Mapping]] = ..., stream_config: _Optional[_Union[_stream_pb2.StreamConfig, _Mapping]] = ..., checkpoint_config: _Optional[_Union[_checkpoint_pb2.CheckpointConfig, _Mapping]] = ..., publish_config: _Optional[_Union[_publish_pb2.PublishConfig, _Mapping]] = ..., serve_config: _Optional[_Union[_publish_pb2.ServeConfig, _Mapping]] = ..., seed: _Optional[int] = ..., plugins: _Optional[_Iterable[str]] = ...) -> None: ...
