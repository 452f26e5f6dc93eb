"""xDeepFM: vector-wise crosses beside an MLP."""

import torch
from torch import Tensor, nn

from protos.model_pb2 import ModelConfig
from recmodels.base_model import ModelInputs
from recmodels.errors import ModelConfigError
from recmodels.modules.cin import CompressedInteractions
from recmodels.modules.interaction import equal_width
from recmodels.modules.mlp import MLP, MlpOptions
from recmodels.rank_model import RankModel
from recmodels.registry import register_model


@register_model
class xDeepFM(RankModel):  # noqa: N801 - the class is found by the name of its config message
    """Groups `wide` (WIDE) and `deep`: linear(final([crosses of wide, mlp(deep)])).

    Source: Lian et al., xDeepFM: Combining Explicit and Implicit Feature Interactions for Recommender Systems, 2018,
    without its linear part.
    """

    def __init__(self, config: ModelConfig, inputs: ModelInputs) -> None:
        super().__init__(config, inputs)
        options, groups = config.xdeepfm, inputs.embedding_group
        self.need_groups("wide", "deep")
        sizes = tuple(options.cin.cin_layer_size)
        if not sizes or min(sizes) < 1:
            raise ModelConfigError(f"cin_layer_size of xdeepfm must name positive sizes, got {list(sizes)}")
        dims = groups.group_dims("wide")
        self._fields, self._width = len(dims), equal_width(dims, group="wide")
        self.cin = CompressedInteractions(self._fields, sizes)
        self.deep = MLP(groups.group_total_dim("deep"), MlpOptions.from_proto(options.deep))
        joined = self.cin.out_features + self.deep.out_features
        self.final = MLP(joined, MlpOptions.from_proto(options.final))
        self.output = nn.Linear(self.final.out_features, self.num_class)

    def score(self, groups: dict[str, Tensor]) -> Tensor:
        crossed = self.cin(groups["wide"].reshape(-1, self._fields, self._width))
        out: Tensor = self.output(self.final(torch.cat([crossed, self.deep(groups["deep"])], dim=1)))
        return out
