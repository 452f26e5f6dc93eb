"""The last stage: ids and numbers of all features into the tensors of a batch, one copy per column."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor, KeyedTensor

from features.generator import Dense, Generator, Sparse
from features.plain import PlainGroup, copy_ids, copy_numbers
from features.spec import WEIGHTED, Feature

Addresses = npt.NDArray[np.int64]


class Ones:
    """Lengths of features with one id in every row: one tensor for all batches, so nobody may write to it."""

    def __init__(self) -> None:
        self._ones = torch.ones(0, dtype=torch.int32)

    def __call__(self, size: int) -> torch.Tensor:
        """int32 [size]."""
        ones = self._ones
        if len(ones) < size:
            ones = self._ones = torch.ones(size, dtype=torch.int32)
        return ones[:size]


class SparseGroup:
    """The id features of one data group, in the order of the configuration."""

    def __init__(self, members: Sequence[tuple[Feature, Generator]], ones: Ones) -> None:
        self.generators = [generator for _, generator in members]
        self.plain = _plain(members)
        self._keys = [feature.name for feature, _ in members]
        self._weighted = members[0][0].data_group == WEIGHTED
        self._ones = ones

    def copy(self, addresses: Addresses, count: int) -> KeyedJaggedTensor:
        """The tensor of plain columns."""
        values = torch.empty(len(addresses) * count, dtype=torch.int64)
        copy_ids(addresses, count, values.numpy())
        return self._tensor(values, None, self._ones(len(values)), count, [count] * len(addresses))

    def join(self, parts: Sequence[Sparse | Dense], count: int) -> KeyedJaggedTensor:
        """The tensor of generated features."""
        made = [part for part in parts if isinstance(part, Sparse)]
        sizes = [len(part.values) for part in made]
        values = torch.empty(sum(sizes), dtype=torch.int64)
        np.concatenate([part.values for part in made], out=values.numpy())
        weights = _weights(made, sum(sizes)) if self._weighted else None
        return self._tensor(values, weights, self._lengths(made, count), count, sizes)

    def _tensor(
        self, values: torch.Tensor, weights: torch.Tensor | None, lengths: torch.Tensor, count: int, sizes: list[int]
    ) -> KeyedJaggedTensor:
        # TorchRec would find the stride and the length of every key by summing lengths.
        return KeyedJaggedTensor(
            keys=list(self._keys), values=values, weights=weights, lengths=lengths, stride=count, length_per_key=sizes
        )

    def _lengths(self, parts: Sequence[Sparse], count: int) -> torch.Tensor:
        if all(part.lengths is None for part in parts):
            return self._ones(len(parts) * count)
        lengths = torch.empty(len(parts) * count, dtype=torch.int32)
        for row, part in zip(lengths.numpy().reshape(len(parts), count), parts, strict=True):
            row[:] = 1 if part.lengths is None else part.lengths
        return lengths


class DenseGroup:
    """The number features of one data group, in the order of the configuration."""

    def __init__(self, members: Sequence[tuple[Feature, Generator]]) -> None:
        self.generators = [generator for _, generator in members]
        self.plain = _plain(members)
        self._keys = [feature.name for feature, _ in members]
        self._dims = [feature.dense_dim for feature, _ in members]

    def copy(self, addresses: Addresses, count: int) -> KeyedTensor:
        """The tensor of plain columns."""
        values = torch.empty((count, len(addresses)), dtype=torch.float32)
        copy_numbers(addresses, count, values.numpy())
        return KeyedTensor(list(self._keys), list(self._dims), values)

    def join(self, parts: Sequence[Sparse | Dense], count: int) -> KeyedTensor:
        """The tensor of generated features."""
        values = torch.empty((count, sum(self._dims)), dtype=torch.float32)
        out, at = values.numpy(), 0
        for part, dim in zip(parts, self._dims, strict=True):
            out[:, at : at + dim] = part.values.reshape(count, dim)
            at += dim
        return KeyedTensor(list(self._keys), list(self._dims), values)


def group_features(
    features: Sequence[Feature], generators: Sequence[Generator]
) -> tuple[dict[str, SparseGroup], dict[str, DenseGroup]]:
    """The id and the number features by data group."""
    pairs = list(zip(features, generators, strict=True))
    ones = Ones()
    sparse = _by_group(pairs, lambda feature: feature.is_sparse)
    dense = _by_group(pairs, lambda feature: not feature.is_sparse)
    return (
        {name: SparseGroup(members, ones) for name, members in sparse.items()},
        {name: DenseGroup(members) for name, members in dense.items()},
    )


def _by_group(
    pairs: Sequence[tuple[Feature, Generator]], chosen: Callable[[Feature], bool]
) -> dict[str, list[tuple[Feature, Generator]]]:
    groups: dict[str, list[tuple[Feature, Generator]]] = {}
    for feature, generator in pairs:
        if chosen(feature):
            groups.setdefault(feature.data_group, []).append((feature, generator))
    return groups


def _plain(members: Sequence[tuple[Feature, Generator]]) -> PlainGroup | None:
    if members[0][0].data_group == WEIGHTED or any(generator.plain is None for _, generator in members):
        return None
    limits = [generator.plain.limit for _, generator in members if generator.plain is not None]
    columns = [feature.inputs[0] for feature, _ in members]
    return PlainGroup(columns, [limit for limit in limits if limit is not None] or None)


def _weights(parts: Sequence[Sparse], total: int) -> torch.Tensor:
    weights = torch.ones(total, dtype=torch.float32)
    view, at = weights.numpy(), 0
    for part in parts:
        if part.weights is not None:
            view[at : at + len(part.values)] = part.weights
        at += len(part.values)
    return weights
