"""The curves of the demo's report, as data: what each figure shows of a run."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headrace.demo import movielens
from headrace.demo.chart import Line
from headrace.demo.client import Observed
from headrace.demo.measure import CommitPoint
from headrace.demo.view import Sample


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One chart; `zero` makes the y axis begin at zero."""

    title: str
    lines: tuple[Line, ...]
    x_label: str = "seconds"
    y_label: str
    zero: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """What a run left behind to draw; `began` is the time of its first event, in seconds since the epoch."""

    began: float
    samples: list[Sample]
    observed: Observed
    points: list[CommitPoint]
    scores: np.ndarray  # of the baseline, per event
    labels: np.ndarray
    stale_at: np.ndarray
    stale_ms: np.ndarray


_SAMPLED: tuple[tuple[str, str, bool, tuple[tuple[str, Callable[[Sample], float]], ...]], ...] = (
    (
        "Events in and trained",
        "events",
        False,
        (
            ("in", lambda sample: sample.sent),
            ("trained and committed", lambda sample: sample.trained),
            ("lag", lambda sample: max(0, sample.sent - sample.trained)),
        ),
    ),
    (
        "Commits and the version that answers",
        "number",
        True,
        (
            ("newest commit", lambda sample: sample.commits),
            ("version serving", lambda sample: sample.version),
        ),
    ),
)


def figures(run: Recorded) -> list[Figure]:
    """All figures of the report, in its order."""
    events, versions = (_sampled(run.samples, *what) for what in _SAMPLED)
    stale = Line(name="staleness", x=run.stale_at - run.began, y=run.stale_ms)
    sent_at = np.array(run.observed.sent_at) - run.began
    latency = Line(name="latency", x=sent_at, y=np.array(run.observed.latency_ms))
    return [
        _auc(run),
        events,
        Figure(title="Staleness: event produced to first answer that knows it", lines=(stale,), y_label="ms"),
        versions,
        Figure(title="Request latency (1 user, 20 items)", lines=(latency,), y_label="ms"),
    ]


def _sampled(
    samples: list[Sample],
    title: str,
    y_label: str,
    step: bool,
    curves: tuple[tuple[str, Callable[[Sample], float]], ...],
) -> Figure:
    at = np.array([sample.at for sample in samples])
    lines = (Line(name=name, x=at, y=np.array([float(of(s)) for s in samples]), step=step) for name, of in curves)
    return Figure(title=title, lines=tuple(lines), y_label=y_label)


def _auc(run: Recorded) -> Figure:
    trained = np.array([point.trained for point in run.points], float)
    marks = np.linspace(len(run.labels) / 50, len(run.labels), 50).astype(int)
    item_mean = np.array([movielens.auc(run.scores[:mark], run.labels[:mark]) for mark in marks])
    return Figure(
        title="Progressive AUC against a running item mean",
        lines=(
            Line(name="headrace, all so far", x=trained, y=np.array([point.auc for point in run.points])),
            Line(name="headrace, window", x=trained, y=np.array([point.auc_window for point in run.points])),
            Line(name="item mean", x=marks.astype(float), y=item_mean),
        ),
        x_label="events trained",
        y_label="AUC",
        zero=False,
    )
