"""What learns: the model behind DistributedModelParallel, its tables, its optimizers and its progressive metrics."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.optim import Optimizer
from torchrec.distributed.model_parallel import DistributedModelParallel

from checkpointer.faults import NO_FAULTS, FaultPoints
from features import Batch, FeatureSet
from protos.pipeline_pb2 import EasyRecConfig
from recmodels.base_model import BaseModel
from recmodels.clipping import Clipping, clip_gradients
from recmodels.embedding_group import EmbeddingGroup
from recmodels.layout import Layout
from recmodels.metrics import ProgressiveMetrics
from recmodels.observe import observe, progressive_metrics
from recmodels.optimizers import DenseOptimizer, SparseOptimizer, dense_optimizer, sparse_optimizer
from recmodels.registry import create_model
from recmodels.scaling import create_scaler, unscale_rows
from recmodels.sharding import shard
from recmodels.tables import ShardedTables
from recmodels.wrappers import DenseHalf, TrainOutput, TrainWrapper
from trainer.errors import DivergedError

METRICS, TRAIN_METRICS, QUORUM = "metrics/", "train_metrics/", "marks/quorum_ms"


@dataclass(frozen=True, kw_only=True, slots=True)
class Learner:
    """One rank's share of the model. `half` is its dense half, `empty` the batch of a rank without rows."""

    model: BaseModel
    wrapped: DistributedModelParallel
    half: DenseHalf
    layout: Layout
    tables: ShardedTables
    sparse: SparseOptimizer
    fused: Optimizer
    dense: DenseOptimizer
    clipping: Clipping
    metrics: ProgressiveMetrics
    empty: Batch
    device: torch.device
    digest: str
    faults: FaultPoints = NO_FAULTS

    def step(
        self,
        batch: Batch,
        *,
        scale: float,
        event_time_ms: int,
        host: Batch | None = None,
        watch: Callable[[], None] | None = None,
    ) -> Tensor:
        """Learn from one batch and return its loss; `watch` is called when the gradients are there.

        1. forward  2. backward, which updates the rows  3. dense update  4. reserved rows  5. metrics, from the
        predictions made before the update. `batch` is on the device; `host` is the same batch in the CPU's memory.
        """
        self.tables.set_event_time(event_time_ms)
        by_epoch = self.sparse.schedule.by_epoch
        self.sparse.set_rate(self.fused, self.dense.epochs if by_epoch else self.dense.batches)
        output: TrainOutput = self.wrapped(batch)
        total, (_, predictions, _) = output
        # On their way before the loss is waited for, the predictions need no wait of their own.
        predictions = {name: value.to("cpu", non_blocking=True) for name, value in predictions.items()}
        if batch.size and not bool(torch.isfinite(total)):
            raise DivergedError(
                f"the loss is {total.item()}, nothing of this step was learnt: lower the learning rates or clip "
                "gradients, and go on from a commit before it diverged with headrace log revert MODEL_DIR SEQ"
            )
        self.dense.begin()
        torch.autograd.backward(self.dense.scaled(total * scale))
        self.faults.reached("train.rows_updated")
        if watch is not None:
            watch()
        if self.dense.count():
            clip_gradients(self.half.parameters(), self.clipping)
            self.dense.step()
        self.tables.after_step()
        self.faults.reached("train.dense_updated")
        observe(self.metrics, self.model, predictions, host or batch)
        return total.detach()


def create_learner(
    config: EasyRecConfig, features: FeatureSet, *, device: torch.device, faults: FaultPoints = NO_FAULTS
) -> Learner:
    """Build, shard and wire the model of `config`; the process group exists."""
    train = config.train_config
    precision = _precision(train.mixed_precision, device)
    scaler = create_scaler(train.grad_scaler, mixed_precision=precision, device_type=device.type)
    # Shards have memory of their own, where rows are drawn: whole tables beside them would be too much for a GPU.
    model = create_model(config, features, device=torch.device("meta"))
    sparse = sparse_optimizer(train.sparse_optimizer)
    group = model.embedding_group
    if not isinstance(group, EmbeddingGroup):
        raise TypeError(f"a model that trains has an EmbeddingGroup, got {type(group).__name__}")
    layout = group.layout
    sparse.attach(group.sparse_parameters())
    unscale_rows(group, scaler)
    # Drawn on the CPU, so that a model begins alike on every device.
    half = DenseHalf(model).to(device)
    world = dist.group.WORLD
    if world is None:
        raise RuntimeError("the process group does not exist; create Workers first")
    wrapped = shard(
        TrainWrapper(model, mixed_precision=precision, device_type=device.type),
        layout,
        process_group=world,
        device=device,
        global_sharding_types=tuple(train.global_embedding_constraints.sharding_types),
    )
    return Learner(
        model=model,
        wrapped=wrapped,
        half=half,
        layout=layout,
        tables=ShardedTables.of(wrapped, layout),
        sparse=sparse,
        fused=wrapped.fused_optimizer,
        dense=dense_optimizer(
            train.dense_optimizer, half.named_parameters(), train.gradient_accumulation_steps, scaler
        ),
        clipping=Clipping.from_proto(train.grad_clipping),
        metrics=progressive_metrics(model),
        empty=features.empty().to(device),
        device=device,
        digest=features.digest(),
        faults=faults,
    )


def _precision(wanted: str, device: torch.device) -> str:
    """What the forward pass computes in: FP16 on CUDA only, BF16 anywhere (protos/dispositions.tsv)."""
    return "" if wanted == "FP16" and device.type == "cpu" else wanted


def metric_arrays(learner: Learner, rank: int, progressive: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Name one rank's metric state for a commit: the progressive one, and the decaying ones of training."""
    named = {f"{METRICS}{rank}/{name}": value for name, value in progressive.items()}
    return named | {
        f"{TRAIN_METRICS}{rank}/{name}": value for name, value in learner.model.train_metric_state().items()
    }
