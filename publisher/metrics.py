"""What the publisher shows to Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0)


class PublisherMetrics:
    """Figures of one publisher, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        name = "headrace_publisher_"
        self.versions = Counter(name + "versions", "Versions written.", registry=self.registry)
        self.swaps = Counter(name + "swaps", "Times the pointer moved.", registry=self.registry)
        self.refusals = Counter(name + "refusals", "Commits that the gate refused.", ["reason"], registry=self.registry)
        self.bytes = Counter(name + "bytes", "Bytes written.", ["what"], registry=self.registry)
        self.lost = Counter(name + "notifications_lost", "Notifications not delivered.", registry=self.registry)
        self.failures = Counter(name + "failures", "Steps that failed and are tried again.", registry=self.registry)
        self.children = Counter(
            name + "tasks", "Background tasks that ended.", ["task", "outcome"], registry=self.registry
        )
        self.version = Gauge(name + "version", "Newest version written.", registry=self.registry)
        self.served = Gauge(name + "served_version", "Version that the pointer names.", registry=self.registry)
        self.pinned = Gauge(name + "pinned", "1 while a rollback holds the pointer.", registry=self.registry)
        self.lag = Gauge(name + "lag_commits", "Commits seen after the newest version.", registry=self.registry)
        self.deltas = Gauge(name + "deltas_since_base", "Deltas that a cold replica reads.", registry=self.registry)
        self.delay = Histogram(
            name + "commit_to_pointer_seconds",
            "From the commit to the swap of the pointer.",
            registry=self.registry,
            buckets=_SECONDS,
        )
        self.seconds = Histogram(
            name + "publish_seconds", "Time to write one version.", registry=self.registry, buckets=_SECONDS
        )
