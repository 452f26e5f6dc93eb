"""The demo's figures, from the commit log, the published versions and what the client and the producer saw."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from checkpointer import Commit, CommitLog
from headrace.demo.client import Observed
from headrace.demo.producer import EventProducer
from recmodels.metrics.progressive import ProgressiveMetrics, merge


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitPoint:
    """One commit: when, how many rows were trained until then, and the progressive AUC over all of them."""

    seq: int
    at: float
    trained: int
    auc: float
    auc_window: float
    bytes: int


def commit_points(commits: Sequence[Commit]) -> list[CommitPoint]:
    """Read the curve of the run from the commits' own figures."""
    return [
        CommitPoint(
            seq=commit.seq,
            at=commit.committed_ms / 1000,
            trained=int(commit.figures.get("rows", 0)),
            auc=commit.figures.get("auc_all", float("nan")),
            auc_window=commit.figures.get("auc", float("nan")),
            bytes=commit.bytes,
        )
        for commit in commits
    ]


def second_half_auc(log: CommitLog, points: Sequence[CommitPoint], total: int) -> float:
    """AUC over the rows after the first commit that had trained half of them."""
    middle = next((point for point in points if point.trained >= total / 2), points[-1])
    final = _metrics(log, points[-1].seq)
    return final.auc_since(_metrics(log, middle.seq).state())


def rows_covered(log: CommitLog, commit: Commit, rows_per_message: int) -> int:
    """How many events of the (one) partition a commit, and so the version of the same number, has learnt."""
    cursors = [cursor for state in log.stream(commit) for cursor in state.cursors]
    return max((cursor.offset * rows_per_message + cursor.row for cursor in cursors), default=0)


def staleness_ms(
    covered: Mapping[int, int], observed: Observed, producer: EventProducer
) -> tuple[np.ndarray, np.ndarray]:
    """(seconds, staleness) per message: produced, until the first answer whose version covers its last row.

    `covered` is rows learnt by version.

    A message that no answered version covers has none; the run waits until the last one is covered.
    """
    sent = producer.sent_at
    covered_until = np.full(len(sent), np.inf)
    for number, answered in sorted(observed.first_answer.items()):
        rows = covered.get(number, 0)
        whole = len(sent) if rows >= producer.sent else rows // producer.rows_per_message
        covered_until[:whole] = np.minimum(covered_until[:whole], answered)
    known = np.isfinite(covered_until)
    return sent[known], (covered_until[known] - sent[known]) * 1000


def percentiles(values: np.ndarray) -> dict[str, float]:
    """p50 and p99, NaN when nothing was measured."""
    if not len(values):
        return {"p50": float("nan"), "p99": float("nan")}
    p50, p99 = np.percentile(values, [50, 99])
    return {"p50": round(float(p50), 1), "p99": round(float(p99), 1)}


def _metrics(log: CommitLog, seq: int) -> ProgressiveMetrics:
    """The progressive metrics as commit `seq` has them, over all ranks."""
    states: dict[str, dict[str, np.ndarray]] = {}
    for name, value in log.dense(log.get(seq)).items():
        if name.startswith("metrics/"):
            _, rank, field = name.split("/")
            states.setdefault(rank, {})[field] = value
    metrics = ProgressiveMetrics()
    metrics.load(merge([states[rank] for rank in sorted(states, key=int)]))
    return metrics
