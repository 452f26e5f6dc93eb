"""What needs a GPU: `pytest -m cuda` runs it on a machine that has one, and says why it does not elsewhere."""

from pathlib import Path

import pytest

from trainer.devices import Machine

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    lacking = Machine.found().lacking
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.cuda)
            # What libraries warn of on a GPU nobody has read yet: it is to be shown, not to end the short time on one.
            item.add_marker(pytest.mark.filterwarnings("default"))
            if lacking:
                item.add_marker(pytest.mark.skip(reason=f"needs a GPU: {lacking}"))
