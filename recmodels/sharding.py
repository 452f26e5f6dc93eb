"""Lay a model's tables out over the ranks: the planner, its constraints, and DistributedModelParallel."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints, PlannerError
from torchrec.distributed.types import ModuleSharder, ShardingEnv, ShardingPlan

from recmodels.errors import ShardingError
from recmodels.layout import Layout, TableSpec
from recmodels.zch.arena import bucket_count
from recmodels.zch.collection import TrackedSharder
from recmodels.zch.host_lookup import HostLookup
from recmodels.zch.lookup import LookupFactory

_SUPPORTED = ("table_wise", "row_wise")
_RESERVED = 0.15
_CUDA_DIM = 1024


def sharders(lookup_of: LookupFactory) -> list[ModuleSharder[Any]]:
    """The sharders of every collection that an EmbeddingGroup holds."""
    return [TrackedSharder(lookup_of)]


def lookup_for(device: torch.device) -> LookupFactory:
    """What looks rows up on a device."""
    if device.type == "cpu":
        return HostLookup
    if device.type != "cuda":
        raise ShardingError(f"tables cannot be on {device.type}: train on cpu or cuda")
    if not torch.cuda.is_available():
        raise ShardingError(
            "tables cannot be on cuda: PyTorch finds no such device; install the CUDA builds of torch and fbgemm-gpu "
            "(README), or train on cpu"
        )
    # Importing TorchRec's module takes time, and is of use on a GPU only.
    from recmodels.zch.device_lookup import DeviceLookup  # noqa: PLC0415

    return DeviceLookup


def refuse_on_cuda(layout: Layout) -> None:
    """ShardingError for what fbgemm's CUDA kernels would get wrong without a word."""
    for table in layout.tables:
        if table.dim > _CUDA_DIM:
            raise ShardingError(
                f"table {table.name!r}: dimension {table.dim} is more than the {_CUDA_DIM} that fbgemm's fused CUDA "
                "kernels compute right; make it smaller, or train on cpu"
            )


def constraints(
    layout: Layout, world_size: int, global_sharding_types: Sequence[str] = ()
) -> dict[str, ParameterConstraints]:
    """What the planner may choose per table; ShardingError when that is nothing."""
    return {
        table.name: ParameterConstraints(
            sharding_types=_choices(table, world_size, global_sharding_types), compute_kernels=["fused"]
        )
        for table in layout.tables
    }


def _choices(table: TableSpec, world_size: int, global_sharding_types: Sequence[str]) -> list[str]:
    if table.zch is not None:
        buckets = bucket_count(table.zch)
        if buckets % world_size:
            raise ShardingError(
                f"table {table.name!r}: {buckets} buckets do not divide over {world_size} ranks; "
                f"set zch buckets to a multiple of {world_size}"
            )
        # Hashed tables are split by bucket; with one rank a table-wise plan saves TorchRec's bucketize.
        return ["row_wise" if world_size > 1 else "table_wise"]
    if table.compute_kernels and "fused" not in table.compute_kernels:
        raise ShardingError(
            f"table {table.name!r}: compute_kernels {', '.join(table.compute_kernels)} are not trained here; add fused"
        )
    wanted = table.sharding_types or tuple(global_sharding_types) or _SUPPORTED
    usable = [
        kind for kind in _SUPPORTED if kind in wanted and (kind == "table_wise" or table.num_embeddings >= world_size)
    ]
    if not usable:
        raise ShardingError(
            f"table {table.name!r}: sharding_types {', '.join(wanted)} are not supported; use {' or '.join(_SUPPORTED)}"
        )
    return usable if world_size > 1 else ["table_wise"]


def planner_for(
    layout: Layout,
    world_size: int,
    device_type: str,
    device_bytes: int | None = None,
    global_sharding_types: Sequence[str] = (),
) -> EmbeddingShardingPlanner:
    """TorchRec's planner for ranks of one machine, each with a device of so much memory; None: the planner's guess."""
    return EmbeddingShardingPlanner(
        topology=Topology(
            world_size=world_size, local_world_size=world_size, compute_device=device_type, hbm_cap=device_bytes
        ),
        constraints=constraints(layout, world_size, global_sharding_types),
        # The default reservation guesses the dense part's size, and warns that it does so badly.
        storage_reservation=FixedPercentageStorageReservation(percentage=_RESERVED),
    )


def shard(
    model: nn.Module,
    layout: Layout,
    *,
    process_group: dist.ProcessGroup,
    device: torch.device,
    global_sharding_types: Sequence[str] = (),
    lookup_of: LookupFactory | None = None,
) -> DistributedModelParallel:
    """Plan on rank 0 and wrap; call `apply_optimizer_in_backward` on the model's tables before.

    Rows are looked up by what fits the device, unless `lookup_of` makes something else.
    """
    chosen = sharders(lookup_of or lookup_for(device))
    device_bytes = None
    if device.type == "cuda":
        refuse_on_cuda(layout)
        device_bytes = torch.cuda.get_device_properties(device).total_memory
    world_size = dist.get_world_size(process_group)
    planner = planner_for(layout, world_size, device.type, device_bytes, global_sharding_types)
    plan = _plan_on_rank_0(planner, model, chosen, process_group)
    env = ShardingEnv.from_process_group(process_group)
    return DistributedModelParallel(model, env=env, device=device, plan=plan, sharders=chosen)


def _plan_on_rank_0(
    planner: EmbeddingShardingPlanner,
    model: nn.Module,
    chosen: list[ModuleSharder[Any]],
    process_group: dist.ProcessGroup,
) -> ShardingPlan:
    """The planner's own collective leaves the other ranks waiting when it fails; here they all learn why."""
    found: list[str | ShardingPlan | None] = ["", None]
    if dist.get_rank(process_group) == 0:
        try:
            found[1] = planner.plan(model, chosen)
        except PlannerError as error:
            found[0] = str(error)
    dist.broadcast_object_list(found, src=dist.get_global_rank(process_group, 0), group=process_group)
    if found[0]:
        raise ShardingError(
            f"the tables cannot be laid out over {dist.get_world_size(process_group)} ranks: {found[0]}"
        )
    return found[1]
