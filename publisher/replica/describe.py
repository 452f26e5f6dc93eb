"""The protocol's metadata documents: the server, the model, its configuration, the list of models."""

from typing import Final

from publisher.replica.protocol import BYTES
from publisher.replica.serving import Servable, TensorSpec

Document = dict[str, object]
_EXTENSIONS: Final = ("binary_tensor_data", "model_configuration", "model_repository")


def server(model: str) -> Document:
    """Describe the server; `models` is an addition of ours."""
    return {"name": "headrace", "version": "2", "extensions": list(_EXTENSIONS), "models": [model]}


def index(model: str, side: Servable | None) -> list[Document]:
    """List the models that can be asked for."""
    if side is None:
        return [{"name": model, "version": "", "state": "UNAVAILABLE", "reason": "no version has been published yet"}]
    return [{"name": model, "version": str(side.number), "state": "READY", "reason": ""}]


def model(name: str, side: Servable) -> Document:
    """Describe the model's tensors."""
    return {
        "name": name,
        "versions": [str(side.number)],
        "platform": "headrace",
        "inputs": [_tensor(spec) | {"parameters": _parameters(spec)} for spec in side.inputs],
        "outputs": [_tensor(spec) for spec in side.outputs],
    }


def _tensor(spec: TensorSpec) -> Document:
    return {"name": spec.name, "datatype": spec.datatype, "shape": list(spec.shape)}


def _parameters(spec: TensorSpec) -> Document:
    """What the protocol has no field for: whose the column is, and which one where it takes several tensors."""
    return {"user": spec.user} | ({"column": spec.column} if spec.column else {})


def config(name: str, side: Servable) -> Document:
    """Describe the model as Triton's model configuration does; batches are the client's, so `max_batch_size` is 0."""
    return {
        "name": name,
        "platform": "headrace",
        "backend": "headrace",
        "max_batch_size": 0,
        "input": [_config_tensor(spec) for spec in side.inputs],
        "output": [_config_tensor(spec) for spec in side.outputs],
    }


def _config_tensor(spec: TensorSpec) -> Document:
    data_type = "TYPE_STRING" if spec.datatype == BYTES else f"TYPE_{spec.datatype}"
    return {"name": spec.name, "data_type": data_type, "dims": list(spec.shape)}
