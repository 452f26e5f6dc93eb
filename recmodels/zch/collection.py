"""A pooled collection whose sharded form remaps ids, marks changed rows and draws fresh ones before it looks up."""

# ruff: noqa: SLF001  (TorchRec keeps its lookups, shardings and fused kernels private)

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torchrec.distributed.embedding_types import KJTList
from torchrec.distributed.embeddingbag import (
    EmbeddingBagCollectionContext,
    EmbeddingBagCollectionSharder,
    ShardedEmbeddingBagCollection,
)
from torchrec.distributed.sharding.rw_sharding import RwSparseFeaturesDist
from torchrec.distributed.types import Awaitable, LazyAwaitable, ParameterSharding, ShardingEnv
from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig, PoolingType
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor, KeyedTensor

from recmodels.errors import LayoutError, ModelConfigError
from recmodels.initializers import draw_rows, table_key
from recmodels.layout import TableSpec
from recmodels.zch.arena import Shard, bucket_count
from recmodels.zch.lookup import LookupFactory
from recmodels.zch.output import RowWiseOutput

_POOLING = {"sum": PoolingType.SUM, "mean": PoolingType.MEAN}
_DATA_TYPES = {"FP32": DataType.FP32, "FP16": DataType.FP16}


def _draw(spec: TableSpec, seed: int, weight: torch.Tensor) -> None:
    """The rows of a whole table, which has none yet when it is hashed."""
    with torch.no_grad():
        if spec.zch is None and not weight.is_meta:
            rows = draw_rows(spec.init, table_key(seed, spec.name), np.arange(len(weight)), spec.dim)
            weight.copy_(torch.from_numpy(rows))


def _refuse_names(specs: Sequence[TableSpec]) -> None:
    """TorchRec makes attributes of table names."""
    for spec in specs:
        if "." in spec.name or hasattr(nn.ModuleDict(), spec.name):
            raise LayoutError(
                f"table {spec.name!r} of feature {spec.features[0]!r} cannot be named so: PyTorch has dots, and words "
                "such as 'items' and 'keys', for itself; give the feature another embedding_name"
            )


class TrackedCollection(EmbeddingBagCollection):  # type: ignore[misc]
    """Tables by their specs. Hashed tables work only once sharded: `forward` before that is refused.

    Rows are drawn as a function of (seed, table, id) (initializers.py), here and, shard by shard, once sharded.
    """

    def __init__(self, specs: Sequence[TableSpec], *, seed: int, device: torch.device) -> None:
        _refuse_names(specs)
        tables = [
            EmbeddingBagConfig(
                name=spec.name,
                num_embeddings=spec.num_embeddings,
                embedding_dim=spec.dim,
                feature_names=list(spec.features),
                # The fused CPU kernel does not divide the gradient of a weighted mean: ours is a sum, divided outside.
                pooling=_POOLING["sum" if spec.weighted else spec.pooling],
                data_type=_DATA_TYPES[spec.data_type],
                # TorchRec calls this for shards too, without saying which; rows are drawn below and in lookups.
                init_fn=nn.init.zeros_,
            )
            for spec in specs
        ]
        super().__init__(tables=tables, is_weighted=specs[0].weighted, device=device)
        for spec in specs:
            _draw(spec, seed, self.embedding_bags[spec.name].weight)
        self.specs = tuple(specs)
        self.seed = seed

    def forward(self, features: KeyedJaggedTensor) -> KeyedTensor:
        ours = [spec.name for spec in self.specs if spec.zch is not None or (spec.weighted and spec.pooling == "mean")]
        if ours:
            raise ModelConfigError(
                f"zero-collision and weighted mean tables ({', '.join(ours)}) work only behind "
                "DistributedModelParallel: call recmodels.sharding.shard first, also with one rank"
            )
        return super().forward(features)


