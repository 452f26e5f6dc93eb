"""DeepFM: a linear part, pairwise products and an MLP over shared embeddings."""

import torch
from torch import Tensor, nn

from protos.model_pb2 import ModelConfig
from recmodels.base_model import ModelInputs
from recmodels.modules.fm import FactorizationMachine
from recmodels.modules.interaction import equal_width
from recmodels.modules.mlp import MLP, MlpOptions
from recmodels.rank_model import RankModel
from recmodels.registry import register_model


@register_model
class DeepFM(RankModel):
    """Groups `wide` (WIDE), `deep`, and `fm`, in whose place `deep` is used when there is none.

    Without `final`: sum of wide, plus sum of fm, plus linear(mlp(deep)).
    With it: linear(final([sum of wide, fm, mlp(deep)])).
    Source: Guo et al., DeepFM: A Factorization-Machine based Neural Network for CTR Prediction, 2017.
    """

    def __init__(self, config: ModelConfig, inputs: ModelInputs) -> None:
        super().__init__(config, inputs)
        options, groups = config.deepfm, inputs.embedding_group
        self.need_groups("wide", "deep")
        self._fm_group = "fm" if groups.has_group("fm") else "deep"
        self._fm_fields = len(groups.group_dims(self._fm_group))
        self._fm_dim = equal_width(groups.group_dims(self._fm_group), group=self._fm_group)
        self.fm = FactorizationMachine()
        self.deep = MLP(groups.group_total_dim("deep"), MlpOptions.from_proto(options.deep))
        self.final = None
        width = self.deep.out_features
        if options.HasField("final"):
            self.final = MLP(1 + self._fm_dim + width, MlpOptions.from_proto(options.final))
            width = self.final.out_features
        self.output = nn.Linear(width, self.num_class)

    def score(self, groups: dict[str, Tensor]) -> Tensor:
        wide = groups["wide"].sum(dim=1, keepdim=True)
        fm = self.fm(groups[self._fm_group].reshape(-1, self._fm_fields, self._fm_dim))
        deep = self.deep(groups["deep"])
        out: Tensor
        if self.final is None:
            out = wide + fm.sum(dim=1, keepdim=True) + self.output(deep)
        else:
            out = self.output(self.final(torch.cat([wide, fm, deep], dim=1)))
        return out
