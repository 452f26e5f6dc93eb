"""A model dressed for training, for prediction, and for export without its embedding layer."""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from recmodels.base_model import BaseModel
from recmodels.errors import ModelConfigError

if TYPE_CHECKING:
    from features.batch import Batch

REPEAT_KEY = "__TARGET_REPEAT_INTERLEAVE_KEY__"
_PRECISIONS = {"": None, "BF16": torch.bfloat16, "FP16": torch.float16}
TrainOutput = tuple[Tensor, tuple[dict[str, Tensor], dict[str, Tensor], "Batch"]]


def _precision(name: str) -> torch.dtype | None:
    if name not in _PRECISIONS:
        raise ModelConfigError(f"unknown mixed_precision {name!r}: write BF16 or FP16, or leave it out")
    return _PRECISIONS[name]


class TrainWrapper(nn.Module):
    """Forward for training: `(total loss, (losses, predictions, batch))`, all but the total detached.

    The total is the mean over this rank's rows. With several ranks, multiply it by `ranks * own rows / all rows` before
    the backward pass, because gradients are averaged over ranks.
    """

    def __init__(self, model: BaseModel, *, mixed_precision: str = "", device_type: str = "cpu") -> None:
        super().__init__()
        self.model = model
        self._dtype = _precision(mixed_precision)
        self._device_type = device_type

    def forward(self, batch: "Batch") -> TrainOutput:
        with torch.autocast(self._device_type, dtype=self._dtype, enabled=self._dtype is not None):
            predictions = self.model.predict(batch)
            losses = self.model.loss(predictions, batch)
            total = torch.stack(list(losses.values())).sum()
        return total, (_detached(losses), _detached(predictions), batch)


class PredictWrapper(nn.Module):
    """Forward for prediction: the columns asked for, on the CPU, without gradients; all columns if none are named."""

    def __init__(
        self,
        model: BaseModel,
        *,
        columns: Sequence[str] = (),
        mixed_precision: str = "",
        device_type: str = "cpu",
    ) -> None:
        super().__init__()
        self.model = model
        self._columns = tuple(columns)
        self._dtype = _precision(mixed_precision)
        self._device_type = device_type

    def forward(self, batch: "Batch") -> dict[str, Tensor]:
        with (
            torch.no_grad(),
            torch.autocast(self._device_type, dtype=self._dtype, enabled=self._dtype is not None),
        ):
            predictions = self.model.predict(batch)
        missing = [name for name in self._columns if name not in predictions]
        if missing:
            raise ModelConfigError(f"output columns {missing} are not predicted: there are {sorted(predictions)}")
        wanted = (
            [*self._columns, *([REPEAT_KEY] if REPEAT_KEY in predictions else [])] if self._columns else predictions
        )
        return {name: predictions[name].cpu() for name in wanted}


class DenseHalf(nn.Module):
    """A model behind its embedding layer: positional group tensors, in layout order, to named predictions.

    It shares the model's parameters and holds no embedding table, so `torch.export`, `torch.jit.trace` and `state_dict`
    see the dense part only. Export it in evaluation mode.
    """

    def __init__(self, model: BaseModel) -> None:
        super().__init__()
        self.group_names = tuple(model.embedding_group.group_names())
        self.model = _without_embeddings(model)

    def forward(self, *groups: Tensor) -> dict[str, Tensor]:
        return self.model.predict_embedded(dict(zip(self.group_names, groups, strict=True)))


def _without_embeddings(model: BaseModel) -> BaseModel:
    """A second view of the model's own layers and parameters, the embedding layer left out."""
    view = copy.copy(model)
    # A shallow copy shares the table of children: deleting from it would strip the model itself.
    children = {name: child for name, child in model.named_children() if name != "embedding_group"}
    vars(view)["_modules"] = children
    return view


def _detached(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach() for name, tensor in tensors.items()}
