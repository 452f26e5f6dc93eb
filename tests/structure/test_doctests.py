"""The examples in docstrings run."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("protos", "stream", "features", "recmodels", "trainer", "checkpointer", "publisher", "headrace")
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8") and not path.name.endswith("_pb2.py")
]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_of(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
