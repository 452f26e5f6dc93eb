"""MultiTower: one MLP per feature group, joined by a final one."""

import torch
from torch import Tensor, nn

from protos.model_pb2 import ModelConfig
from recmodels.base_model import ModelInputs
from recmodels.errors import ModelConfigError
from recmodels.modules.mlp import MLP, MlpOptions, optional_mlp
from recmodels.rank_model import RankModel
from recmodels.registry import register_model


@register_model
class MultiTower(RankModel):
    """`linear(final(concat of mlp_i(group_i)))`; a tower without an mlp passes its group on."""

    def __init__(self, config: ModelConfig, inputs: ModelInputs) -> None:
        super().__init__(config, inputs)
        options = config.multi_tower
        self._inputs = tuple(tower.input for tower in options.towers)
        if not self._inputs or len(set(self._inputs)) != len(self._inputs):
            raise ModelConfigError(f"multi_tower needs towers with an input of their own each, got {self._inputs}")
        self.need_groups(*self._inputs)
        self.towers = nn.ModuleList()
        width = 0
        for tower in options.towers:
            own = MlpOptions.from_proto(tower.mlp) if tower.HasField("mlp") else None
            module, out = optional_mlp(inputs.embedding_group.group_total_dim(tower.input), own)
            self.towers.append(module)
            width += out
        self.final = MLP(width, MlpOptions.from_proto(options.final))
        self.output = nn.Linear(self.final.out_features, self.num_class)

    def score(self, groups: dict[str, Tensor]) -> Tensor:
        towers = [tower(groups[name]) for name, tower in zip(self._inputs, self.towers, strict=True)]
        out: Tensor = self.output(self.final(torch.cat(towers, dim=1)))
        return out
