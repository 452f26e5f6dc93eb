"""MaskNet: instance-guided masks."""

from torch import Tensor, nn

from protos.model_pb2 import ModelConfig
from recmodels.base_model import ModelInputs
from recmodels.errors import ModelConfigError
from recmodels.modules.mask_net import MaskNetModule, MaskNetOptions
from recmodels.rank_model import RankModel
from recmodels.registry import register_model


@register_model
class MaskNet(RankModel):
    """The first group through mask blocks and their top MLP: linear(blocks), without a bias.

    Source: Wang et al., MaskNet: Introducing Feature-Wise Multiplication to CTR Ranking Models, 2021.
    """

    def __init__(self, config: ModelConfig, inputs: ModelInputs) -> None:
        super().__init__(config, inputs)
        options = MaskNetOptions.from_proto(config.mask_net.mask_net_module)
        if options.top is None:
            raise ModelConfigError("mask_net_module of mask_net needs a top_mlp")
        self._group = self.first_group()
        self.blocks = MaskNetModule(inputs.embedding_group.group_total_dim(self._group), options)
        self.output = nn.Linear(self.blocks.out_features, self.num_class, bias=False)

    def score(self, groups: dict[str, Tensor]) -> Tensor:
        out: Tensor = self.output(self.blocks(groups[self._group]))
        return out
