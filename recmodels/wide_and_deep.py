"""Wide & Deep: a linear part beside an MLP."""

import torch
from torch import Tensor, nn

from protos.model_pb2 import ModelConfig
from recmodels.base_model import ModelInputs
from recmodels.modules.mlp import MLP, MlpOptions
from recmodels.rank_model import RankModel
from recmodels.registry import register_model


@register_model
class WideAndDeep(RankModel):
    """Groups `wide` (WIDE) and `deep`: sum of wide plus linear(mlp(deep)), or linear(final([sum of wide, mlp(deep)])).

    Source: Cheng et al., Wide & Deep Learning for Recommender Systems, 2016.
    """

    def __init__(self, config: ModelConfig, inputs: ModelInputs) -> None:
        super().__init__(config, inputs)
        options = config.wide_and_deep
        self.need_groups("wide", "deep")
        self.deep = MLP(inputs.embedding_group.group_total_dim("deep"), MlpOptions.from_proto(options.deep))
        width = self.deep.out_features
        self.final = None
        if options.HasField("final"):
            self.final = MLP(1 + width, MlpOptions.from_proto(options.final))
            width = self.final.out_features
        self.output = nn.Linear(width, self.num_class)

    def score(self, groups: dict[str, Tensor]) -> Tensor:
        wide = groups["wide"].sum(dim=1, keepdim=True)
        deep = self.deep(groups["deep"])
        out: Tensor
        if self.final is None:
            out = wide + self.output(deep)
        else:
            out = self.output(self.final(torch.cat([wide, deep], dim=1)))
        return out
