"""The examples in the sources' modules are true."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from stream import cursor, decode_schema, encode, framing, kafka_options, memory, security


@pytest.mark.parametrize("module", [cursor, decode_schema, encode, framing, kafka_options, memory, security])
def test_examples_hold(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
