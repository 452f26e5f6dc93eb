"""One layer of stacked factorization machines."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from protos.model_pb2 import WuKongLayer as WuKongProto
from recmodels.errors import ModelConfigError
from recmodels.modules.mlp import MLP, MlpOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class WuKongOptions:
    """How many fields a layer makes by linear combination and by interactions, and how it compresses the latter."""

    linear_fields: int
    interaction_fields: int
    rank: int
    mlp: MlpOptions

    def __post_init__(self) -> None:
        if min(self.linear_fields, self.interaction_fields, self.rank) < 1:
            raise ModelConfigError(
                "lcb_feature_num, fmb_feature_num and compressed_feature_num of a wukong layer must be at least 1, got "
                f"{self.linear_fields}, {self.interaction_fields}, {self.rank}"
            )

    @classmethod
    def from_proto(cls, proto: WuKongProto) -> "WuKongOptions":
        return cls(
            linear_fields=proto.lcb_feature_num,
            interaction_fields=proto.fmb_feature_num,
            rank=proto.compressed_feature_num,
            mlp=MlpOptions.from_proto(proto.feature_num_mlp),
        )


class WuKongLayer(nn.Module):
    """Compressed interactions beside linear combinations, plus a residual. (B, N, D) -> (B, interaction + linear, D).

    Interactions are `X (X' Y)`, flattened, normalised and mapped by an MLP. The residual is projected where the number
    of fields changes. Source: Zhang et al., Wukong: Towards a Scaling Law for Large-Scale Recommendation, 2024.
    """

    def __init__(self, fields: int, width: int, options: WuKongOptions) -> None:
        super().__init__()
        self.out_fields = options.interaction_fields + options.linear_fields
        self._interactions, self._width = options.interaction_fields, width
        self.compress = nn.Linear(fields, options.rank, bias=False)
        self.combine = nn.Linear(fields, options.linear_fields, bias=False)
        self.norm = nn.LayerNorm(fields * options.rank)
        self.mlp = MLP(fields * options.rank, options.mlp)
        self.project = nn.Linear(self.mlp.out_features, options.interaction_fields * width)
        self.residual = nn.Identity() if fields == self.out_fields else nn.Linear(fields, self.out_fields, bias=False)
        self.out_norm = nn.LayerNorm(width)

    def forward(self, inputs: Tensor) -> Tensor:
        by_width = inputs.transpose(1, 2)
        products = torch.bmm(inputs, self.compress(by_width)).flatten(1)
        interactions = self.project(self.mlp(self.norm(products))).reshape(-1, self._interactions, self._width)
        combined = self.combine(by_width).transpose(1, 2)
        residual = self.residual(by_width).transpose(1, 2)
        out: Tensor = self.out_norm(torch.cat([interactions, combined], dim=1) + residual)
        return out
