"""The examples in the feature modules are true."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from features import bounds, bucketize, inputs, normalize


@pytest.mark.parametrize("module", [bounds, bucketize, inputs, normalize])
def test_examples_hold(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
