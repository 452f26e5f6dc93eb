"""The dense half as a program of its own: TorchScript and AOTInductor packages, checked against the original."""

import hashlib
import io
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch._inductor import aoti_compile_and_package

from publisher.errors import DenseRuntimeError
from publisher.export.runtime import AOT_INDUCTOR, TORCH_SCRIPT, load_runtime

_BATCHES = (1, 2, 7, 64)
_TOLERANCE = {TORCH_SCRIPT: 0.0, AOT_INDUCTOR: 1e-5}


def compile_dense(runtime: str, module: nn.Module, widths: Sequence[int], scratch: Path) -> bytes:
    """Compile `module`, which takes one float32 (B, width) tensor per group; `scratch` is an empty folder.

    The artefact is loaded again, given other weights than it was compiled with, and compared with the module at several
    batch sizes before it is returned: an artefact that bakes in a weight or a batch size never leaves this function.
    """
    module.eval()
    examples = tuple(torch.rand(2, width) for width in widths)
    with warnings.catch_warnings():
        # TorchScript is deprecated in favour of torch.export, whose programs need a compiler or run as slowly as eager;
        # torch.export itself calls what torch deprecates.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        if runtime == TORCH_SCRIPT:
            payload = _torch_script(module, examples)
        elif runtime == AOT_INDUCTOR:
            payload = _aot_inductor(module, examples, scratch)
        else:
            raise DenseRuntimeError(f"there is no compiler for dense runtime {runtime!r}")
    _check(runtime, payload, module, widths)
    return payload


def program_digest(module: nn.Module, widths: Sequence[int]) -> str:
    """Digest what the dense half computes: operations, shapes and constants, not weights. Raises DenseRuntimeError."""
    module.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        program = _exported(module, tuple(torch.rand(2, width) for width in widths))
    shapes = sorted((name, str(value.dtype), tuple(value.shape)) for name, value in program.state_dict.items())
    digest = hashlib.sha256(f"{program.graph}{shapes}{list(widths)}".encode())
    for name, value in sorted(program.constants.items()):
        digest.update(name.encode())
        if isinstance(value, Tensor):
            digest.update(value.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _exported(module: nn.Module, examples: tuple[Tensor, ...]) -> torch.export.ExportedProgram:
    batch = torch.export.Dim("batch", min=1, max=1 << 20)
    try:
        with torch.no_grad():
            return torch.export.export(module, examples, dynamic_shapes=(tuple({0: batch} for _ in examples),))
    except RuntimeError as error:
        raise DenseRuntimeError(f"the dense half cannot be exported: {error}") from error


def _torch_script(module: nn.Module, examples: tuple[Tensor, ...]) -> bytes:
    sink = io.BytesIO()
    try:
        with torch.no_grad():
            traced = torch.jit.trace(module, examples, strict=False)  # type: ignore[no-untyped-call]
            torch.jit.save(traced, sink)
    except (RuntimeError, TypeError) as error:
        raise DenseRuntimeError(f"the dense half cannot be traced: {error}") from error
    return sink.getvalue()


def _aot_inductor(module: nn.Module, examples: tuple[Tensor, ...], scratch: Path) -> bytes:
    program = _exported(module, examples)
    target = scratch / "dense.pt2"
    try:
        with torch.no_grad():
            # Without this option one-element parameters are compiled in, and a swap is silently wrong.
            aoti_compile_and_package(
                program, package_path=str(target), inductor_configs={"always_keep_tensor_constants": True}
            )
    except RuntimeError as error:
        raise DenseRuntimeError(f"the dense half cannot be compiled: {error}") from error
    return target.read_bytes()


def _check(runtime: str, payload: bytes, module: nn.Module, widths: Sequence[int]) -> None:
    """Compare with the module under fresh random weights."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for value in module.state_dict().values():
            if value.is_floating_point():
                value.copy_(torch.rand(value.shape, generator=generator) + 0.1)
    runner = load_runtime(runtime, payload, {name: value.numpy() for name, value in module.state_dict().items()})
    for size in _BATCHES:
        groups = [torch.rand(size, width, generator=generator) for width in widths]
        with torch.no_grad():
            expected = module(*groups)
        found = runner.run(groups)
        if found.keys() != expected.keys():
            raise DenseRuntimeError(f"{runtime} gives {sorted(found)}, the model {sorted(expected)}")
        for name, value in expected.items():
            tolerance = _TOLERANCE[runtime]
            if not torch.allclose(found[name], value, rtol=tolerance, atol=tolerance):
                worst = (found[name] - value).abs().max().item()
                raise DenseRuntimeError(f"{runtime} differs from the model in {name!r} by {worst:g} at batch {size}")
