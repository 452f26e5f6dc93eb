"""What features and samplers count is served with the trainer's figures."""

from prometheus_client import generate_latest

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
