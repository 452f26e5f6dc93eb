"""Evaluate and predict offline with the model of a commit."""

import itertools
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import torch

from checkpointer import Commit, CommitLog, Store
from checkpointer.open_store import StoreOptions, open_store
from features import FeatureSet, create_features
from features.readers import readers
from features.sampling.draw import Draw
from features.sampling.maker import open_maker
from features.text_form import COLUMN, as_texts
from protos.pipeline_pb2 import EasyRecConfig
from recmodels.wrappers import PredictWrapper
from stream import open_source
from stream.feed import Feed, FeedOptions
from stream.missing import naming_readers
from stream.progress import Progress
from trainer.devices import CPU, settle
from trainer.errors import TrainerConfigError
from trainer.feature_record import what_changed
from trainer.learner import Learner, create_learner
from trainer.resume import resume
from trainer.workers import Rank, Workers

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """Metrics by name over `rows` rows; `rejected` are dead-lettered, late, filtered or duplicate."""

    commit: int
    rows: int
    rejected: int
    metrics: dict[str, float]


def evaluate(
    config: EasyRecConfig, *, path: str = "", seq: int | None = None, device: torch.device = CPU
) -> Evaluation:
    """Evaluate a commit (default: the newest) on `path` (default: eval_input_path)."""
    path = path or config.eval_input_path
    if not path:
        raise TrainerConfigError("eval_input_path is empty; set it, or pass the path to evaluate on")
    features = create_features(config)
    settle(device, config.train_config)
    workers = Workers(Rank(), device=device)
    try:
        learner, commit = _restored(config, features, workers, seq, device)
        rows, rejected, steps = 0, 0, 0
        with torch.no_grad():
            maker = open_maker(config, features)
            for cut_rows, lost in _cuts(config, features, path, list(features.columns)):
                rejected += lost
                if not cut_rows.num_rows:
                    continue
                batch = maker.make(cut_rows, Draw(seed=config.seed, place=str(steps), evaluating=True))
                _, (losses, predictions, _) = learner.wrapped(batch.to(device))
                learner.model.update_metric(predictions, batch, losses)
                rows, steps = rows + cut_rows.num_rows, steps + 1
                if config.eval_config.num_steps and steps >= config.eval_config.num_steps:
                    break
        metrics = {name: float(value) for name, value in learner.model.compute_metric().items()} if rows else {}
        return Evaluation(commit=commit, rows=rows, rejected=rejected, metrics=metrics)
    finally:
        workers.close()


def predict(
    config: EasyRecConfig,
    *,
    path: str,
    columns: tuple[str, ...] = (),
    reserved: tuple[str, ...] = (),
    explain: bool = False,
    seq: int | None = None,
    device: torch.device = CPU,
    accept: Callable[[pa.Schema], None] = lambda _: None,
) -> Iterator[pa.RecordBatch]:
    """Yield the `reserved` columns of the input beside the predictions (all, or `columns`), batch by batch.

    ALL_COLUMNS in the first place of `reserved` stands for all columns; ALL_EFFECTIVE_COLUMNS for those that features
    need. A prediction replaces a reserved column of its name. `explain` adds what features made
    (features/text_form.py). `accept` may refuse the reserved columns, before the model is restored.
    """
    features = create_features(config)
    settle(device, config.train_config)
    workers = Workers(Rank(), device=device)
    try:
        _head(config)
        everything = reserved[:1] == ("ALL_COLUMNS",)
        if reserved[:1] == ("ALL_EFFECTIVE_COLUMNS",):
            reserved = tuple(dict.fromkeys([*features.input_columns, *reserved[1:]]))
        needed = None if everything else list(dict.fromkeys([*features.input_columns, *reserved]))
        filled = (rows for rows, _ in _cuts(config, features, path, needed, serving=True) if rows.num_rows)
        first = next(filled, None)
        if first is None:
            return
        accept(pa.schema([first.schema.field(name) for name in (first.schema.names if everything else reserved)]))
        learner, _ = _restored(config, features, workers, seq, device)
        wrapper = PredictWrapper(learner.model, columns=columns, device_type=device.type)
        for rows in itertools.chain([first], filled):
            predictions = wrapper(features.parse(rows, labels=False).to(device))
            kept = {name: rows.column(name) for name in (rows.schema.names if everything else reserved)}
            told = {COLUMN: as_texts(features, rows)} if explain else {}
            found = {name: _column(value) for name, value in predictions.items()}
            yield pa.RecordBatch.from_pydict(kept | found | told)
    finally:
        workers.close()


def _head(config: EasyRecConfig) -> tuple[Store, CommitLog, Commit]:
    store = open_store(config.model_dir, StoreOptions.from_proto(config.checkpoint_config.s3))
    log = CommitLog(store)
    head = log.head()
    if head is None:
        raise TrainerConfigError(f"{config.model_dir} holds no commit; train first")
    return store, log, head


def _restored(
    config: EasyRecConfig, features: FeatureSet, workers: Workers, seq: int | None, device: torch.device
) -> tuple[Learner, int]:
    store, log, head = _head(config)
    learner = create_learner(config, features, device=device)
    explain = partial(what_changed, store, features=features)
    resume(log, head.seq if seq is None else seq, learner, workers, seed=config.seed, explain=explain)
    with torch.no_grad():
        for name, average in learner.dense.averaged().items():
            learner.half.get_parameter(name).copy_(average)
    learner.wrapped.eval()
    return learner, head.seq if seq is None else seq


def _cuts(
    config: EasyRecConfig, features: FeatureSet, path: str, columns: list[str] | None, *, serving: bool = False
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches of the bounded input at `path`, and how many rows each left out; the end logs how many in all."""
    bounded = EasyRecConfig()
    bounded.CopyFrom(config)
    bounded.stream_config.stop_at_end = True
    bounded.data_config.drop_remainder = False
    size = config.data_config.eval_batch_size or config.data_config.batch_size
    options = FeedOptions.from_proto(bounded, columns=columns, batch_size=size)
    with naming_readers(readers(features)):
        source = open_source(bounded, path=path, columns=options.all_columns)
        feed = Feed(
            source,
            options,
            validate=lambda rows: features.validate(rows, serving=serving),
            progress=Progress(),
            keys=source.partitions(),
            clock=time.monotonic,
        )
    total, told = 0, ""
    try:
        while not feed.finished:
            cut = feed.next(1.0)
            if cut is not None:
                lost = sum(count.received - count.trained for count in cut.accounting.values())
                total += lost
                told = told or next((f"{one.key} {one.reason}: {one.detail}" for one in cut.dead), "")
                yield cut.rows, lost
    finally:
        feed.close()
        source.close()
        if total:
            logger.warning("rows left out=%d path=%s first=%s", total, path, told or "late, filtered or a duplicate")


def _column(value: torch.Tensor) -> pa.Array:
    """One prediction as a column: a list per row where it has more than one number."""
    array = value.numpy()
    if array.ndim == 1:
        return pa.array(array)
    return pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), array.shape[1])