class ShardedTrackedCollection(ShardedEmbeddingBagCollection):  # type: ignore[misc]
    """TorchRec's sharded collection, with raw ids up to the owner of their bucket and rows from there on."""

    def __init__(
        self,
        module: TrackedCollection,
        table_name_to_parameter_sharding: dict[str, ParameterSharding],
        env: ShardingEnv,
        lookup_of: LookupFactory,
        **settings: Any,
    ) -> None:
        super().__init__(module, table_name_to_parameter_sharding, env=env, **settings)
        specs = {spec.name: spec for spec in module.specs}
        self.lookups = tuple(lookup_of(_shards(lookup, specs, env), lookup, module.seed) for lookup in self._lookups)
        self._specs = specs
        self._world_size = env.world_size
        # TorchRec divides all features by their length (plus 1e-6) or weight as soon as one row-wise table is averaged.
        self._has_mean_pooling_callback = False
        self._averaged = self._divided_outputs()
        self._widths = torch.tensor(self._embedding_dims, device=self._device)
        self._has_uninitialized_input_dist: bool = True

    def _create_input_dist(self, input_feature_names: list[str]) -> None:
        super()._create_input_dist(input_feature_names)
        for at, (kind, sharding) in enumerate(zip(self._sharding_types, self._embedding_shardings, strict=True)):
            if kind == "row_wise":
                self._input_dists[at] = self._route_by_bucket(sharding)

    def _create_output_dist(self) -> None:
        super()._create_output_dist()
        for at, (kind, sharding) in enumerate(zip(self._sharding_types, self._embedding_shardings, strict=True)):
            if kind == "row_wise" and sharding._pg._get_backend(self._device).name() == "gloo":
                self._output_dists[at] = RowWiseOutput(sharding._pg)

    def _route_by_bucket(self, sharding: Any) -> nn.Module:
        """An input dist that keeps ids as they are and sends those of hashed tables to the owner of their bucket."""
        sizes: list[int] = []
        buckets: list[int] = []
        for table in sharding.embedding_tables():
            zch = self._specs[table.name].zch
            # A size of 0 makes TorchRec route by id % buckets instead of by id // block.
            sizes += [0 if zch is not None else table.num_embeddings] * table.num_features()
            buckets += [self._world_size if zch is None else bucket_count(zch)] * table.num_features()
        router: nn.Module = RwSparseFeaturesDist(
            pg=sharding._pg,
            num_features=sharding._get_num_features(),
            feature_hash_sizes=sizes,
            feature_total_num_buckets=buckets,
            device=self._device,
            has_feature_processor=sharding._has_feature_processor,
            need_pos=sharding._need_pos,
            keep_original_indices=True,
        )
        return router

    def input_dist(
        self, ctx: EmbeddingBagCollectionContext, features: KeyedJaggedTensor
    ) -> Awaitable[Awaitable[KJTList]]:
        if self._has_uninitialized_input_dist:
            # TorchRec's own first-batch check takes raw ids for rows and would warn about every hashed table.
            self._create_input_dist(features.keys())
            self._has_uninitialized_input_dist = False
        if self._averaged:
            ctx.divisor = self._divisor(features)
        return super().input_dist(ctx, features)

    def compute(self, ctx: EmbeddingBagCollectionContext, dist_input: KJTList) -> list[torch.Tensor]:
        return list(super().compute(ctx, self._remap(dist_input)))

    def output_dist(self, ctx: EmbeddingBagCollectionContext, output: list[torch.Tensor]) -> LazyAwaitable[KeyedTensor]:
        return self._averaging(ctx, super().output_dist(ctx, output))

    def compute_and_output_dist(self, ctx: EmbeddingBagCollectionContext, input: KJTList) -> LazyAwaitable[KeyedTensor]:
        return self._averaging(ctx, super().compute_and_output_dist(ctx, self._remap(input)))

    def _averaging(
        self, ctx: EmbeddingBagCollectionContext, awaitable: LazyAwaitable[KeyedTensor]
    ) -> LazyAwaitable[KeyedTensor]:
        if self._averaged:
            awaitable.callbacks.append(partial(_divide, divisor=ctx.divisor))
        return awaitable

    def _divided_outputs(self) -> tuple[str | None, ...]:
        """Per output, the feature by whose length its sum is divided here; empty when TorchRec divides all."""
        tables = {
            name: table
            for kind, sharding in zip(self._sharding_types, self._embedding_shardings, strict=True)
            for table in sharding.embedding_tables()
            if self._specs[table.name].pooling == "mean" and (kind == "row_wise" or self._is_weighted)
            for name in table.embedding_names
        }
        if not tables:
            return ()
        return tuple(name.split("@")[0] if name in tables else None for name in self._embedding_names)

    def _divisor(self, features: KeyedJaggedTensor) -> torch.Tensor:
        """(B, Σ dims): how many ids each averaged output has, at least 1; 1 for the others."""
        lengths = features.lengths().view(len(features.keys()), -1).clamp(min=1)
        ones = torch.ones_like(lengths[0])
        at = {key: number for number, key in enumerate(features.keys())}
        counts = torch.stack([ones if name is None else lengths[at[name]] for name in self._averaged], dim=1)
        return counts.float().repeat_interleave(self._widths, dim=1, output_size=sum(self._embedding_dims))

    def _remap(self, features: KJTList) -> KJTList:
        write = self.training and torch.is_grad_enabled()
        remapped = [lookup.remap(jagged, write=write) for lookup, jagged in zip(self.lookups, features, strict=True)]
        return KJTList(remapped)


def _divide(pooled: KeyedTensor, divisor: torch.Tensor) -> KeyedTensor:
    return KeyedTensor(
        keys=pooled.keys(), length_per_key=pooled.length_per_key(), values=pooled.values() / divisor, key_dim=1
    )


def _shards(lookup: Any, specs: dict[str, TableSpec], env: ShardingEnv) -> tuple[Shard, ...]:
    tables = [table for module in lookup._emb_modules for table in module._config.embedding_tables]
    return tuple(
        Shard(
            table=specs[table.name],
            number=0 if table.local_rows == table.num_embeddings else env.rank,
            first_row=table.local_metadata.shard_offsets[0],
            rows=table.local_rows,
        )
        for table in tables
    )


class TrackedSharder(EmbeddingBagCollectionSharder):  # type: ignore[misc]
    """Shards `TrackedCollection`s; offers row-wise beside TorchRec's own choices, which leave it out on CPU."""

    def __init__(self, lookup_of: LookupFactory) -> None:
        super().__init__(fused_params={})
        self._lookup_of = lookup_of

    def shard(
        self,
        module: TrackedCollection,
        params: dict[str, ParameterSharding],
        env: ShardingEnv,
        device: torch.device | None = None,
        module_fqn: str | None = None,
    ) -> ShardedTrackedCollection:
        return ShardedTrackedCollection(
            module,
            params,
            env,
            lookup_of=self._lookup_of,
            fused_params=self.fused_params,
            device=device,
            qcomm_codecs_registry=self.qcomm_codecs_registry,
            module_fqn=module_fqn,
        )

    def sharding_types(self, compute_device_type: str) -> list[str]:
        return ["table_wise", "row_wise"]

    def compute_kernels(self, sharding_type: str, compute_device_type: str) -> list[str]:
        return ["fused"]

    @property
    def module_type(self) -> type[TrackedCollection]:
        return TrackedCollection

    @property
    def sharded_module_type(self) -> type[ShardedTrackedCollection]:
        return ShardedTrackedCollection
