"""Every invariant has tests, and they exist (docs/invariants.md)."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| (\d+) \| .+? \| (.+) \|$", (ROOT / "docs" / "invariants.md").read_text(encoding="utf-8"), re.M)
NAMED = [name for _, cell in ROWS for name in re.findall(r"`([^`]+)`", cell)]


def test_all_fifteen_invariants_have_tests() -> None:
    assert [int(number) for number, _ in ROWS] == list(range(1, 16))
    assert all("::" in cell for _, cell in ROWS)


@pytest.mark.parametrize("name", NAMED)
def test_test_of_an_invariant_exists(name: str) -> None:
    path, function = name.split("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
