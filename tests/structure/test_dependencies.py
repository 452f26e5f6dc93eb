"""Dependencies: bounded on both sides, pinned for the Makefile, and none that we import but do not declare."""

import ast
import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RUNTIME = [Requirement(text) for text in PROJECT["dependencies"]]
EXTRAS = [Requirement(text) for text in PROJECT["optional-dependencies"]["odps"]]
DEV = [Requirement(text) for text in PROJECT["optional-dependencies"]["dev"]]
PACKAGES = ("protos", "stream", "features", "recmodels", "trainer", "checkpointer", "publisher", "headrace")
CUDA = [Requirement(text) for text in PROJECT["optional-dependencies"]["cuda"]]


def pins(name: str) -> dict[str, str]:
    """The versions of a constraints file by distribution, without those of files that it includes."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return {
        canonicalize_name(line.split("==")[0]): line.split("==")[1]
        for line in lines
        if line and not line.startswith(("#", "-c "))
    }


PINNED, PINNED_FOR_CUDA = pins("constraints-cpu.txt"), pins("constraints-cuda.txt")
# fbgemm-gpu comes with torchrec, as itself or as the shim; llvmlite with numba, which pins it.
COMES_ALONG = {"fbgemm-gpu", "fbgemm-gpu-cpu", "llvmlite"}


@pytest.mark.parametrize("requirement", [*RUNTIME, *EXTRAS, *DEV], ids=lambda requirement: requirement.name)
def test_every_dependency_has_a_lower_and_an_upper_bound(requirement: Requirement) -> None:
    operators = {specifier.operator for specifier in requirement.specifier}
    assert operators & {">=", "==", "~="}
    assert operators & {"<", "<=", "==", "~="}


@pytest.mark.parametrize("requirement", [*RUNTIME, *EXTRAS, *DEV], ids=lambda requirement: requirement.name)
def test_every_dependency_is_pinned_within_its_bounds(requirement: Requirement) -> None:
    assert PINNED[canonicalize_name(requirement.name)] in requirement.specifier


def test_every_import_of_the_packages_is_a_declared_dependency() -> None:
    owners = importlib.metadata.packages_distributions()
    declared = {canonicalize_name(requirement.name) for requirement in [*RUNTIME, *EXTRAS]} | COMES_ALONG
    undeclared = {}
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
            for top in {name.split(".")[0] for name in names} - sys.stdlib_module_names - set(PACKAGES):
                if not {canonicalize_name(owner) for owner in owners.get(top, [])} & declared:
                    undeclared[top] = path.name
    assert undeclared == {}


def test_no_pin_names_a_local_build_or_a_path() -> None:
    pinned = [*PINNED.values(), *PINNED_FOR_CUDA.values()]
    assert not [line for line in pinned if not re.fullmatch(r"[\w.]+", line)]


def test_a_cuda_machine_has_the_same_versions_and_the_real_kernels_in_place_of_the_shim() -> None:
    assert "\n-c constraints-cpu.txt\n" in (ROOT / "constraints-cuda.txt").read_text(encoding="utf-8")
    assert PINNED.keys().isdisjoint(PINNED_FOR_CUDA)
    shim = tomllib.loads((ROOT / "packaging/fbgemm-gpu-shim/pyproject.toml").read_text(encoding="utf-8"))["project"]
    (kernels,) = CUDA
    assert shim["name"] == kernels.name == "fbgemm-gpu"
    assert PINNED_FOR_CUDA["fbgemm-gpu"] == shim["version"] == PINNED["fbgemm-gpu-cpu"]
    assert PINNED_FOR_CUDA["fbgemm-gpu"] in kernels.specifier
