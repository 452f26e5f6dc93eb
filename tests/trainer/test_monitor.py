"""What a run shows of itself: the log line, TensorBoard, a trace, Prometheus."""

import json
import logging
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from protos.pipeline_pb2 import EasyRecConfig
from stream.broker import free_port
from tests.trainer.test_run import run
from trainer.monitor import Monitor
from trainer.summaries import Summaries

Configure = Callable[..., EasyRecConfig]


@pytest.fixture
def watched(configure: Configure) -> EasyRecConfig:
    config = configure()
    config.train_config.use_tensorboard = True
    config.train_config.log_step_count_steps = 4
    return config


def tags(config: EasyRecConfig, kind: str) -> set[str]:
    board = EventAccumulator(f"{config.model_dir}/tensorboard/0")
    board.Reload()
    return set(board.Tags()[kind])


def test_log_line_says_how_well_fast_and_far(watched: EasyRecConfig, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "trainer.monitor"):
        run(watched)
    line = next(record.message for record in caplog.records if record.message.startswith("step=4 "))
    figures = dict(part.split("=") for part in line.split())
    assert {"loss", "auc", "auc_window", "examples_per_s", "lag", "watermark_ms"} <= figures.keys()
    assert float(figures["examples_per_s"]) > 0
    assert figures["watermark_ms"].isdigit()


def test_loss_and_learning_rates_are_always_drawn(watched: EasyRecConfig) -> None:
    run(watched)
    assert {"loss", "learning_rate/dense_0", "learning_rate/sparse_0"} <= tags(watched, "scalars")
    assert tags(watched, "histograms") == set()


def test_chosen_summaries_are_drawn(watched: EasyRecConfig) -> None:
    watched.train_config.tensorboard_summaries.extend(
        ["global_gradient_norm", "gradient_norm", "gradient", "parameter"]
    )
    run(watched)
    scalars, histograms = tags(watched, "scalars"), tags(watched, "histograms")
    assert "global_gradient_norm" in scalars
    assert any(tag.startswith("gradient_norm/") for tag in scalars)
    assert {tag.split("/")[0] for tag in histograms} == {"gradient", "parameter"}


def test_gradients_of_a_scaled_loss_are_drawn_as_those_of_the_loss(tmp_path: Path) -> None:
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3.0, 4.0]) * 1024
    with SummaryWriter(str(tmp_path)) as board:
        Summaries(board, ["global_gradient_norm"]).gradients(1, [("w", parameter)], scale=1024.0)
    drawn = EventAccumulator(str(tmp_path))
    drawn.Reload()
    assert [event.value for event in drawn.Scalars("global_gradient_norm")] == [5.0]


def test_profiling_leaves_a_trace_of_steps(configure: Configure) -> None:
    config = configure()
    config.train_config.is_profiling = True
    run(config)
    (trace,) = Path(config.model_dir, "train_eval_trace").glob("rank0.*.pt.trace.json")
    names = {event.get("name") for event in json.loads(trace.read_text())["traceEvents"]}
    assert any(str(name).startswith("ProfilerStep#") for name in names)


def test_endpoint_tells_throughput_lag_watermark_and_staleness() -> None:
    port = free_port()
    now = [100.0]
    monitor = Monitor(port=port, clock=lambda: now[0])
    try:
        now[0] = 102.0
        monitor.progress({("clicks", 0): 3}, {("clicks", 0): 90_000, ("clicks", 1): 80_000})
        monitor.lagging({("clicks", 0): 3}, {("clicks", 0): 8})
        monitor.committed(7, 1000, broker_time_ms=101_500)
        now[0] = 104.0
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as response:
            text = response.read().decode()
    finally:
        monitor.close()
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert lines['headrace_lag_messages{partition="0",topic="clicks"}'] == "3.0"
    assert lines['headrace_skipped_messages{partition="0",topic="clicks"}'] == "8.0"
    assert lines["headrace_watermark_seconds"] == "80.0"
    assert lines["headrace_commit_staleness_seconds"] == "2.5"
    assert lines["headrace_commit_seq"] == "7.0"
    assert lines["headrace_examples_per_second"] == "0.0"
