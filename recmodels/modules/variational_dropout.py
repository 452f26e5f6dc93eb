"""Dropout whose rate is learned per feature, to rank features by how much a model needs them."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

_TEMPERATURE = 0.1
_EPSILON = torch.finfo(torch.float32).eps


class VariationalDropout(nn.Module):
    """Drops whole features of a group, each at its own learned rate `d = sigmoid(p)`. (B, sum of widths), same shape.

    In training a feature is scaled by `1 - b`, with `b` a relaxed draw of rate `d` per row; in evaluation by `1 - d`.
    Source: Ma et al., Towards a Better Tradeoff between Effectiveness and Efficiency in Pre-Ranking, 2021, section 3.
    """

    def __init__(self, widths: Mapping[str, int]) -> None:
        super().__init__()
        self.names = tuple(widths)
        self.logit = nn.Parameter(torch.empty(len(widths)))
        self._widths = tuple(widths.values())
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.logit)

    def rates(self) -> Tensor:
        """The drop rate of each feature, in the order of `names`."""
        return torch.sigmoid(self.logit)

    def forward(self, group: Tensor) -> Tensor:
        keep = 1 - (self._draw(group) if self.training else self.rates().unsqueeze(0))
        scales = [keep[:, index : index + 1].expand(-1, width) for index, width in enumerate(self._widths)]
        return group * torch.cat(scales, dim=1)

    def _draw(self, group: Tensor) -> Tensor:
        rate, noise = self.rates(), torch.rand(group.shape[0], len(self.names), device=group.device)
        odds = torch.log(rate + _EPSILON) - torch.log(1 - rate + _EPSILON)
        odds = odds + torch.log(noise + _EPSILON) - torch.log(1 - noise + _EPSILON)
        return torch.sigmoid(odds / _TEMPERATURE)

    def penalty(self, rows: int, strength: float) -> Tensor:
        """What keeping features costs: `strength / rows * sum(1 - d)`."""
        return strength / max(rows, 1) * (1 - self.rates()).sum()
