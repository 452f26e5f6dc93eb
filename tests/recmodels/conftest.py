"""A world of one rank, and small sharded embedding layers to test in it.

`lab` is of the host's kernels. A module whose tests tell of behaviour that every implementation has asks for `lab` of
three kinds: "host", "device" (the device's lookup on CPU tensors, fbgemm's writing operator emulated by zch/writer.py)
and "cuda".
"""

import importlib.util
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
import torch.distributed as dist
from google.protobuf import text_format
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor, KeyedTensor

from features import BASE, Batch, EmbeddingSpec, Feature, Side, ZchSpec
from protos.model_pb2 import ModelConfig
from recmodels.embedding_group import EmbeddingGroup
from recmodels.layout import Layout, create_layout
from recmodels.sharding import shard
from recmodels.tables import ShardedTables
from recmodels.zch.device_lookup import DeviceLookup
from recmodels.zch.host_lookup import HostLookup
from recmodels.zch.lookup import LookupFactory

Bags = Mapping[str, Sequence[Sequence[int]]]


def load_writer() -> ModuleType:
    """zch/writer.py, which lies in no package."""
    spec = importlib.util.spec_from_file_location("zch_writer", Path(__file__).parent / "zch" / "writer.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Writer = load_writer().Writer


@pytest.fixture(scope="module", autouse=True)
def world() -> Iterator[dist.ProcessGroup]:
    """A group of this process alone."""
    logging.getLogger("torchrec").setLevel(logging.ERROR)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, rank=0, world_size=1, store=dist.HashStore())
    yield dist.group.WORLD
    dist.destroy_process_group()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """TorchRec's own deprecations are not this suite's to fix."""
    with warnings.catch_warnings():
        for category in (DeprecationWarning, FutureWarning, UserWarning):
            warnings.filterwarnings("ignore", category=category, module="torch")
        yield


def id_feature(name: str, *, table: str = "", **embedding: object) -> Feature:
    """A multi-valued id feature, with a table of its own name unless another is given."""
    zch = embedding.get("zch")
    size = zch.size if isinstance(zch, ZchSpec) else 64
    settings: dict[str, object] = {"name": table or name, "num_embeddings": size, "dim": 4, **embedding}
    return Feature(
        name=name, kind="id", inputs=(name,), sides=(Side.USER,), is_sparse=True, value_dim=0,
        embedding=EmbeddingSpec(**settings),
    )  # fmt: skip


def dense_feature(name: str, dim: int = 1) -> Feature:
    return Feature(
        name=name, kind="raw", inputs=(name,), sides=(Side.ITEM,), is_sparse=False, value_dim=dim, dense_dim=dim
    )


def model_config(*groups: tuple[str, str, Sequence[str]]) -> ModelConfig:
    text = "".join(
        f"feature_groups {{ group_name: '{name}' group_type: {kind} "
        + "".join(f"feature_names: '{feature}' " for feature in features)
        + "} "
        for name, kind, features in groups
    )
    return text_format.Parse(text, ModelConfig())


def batch_of(bags: Bags, dense: Mapping[str, np.ndarray] | None = None, data_group: str = BASE) -> Batch:
    """A batch from lists of ids per feature and row."""
    lengths = [len(bag) for rows in bags.values() for bag in rows]
    values = [value for rows in bags.values() for bag in rows for value in bag]
    size = len(next(iter(bags.values())))
    kjt = KeyedJaggedTensor(
        keys=list(bags),
        values=torch.tensor(values, dtype=torch.int64),
        lengths=torch.tensor(lengths, dtype=torch.int32),
        stride=size,
    )
    held = {}
    if dense:
        columns = [torch.from_numpy(np.asarray(column, np.float32).reshape(size, -1)) for column in dense.values()]
        held[BASE] = KeyedTensor(list(dense), [c.shape[1] for c in columns], torch.cat(columns, 1))
    return Batch(size=size, sparse_features={data_group: kjt}, dense_features=held)


@dataclass(kw_only=True)
class Online:
    """A sharded embedding layer with its tables, trained towards larger sums."""

    dmp: DistributedModelParallel
    layout: Layout
    tables: ShardedTables
    device: torch.device

    def step(self, batch: Batch, ms: int = 0) -> dict[str, torch.Tensor]:
        """One training step whose gradient is 1, 2, 3, ... over each group's columns; returns what was read."""
        self.tables.set_event_time(ms)
        self.dmp.train()
        groups: dict[str, torch.Tensor] = self.dmp(batch.to(self.device))
        loss = sum((g * torch.arange(1.0, g.shape[1] + 1, device=g.device)).sum() for g in groups.values())
        loss.backward()
        self.tables.after_step()
        return {name: group.detach().cpu() for name, group in groups.items()}

    def read(self, batch: Batch) -> dict[str, torch.Tensor]:
        self.dmp.eval()
        with torch.no_grad():
            groups: dict[str, torch.Tensor] = self.dmp(batch.to(self.device))
        return {name: group.cpu() for name, group in groups.items()}

    def rows(self) -> dict[str, dict[int, tuple[np.ndarray, ...]]]:
        """The logical content by reading all memory: table → key → (weight, optimizer state ..., last seen)."""
        content: dict[str, dict[int, tuple[np.ndarray, ...]]] = {}
        for lookup in self.tables._lookups:
            for number, own in enumerate(lookup.book.shards):
                rows = np.arange(own.rows)
                keys, records = lookup.held(number, rows)
                columns = [*lookup.read_rows(number, rows).values(), records.get("last_seen_ms", np.zeros_like(rows))]
                held = content.setdefault(own.table.name, {})
                for row in np.flatnonzero(keys >= 0):
                    held[int(keys[row])] = tuple(column[row] for column in columns)
        return content


class Lab:
    """What tests build embedding layers from."""

    id_feature = staticmethod(id_feature)
    dense_feature = staticmethod(dense_feature)
    model_config = staticmethod(model_config)
    batch_of = staticmethod(batch_of)
    writer = Writer

    def __init__(self, world: dist.ProcessGroup, kind: str = "host") -> None:
        self._world = world
        self.kind = kind
        self.device = torch.device("cuda:0" if kind == "cuda" else "cpu")

    def of(self, kind: str) -> "Lab":
        return Lab(self._world, kind)

    def online(
        self,
        features: Sequence[Feature],
        *groups: tuple[str, str, Sequence[str]],
        optimizer: type[torch.optim.Optimizer] = RowWiseAdagrad,
        settings: Mapping[str, float] | None = None,
        seed: int = 0,
        lookup_of: LookupFactory | None = None,
    ) -> Online:
        """Sharded and trained by a fused optimizer; one DEEP group of all features unless groups are given."""
        if not groups:
            groups = (("deep", "DEEP", [feature.name for feature in features]),)
        layout = create_layout(features, model_config(*groups))
        group = EmbeddingGroup(features, layout, self.device, seed=seed)
        apply_optimizer_in_backward(optimizer, group.sparse_parameters(), dict(settings or {"lr": 0.1}))
        made: Mapping[str, LookupFactory] = {"host": HostLookup, "device": partial(DeviceLookup, operator=Writer())}
        dmp = shard(
            group, layout, process_group=self._world, device=self.device, lookup_of=lookup_of or made.get(self.kind)
        )
        return Online(dmp=dmp, layout=layout, tables=ShardedTables.of(dmp, layout), device=self.device)


@pytest.fixture
def lab(world: dist.ProcessGroup, request: pytest.FixtureRequest) -> Lab:
    kind = getattr(request, "param", "host")
    if kind == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device: the tables of a GPU have run on CPU tensors only")
    return Lab(world, kind)
