"""Running the dense half: one interface over AOTInductor, TorchScript and eager modules."""

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch._inductor import aoti_load_package

from publisher.errors import DenseRuntimeError

AOT_INDUCTOR = "aot_inductor"
TORCH_SCRIPT = "torch_script"
EAGER = "eager"

State = Mapping[str, np.ndarray]


class DenseRunner(Protocol):
    """A dense half with weights. Not to be swapped while it runs: keep two, and swap the idle one."""

    runtime: str

    def run(self, groups: Sequence[Tensor]) -> dict[str, Tensor]:
        """Predict from one float32 (B, width) tensor per group, in layout order."""
        ...

    def swap(self, state: State) -> None:
        """Take other weights, all of them; on DenseRuntimeError keep the old ones."""
        ...


def load_runtime(
    runtime: str, payload: bytes | None, state: State, *, build: Callable[[], nn.Module] | None = None
) -> DenseRunner:
    """Load an artefact whose digest has been verified, with weights.

    `payload` is the artefact; `build` makes the module for "eager", which needs no artefact.
    """
    if runtime == EAGER:
        if build is None:
            raise DenseRuntimeError("dense runtime eager needs a function that builds the module")
        return ModuleRunner(EAGER, build(), state)
    if payload is None:
        raise DenseRuntimeError(f"dense runtime {runtime} needs an artefact")
    if runtime == TORCH_SCRIPT:
        return ModuleRunner(TORCH_SCRIPT, _load_script(payload), state)
    if runtime == AOT_INDUCTOR:
        return InductorRunner(payload, state)
    raise DenseRuntimeError(f"unknown dense runtime {runtime!r}: this program is older than the version")


class ModuleRunner:
    """A module in this process, eager or scripted."""

    def __init__(self, runtime: str, module: nn.Module, state: State) -> None:
        self.runtime = runtime
        self._module = module.eval()
        self._own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        self.swap(state)

    def run(self, groups: Sequence[Tensor]) -> dict[str, Tensor]:
        """Predict."""
        with torch.inference_mode():
            found: dict[str, Tensor] = self._module(*groups)
        return found

    def swap(self, state: State) -> None:
        """Copy the weights in."""
        fresh = _tensors(state, {name: tuple(own.shape) for name, own in self._own.items()})
        with torch.no_grad():
            for name, own in self._own.items():
                own.copy_(fresh[name])


class InductorRunner:
    """A compiled package."""

    runtime = AOT_INDUCTOR

    def __init__(self, payload: bytes, state: State) -> None:
        try:
            self._package = aoti_load_package(io.BytesIO(payload))
            self._names = tuple(self._package.get_constant_fqns())
        except (RuntimeError, OSError) as error:
            raise DenseRuntimeError(f"the compiled dense half does not load here: {error}") from error
        self._shapes = {name: state[name].shape for name in self._names if name in state}
        self.swap(state)

    def run(self, groups: Sequence[Tensor]) -> dict[str, Tensor]:
        """Predict."""
        with torch.inference_mode():
            found: dict[str, Tensor] = self._package(*groups)
        return found

    def swap(self, state: State) -> None:
        """Load the constants; buffers that no output depends on are not among them."""
        shapes = {name: self._shapes.get(name, ()) for name in self._names}
        fresh = _tensors({name: state[name] for name in self._names if name in state}, shapes)
        try:
            self._package.load_constants(fresh, check_full_update=True)
        except RuntimeError as error:
            raise DenseRuntimeError(f"the compiled dense half refuses these weights: {error}") from error


def _load_script(payload: bytes) -> nn.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            module: nn.Module = torch.jit.load(io.BytesIO(payload), map_location="cpu")  # type: ignore[no-untyped-call]
    except (RuntimeError, ValueError) as error:
        raise DenseRuntimeError(f"the TorchScript dense half does not load: {error}") from error
    return module


def _tensors(state: State, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Copies of the arrays, which may be read-only; refuse names and shapes that differ."""
    if state.keys() != shapes.keys():
        lacking, extra = sorted(shapes.keys() - state.keys()), sorted(state.keys() - shapes.keys())
        raise DenseRuntimeError(f"these weights are of another dense half: lacking {lacking}, unknown {extra}")
    for name, array in state.items():
        if array.shape != shapes[name]:
            raise DenseRuntimeError(f"dense {name} has shape {array.shape}, the dense half needs {shapes[name]}")
    return {name: torch.from_numpy(np.array(array)) for name, array in state.items()}
