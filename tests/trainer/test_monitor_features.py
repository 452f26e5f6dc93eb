"""What features and samplers count is served with the trainer's figures."""

from pathlib import Path

from prometheus_client import generate_latest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from features.counts import NULL, Counts
from trainer.monitor import Monitor


def test_feature_counts_are_served_as_they_are_when_asked_for() -> None:
    monitor, counts = Monitor(), Counts()
    monitor.watch_features(counts)
    counts.add("age", NULL, 2)
    counts.add("age", NULL, 1)
    assert 'headrace_feature_total{feature="age",outcome="null"} 3.0' in generate_latest(monitor.registry).decode()
    monitor.close()


def test_sampler_counts_are_served_as_they_are_when_asked_for() -> None:
    monitor, totals = Monitor(), {"relaxed": 1}
    monitor.watch_sampler(lambda: totals)
    totals["relaxed"] = 7
    assert 'headrace_sampler_total{outcome="relaxed"} 7.0' in generate_latest(monitor.registry).decode()
    monitor.close()


def test_counts_are_drawn_with_every_line_of_figures(tmp_path: Path) -> None:
    monitor, counts = Monitor(tensorboard_dir=str(tmp_path)), Counts()
    monitor.watch_features(counts)
    monitor.watch_sampler(lambda: {"relaxed": 7})
    counts.add("age", NULL, 2)
    monitor.scalars(10, {"auc": 0.7})
    counts.add("age", NULL, 3)
    monitor.scalars(20, {"auc": 0.7})
    monitor.close()
    drawn = EventAccumulator(str(tmp_path)).Reload()
    assert [(event.step, event.value) for event in drawn.Scalars("feature/age/null")] == [(10, 2.0), (20, 5.0)]
    assert [event.value for event in drawn.Scalars("sampler/relaxed")] == [7.0, 7.0]
