"""The last stage: ids and numbers of all features into the tensors of a batch, one copy per column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor, KeyedTensor

from features.generator import Dense, Sparse
from features.spec import WEIGHTED, Feature


class Assembler:
    """Lays the features of each data group out, in the order of the configuration."""

    def __init__(self, features: Sequence[Feature]) -> None:
        self._sparse = _by_group([feature for feature in features if feature.is_sparse])
        self._dense = _by_group([feature for feature in features if not feature.is_sparse])
        self._ones = torch.ones(0, dtype=torch.int32)

    def sparse(self, made: dict[str, Sparse | Dense], count: int) -> dict[str, KeyedJaggedTensor]:
        """The id tensors by data group."""
        return {group: self._jagged(group, keys, made, count) for group, keys in self._sparse.items()}

    def dense(self, made: dict[str, Sparse | Dense], count: int) -> dict[str, KeyedTensor]:
        """The number tensors by data group, float32 [count, sum of dims]."""
        out = {}
        for group, features in self._dense.items():
            dims = [feature.dense_dim for feature in features]
            values = torch.empty((count, sum(dims)), dtype=torch.float32)
            _fill_dense(values.numpy(), [made[feature.name].values for feature in features], dims)
            out[group] = KeyedTensor([feature.name for feature in features], dims, values)
        return out

    def _jagged(
        self, group: str, features: list[Feature], made: dict[str, Sparse | Dense], count: int
    ) -> KeyedJaggedTensor:
        parts = [_sparse(made[feature.name]) for feature in features]
        sizes = [len(part.values) for part in parts]
        values = torch.empty(sum(sizes), dtype=torch.int64)
        np.concatenate([part.values for part in parts], out=values.numpy())
        return KeyedJaggedTensor(
            keys=[feature.name for feature in features],
            values=values,
            weights=_weights(parts, sum(sizes)) if group == WEIGHTED else None,
            lengths=self._lengths(parts, count),
            stride=count,
            # Known here; TorchRec would sum the lengths again.
            length_per_key=sizes,
        )

    def _lengths(self, parts: list[Sparse], count: int) -> torch.Tensor:
        if all(part.lengths is None for part in parts):
            return self._all_ones(len(parts) * count)
        lengths = torch.empty(len(parts) * count, dtype=torch.int32)
        view = lengths.numpy().reshape(len(parts), count)
        for row, part in zip(view, parts, strict=True):
            row[:] = 1 if part.lengths is None else part.lengths
        return lengths

    def _all_ones(self, size: int) -> torch.Tensor:
        if len(self._ones) < size:
            self._ones = torch.ones(size, dtype=torch.int32)
        return self._ones[:size]


def _by_group(features: list[Feature]) -> dict[str, list[Feature]]:
    groups: dict[str, list[Feature]] = {}
    for feature in features:
        groups.setdefault(feature.data_group, []).append(feature)
    return groups


def _sparse(made: Sparse | Dense) -> Sparse:
    if not isinstance(made, Sparse):
        raise TypeError("a sparse feature was generated as dense")
    return made


def _weights(parts: list[Sparse], total: int) -> torch.Tensor:
    weights = torch.ones(total, dtype=torch.float32)
    view, at = weights.numpy(), 0
    for part in parts:
        if part.weights is not None:
            view[at : at + len(part.values)] = part.weights
        at += len(part.values)
    return weights


def _fill_dense(out: npt.NDArray[np.float32], columns: list[npt.NDArray[np.generic]], dims: list[int]) -> None:
    at = 0
    for values, dim in zip(columns, dims, strict=True):
        if dim == 1:
            out[:, at] = values
        else:
            out[:, at : at + dim] = values
        at += dim
