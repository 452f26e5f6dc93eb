"""The gate: what a commit must fulfil before its rows and weights are served."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from protos.publish_pb2 import GateConfig


class RefusalCode(StrEnum):
    """Why a commit is not served."""

    CONTRACT = "contract"
    NOT_FINITE = "not_finite"
    AUC_DROP = "auc_drop"
    TOO_MANY_ROWS = "too_many_rows"
    ENCODING = "encoding"


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """One reason, for people to read."""

    code: RefusalCode
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GateOptions:
    """Limits of the gate; `max_rows` None: no cap."""

    max_auc_drop: float = 0.05
    min_metric_rows: int = 10_000
    max_rows: int | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.max_auc_drop <= 1.0:
            raise ValueError(f"gate.max_auc_drop must be in (0, 1], got {self.max_auc_drop}")

    @classmethod
    def from_proto(cls, config: GateConfig) -> "GateOptions":
        """Take the limits from the configuration."""
        return cls(
            max_auc_drop=config.max_auc_drop,
            min_metric_rows=config.min_metric_rows,
            max_rows=config.max_rows if config.HasField("max_rows") else None,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """What is judged: the net rows and the dense weights since the last good version, and what the trainer measured.

    `drift` says how its features differ from those of the publisher, where that is known.
    """

    contract: str
    features: str
    weights: Iterable[tuple[str, np.ndarray, np.ndarray]]
    changed: int
    dense: Mapping[str, np.ndarray]
    metrics: Mapping[str, float]
    drift: str = ""


def judge(
    options: GateOptions, candidate: Candidate, frozen: tuple[str, str], good: Mapping[str, float]
) -> list[Refusal]:
    """List every reason to refuse the candidate.

    `frozen` are the contract and feature digests fixed at start, `good` the metrics of the version that is served.
    """
    return [
        *_contract(candidate, frozen),
        *_finite(candidate),
        *_row_cap(options, candidate.changed),
        *_metric(options, candidate.metrics, good),
    ]


def bad_rows(table: str, ids: np.ndarray, weights: np.ndarray) -> str | None:
    """Say which rows are not finite; None: all are."""
    finite = np.isfinite(weights)
    if finite.all():
        return None
    bad = np.flatnonzero(~finite.all(axis=1))
    return f"table {table} has {len(bad)} rows that are not finite, the first is id {ids[bad[0]]}"


def _contract(candidate: Candidate, frozen: tuple[str, str]) -> Iterator[Refusal]:
    found = {"serving contract": candidate.contract, "feature digest": candidate.features}
    for (what, digest), expected in zip(found.items(), frozen, strict=True):
        if digest != expected:
            told = f" ({candidate.drift})" if candidate.drift and digest == candidate.features else ""
            detail = (
                f"{what} is {digest}, this publisher was started for {expected}{told}: "
                "restart it with the trainer's config"
            )
            yield Refusal(code=RefusalCode.CONTRACT, detail=detail)


def _finite(candidate: Candidate) -> Iterator[Refusal]:
    for name, value in sorted(candidate.dense.items()):
        if np.issubdtype(value.dtype, np.floating) and not np.isfinite(value).all():
            bad = int(value.size - np.isfinite(value).sum())
            yield Refusal(code=RefusalCode.NOT_FINITE, detail=f"dense {name} has {bad} values that are not finite")
    for table, ids, weights in candidate.weights:
        detail = bad_rows(table, ids, weights)
        if detail is not None:
            yield Refusal(code=RefusalCode.NOT_FINITE, detail=detail)


def _row_cap(options: GateOptions, changed: int) -> Iterator[Refusal]:
    if options.max_rows is not None and changed > options.max_rows:
        detail = f"{changed} rows changed since the last good version, more than max_rows {options.max_rows}"
        yield Refusal(code=RefusalCode.TOO_MANY_ROWS, detail=detail)


def _metric(options: GateOptions, metrics: Mapping[str, float], good: Mapping[str, float]) -> Iterator[Refusal]:
    enough = all(found.get("auc_rows", 0.0) >= options.min_metric_rows for found in (metrics, good))
    if not enough or "auc" not in metrics or "auc" not in good:
        return
    if good["auc"] - metrics["auc"] > options.max_auc_drop:
        detail = f"auc fell from {good['auc']:.4f} to {metrics['auc']:.4f}, more than {options.max_auc_drop:g}"
        yield Refusal(code=RefusalCode.AUC_DROP, detail=detail)
