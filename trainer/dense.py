"""The dense half as columns: parameters, buffers, optimizer and RNG to and from flat arrays (docs/interfaces.md)."""

from collections.abc import Mapping

import numpy as np
import torch

from recmodels.optimizers import DenseOptimizer
from recmodels.wrappers import DenseHalf
from trainer.errors import RestoreError

Arrays = dict[str, np.ndarray]

_PARAMETER, _OPTIMIZER, _RNG = "parameter/", "optimizer/", "rng/"


def capture(half: DenseHalf, optimizer: DenseOptimizer) -> Arrays:
    """Copy the dense state; the copy does not change while training goes on."""
    state = {_PARAMETER + name: value.detach().cpu().numpy().copy() for name, value in half.state_dict().items()}
    return state | {_OPTIMIZER + name: value for name, value in optimizer.state().items()}


def restore(half: DenseHalf, optimizer: DenseOptimizer, state: Mapping[str, np.ndarray]) -> None:
    """Put a captured state back, in place.

    Raises RestoreError when names or shapes differ: a changed model needs a new model_dir.
    """
    own = half.state_dict()
    saved = _under(_PARAMETER, state)
    if own.keys() != saved.keys():
        odd = ", ".join(sorted(own.keys() ^ saved.keys())[:5])
        raise RestoreError(f"dense parameters of the commit and of the model differ: {odd}; use a new model_dir")
    with torch.no_grad():
        for name, value in own.items():
            if saved[name].shape != tuple(value.shape):
                shapes = f"{tuple(value.shape)}, the commit's has {saved[name].shape}"
                raise RestoreError(f"dense parameter {name} has shape {shapes}; use a new model_dir")
            value.copy_(torch.from_numpy(saved[name].copy()))
    optimizer.load(_under(_OPTIMIZER, state))


def capture_rng(rank: int) -> Arrays:
    """Copy this rank's generator state."""
    return {f"{_RNG}{rank}": torch.get_rng_state().numpy().copy()}


def restore_rng(rank: int, state: Mapping[str, np.ndarray]) -> bool:
    """Put this rank's generator state back; False when the commit has none for it (another world size)."""
    saved = state.get(f"{_RNG}{rank}")
    if saved is None:
        return False
    torch.set_rng_state(torch.from_numpy(saved.copy()))
    return True


def _under(prefix: str, state: Mapping[str, np.ndarray]) -> Arrays:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
