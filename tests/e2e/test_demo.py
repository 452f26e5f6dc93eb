"""The demo's loop, small: real broker, trainer, publisher, replica and client, as processes."""

import json
import os
from pathlib import Path

import pytest
from rich.console import Console

from headrace.demo.run import DemoOptions, demo

KEYS = [
    "events", "trained", "late", "dead_lettered", "filtered", "duplicate", "remainder", "progressive_auc",
    "progressive_auc_second_half", "baseline_auc_item_mean", "commits", "versions", "swaps", "requests",
    "failed_requests", "staleness_ms", "delta_bytes_per_row", "train_examples_per_s", "wall_s",
]  # fmt: skip
EVENTS = 6000


@pytest.mark.e2e
@pytest.mark.timeout(800)
def test_demo_serves_every_event_and_fails_no_request(tmp_path: Path) -> None:
    cache = Path(__file__).parents[2] / "runs" / "cache"
    options = DemoOptions(out=tmp_path / "demo", cache=cache, events=EVENTS, rate=1500, dense_runtime="TORCH_SCRIPT")
    with (tmp_path / "console").open("w") as output:
        summary = demo(options, env=dict(os.environ), console=Console(file=output))
    assert list(summary) == KEYS
    assert summary == json.loads((tmp_path / "demo" / "summary.json").read_text())
    assert summary["events"] == summary["trained"] == EVENTS
    assert summary["failed_requests"] == 0 and int(str(summary["requests"])) > 0
    assert int(str(summary["swaps"])) >= 2
    page = (tmp_path / "demo" / "report.html").read_text()
    assert page.count("<svg") == 5 and "http" not in page.replace("http://www.w3.org", "")
