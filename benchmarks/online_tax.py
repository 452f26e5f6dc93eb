"""What online learning costs inside a step: tracked direct tables, ZCH, and ZCH with sealing, over plain TorchRec DMP.

The model is DeepFM on 26 sparse features × dim 16 (100,000 rows each, ids Zipf 1.2) and 13 dense ones, MLP 512-256-128,
batch 4096, fused row-wise Adagrad. The variants take turns, step by step, in one process.
"""

import logging
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._C._distributed_c10d import HashStore

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder  # noqa: E402
from torchrec.distributed.model_parallel import DistributedModelParallel  # noqa: E402
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology  # noqa: E402
from torchrec.distributed.types import ShardingEnv  # noqa: E402
from torchrec.modules.embedding_configs import EmbeddingBagConfig  # noqa: E402
from torchrec.modules.embedding_modules import EmbeddingBagCollection  # noqa: E402
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward  # noqa: E402
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad  # noqa: E402
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor, KeyedTensor  # noqa: E402

from benchmarks.figure import Figure, load, run_script  # noqa: E402
from features import BASE, Batch, EmbeddingSpec, Feature, Side, ZchSpec  # noqa: E402
from protos.model_pb2 import ModelConfig  # noqa: E402
from recmodels.embedding_group import EmbeddingGroup  # noqa: E402
from recmodels.layout import create_layout  # noqa: E402
from recmodels.sharding import shard  # noqa: E402
from recmodels.tables import ShardedTables  # noqa: E402

SPARSE, DENSE, DIM, ROWS, BATCH = 26, 13, 16, 100_000, 4096
# Steps per commit: 0.5 s at 70 ms a step.
SEAL_EVERY, GOAL = 7, 1.05
DEVICE = torch.device("cpu")


class DeepFM(nn.Module):
    """The same dense part for every variant; `sparse` gives (B, 26 × 16)."""

    def __init__(self, sparse: nn.Module) -> None:
        super().__init__()
        self.sparse = sparse
        widths = [SPARSE * DIM + DENSE, 512, 256, 128]
        layers = [m for a, b in zip(widths, widths[1:], strict=False) for m in (nn.Linear(a, b), nn.ReLU())]
        self.mlp = nn.Sequential(*layers)
        self.dense_in = nn.Linear(DENSE, DIM)
        self.out = nn.Linear(128 + 1, 1)

    def forward(self, batch: Batch) -> Tensor:
        flat, dense = self.sparse(batch), batch.dense_features[BASE].values()
        fields = torch.cat([flat, self.dense_in(dense)], 1).view(len(dense), -1, DIM)
        pairs = 0.5 * (fields.sum(1).square() - fields.square().sum(1)).sum(1, keepdim=True)
        logits = self.out(torch.cat([self.mlp(torch.cat([flat, dense], 1)), pairs], 1)).squeeze(1)
        loss: Tensor = nn.functional.binary_cross_entropy_with_logits(logits, batch.labels["label"])
        return loss


class Plain(nn.Module):
    """TorchRec's own collection, its ids bounded to rows."""

    def __init__(self) -> None:
        super().__init__()
        self.collection = EmbeddingBagCollection(
            tables=[
                EmbeddingBagConfig(name=f"t{n}", num_embeddings=ROWS, embedding_dim=DIM, feature_names=[f"f{n}"])
                for n in range(SPARSE)
            ],
            device=DEVICE,
        )

    def forward(self, batch: Batch) -> Tensor:
        pooled: Tensor = self.collection(batch.sparse_features[BASE]).values()
        return pooled


class Grouped(nn.Module):
    """Our embedding layer with one group."""

    def __init__(self, group: EmbeddingGroup) -> None:
        super().__init__()
        self.group = group

    def forward(self, batch: Batch) -> Tensor:
        deep: Tensor = self.group(batch)["deep"]
        return deep


@dataclass(kw_only=True)
class Variant:
    """A model to time, and what its step does besides."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    tables: ShardedTables | None
    batches: Sequence[Batch]
    seal_every: int = 0
    steps: int = 0
    ms: list[float] = field(default_factory=list)
    seal_ms: list[float] = field(default_factory=list)
    sealed_rows: list[int] = field(default_factory=list)

    def step(self, clock: Callable[[], float]) -> None:
        batch = self.batches[self.steps % len(self.batches)]
        began = clock()
        if self.tables is not None:
            self.tables.set_event_time(self.steps)
        self.optimizer.zero_grad()
        self.model(batch).backward()
        self.optimizer.step()
        self.steps += 1
        if self.tables is not None:
            self.tables.after_step()
            if self.seal_every and self.steps % self.seal_every == 0:
                self._seal(self.tables, clock)
        self.ms.append(1e3 * (clock() - began))

    def _seal(self, tables: ShardedTables, clock: Callable[[], float]) -> None:
        began = clock()
        rows = tables.seal()
        self.seal_ms.append(1e3 * (clock() - began))
        tables.confirm()
        self.sealed_rows.append(sum(len(part) for part in rows))


def make_batches(count: int, seed: int, *, bounded: bool) -> list[Batch]:
    """Zipf 1.2 over 100,000 ids: permuted rows when bounded, as popularity is never in row order, else 62-bit ids."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(ROWS).astype(np.int64)
    weights = 1.0 / np.arange(1, ROWS + 1) ** 1.2
    cumulative = np.cumsum(weights / weights.sum())
    batches = []
    for _ in range(count):
        ids = order[np.minimum(np.searchsorted(cumulative, rng.random(SPARSE * BATCH)), ROWS - 1)]
        if not bounded:
            ids = ((ids + 1) * np.int64(0x1E3779B97F4A7C15)) & np.int64(2**62 - 1)
        kjt = KeyedJaggedTensor(
            keys=[f"f{n}" for n in range(SPARSE)],
            values=torch.from_numpy(ids),
            lengths=torch.ones(SPARSE * BATCH, dtype=torch.int32),
            stride=BATCH,
        )
        dense = torch.from_numpy(rng.standard_normal((BATCH, DENSE), dtype=np.float32))
        label = torch.from_numpy(rng.integers(0, 2, BATCH).astype(np.float32))
        batches.append(
            Batch(
                size=BATCH,
                sparse_features={BASE: kjt},
                dense_features={BASE: KeyedTensor([f"d{n}" for n in range(DENSE)], [1] * DENSE, dense)},
                labels={"label": label},
            )
        )
    return batches


