"""The embedding layer: feature groups in, one tensor per group out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torchrec.sparse.jagged_tensor import KeyedTensor

from features.spec import Feature
from recmodels.layout import GroupSpec, Layout, TableSpec
from recmodels.zch.collection import TrackedCollection

if TYPE_CHECKING:
    from features.batch import Batch


class EmbeddingGroup(nn.Module):
    """`forward(batch)` is group name → (B, Σ dims), columns in the order of the group's features.

    Tables live in one collection per data group, those that are not trained apart: their output is detached, so that no
    gradient, and no optimizer, ever reaches them.
    """

    def __init__(self, features: Sequence[Feature], layout: Layout, device: torch.device, *, seed: int = 0) -> None:
        super().__init__()
        self.layout = layout
        self.collections = nn.ModuleDict()
        self._sources: dict[str, str] = {}
        self._frozen: set[str] = set()
        for name, data_group, tables in _collections(layout):
            self.collections[name] = TrackedCollection(tables, seed=seed, device=device)
            self._sources[name] = data_group
            if not tables[0].trainable:
                self._frozen.add(name)
        data_groups = {feature.name: feature.data_group for feature in features}
        self._columns = {group.name: list(_columns(group, layout, data_groups)) for group in layout.groups}

    def forward(self, batch: "Batch") -> dict[str, Tensor]:
        looked_up: dict[str, KeyedTensor] = {
            name: collection(batch.sparse_features[self._sources[name]])
            for name, collection in self.collections.items()
        }
        parts: dict[str, dict[str, Tensor]] = {}
        for name, embedded in looked_up.items():
            tensors: dict[str, Tensor] = embedded.to_dict()
            parts[name] = {key: t.detach() for key, t in tensors.items()} if name in self._frozen else tensors
        for name, dense in batch.dense_features.items():
            parts[f"dense {name}"] = dense.to_dict()
        return {
            group: torch.cat([parts[part][key].float() for part, key in columns], dim=1)
            for group, columns in self._columns.items()
        }

    def sparse_parameters(self) -> Iterator[nn.Parameter]:
        """The tables that the sparse optimizer trains."""
        for name, collection in self.collections.items():
            if name not in self._frozen:
                yield from collection.parameters()

    def group_names(self) -> list[str]:
        return [group.name for group in self.layout.groups]

    def has_group(self, name: str) -> bool:
        return name in self._columns

    def group_type(self, name: str) -> str:
        return self.layout.group(name).type

    def group_dims(self, name: str) -> list[int]:
        """Width of each feature of the group, in order."""
        return self.layout.group(name).dims

    def group_total_dim(self, name: str) -> int:
        return sum(self.group_dims(name))

    def group_feature_dims(self, name: str) -> dict[str, int]:
        """Width by feature name, in order."""
        return {entry.feature: entry.dim for entry in self.layout.group(name).entries}


def collection_name(table: TableSpec) -> str:
    """The collection that holds a table."""
    return f"{table.data_group.strip('_')}{'' if table.trainable else '_frozen'}"


def _collections(layout: Layout) -> Iterable[tuple[str, str, list[TableSpec]]]:
    members: dict[str, list[TableSpec]] = {}
    for table in layout.tables:
        members.setdefault(collection_name(table), []).append(table)
    return [(name, tables[0].data_group, tables) for name, tables in members.items()]


def _columns(group: GroupSpec, layout: Layout, data_groups: dict[str, str]) -> Iterable[tuple[str, str]]:
    for entry in group.entries:
        if entry.table is None:
            yield f"dense {data_groups[entry.feature]}", entry.feature
        else:
            table = layout.table(entry.table)
            yield collection_name(table), _key(entry.feature, table, layout)


def _key(feature: str, table: TableSpec, layout: Layout) -> str:
    """TorchRec's name of a lookup: the feature, with `@table` where one collection holds several of its tables."""
    same = [
        other
        for other in layout.tables
        if feature in other.features and collection_name(other) == collection_name(table)
    ]
    return feature if len(same) == 1 else f"{feature}@{table.name}"
