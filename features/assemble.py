"""The last stage: ids and numbers of all features into the tensors of a batch, one copy per column."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torchrec.sparse.jagged_tensor import JaggedTensor, KeyedJaggedTensor, KeyedTensor

from features.generator import Dense, Generator, Made, Sparse, Steps
from features.plain import PlainGroup, copy_ids, copy_numbers
from features.spec import WEIGHTED_END, Feature, Side
from features.views import offsets_of

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
        self.plain = _plain(members)
        self.names = [feature.name for feature, _ in members]
        self.several = [feature.name for feature, _ in members if several_ids(feature)]
        self._weighted = WEIGHTED_END in members[0][0].data_group
        self._ones = ones

    def copy(self, addresses: Addresses, count: int) -> KeyedJaggedTensor:
        """The tensor of plain columns."""
        values = torch.empty(len(addresses) * count, dtype=torch.int64)
        copy_ids(addresses, count, values.numpy())
        return self._tensor(values, None, self._ones(len(values)), count, [count] * len(addresses))

    def join(self, made: Sequence[Sparse], count: int) -> KeyedJaggedTensor:
        """The tensor of generated features."""
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
            keys=list(self.names), values=values, weights=weights, lengths=lengths, stride=count, length_per_key=sizes
        )

    def _lengths(self, parts: Sequence[Sparse], count: int) -> torch.Tensor:
        if all(part.lengths is None for part in parts):
            return self._ones(len(parts) * count)
        lengths = torch.empty(len(parts) * count, dtype=torch.int32)
        ones = self._ones(count).numpy()
        np.concatenate([ones if part.lengths is None else part.lengths for part in parts], out=lengths.numpy())
        return lengths


class DenseGroup:
    """The number features of one data group, in the order of the configuration."""

    def __init__(self, members: Sequence[tuple[Feature, Generator]]) -> None:
        self.plain = _plain(members)
        self.names = [feature.name for feature, _ in members]
        self._dims = [feature.dense_dim for feature, _ in members]

    def copy(self, addresses: Addresses, count: int) -> KeyedTensor:
        """The tensor of plain columns."""
        values = torch.empty((count, len(addresses)), dtype=torch.float32)
        copy_numbers(addresses, count, values.numpy())
        return KeyedTensor(list(self.names), list(self._dims), values)

    def join(self, parts: Sequence[Dense], count: int) -> KeyedTensor:
        """The tensor of generated features."""
        values = torch.empty((count, sum(self._dims)), dtype=torch.float32)
        out, at = values.numpy(), 0
        for part, dim in zip(parts, self._dims, strict=True):
            out[:, at : at + dim] = part.values.reshape(count, dim)
            at += dim
        return KeyedTensor(list(self.names), list(self._dims), values)


class Groups:
    """The features of a batch, or of one side of it, by data group."""

    def __init__(self, pairs: Sequence[tuple[Feature, Generator]]) -> None:
        ones = Ones()
        sparse = _by_group(pairs, lambda feature: feature.is_sparse)
        dense = _by_group(pairs, lambda feature: not feature.is_sparse and not feature.is_sequence)
        self.sparse = {name: SparseGroup(members, ones) for name, members in sparse.items()}
        self.dense = {name: DenseGroup(members) for name, members in dense.items()}
        self.dense_sequences = [feature.name for feature, _ in pairs if feature.is_sequence and not feature.is_sparse]

    @property
    def names(self) -> list[str]:
        """All features."""
        groups: list[SparseGroup | DenseGroup] = [*self.sparse.values(), *self.dense.values()]
        return [name for group in groups for name in group.names] + self.dense_sequences


def as_rows(made: Made) -> Sparse:
    """Ids of rows; those of a sequence's steps one after the other."""
    if isinstance(made, Sparse):
        return made
    if not isinstance(made, Steps) or not isinstance(made.made, Sparse):
        raise TypeError(f"{type(made).__name__} holds no ids")
    ids = made.made
    if ids.lengths is None:
        return Sparse(ids.values, made.lengths, ids.weights)
    offsets = offsets_of(ids.lengths)[offsets_of(made.lengths)]
    return Sparse(ids.values, np.diff(offsets).astype(np.int32), ids.weights)


def as_numbers(made: Made) -> Dense:
    """Numbers of rows."""
    if not isinstance(made, Dense):
        raise TypeError(f"{type(made).__name__} holds no numbers of rows")
    return made


def as_jagged(made: Made) -> JaggedTensor:
    """Numbers of steps, [steps, dim]."""
    if not isinstance(made, Steps) or not isinstance(made.made, Dense):
        raise TypeError(f"{type(made).__name__} holds no numbers of steps")
    numbers = np.ascontiguousarray(made.made.values)
    values = numbers if numbers.ndim > 1 else numbers[:, None]
    # What a generator gives may be the column's own memory, which is not to be written to.
    return JaggedTensor(values=torch.from_numpy(values.copy()), lengths=torch.from_numpy(made.lengths))


def step_lengths(names: Sequence[str], parts: Sequence[Made], count: int) -> KeyedJaggedTensor:
    """How many ids each step of each row has."""
    steps = [part for part in parts if isinstance(part, Steps)]
    values = [_per_step(part) for part in steps]
    return KeyedJaggedTensor(
        keys=list(names),
        values=torch.from_numpy(np.concatenate(values)),
        lengths=torch.from_numpy(np.concatenate([part.lengths for part in steps])),
        stride=count,
        length_per_key=[len(part) for part in values],
    )


def _per_step(part: Steps) -> npt.NDArray[np.int32]:
    ids = part.made
    if isinstance(ids, Sparse) and ids.lengths is not None:
        return ids.lengths
    return np.ones(int(part.lengths.sum()), np.int32)


_MANY_IDS = ("lookup", "match", "custom")
"""Kinds that give every hit of a step, whatever value_dim says (feature_generation.md 2.7)."""


def several_ids(feature: Feature) -> bool:
    """Whether a step may have more or less than one id."""
    return feature.is_sequence and (feature.value_dim != 1 or feature.kind in _MANY_IDS)


def _by_group(
    pairs: Sequence[tuple[Feature, Generator]], chosen: Callable[[Feature], bool]
) -> dict[str, list[tuple[Feature, Generator]]]:
    groups: dict[str, list[tuple[Feature, Generator]]] = {}
    for feature, generator in pairs:
        if chosen(feature):
            groups.setdefault(feature.data_group, []).append((feature, generator))
    return groups


def _plain(members: Sequence[tuple[Feature, Generator]]) -> PlainGroup | None:
    if WEIGHTED_END in members[0][0].data_group or any(
        generator.plain is None or not _is_column(feature) for feature, generator in members
    ):
        return None
    limits = [generator.plain.limit for _, generator in members if generator.plain is not None]
    columns = [feature.inputs[0] for feature, _ in members]
    return PlainGroup(columns, [limit for limit in limits if limit is not None] or None)


def _is_column(feature: Feature) -> bool:
    """In FG_NORMAL the sides say nothing of where a value is from, and the long way gives the same."""
    return not feature.is_sequence and not {Side.FEATURE, Side.CONST} & set(feature.sides)


def _weights(parts: Sequence[Sparse], total: int) -> torch.Tensor:
    weights = torch.ones(total, dtype=torch.float32)
    view, at = weights.numpy(), 0
    for part in parts:
        if part.weights is not None:
            view[at : at + len(part.values)] = part.weights
        at += len(part.values)
    return weights
