"""What the planner may choose, and what is refused on every rank before it is asked."""

from typing import Any

import pytest
import torch
import torch.distributed as dist

from features import ZchSpec
from recmodels.embedding_group import EmbeddingGroup
from recmodels.errors import ShardingError
from recmodels.layout import Layout, create_layout
from recmodels.sharding import constraints, planner_for, refuse_on_cuda, shard, sharders
from recmodels.zch.arena import bucket_count
from recmodels.zch.host_lookup import HostLookup


def layout_of(lab: Any, **embedding: Any) -> Layout:
    return create_layout([lab.id_feature("a", **embedding)], lab.model_config(("g", "DEEP", ["a"])))


def choices(layout: Layout, world_size: int, *global_types: str) -> list[str]:
    return list(constraints(layout, world_size, global_types)["a"].sharding_types)


def test_hashed_tables_are_split_by_bucket_and_others_as_the_planner_likes(lab: Any) -> None:
    hashed, direct = layout_of(lab, zch=ZchSpec(size=128)), layout_of(lab)
    assert (choices(hashed, 1), choices(hashed, 2)) == (["table_wise"], ["row_wise"])
    assert (choices(direct, 1), choices(direct, 2)) == (["table_wise"], ["table_wise", "row_wise"])


def test_a_tables_own_constraint_wins_over_the_global_one(lab: Any) -> None:
    assert choices(layout_of(lab), 2, "row_wise") == ["row_wise"]
    assert choices(layout_of(lab, sharding_types=("table_wise",)), 2, "row_wise") == ["table_wise"]


@pytest.mark.parametrize(
    ("embedding", "message"),
    [
        ({"sharding_types": ("column_wise",)}, "column_wise are not supported; use table_wise or row_wise"),
        ({"compute_kernels": ("dense",)}, "compute_kernels dense are not trained here"),
        ({"zch": ZchSpec(size=64, buckets=1)}, "1 buckets do not divide over 2 ranks"),
        ({"zch": ZchSpec(size=100, buckets=8)}, "zch_size 100 does not divide into 8 buckets"),
        ({"num_embeddings": 1, "sharding_types": ("row_wise",)}, "row_wise are not supported"),
    ],
)
def test_a_table_that_cannot_be_laid_out_is_refused(lab: Any, embedding: dict[str, Any], message: str) -> None:
    with pytest.raises(ShardingError, match=message):
        constraints(layout_of(lab, **embedding), 2)


@pytest.mark.parametrize(("size", "buckets"), [(100_000, 32), (1024, 32), (1000, 8), (64, 2), (63, 1), (999, 1)])
def test_buckets_follow_from_the_size_when_none_are_named(size: int, buckets: int) -> None:
    assert bucket_count(ZchSpec(size=size)) == buckets


def test_other_devices_are_refused(lab: Any, world: dist.ProcessGroup) -> None:
    layout = layout_of(lab)
    group = EmbeddingGroup([lab.id_feature("a")], layout, torch.device("cpu"))
    with pytest.raises(ShardingError, match="tables cannot be on meta: train on cpu or cuda"):
        shard(group, layout, process_group=world, device=torch.device("meta"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="tells of a machine without a GPU")
def test_cuda_is_refused_where_there_is_none(lab: Any, world: dist.ProcessGroup) -> None:
    layout = layout_of(lab)
    group = EmbeddingGroup([lab.id_feature("a")], layout, torch.device("cpu"))
    with pytest.raises(ShardingError, match="PyTorch finds no such device"):
        shard(group, layout, process_group=world, device=torch.device("cuda"))


@pytest.mark.parametrize(("world_size", "kind"), [(1, "table_wise"), (2, "row_wise")])
def test_tables_of_a_gpu_are_planned_onto_it_for_fused_kernels(lab: Any, world_size: int, kind: str) -> None:
    layout = layout_of(lab, zch=ZchSpec(size=64, buckets=2))
    group = EmbeddingGroup([lab.id_feature("a", zch=ZchSpec(size=64, buckets=2))], layout, torch.device("cpu"))
    plan = planner_for(layout, world_size, "cuda", 8 << 30).plan(group, sharders(HostLookup))
    (found,) = plan.plan["collections.BASE"].values()
    assert (found.sharding_type, found.compute_kernel, found.ranks) == (kind, "fused", list(range(world_size)))
    placements = [str(part.placement) for part in found.sharding_spec.shards]
    assert placements == [f"rank:{rank}/cuda:{rank}" for rank in range(world_size)]


def test_dimensions_that_fused_cuda_kernels_get_wrong_are_refused(lab: Any) -> None:
    refuse_on_cuda(layout_of(lab, dim=1024))
    with pytest.raises(ShardingError, match="dimension 1028 is more than the 1024"):
        refuse_on_cuda(layout_of(lab, dim=1028))
