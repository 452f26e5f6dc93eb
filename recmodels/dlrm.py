"""DLRM: inner products of all pairs of fields."""

import torch
from torch import Tensor, nn

from protos.model_pb2 import ModelConfig
from recmodels.base_model import ModelInputs
from recmodels.modules.interaction import PairwiseProducts
from recmodels.modules.mlp import MLP, MlpOptions
from recmodels.modules.tokens import FieldTokens
from recmodels.rank_model import RankModel
from recmodels.registry import register_model


@register_model
class DLRM(RankModel):
    """Groups `sparse` and, optionally, `dense`: linear(final([products, dense, sparse])), sparse if `arch_with_sparse`.

    Source: Naumov et al., Deep Learning Recommendation Model for Personalization and Recommendation Systems, 2019.
    """

    def __init__(self, config: ModelConfig, inputs: ModelInputs) -> None:
        super().__init__(config, inputs)
        options = config.dlrm
        dense_mlp = MlpOptions.from_proto(options.dense_mlp) if options.HasField("dense_mlp") else None
        self.tokens = FieldTokens(inputs.embedding_group, dense_mlp)
        self.products = PairwiseProducts(self.tokens.fields)
        kept = self.tokens.fields if options.arch_with_sparse else int(self.tokens.dense is not None)
        self._kept = kept
        joined = self.tokens.fields * (self.tokens.fields - 1) // 2 + kept * self.tokens.width
        self.final = MLP(joined, MlpOptions.from_proto(options.final))
        self.output = nn.Linear(self.final.out_features, self.num_class)

    def score(self, groups: dict[str, Tensor]) -> Tensor:
        fields = self.tokens(groups)
        joined = torch.cat([self.products(fields), fields[:, : self._kept].flatten(1)], dim=1)
        out: Tensor = self.output(self.final(joined))
        return out
