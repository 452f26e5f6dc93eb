"""Artefacts of the dense half give the same numbers as the module, also after their weights are swapped."""

import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from publisher.errors import DenseRuntimeError
from publisher.export.compile import compile_dense, program_digest
from publisher.export.host import this_host
from publisher.export.runtime import AOT_INDUCTOR, EAGER, TORCH_SCRIPT, DenseRunner, load_runtime
from publisher.versions import Artefact, Blob

WIDTHS = (8, 5)


class Half(nn.Module):
    """Two groups, batch norm, and a one-element parameter, which AOTInductor would bake in by default."""

    def __init__(self) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(sum(WIDTHS), 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
        self.bias = nn.Parameter(torch.full((1,), 3.0))

    def forward(self, *groups: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.mlp(torch.cat(groups, dim=1)).squeeze(1) + self.bias
        return {"logits": logits, "probs": torch.sigmoid(logits)}


def state_of(module: nn.Module) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in module.state_dict().items()}


def randomized(seed: int) -> Half:
    generator = torch.Generator().manual_seed(seed)
    module = Half().eval()
    with torch.no_grad():
        for value in module.state_dict().values():
            if value.is_floating_point():
                value.copy_(torch.rand(value.shape, generator=generator) + 0.1)
    return module


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    scratch = tmp_path_factory.mktemp("compile")
    return {runtime: compile_dense(runtime, Half(), WIDTHS, scratch) for runtime in (TORCH_SCRIPT, AOT_INDUCTOR)}


def loaded(runtime: str, artefacts: dict[str, bytes], module: Half) -> DenseRunner:
    return load_runtime(runtime, artefacts.get(runtime), state_of(module), build=Half)


@pytest.mark.parametrize("runtime", [EAGER, TORCH_SCRIPT, AOT_INDUCTOR])
def test_runtime_equals_the_module_before_and_after_swaps(runtime, artefacts):
    runner = loaded(runtime, artefacts, randomized(1))
    tolerance = 1e-6 if runtime == AOT_INDUCTOR else 0.0
    for seed in (1, 2, 3):
        module = randomized(seed)
        runner.swap(state_of(module))
        for size in (1, 3, 300):
            groups = [torch.randn(size, width) for width in WIDTHS]
            with torch.no_grad():
                expected = module(*groups)
            found = runner.run(groups)
            for name, value in expected.items():
                torch.testing.assert_close(found[name], value, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("runtime", [EAGER, TORCH_SCRIPT, AOT_INDUCTOR])
def test_runtime_refuses_other_weights_and_keeps_its_own(runtime, artefacts):
    module = randomized(1)
    runner = loaded(runtime, artefacts, module)
    groups = [torch.randn(4, width) for width in WIDTHS]
    before = runner.run(groups)["logits"].clone()
    other = state_of(randomized(2))
    for wrong in ({**other, "bias": np.zeros((2,), np.float32)}, {k: v for k, v in other.items() if k != "bias"}):
        with pytest.raises(DenseRuntimeError, match="bias"):
            runner.swap(wrong)
    assert torch.equal(runner.run(groups)["logits"], before)


@pytest.mark.parametrize("runtime", [TORCH_SCRIPT, AOT_INDUCTOR])
def test_damaged_artefact_is_refused(runtime, artefacts):
    with pytest.raises(DenseRuntimeError, match="does not load"):
        load_runtime(runtime, artefacts[runtime][:1000], state_of(randomized(1)))


def test_artefact_that_bakes_in_a_batch_size_is_not_made(tmp_path: Path):
    class Baked(Half):
        def forward(self, *groups: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"logits": super().forward(*groups)["logits"] * float(len(groups[0]))}

    with (
        pytest.warns(torch.jit.TracerWarning),
        pytest.raises(DenseRuntimeError, match="differs from the model"),
    ):
        compile_dense(TORCH_SCRIPT, Baked(), WIDTHS, tmp_path)


def test_host_says_why_an_artefact_does_not_fit(tmp_path: Path):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor : 0\nflags : fpu sse2 avx2\n")
    host = this_host(cpuinfo)
    fits = Artefact(
        runtime=AOT_INDUCTOR,
        blob=Blob.of("x", b""),
        torch=torch.__version__,
        machine=host.machine,
        isa="avx2 sse2",
    )
    assert host.unfit(fits) is None
    assert host.unfit(replace(fits, isa="avx2 avx512f")) == "compiled for avx512f, which this host lacks"
    assert "torch 1.0" in (host.unfit(replace(fits, torch="1.0")) or "")
    assert "sparc" in (host.unfit(replace(fits, machine="sparc")) or "")


def test_this_host_fits_itself():
    host = this_host()
    artefact = Artefact(
        runtime=AOT_INDUCTOR,
        blob=Blob.of("x", b""),
        torch=host.torch,
        machine=host.machine,
        isa=" ".join(sorted(host.isa)),
    )
    assert host.unfit(artefact) is None


def test_program_digest_follows_the_code_and_the_shapes_but_not_the_weights():
    class Doubled(Half):
        def forward(self, *groups: torch.Tensor) -> dict[str, torch.Tensor]:
            return {name: 2 * value for name, value in super().forward(*groups).items()}

    plain = program_digest(randomized(1), WIDTHS)
    assert program_digest(randomized(2), WIDTHS) == plain
    assert program_digest(Doubled(), WIDTHS) != plain


@pytest.mark.parametrize("left", [4096, 1_000_000], ids=["for nothing", "not for what it holds"])
def test_compiled_package_without_space_to_unpack_is_refused(
    left: int, artefacts: dict[str, bytes], small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A replica then serves another runtime, as for any artefact that does not load.
    size = len(artefacts[AOT_INDUCTOR]) if left > 4096 else 0
    subprocess.run(["mount", "-o", f"remount,size={size + left}", str(small_disk)], check=True)
    monkeypatch.setenv("TMPDIR", str(small_disk))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with pytest.raises(DenseRuntimeError, match="does not load here"):
        loaded(AOT_INDUCTOR, artefacts, randomized(1))
