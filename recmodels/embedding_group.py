"""The embedding layer: feature groups in, one tensor per group out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torchrec.sparse.jagged_tensor import KeyedTensor

from features.spec import Feature
from recmodels.layout import GroupSpec, Layout, TableSpec
from recmodels.modules.dense_embedding import Embedded
from recmodels.zch.collection import TrackedCollection

if TYPE_CHECKING:
    from features.batch import Batch

Columns = Mapping[str, Sequence[tuple[str, str]]]


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
        self._assemblies: dict[tuple[tuple[str, tuple[str, ...]], ...], Assembly] = {}
        self._dense_specs = {
            feature.name: Embedded(feature=feature.name, value_dim=feature.dense_dim, spec=feature.dense_embedding)
            for feature in features
            if feature.dense_embedding is not None and not feature.is_sequence
        }
        data_groups = {feature.name: feature.data_group for feature in features}
        self._columns = {group.name: list(_columns(group, layout, data_groups)) for group in layout.groups}

    def forward(self, batch: "Batch") -> dict[str, Tensor]:
        looked_up: dict[str, KeyedTensor] = {
            name: collection(batch.sparse_features[self._sources[name]])
            for name, collection in self.collections.items()
        }
        looked_up |= {f"dense {name}": dense for name, dense in batch.dense_features.items()}
        keys = tuple((name, tuple(held.keys())) for name, held in looked_up.items())
        assembly = self._assemblies.get(keys)
        if assembly is None:
            widths = {
                name: dict(zip(held.keys(), held.length_per_key(), strict=True)) for name, held in looked_up.items()
            }
            assembly = self._assemblies[keys] = Assembly(self._columns, widths)
        values = {name: held.values() for name, held in looked_up.items()}
        return assembly.groups({name: t.detach() if name in self._frozen else t for name, t in values.items()})

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
        """Width of each feature of the group, in order; of a dense feature's vector, where it gets one."""
        return list(self.group_feature_dims(name).values())

    def group_total_dim(self, name: str) -> int:
        return sum(self.group_dims(name))

    def group_feature_dims(self, name: str) -> dict[str, int]:
        """Width by feature name, in order."""
        specs = self._dense_specs
        return {
            entry.feature: specs[entry.feature].spec.dim if entry.feature in specs else entry.dim
            for entry in self.layout.group(name).entries
        }

    def embedded(self) -> tuple[Embedded, ...]:
        """Dense features whose numbers are to become vectors, behind this layer."""
        return tuple(self._dense_specs.values())


class Assembly:
    """How group tensors are made of lookups: each is split once, into the longest runs that groups take whole.

    A slice per feature would cost as many gradients of the lookup's full width.
    """

    def __init__(self, columns: Columns, widths: Mapping[str, Mapping[str, int]]) -> None:
        spans = {group: _runs(entries, widths) for group, entries in columns.items()}
        self._sizes: dict[str, list[int]] = {}
        pieces: dict[str, dict[int, int]] = {}
        for source, held in widths.items():
            used = {at for runs in spans.values() for name, *ends in runs if name == source for at in ends}
            cuts = sorted(used | {0, sum(held.values())})
            self._sizes[source] = [b - a for a, b in pairwise(cuts)]
            pieces[source] = {start: number for number, start in enumerate(cuts)}
        self._groups = {
            group: [(name, k) for name, start, end in runs for k in range(pieces[name][start], pieces[name][end])]
            for group, runs in spans.items()
        }

    def groups(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Group name to (B, Σ dims), float32."""
        split = {
            name: (values[name],) if len(sizes) == 1 else torch.split(values[name], sizes, dim=1)
            for name, sizes in self._sizes.items()
        }
        return {
            group: torch.cat([split[name][k].float() for name, k in taken], dim=1)
            if len(taken) > 1
            else split[taken[0][0]][taken[0][1]].float()
            for group, taken in self._groups.items()
        }


def _runs(entries: Sequence[tuple[str, str]], widths: Mapping[str, Mapping[str, int]]) -> list[tuple[str, int, int]]:
    """(source, start, end) of a group's columns, neighbours joined."""
    starts = {
        name: dict(zip(held, accumulate(held.values(), initial=0), strict=False)) for name, held in widths.items()
    }
    runs: list[tuple[str, int, int]] = []
    for source, key in entries:
        start = starts[source][key]
        end = start + widths[source][key]
        if runs and runs[-1][0] == source and runs[-1][2] == start:
            runs[-1] = (source, runs[-1][1], end)
        else:
            runs.append((source, start, end))
    return runs


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
