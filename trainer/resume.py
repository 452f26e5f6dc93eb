"""Start from a commit: tables, dense half, metrics, generators and the trained position."""

import logging
from collections.abc import Callable, Mapping

import numpy as np
import torch

from checkpointer import Commit, CommitLog, Restored
from checkpointer.errors import ChainError, Flaw
from recmodels.metrics.progressive import blank, merge
from stream.progress import Progress
from trainer.dense import restore, restore_rng
from trainer.errors import RestoreError
from trainer.learner import METRICS, QUORUM, TRAIN_METRICS, Learner
from trainer.passes import own_partitions
from trainer.position import Position
from trainer.workers import Workers

logger = logging.getLogger(__name__)

_ATTEMPTS = 3


def resume(
    log: CommitLog,
    seq: int,
    learner: Learner,
    workers: Workers,
    *,
    seed: int,
    explain: Callable[[str], str] = lambda _: "",
    put_tables: Callable[[Restored], None] | None = None,
) -> Position:
    """Put commit `seq` back and return the position to go on from; seq 0 is the beginning of everything.

    `explain` says what is different now from the features of a digest. `put_tables` brings the tables to a commit, by
    default by loading all of it.
    """
    if seq == 0:
        torch.manual_seed(seed + workers.rank)
        return Position(progress=Progress(), rank=workers.rank)
    restored = _put_tables(log, seq, learner, explain, put_tables or (lambda found: learner.tables.load(found.tables)))
    commit = restored.commit
    restore(learner.half, learner.dense, restored.dense)
    _restore_metrics(learner, restored.dense, workers)
    # For the generators that the commit has no state of: it was made by another number of ranks or on another device.
    torch.manual_seed(seed + commit.step + workers.rank)
    restore_rng(workers.rank, learner.device, restored.dense)
    logger.info("restored seq=%d step=%d", commit.seq, commit.step)
    return Position(
        progress=_progress(restored, workers),
        rank=workers.rank,
        step=commit.step,
        event_time_ms=commit.event_time_ms,
        quorum_ms=int(restored.dense[QUORUM][0]) if QUORUM in restored.dense else -1,
        broker_time_ms=commit.broker_time_ms,
        epoch=max((state.epoch for state in restored.stream), default=0),
        from_now=commit.from_now,
    )


def _put_tables(
    log: CommitLog,
    seq: int,
    learner: Learner,
    explain: Callable[[str], str],
    put: Callable[[Restored], None],
) -> Restored:
    """Read the commit into the tables; what compaction takes away meanwhile is read from what took its place."""
    for again in reversed(range(_ATTEMPTS)):
        try:
            restored = log.restore(seq)
            check_fits(restored.commit, learner, explain)
            put(restored)
            return restored
        except ChainError as error:
            if error.flaw is not Flaw.MISSING or not again:
                raise
            logger.warning("gone while it was read, reading again error=%s", error)
    raise RuntimeError("the last attempt returns or raises")


def check_fits(commit: Commit, learner: Learner, explain: Callable[[str], str] = lambda _: "") -> None:
    """Refuse a commit of another model. Raises RestoreError that says which part differs."""
    contract = learner.layout.digest()
    if commit.contract == contract and commit.features == learner.digest:
        return
    told = explain(commit.features)
    if commit.contract != contract:
        what = f"has the serving contract {commit.contract[:12]}, this configuration has {contract[:12]}"
        differ = told or "features, groups, dims or tables differ"
    else:
        what = (
            f"was trained on features with digest {commit.features[:12]}, this configuration has {learner.digest[:12]}"
        )
        differ = told or "hash, vocabulary, boundaries or defaults differ"
    raise RestoreError(
        f"commit {commit.seq} {what}: {differ}; undo that, or use a new model_dir and "
        "name this one as its fine_tune_checkpoint"
    )


def _progress(restored: Restored, workers: Workers) -> Progress:
    """Each rank goes on with its own partitions; the counters of the whole job go on at rank 0."""
    everything = Progress.from_proto(restored.stream)
    own = own_partitions(tuple(everything.cursors), workers)
    progress = everything.only(own, accounting=workers.rank == 0)
    if restored.commit.from_now:
        progress.cursors.clear()
    return progress


def _restore_metrics(learner: Learner, dense: Mapping[str, np.ndarray], workers: Workers) -> None:
    """Each rank goes on with its own counts; in a world of another size rank 0 does with those of all."""
    rank, progressive = workers.rank, _by_rank(METRICS, dense)
    if progressive.keys() == set(range(workers.world_size)):
        learner.metrics.load(progressive[rank])
    else:
        total = merge([progressive[owner] for owner in sorted(progressive)])
        learner.metrics.load(total if rank == 0 else blank(total))
    learner.model.load_train_metric_state(_by_rank(TRAIN_METRICS, dense).get(rank, {}))


def _by_rank(prefix: str, dense: Mapping[str, np.ndarray]) -> dict[int, dict[str, np.ndarray]]:
    states: dict[int, dict[str, np.ndarray]] = {}
    for name, value in dense.items():
        if name.startswith(prefix):
            owner, field = name.removeprefix(prefix).split("/", 1)
            states.setdefault(int(owner), {})[field] = value
    return states
