"""The examples in the feed's modules are true."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from stream import accounting, cutting, hashing, projection, row_errors, watermark


@pytest.mark.parametrize("module", [accounting, cutting, hashing, projection, row_errors, watermark])
def test_examples_hold(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
