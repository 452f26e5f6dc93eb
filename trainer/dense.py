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


def capture_rng(rank: int, device: torch.device) -> Arrays:
    """Copy the state of the generators that this rank draws from: the CPU's, and that of another device of its own."""
    state = {f"{_RNG}{rank}": torch.get_rng_state().numpy().copy()}
    if device.type != "cpu":
        state[f"{_RNG}{device.type}/{rank}"] = torch.cuda.get_rng_state(device).numpy().copy()
    return state


def restore_rng(rank: int, device: torch.device, state: Mapping[str, np.ndarray]) -> None:
    """Put back what the commit has of this rank's generators: nothing from another world size, no GPU's from CPU."""
    saved = state.get(f"{_RNG}{rank}")
    if saved is not None:
        torch.set_rng_state(torch.from_numpy(saved.copy()))
    saved = state.get(f"{_RNG}{device.type}/{rank}")
    if saved is not None:
        torch.cuda.set_rng_state(torch.from_numpy(saved.copy()), device)


def _under(prefix: str, state: Mapping[str, np.ndarray]) -> Arrays:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
