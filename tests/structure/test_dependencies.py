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
PINNED = {
    canonicalize_name(line.split("==")[0]): line.split("==")[1]
    for line in (ROOT / "constraints-cpu.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
}
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
    assert not [line for line in PINNED.values() if not re.fullmatch(r"[\w.]+", line)]
