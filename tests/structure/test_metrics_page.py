"""docs/metrics.md names every figure that the processes export, with its labels, and no other."""

import re
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.metrics import MetricWrapperBase

from features.counts import NULL, Counts
from publisher.metrics import PublisherMetrics
from publisher.replica.metrics import ReplicaMetrics
from trainer.monitor import Monitor

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| `(headrace_\w+)(?:\{([\w,]+)\})?` \| \S", re.MULTILINE)
# A replica computes these when it is asked: their names stand in the call.
COMPUTED = re.compile(r"yield (gauge|labelled|counted)\(\"(\w+)\", (?:\"[^\"]*\"|text), (?:\"(\w+)\")?")


def _told() -> dict[str, tuple[str, ...]]:
    page = (ROOT / "docs" / "metrics.md").read_text()
    return {name: tuple(labels.split(",")) if labels else () for name, labels in ROW.findall(page)}


def _registered(registry: CollectorRegistry) -> Iterator[tuple[str, tuple[str, ...]]]:
    for collector in registry._collector_to_names:
        if isinstance(collector, MetricWrapperBase):
            suffix = "_total" if isinstance(collector, Counter) else ""
            yield collector._name + suffix, tuple(collector._labelnames)
            continue
        for family in collector.collect():
            for sample in family.samples[:1]:
                yield sample.name, tuple(sample.labels)


def _computed() -> Iterator[tuple[str, tuple[str, ...]]]:
    source = (ROOT / "publisher" / "replica" / "server.py").read_text()
    body = source[source.index("def _figures(self)") : source.index("def _check_version")]
    found = COMPUTED.findall(body)
    assert body.count(" yield ") == len(found) + body.count("yield feature_counters(")
    for kind, name, label in found:
        yield f"headrace_replica_{name}{'_total' if kind == 'counted' else ''}", (label,) if label else ()
    yield "headrace_replica_feature_total", ("feature", "outcome")


def test_every_exported_figure_is_explained_and_no_other() -> None:
    counts = Counts()
    counts.add("age", NULL, 1)
    monitor = Monitor()
    monitor.watch_features(counts)
    monitor.watch_sampler(lambda: {"relaxed": 1})
    exported = dict(_registered(monitor.registry)) | dict(_registered(PublisherMetrics().registry))
    exported |= dict(_registered(ReplicaMetrics().registry)) | dict(_computed())
    assert _told() == exported
