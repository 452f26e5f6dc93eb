"""Vectors for numbers: AutoDis and MLP embeddings of dense features (models_and_features.md 1.8).

They are the first layer behind the embedding tables, so that a version serves them with the dense half.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from features.spec import DenseEmbeddingSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class Embedded:
    """A dense feature of `value_dim` numbers that gets a vector."""

    feature: str
    value_dim: int
    spec: DenseEmbeddingSpec


class _Weight(nn.Module):
    """One parameter, drawn from a normal distribution around 0."""

    def __init__(self, shape: tuple[int, ...], deviation: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(shape))
        self._deviation = deviation
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, 0.0, self._deviation)


class AutoDis(nn.Module):
    """Soft choices between `channels` rows, for features of one configuration. (B, N) -> (B, N, D).

    h = LeakyReLU(w x), z = P h + keep_prob h, and the rows are weighed by softmax(z / temperature).
    """

    def __init__(self, names: Sequence[str], spec: DenseEmbeddingSpec) -> None:
        super().__init__()
        self._names, self._spec = tuple(names), spec
        channels = spec.channels
        for name in names:
            self.add_module(f"meta_emb_{name}", _Weight((channels, spec.dim), 1.0))
            self.add_module(f"proj_w_{name}", _Weight((channels,), math.sqrt(2 / (1 + channels))))
            self.add_module(f"proj_m_{name}", _Weight((channels, channels), math.sqrt(1 / channels)))

    def forward(self, values: Tensor) -> Tensor:
        hidden = nn.functional.leaky_relu(values.unsqueeze(-1) * self._stacked("proj_w"))
        mixed = torch.einsum("nij,bnj->bni", self._stacked("proj_m"), hidden) + self._spec.keep_prob * hidden
        chosen = torch.softmax(mixed / self._spec.temperature, dim=-1)
        return torch.einsum("bnc,ncd->bnd", chosen, self._stacked("meta_emb"))

    def _stacked(self, part: str) -> Tensor:
        return torch.stack([getattr(self, f"{part}_{name}").weight for name in self._names])


class LinearEmbedding(nn.Module):
    """A linear map without bias of each feature, all of one width. (B, N, v) -> (B, N, D)."""

    def __init__(self, names: Sequence[str], value_dim: int, dim: int) -> None:
        super().__init__()
        self._names = tuple(names)
        for name in names:
            self.add_module(f"proj_w_{name}", _Weight((value_dim, dim), math.sqrt(2 / (value_dim + dim))))

    def forward(self, values: Tensor) -> Tensor:
        weights = torch.stack([getattr(self, f"proj_w_{name}").weight for name in self._names])
        return torch.einsum("bnv,nvd->bnd", values, weights)


class DenseEmbeddings(nn.Module):
    """Puts vectors in place of numbers in the tensors of feature groups; features of one configuration go together."""

    def __init__(self, embedded: Sequence[Embedded], groups: Mapping[str, Sequence[tuple[str, int]]]) -> None:
        """`groups` are features and their widths, left to right, as the embedding layer gives them."""
        super().__init__()
        by_name = {item.feature: item for item in embedded}
        # A feature is embedded once, from the first group that holds it: all groups hold the same numbers.
        self._groups = {name: tuple(held) for name, held in groups.items() if any(f in by_name for f, _ in held)}
        used = {feature for held in self._groups.values() for feature, _ in held if feature in by_name}
        self._members = _clusters([by_name[name] for name in sorted(used)])
        self.clusters = nn.ModuleList(_module(members) for members in self._members)

    def forward(self, groups: dict[str, Tensor]) -> dict[str, Tensor]:
        """Group tensors with the vectors in the places of the numbers."""
        if not self._groups:
            return groups
        pieces = {
            name: dict(zip([f for f, _ in held], torch.split(groups[name], [w for _, w in held], dim=1), strict=True))
            for name, held in self._groups.items()
        }
        vectors = self._vectors({feature: value for held in pieces.values() for feature, value in held.items()})
        return groups | {
            name: torch.cat([vectors.get(feature, value) for feature, value in held.items()], dim=1)
            for name, held in pieces.items()
        }

    def _vectors(self, numbers: Mapping[str, Tensor]) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for members, module in zip(self._members, self.clusters, strict=True):
            names = [item.feature for item in members]
            stacked = torch.stack([numbers[name] for name in names], dim=1)
            made = module(stacked.squeeze(-1) if isinstance(module, AutoDis) else stacked)
            found |= dict(zip(names, made.unbind(1), strict=True))
        return found


def _clusters(embedded: Sequence[Embedded]) -> list[list[Embedded]]:
    found: dict[tuple[int, DenseEmbeddingSpec], list[Embedded]] = {}
    for item in embedded:
        found.setdefault((item.value_dim, item.spec), []).append(item)
    return list(found.values())


def _module(members: Sequence[Embedded]) -> AutoDis | LinearEmbedding:
    names, first = [item.feature for item in members], members[0]
    if first.spec.method == "autodis":
        return AutoDis(names, first.spec)
    return LinearEmbedding(names, first.value_dim, first.spec.dim)
