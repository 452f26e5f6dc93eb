"""The model registry: model classes by the name of the config message that selects them.

A model of a user's own is a config message that extends `ModelConfig`, and a class registered under the message's name
in a module that `plugins` names.
"""

import importlib
from typing import TYPE_CHECKING, TypeVar

import torch
from google.protobuf.message import Message

from protos.model_pb2 import ModelConfig
from recmodels.base_model import BaseModel, ModelInputs
from recmodels.embedding_group import EmbeddingGroup
from recmodels.errors import ModelConfigError, UnknownModelError
from recmodels.layout import create_layout
from recmodels.seeding import seed_parameters

if TYPE_CHECKING:
    from features import FeatureSet
    from protos.pipeline_pb2 import EasyRecConfig

_MODELS: dict[str, type[BaseModel]] = {}
_ModelClass = TypeVar("_ModelClass", bound=type[BaseModel])

# The modules of the catalogue; each registers its models when it is imported.
_CATALOGUE = (
    "recmodels.dcn",
    "recmodels.deepfm",
    "recmodels.dlrm",
    "recmodels.mask_net",
    "recmodels.multi_tower",
    "recmodels.rocket_launching",
    "recmodels.wide_and_deep",
    "recmodels.wukong",
    "recmodels.xdeepfm",
)


def register_model(cls: _ModelClass) -> _ModelClass:
    """Class decorator: make a model available under its class name, which is the name of its config message."""
    known = _MODELS.setdefault(cls.__name__, cls)
    if known is not cls and known.__module__ != cls.__module__:
        raise ModelConfigError(
            f"two models are named {cls.__name__}, in {known.__module__} and {cls.__module__}: rename one"
        )
    _MODELS[cls.__name__] = cls
    return cls


def registered_models() -> dict[str, type[BaseModel]]:
    """Model classes by name: the catalogue and whatever plugins have registered so far."""
    for module in _CATALOGUE:
        importlib.import_module(module)
    return dict(sorted(_MODELS.items()))


def model_name(config: ModelConfig) -> str:
    """The name of the message that selects the model: the `model` oneof, or an extension of the user's."""
    field = config.WhichOneof("model")
    chosen = [getattr(config, field)] if field else []
    chosen += [value for descriptor, value in config.ListFields() if descriptor.is_extension and _is_model(value)]
    if len(chosen) != 1:
        names = [message.DESCRIPTOR.name for message in chosen]
        raise ModelConfigError(f"model_config must name one model, got {names}: write one such as deepfm {{ ... }}")
    return str(chosen[0].DESCRIPTOR.name)


def model_class(name: str) -> type[BaseModel]:
    """The registered class of that name."""
    models = registered_models()
    if name not in models:
        raise UnknownModelError(f"no model {name!r} here: there are {list(models)}, and those that plugins register")
    return models[name]


def create_model(config: "EasyRecConfig", features: "FeatureSet", *, device: torch.device | None = None) -> BaseModel:
    """Build the model that the configuration names, its dense parameters drawn from `config.seed`."""
    for plugin in config.plugins:
        _import_plugin(plugin)
    cls = model_class(model_name(config.model_config))
    layout = create_layout(features.features, config.model_config)
    # Tables are built of torch modules, which draw values that they then throw away.
    with torch.random.fork_rng(devices=[]):
        group = EmbeddingGroup(features.features, layout, device or torch.device("cpu"), seed=config.seed)
    inputs = ModelInputs(
        embedding_group=group,
        labels=features.labels,
        sample_weights=features.weights,
        embedded=group.embedded(),
        numbers={held.name: [(entry.feature, entry.dim) for entry in held.entries] for held in layout.groups},
    )
    return build_model(cls, config.model_config, inputs, seed=config.seed)


def build_model(cls: type[BaseModel], config: ModelConfig, inputs: ModelInputs, *, seed: int) -> BaseModel:
    """Build a model on an embedding layer that exists already."""
    with torch.random.fork_rng(devices=[]):
        model = cls(config, inputs)
    seed_parameters(model, seed)
    return model


def _is_model(value: object) -> bool:
    return isinstance(value, Message) and value.DESCRIPTOR.name in _MODELS


def _import_plugin(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModelConfigError(f"plugin {name!r} cannot be imported ({error}): is it on PYTHONPATH?") from error
