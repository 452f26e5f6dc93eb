"""Rocket launching: a light net that is served, taught by a booster net that exists in training only."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protos.model_pb2 import EUCLID, INNER_PRODUCT, ModelConfig, Similarity
from recmodels.base_model import ModelInputs
from recmodels.errors import ModelConfigError
from recmodels.losses import weighted_mean
from recmodels.modules.mlp import MLP, MlpOptions, optional_mlp
from recmodels.rank_model import RankModel
from recmodels.registry import register_model

if TYPE_CHECKING:
    from features.batch import Batch

_LIGHT, _BOOSTER = "_light", "_booster"
_SIMILARITY_WEIGHT = 0.1


@register_model
class RocketLaunching(RankModel):
    """The first group through a shared MLP into both nets; the light one sees it without a gradient.

    Predictions end in `_light`, and in training also in `_booster`. Losses are those of both, `hint_l2_loss` that draws
    the light output to the booster's, and with feature distillation `similarity_<i>_<j>` for each light layer i and the
    first booster layer j of equal width.
    Source: Zhou et al., Rocket Launching: A Universal and Efficient Framework for Training Well-performing Light Net,
    2018.
    """

    judged = (_LIGHT,)
    trained = (_LIGHT, _BOOSTER)

    def __init__(self, config: ModelConfig, inputs: ModelInputs) -> None:
        super().__init__(config, inputs)
        options = config.rocket_launching
        self._group = self.first_group()
        share = MlpOptions.from_proto(options.share_mlp) if options.HasField("share_mlp") else None
        self.share, width = optional_mlp(inputs.embedding_group.group_total_dim(self._group), share)
        light, booster = MlpOptions.from_proto(options.light_mlp), MlpOptions.from_proto(options.booster_mlp)
        self.light, self.booster = MLP(width, light), MLP(width, booster)
        self.light_output = nn.Linear(self.light.out_features, self.num_class)
        self.booster_output = nn.Linear(self.booster.out_features, self.num_class)
        self._pairs = tuple(_pairs(light, booster)) if options.feature_based_distillation else ()
        self._euclid = options.feature_distillation_function == EUCLID
        if options.feature_distillation_function == INNER_PRODUCT:
            name = Similarity.Name(INNER_PRODUCT)
            raise ModelConfigError(f"feature_distillation_function must be COSINE or EUCLID, got {name}")

    def score(self, groups: dict[str, Tensor]) -> Tensor:
        out: Tensor = self.light_output(self.light(self.share(groups[self._group])))
        return out

    def predict_groups(self, groups: dict[str, Tensor]) -> dict[str, Tensor]:
        shared = self.share(self.drop(groups)[self._group])
        light = self.light.hidden(shared.detach())
        named = self.to_predictions(self.light_output(light[-1]), _LIGHT)
        if self.training:
            booster = self.booster.hidden(shared)
            named |= self.to_predictions(self.booster_output(booster[-1]), _BOOSTER)
            for i, j in self._pairs:
                named |= {_hidden(_LIGHT, i): light[i], _hidden(_BOOSTER, j): booster[j]}
        return named

    def loss(self, predictions: dict[str, Tensor], batch: "Batch") -> dict[str, Tensor]:
        made = "logits" if f"logits{_LIGHT}" in predictions else "y"
        losses = self.losses_of(predictions, batch, _LIGHT) | self.penalties(batch)
        if made + _BOOSTER not in predictions:
            return losses
        gap = predictions[made + _LIGHT] - predictions[made + _BOOSTER].detach()
        losses |= self.losses_of(predictions, batch, _BOOSTER)
        losses["hint_l2_loss"] = gap.square().sum() / max(gap.numel(), 1)
        for i, j in self._pairs:
            light, booster = predictions[_hidden(_LIGHT, i)], predictions[_hidden(_BOOSTER, j)].detach()
            losses[f"similarity_{i}_{j}"] = self._distance(light, booster)
        return losses

    def _distance(self, light: Tensor, booster: Tensor) -> Tensor:
        if self._euclid:
            distance: Tensor = torch.linalg.vector_norm(booster - light)
            return distance
        return -_SIMILARITY_WEIGHT * weighted_mean(F.cosine_similarity(booster, light, dim=1), None)


def _pairs(light: MlpOptions, booster: MlpOptions) -> Iterator[tuple[int, int]]:
    """Each light layer with the first booster layer of its width, where there is one."""
    for i, width in enumerate(light.hidden_units):
        if width in booster.hidden_units:
            yield i, booster.hidden_units.index(width)


def _hidden(suffix: str, layer: int) -> str:
    return f"hidden{suffix}_{layer}"
