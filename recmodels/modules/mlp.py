"""Multi-layer perceptrons."""

from dataclasses import dataclass

from torch import Tensor, nn

from protos.module_pb2 import MLP as MlpProto
from recmodels.errors import ModelConfigError
from recmodels.modules.activation import create_activation
from recmodels.modules.batch_norm import BatchNorm


@dataclass(frozen=True, kw_only=True, slots=True)
class MlpOptions:
    """Widths and trimmings of an MLP; `dropout` has one ratio per layer."""

    hidden_units: tuple[int, ...]
    dropout: tuple[float, ...] = ()
    activation: str = "nn.ReLU"
    use_bn: bool = False
    bias: bool = True
    use_ln: bool = False

    def __post_init__(self) -> None:
        if not self.hidden_units or min(self.hidden_units) < 1:
            raise ModelConfigError(f"hidden_units of an mlp must be positive widths, got {list(self.hidden_units)}")
        if len(self.dropout) not in (0, len(self.hidden_units)):
            raise ModelConfigError(
                f"dropout_ratio must have 0, 1 or {len(self.hidden_units)} entries (one per hidden layer), "
                f"got {list(self.dropout)}"
            )
        if any(not 0 <= ratio < 1 for ratio in self.dropout):
            raise ModelConfigError(f"dropout_ratio must lie in [0, 1), got {list(self.dropout)}")
        if self.use_bn and self.use_ln:
            raise ModelConfigError("use_bn and use_ln exclude each other: set one of them in the mlp")

    @classmethod
    def from_proto(cls, proto: MlpProto) -> "MlpOptions":
        units = tuple(proto.hidden_units)
        ratios = tuple(proto.dropout_ratio)
        return cls(
            hidden_units=units,
            dropout=ratios * len(units) if len(ratios) == 1 else ratios,
            activation=proto.activation,
            use_bn=proto.use_bn,
            bias=proto.bias,
            use_ln=proto.use_ln,
        )


class Perceptron(nn.Module):
    """One layer: linear, normalisation, activation, dropout. (..., in_features) -> (..., out_features).

    The linear map has no bias of its own under batch normalisation, which would cancel it.
    """

    def __init__(self, in_features: int, out_features: int, options: MlpOptions, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias=options.bias and not options.use_bn)
        norm = BatchNorm(out_features) if options.use_bn else nn.LayerNorm(out_features) if options.use_ln else None
        layers = [norm, create_activation(options.activation, out_features), nn.Dropout(dropout) if dropout else None]
        self.rest = nn.Sequential(*[layer for layer in layers if layer is not None])

    def forward(self, inputs: Tensor) -> Tensor:
        out: Tensor = self.rest(self.linear(inputs))
        return out


class MLP(nn.Module):
    """A stack of perceptrons. (..., in_features) -> (..., out_features).

    >>> MLP(16, MlpOptions(hidden_units=(8, 4))).out_features
    4
    """

    def __init__(self, in_features: int, options: MlpOptions) -> None:
        super().__init__()
        self.out_features = options.hidden_units[-1]
        widths = (in_features, *options.hidden_units)
        dropout = options.dropout or (0.0,) * len(options.hidden_units)
        self.layers = nn.ModuleList(
            Perceptron(before, after, options, ratio)
            for before, after, ratio in zip(widths[:-1], widths[1:], dropout, strict=True)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        for layer in self.layers:
            inputs = layer(inputs)
        return inputs

    def hidden(self, inputs: Tensor) -> list[Tensor]:
        """The output of every layer; the last one is that of `forward`."""
        outputs = []
        for layer in self.layers:
            inputs = layer(inputs)
            outputs.append(inputs)
        return outputs


def optional_mlp(in_features: int, options: MlpOptions | None) -> tuple[nn.Module, int]:
    """The MLP and its output width; without options the identity and `in_features`."""
    if options is None:
        return nn.Identity(), in_features
    return MLP(in_features, options), options.hidden_units[-1]
