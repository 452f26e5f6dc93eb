"""Activation functions by the name that a configuration gives them."""

import ast
import inspect

import torch
from torch import Tensor, nn

from recmodels.errors import ModelConfigError
from recmodels.modules.batch_norm import BatchNorm


class Dice(nn.Module):
    """Data-adaptive activation: `a(1-p)x + px` with `p = sigmoid(batchnorm(x))`, one `a` per channel, starting at 0.

    Source: Zhou et al., Deep Interest Network for Click-Through Rate Prediction, 2018, section 5.3.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = BatchNorm(channels, affine=False)
        self.alpha = nn.Parameter(torch.empty(channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.alpha)

    def forward(self, inputs: Tensor) -> Tensor:
        gate = torch.sigmoid(self.norm(inputs))
        return self.alpha * (1 - gate) * inputs + gate * inputs


def create_activation(text: str, channels: int) -> nn.Module | None:
    """Build `nn.ReLU`, `nn.LeakyReLU(negative_slope=0.1)`, `Dice`, ...; None for an empty text.

    `channels` is the width of the last axis. Raises `ModelConfigError` for anything that is not an activation of
    `torch.nn` with literal arguments: a configuration is data, so expressions such as lambdas are never evaluated.

    >>> create_activation("nn.LeakyReLU(negative_slope=0.1)", 8)
    LeakyReLU(negative_slope=0.1)
    """
    if not text.strip():
        return None
    name, positional, keywords = _parse(text)
    if name == "Dice":
        return Dice(channels)
    kind = getattr(nn.modules.activation, name, None) if name in nn.modules.activation.__all__ else None
    if kind is None or "Attention" in name:
        raise ModelConfigError(f"unknown activation {text!r}: write Dice or an activation of torch.nn such as nn.ReLU")
    try:
        inspect.signature(kind).bind(*positional, **keywords)
    except TypeError as error:
        raise ModelConfigError(f"activation {text!r} does not take these arguments: {error}") from None
    module: nn.Module = kind(*positional, **keywords)
    return module


Literal = str | int | float | bool | None


def _parse(text: str) -> tuple[str, list[Literal], dict[str, Literal]]:
    """Split `nn.Name(1, key=2)` into name, positional and keyword arguments, all literals."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        call = tree if isinstance(tree, ast.Call) else ast.Call(func=tree, args=[], keywords=[])
        dotted = ast.unparse(call.func)
        positional = [ast.literal_eval(value) for value in call.args]
        keywords = {str(item.arg): ast.literal_eval(item.value) for item in call.keywords}
    except (SyntaxError, ValueError):
        raise ModelConfigError(
            f"cannot read activation {text!r}: write a name such as nn.ReLU, with literal arguments if it takes any"
        ) from None
    return dotted.removeprefix("torch.").removeprefix("nn."), positional, keywords
