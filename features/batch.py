"""What a model is given: tensors of one batch, by data group and feature (docs/interfaces.md, features)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

import pyarrow as pa
import torch
from torchrec.sparse.jagged_tensor import JaggedTensor, KeyedJaggedTensor, KeyedTensor
from torchrec.streamable import Pipelineable

Held = Mapping[str, torch.Tensor | JaggedTensor | KeyedJaggedTensor | KeyedTensor]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Batch(Pipelineable):  # type: ignore[misc]  # TorchRec is not typed
    """One batch of `size` rows. Tensors that say only that every row has one id are shared: do not write to them."""

    size: int
    dense_features: dict[str, KeyedTensor] = field(default_factory=dict)
    sparse_features: dict[str, KeyedJaggedTensor] = field(default_factory=dict)
    labels: dict[str, torch.Tensor] = field(default_factory=dict)
    sample_weights: dict[str, torch.Tensor] = field(default_factory=dict)
    jagged_labels: dict[str, JaggedTensor] = field(default_factory=dict)
    sequence_mulval_lengths: dict[str, KeyedJaggedTensor] = field(default_factory=dict)
    sequence_dense_features: dict[str, JaggedTensor] = field(default_factory=dict)
    additional_infos: dict[str, torch.Tensor] = field(default_factory=dict)
    reserves: pa.RecordBatch | None = None
    tile_size: int = -1

    def to(self, device: torch.device, non_blocking: bool = False) -> Batch:
        """The same batch on another device; on its own device it may be the same memory."""
        moved = {name: _moved(held, device, non_blocking) for name, held in self._held().items()}
        return replace(self, **moved)  # type: ignore[arg-type]

    def pin_memory(self) -> Batch:
        """The same batch in pinned memory, which copies to a device without a stop."""
        pinned = {name: {key: _pinned(item) for key, item in held.items()} for name, held in self._held().items()}
        return replace(self, **pinned)  # type: ignore[arg-type]

    def record_stream(self, stream: torch.Stream) -> None:
        """Keep the memory until the stream has used it."""
        for held in self._held().values():
            for item in held.values():
                item.record_stream(stream)

    def _held(self) -> dict[str, Held]:
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, dict)}


def _moved(held: Held, device: torch.device, non_blocking: bool) -> Held:
    return {key: item.to(device, non_blocking=non_blocking) for key, item in held.items()}


def _pinned(item: torch.Tensor | JaggedTensor | KeyedJaggedTensor | KeyedTensor) -> object:
    """TorchRec pins a KeyedJaggedTensor, but not the others."""
    if isinstance(item, KeyedTensor):
        return KeyedTensor(item.keys(), item.length_per_key(), item.values().pin_memory())
    if isinstance(item, JaggedTensor):
        weights = item.weights_or_none()
        return JaggedTensor(
            values=item.values().pin_memory(),
            weights=None if weights is None else weights.pin_memory(),
            lengths=item.lengths().pin_memory(),
        )
    return item.pin_memory()
