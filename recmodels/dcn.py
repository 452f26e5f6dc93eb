"""Deep & Cross networks, first and second version."""

import torch
from torch import Tensor, nn

from protos.model_pb2 import ModelConfig
from recmodels.base_model import ModelInputs
from recmodels.modules.cross import CrossNet, LowRankCrossNet
from recmodels.modules.mlp import MLP, MlpOptions, optional_mlp
from recmodels.rank_model import RankModel
from recmodels.registry import register_model


@register_model
class DCNV1(RankModel):
    """The first group through crosses and an MLP, side by side: linear(final([cross, mlp])), without a bias.

    Source: Wang et al., Deep & Cross Network for Ad Click Predictions, 2017.
    """

    def __init__(self, config: ModelConfig, inputs: ModelInputs) -> None:
        super().__init__(config, inputs)
        options = config.dcn_v1
        self._group = self.first_group()
        width = inputs.embedding_group.group_total_dim(self._group)
        self.cross = CrossNet(width, options.cross.cross_num)
        self.deep = MLP(width, MlpOptions.from_proto(options.deep))
        self.final = MLP(width + self.deep.out_features, MlpOptions.from_proto(options.final))
        self.output = nn.Linear(self.final.out_features, self.num_class, bias=False)

    def score(self, groups: dict[str, Tensor]) -> Tensor:
        inputs = groups[self._group]
        out: Tensor = self.output(self.final(torch.cat([self.cross(inputs), self.deep(inputs)], dim=1)))
        return out


@register_model
class DCNV2(RankModel):
    """Low-rank crosses of the first group, behind an optional backbone, beside an optional MLP of the group itself.

    Source: Wang et al., DCN V2: Improved Deep & Cross Network, 2021.
    """

    def __init__(self, config: ModelConfig, inputs: ModelInputs) -> None:
        super().__init__(config, inputs)
        options = config.dcn_v2
        self._group = self.first_group()
        width = inputs.embedding_group.group_total_dim(self._group)
        backbone = MlpOptions.from_proto(options.backbone) if options.HasField("backbone") else None
        self.backbone, crossed = optional_mlp(width, backbone)
        self.cross = LowRankCrossNet(crossed, options.cross.cross_num, options.cross.low_rank)
        self.deep = MLP(width, MlpOptions.from_proto(options.deep)) if options.HasField("deep") else None
        joined = crossed + (self.deep.out_features if self.deep else 0)
        self.final = MLP(joined, MlpOptions.from_proto(options.final))
        self.output = nn.Linear(self.final.out_features, self.num_class, bias=False)

    def score(self, groups: dict[str, Tensor]) -> Tensor:
        inputs = groups[self._group]
        joined = self.cross(self.backbone(inputs))
        if self.deep is not None:
            joined = torch.cat([joined, self.deep(inputs)], dim=1)
        out: Tensor = self.output(self.final(joined))
        return out
