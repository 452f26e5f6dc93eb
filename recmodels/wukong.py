"""WuKong: stacked factorization machines."""

from torch import Tensor, nn

from protos.model_pb2 import ModelConfig
from recmodels.base_model import ModelInputs
from recmodels.errors import ModelConfigError
from recmodels.modules.mlp import MLP, MlpOptions
from recmodels.modules.tokens import FieldTokens
from recmodels.modules.wukong import WuKongLayer, WuKongOptions
from recmodels.rank_model import RankModel
from recmodels.registry import register_model


@register_model
class WuKong(RankModel):
    """Groups `sparse` and, optionally, `dense`: linear(final(layers)).

    Source: Zhang et al., Wukong: Towards a Scaling Law for Large-Scale Recommendation, 2024.
    """

    def __init__(self, config: ModelConfig, inputs: ModelInputs) -> None:
        super().__init__(config, inputs)
        options = config.wukong
        if not options.wukong_layers:
            raise ModelConfigError("wukong needs at least one of wukong_layers")
        dense_mlp = MlpOptions.from_proto(options.dense_mlp) if options.HasField("dense_mlp") else None
        self.tokens = FieldTokens(inputs.embedding_group, dense_mlp)
        self.layers = nn.ModuleList()
        fields = self.tokens.fields
        for proto in options.wukong_layers:
            layer = WuKongLayer(fields, self.tokens.width, WuKongOptions.from_proto(proto))
            self.layers.append(layer)
            fields = layer.out_fields
        self.final = MLP(fields * self.tokens.width, MlpOptions.from_proto(options.final))
        self.output = nn.Linear(self.final.out_features, self.num_class)

    def score(self, groups: dict[str, Tensor]) -> Tensor:
        fields = self.tokens(groups)
        for layer in self.layers:
            fields = layer(fields)
        out: Tensor = self.output(self.final(fields.flatten(1)))
        return out
