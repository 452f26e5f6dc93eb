"""The live view: one table that is redrawn while the demo runs."""

from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """What the demo looks like at one moment; `at` in seconds since the first event."""

    at: float
    sent: int
    trained: int
    auc: float
    commits: int
    version: int
    versions: int
    staleness_ms: float
    requests: int
    failed: int
    latency_ms: float


def table(sample: Sample, total: int, phase: str) -> Table:
    """Draw one sample."""
    drawn = Table(title=f"headrace demo: {phase}", show_header=False, min_width=64)
    drawn.add_column(justify="left")
    drawn.add_column(justify="right")
    lag = max(0, sample.sent - sample.trained)
    for name, value in (
        ("events in", f"{sample.sent:,} of {total:,}"),
        ("trained, committed", f"{sample.trained:,}"),
        ("lag (events)", f"{lag:,}"),
        ("progressive AUC", f"{sample.auc:.4f}" if sample.auc == sample.auc else "–"),
        ("commits", f"{sample.commits:,}"),
        ("versions seen by the client (now serving)", f"{sample.versions:,} ({sample.version})"),
        ("staleness of the served model", f"{sample.staleness_ms:,.0f} ms" if sample.staleness_ms >= 0 else "–"),
        ("requests served / failed", f"{sample.requests - sample.failed:,} / {sample.failed:,}"),
        ("request latency (last)", f"{sample.latency_ms:.1f} ms" if sample.latency_ms >= 0 else "–"),
    ):
        drawn.add_row(name, value)
    return drawn
