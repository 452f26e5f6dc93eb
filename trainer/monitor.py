"""What the trainer shows: log lines, TensorBoard scalars, Prometheus figures."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Generic, TypeVar
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from torch.utils.tensorboard import SummaryWriter

from features.counts import Counts
from recmodels.tables import TableFigures
from stream.feed import Cut
from stream.source import PartitionKey

logger = logging.getLogger(__name__)

Labels = TypeVar("Labels", bound=tuple[str, ...])

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Monitor:
    """Figures of one rank, in a registry of its own; `port` 0 serves nothing, an empty folder draws nothing."""

    def __init__(
        self,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        tensorboard_dir: str = "",
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` is compared with the broker's; `ticks`, which never jump, measure the throughput."""
        self.registry = CollectorRegistry()
        self._clock = clock
        self._ticks = ticks
        self._rows, self._since = 0, ticks()
        self.rows = self._counter("rows", "Rows by what became of them.", "topic", "outcome")
        self.commits = self._counter("commits", "Commits by outcome.", "outcome")
        self.step_seconds = self._histogram("step_seconds", "Time of one step.")
        self.wait_seconds = self._histogram("input_wait_seconds", "Time a step waited for its batch.")
        self.seal_seconds = self._histogram("seal_seconds", "Training time that one commit took.")
        self.commit_seconds = self._histogram("commit_seconds", "From hand-over to durable.")
        self.lag = self._gauge("lag_messages", "Messages not yet read.", "topic", "partition")
        self.skipped = self._gauge(
            "skipped_messages", "Messages that retention took before they were read.", "topic", "partition"
        )
        self.table = self._gauge("table", "Figures of a table shard.", "table", "figure")
        self.last_commit = self._gauge("commit_seq", "Number of the newest commit.")
        self.commit_bytes = self._gauge("commit_bytes", "Size of the newest commit.")
        self.throughput = self._gauge("examples_per_second", "Rows trained per second, since the last line of figures.")
        self.watermark = self._gauge("watermark_seconds", "Event time that all partitions have trained.")
        self.staleness = self._gauge(
            "commit_staleness_seconds", "Age, by the broker's clock, of the newest row in the newest commit."
        )
        self.staleness.set(float("nan"))
        self.board = SummaryWriter(tensorboard_dir) if tensorboard_dir else None
        self._watched: list[Callable[[], Iterator[tuple[str, int]]]] = []
        self._server: WSGIServer | None = None
        self._thread: threading.Thread | None = None
        if port:
            try:
                self._server, self._thread = start_http_server(port, addr=host, registry=self.registry)
            except OSError as error:
                raise OSError(error.errno, error.strerror, f"metrics port {host}:{port}") from None

    def step(self, cut: Cut, *, seconds: float, waited: float) -> None:
        """Count one cut of the feed."""
        self.step_seconds.observe(seconds)
        self.wait_seconds.observe(waited)
        self._rows += cut.rows.num_rows
        for topic, counts in cut.accounting.items():
            for outcome, rows in asdict(counts).items():
                if rows:
                    self.rows.labels(topic, outcome).inc(rows)

    def committed(self, seq: int, size: int, broker_time_ms: int = -1) -> None:
        """Count a durable commit; `broker_time_ms` of its newest row, -1: unknown."""
        if broker_time_ms >= 0:
            self.staleness.set_function(lambda: max(0.0, self._clock() - broker_time_ms / 1000))
        self.commits.labels("durable").inc()
        self.last_commit.set(seq)
        self.commit_bytes.set(size)

    def failed(self) -> None:
        """Count a commit that failed."""
        self.commits.labels("failed").inc()

    def progress(self, lag: Mapping[PartitionKey, int], watermarks: Mapping[PartitionKey, int]) -> dict[str, float]:
        """Figures of how fast and how far training is, for the line that comes next."""
        now = self._ticks()
        rate = self._rows / max(now - self._since, 1e-9)
        self._rows, self._since = 0, now
        self.throughput.set(rate)
        found = {"examples_per_s": rate, "lag": float(sum(lag.values()))}
        if watermarks:
            self.watermark.set(min(watermarks.values()) / 1000)
            found["watermark_ms"] = float(min(watermarks.values()))
        return found

    def lagging(self, lag: Mapping[PartitionKey, int], skipped: Mapping[PartitionKey, int]) -> None:
        """Show how far each partition is behind, and what it lost."""
        for gauge, found in ((self.lag, lag), (self.skipped, skipped)):
            for (topic, partition), messages in found.items():
                gauge.labels(topic, str(partition)).set(messages)

    def tables(self, figures: Iterable[TableFigures]) -> None:
        """Show what the tables hold and did."""
        for figure in figures:
            for name in ("size", "capacity", "hits", "inserts", "evictions", "collisions", "unadmitted"):
                self.table.labels(figure.table, name).set(getattr(figure, name))

    def watch_features(self, counts: Counts) -> None:
        """Show what features count, as it is whenever it is asked for."""
        text = "Rows, or values, of a feature by what was wrong."
        self._watch(_Totals("feature", text, ("feature", "outcome"), counts.totals))

    def watch_sampler(self, totals: Callable[[], Mapping[str, int]]) -> None:
        """Show what the sampler counts, as it is whenever it is asked for."""
        self._watch(
            _Totals(
                "sampler", "What the negative sampler met, by outcome.", ("outcome",),
                lambda: {(outcome,): count for outcome, count in totals().items()},
            )
        )  # fmt: skip

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Log and draw one line of figures."""
        logger.info("step=%d %s", step, " ".join(f"{name}={_short(value)}" for name, value in values.items()))
        if self.board is not None:
            for name, value in values.items():
                self.board.add_scalar(name, value, step)
            for name, count in (pair for named in self._watched for pair in named()):
                self.board.add_scalar(name, count, step)

    def _watch(self, totals: "_Totals[Labels]") -> None:
        self.registry.register(totals)
        self._watched.append(totals.named)

    def close(self) -> None:
        """Flush TensorBoard and stop the endpoint."""
        if self.board is not None:
            self.board.close()
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"headrace_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"headrace_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(f"headrace_{name}", text, registry=self.registry, buckets=_SECONDS)


class _Totals(Collector, Generic[Labels]):
    """A counter that is kept elsewhere, by label values."""

    def __init__(self, name: str, text: str, labels: Sequence[str], totals: Callable[[], Mapping[Labels, int]]) -> None:
        self._name, self._text, self._labels, self._totals = f"headrace_{name}", text, labels, totals

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for labels, count in sorted(self._totals().items()):
            family.add_metric(labels, count)
        yield family

    def named(self) -> Iterator[tuple[str, int]]:
        """Each counter by what TensorBoard calls it."""
        for labels, count in self._totals().items():
            yield "/".join((self._name.removeprefix("headrace_"), *labels)), count


def _short(value: float) -> str:
    """Six digits, and times in milliseconds in full.

    >>> _short(0.71234567), _short(1700000000000.0), _short(12.0)
    ('0.712346', '1700000000000', '12')
    """
    return f"{value:.0f}" if value.is_integer() else f"{value:.6g}"
