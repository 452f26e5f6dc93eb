"""`tensorboard_summaries`: what is drawn of parameters and gradients, beside loss and learning rates."""

from collections.abc import Iterable, Mapping

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from protos.train_rules import SUMMARIES

Named = Iterable[tuple[str, nn.Parameter]]


class Summaries:
    """Draws what was chosen; without a board, nothing."""

    def __init__(self, board: SummaryWriter | None, chosen: Iterable[str]) -> None:
        self._board = board
        self._chosen = frozenset(chosen) & SUMMARIES if board is not None else frozenset()

    @property
    def of_gradients(self) -> bool:
        """Whether gradients are drawn, which are there only between backward and clipping."""
        return bool(self._chosen & {"gradient", "gradient_norm", "global_gradient_norm"})

    def gradients(self, step: int, parameters: Named, *, scale: float = 1.0) -> None:
        """Draw gradients, which are `scale` times too large, as they are before clipping."""
        if self._board is None:
            return
        found = {name: parameter.grad / scale for name, parameter in parameters if parameter.grad is not None}
        norms = {name: gradient.norm() for name, gradient in found.items()}
        if "global_gradient_norm" in self._chosen and norms:
            self._board.add_scalar("global_gradient_norm", float(torch.stack(list(norms.values())).norm()), step)
        for name, gradient in found.items():
            if "gradient_norm" in self._chosen:
                self._board.add_scalar(f"gradient_norm/{name}", float(norms[name]), step)
            if "gradient" in self._chosen:
                self._board.add_histogram(f"gradient/{name}", gradient, step)

    def state(self, step: int, parameters: Named, rates: Mapping[str, float]) -> None:
        """Draw learning rates, and parameters where they are chosen."""
        if self._board is None:
            return
        for name, rate in rates.items():
            self._board.add_scalar(f"learning_rate/{name}", rate, step)
        if "parameter" in self._chosen:
            for name, parameter in parameters:
                self._board.add_histogram(f"parameter/{name}", parameter.detach(), step)