def plain(batches: Sequence[Batch]) -> Variant:
    model = DeepFM(Plain())
    apply_optimizer_in_backward(RowWiseAdagrad, model.sparse.parameters(), {"lr": 0.02})
    planner = EmbeddingShardingPlanner(topology=Topology(world_size=1, local_world_size=1, compute_device="cpu"))
    sharders = [EmbeddingBagCollectionSharder(fused_params={})]
    plan = planner.plan(model, sharders)
    env = ShardingEnv.from_process_group(world())
    dmp = DistributedModelParallel(model, env=env, device=DEVICE, plan=plan, sharders=sharders)
    return Variant(model=dmp, optimizer=dense_optimizer(dmp), tables=None, batches=batches)


def ours(batches: Sequence[Batch], *, zch: bool, seal_every: int) -> Variant:
    features = [
        Feature(
            name=f"f{n}", kind="id", inputs=(f"f{n}",), sides=(Side.USER,), is_sparse=True, value_dim=1,
            embedding=EmbeddingSpec(
                name=f"t{n}", num_embeddings=ROWS, dim=DIM, zch=ZchSpec(size=ROWS) if zch else None
            ),
        )
        for n in range(SPARSE)
    ]  # fmt: skip
    config = ModelConfig()
    config.feature_groups.add(group_name="deep", feature_names=[f.name for f in features], group_type=0)
    layout = create_layout(features, config)
    group = EmbeddingGroup(features, layout, DEVICE)
    apply_optimizer_in_backward(RowWiseAdagrad, group.sparse_parameters(), {"lr": 0.02})
    dmp = shard(DeepFM(Grouped(group)), layout, process_group=world(), device=DEVICE)
    tables = ShardedTables.of(dmp, layout)
    tables.seal()
    tables.confirm()
    return Variant(model=dmp, optimizer=dense_optimizer(dmp), tables=tables, batches=batches, seal_every=seal_every)


def world() -> dist.ProcessGroup:
    """The group of this process alone."""
    group = dist.group.WORLD
    if group is None:
        raise RuntimeError("there is no process group yet")
    return group


def dense_optimizer(dmp: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam([p for name, p in dmp.named_parameters() if "collection" not in name], lr=1e-3)


def measure(quick: bool) -> list[Figure]:
    """Step in turns; a commit's cycle of ours over the same number of plain steps, the median of all cycles."""
    warm_up, cycles = (1, 1) if quick else (20, 12)
    dist.init_process_group("gloo", rank=0, world_size=1, store=HashStore())
    torch.manual_seed(0)
    rows, raw = make_batches(30, 1, bounded=True), make_batches(30, 1, bounded=False)
    variants = {
        "plain": plain(rows),
        "tracked": ours(rows, zch=False, seal_every=0),
        "zch": ours(raw, zch=True, seal_every=0),
        "zch_sealed": ours(raw, zch=True, seal_every=SEAL_EVERY),
    }
    for _ in range(warm_up + cycles * SEAL_EVERY):
        for variant in variants.values():
            variant.step(time.perf_counter)
    dist.destroy_process_group()
    taken = {
        name: np.array(variant.ms[warm_up:]).reshape(cycles, SEAL_EVERY).mean(1) for name, variant in variants.items()
    }
    ratios = {name: float(np.median(ms / taken["plain"])) for name, ms in taken.items()}
    sealed = variants["zch_sealed"]
    return [
        Figure(
            name="online_tax",
            value=float(np.median(taken["zch_sealed"])),
            unit="ms a step",
            floor_or_peer=float(np.median(taken["plain"])),
            ratio=ratios["zch_sealed"],
            goal=f"ratio <= {GOAL}",
            meets=ratios["zch_sealed"] <= GOAL,
            note=f"touched rows alone {ratios['tracked']:.3f}, with ZCH {ratios['zch']:.3f}; a seal of "
            f"{statistics.fmean(sealed.sealed_rows):.0f} rows every {SEAL_EVERY} steps takes "
            f"{statistics.fmean(sealed.seal_ms):.1f} ms; medians of {cycles} cycles; {load()}",
        )
    ]


if __name__ == "__main__":
    sys.exit(run_script(sys.argv[1:], __doc__, measure))
