"""What a replica reports to Prometheus; every name starts with `headrace_replica_`."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

_PREFIX = "headrace_replica_"
_LATENCIES = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class ReplicaMetrics:
    """The counters of one replica, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.latency = Histogram(
            f"{_PREFIX}request_seconds",
            "From the request's headers to its response, by HTTP status.",
            ["status"],
            buckets=_LATENCIES,
            registry=self.registry,
        )
        self.in_flight = self._gauge("in_flight_requests", "Inference requests being answered.")
        self.failures = Counter(
            f"{_PREFIX}failed_requests",
            "Inference requests answered with an error, by HTTP status.",
            ["status"],
            registry=self.registry,
        )
        self.refused_connections = self._counter("refused_connections", "Connections refused: too many were open.")
        self.rows = self._counter("rows", "Rows predicted.")
        self.version = self._gauge("version", "Number of the version served; -1 before the first.")
        self.version.set(-1)
        self.swaps = self._counter("swaps", "Versions that went into service.")
        self.rollbacks = self._counter("rollbacks", "Swaps to an older version.")
        self.apply_seconds = self._histogram("apply_seconds", "Time to read and apply one version, until the flip.")
        self.apply_rows = self._counter("applied_rows", "Sparse rows put and deleted, one copy counted.")
        self.full_loads = self._counter("full_loads", "Versions loaded from their base.")
        self.refusals = Counter(
            f"{_PREFIX}refused_versions", "Versions refused, by reason.", ["reason"], registry=self.registry
        )
        self.storage_errors = self._counter("storage_errors", "Failed reads of the model directory.")
        self.stuck_readers = self._counter("stuck_readers", "Copies given up because a request would not leave them.")
        self.notifications = self._counter("notifications", "Notifications of new versions received.")

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(_PREFIX + name, text, registry=self.registry)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(_PREFIX + name, text, registry=self.registry)

    def _histogram(self, name: str, text: str) -> Histogram:
        buckets = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0)
        return Histogram(_PREFIX + name, text, buckets=buckets, registry=self.registry)

    def watch(self, families: Callable[[], Iterable[Metric]]) -> None:
        """Add figures that are computed when they are asked for."""
        self.registry.register(_Computed(families))

    def render(self) -> bytes:
        """Return the text exposition."""
        return generate_latest(self.registry)


class _Computed(Collector):
    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families()

    def describe(self) -> Iterator[Metric]:
        yield from ()


def gauge(name: str, text: str, value: float) -> Metric:
    """Return one computed gauge."""
    return GaugeMetricFamily(_PREFIX + name, text, value=value)


def counted(name: str, text: str, label: str, values: dict[str, float]) -> Metric:
    """Return one computed counter with a value for each label."""
    family = CounterMetricFamily(_PREFIX + name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def feature_counters(totals: Mapping[tuple[str, str], int]) -> Metric:
    """Return what features counted, by feature and outcome."""
    text = "Rows, or values, of a feature in requests by what was wrong."
    family = CounterMetricFamily(f"{_PREFIX}feature", text, labels=["feature", "outcome"])
    for labels, count in sorted(totals.items()):
        family.add_metric(labels, count)
    return family


def labelled(name: str, text: str, label: str, values: dict[str, float]) -> Metric:
    """Return one computed gauge with a value for each label."""
    family = GaugeMetricFamily(_PREFIX + name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
