"""`force_base_data_group`: features of different numbers of rows in one group, the fewer padded with nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torchrec.sparse.jagged_tensor import JaggedTensor, KeyedJaggedTensor, KeyedTensor

from features.batch import Batch


def merged(batch: Batch, items: Batch, order: Sequence[str], *, more: int) -> Batch:
    """`batch` with the features of `items`, which has `more` rows; values unchanged, keys in `order`.

    Lengths are padded with 0, numbers with zeros, to `more` rows.
    """
    return replace(
        batch,
        sparse_features=_sparse(batch.sparse_features, items.sparse_features, order, more),
        sequence_mulval_lengths=_sparse(batch.sequence_mulval_lengths, items.sequence_mulval_lengths, order, more),
        dense_features=_dense(batch.dense_features, items.dense_features, order, more),
        sequence_dense_features={
            name: _padded_jagged(part, more)
            for name, part in (batch.sequence_dense_features | items.sequence_dense_features).items()
        },
    )


def _sparse(
    few: dict[str, KeyedJaggedTensor], many: dict[str, KeyedJaggedTensor], order: Sequence[str], more: int
) -> dict[str, KeyedJaggedTensor]:
    found = {}
    for group in dict.fromkeys([*few, *many]):
        parts: dict[str, JaggedTensor] = {}
        for tensor in (few.get(group), many.get(group)):
            parts |= {} if tensor is None else tensor.to_dict()
        keys = [name for name in order if name in parts]
        padded = [_padded_jagged(parts[name], more) for name in keys]
        weights = [part.weights_or_none() for part in padded]
        found[group] = KeyedJaggedTensor(
            keys=keys,
            values=torch.cat([part.values() for part in padded]),
            weights=None if None in weights else torch.cat([item for item in weights if item is not None]),
            lengths=torch.cat([part.lengths() for part in padded]),
            stride=more,
            length_per_key=[len(part.values()) for part in padded],
        )
    return found


def _padded_jagged(part: JaggedTensor, rows: int) -> JaggedTensor:
    lengths = part.lengths()
    padding = lengths.new_zeros(rows - len(lengths))
    return JaggedTensor(values=part.values(), weights=part.weights_or_none(), lengths=torch.cat((lengths, padding)))


def _dense(
    few: dict[str, KeyedTensor], many: dict[str, KeyedTensor], order: Sequence[str], more: int
) -> dict[str, KeyedTensor]:
    found = {}
    for group in dict.fromkeys([*few, *many]):
        parts: dict[str, torch.Tensor] = {}
        for tensor in (few.get(group), many.get(group)):
            parts |= {} if tensor is None else tensor.to_dict()
        keys = [name for name in order if name in parts]
        columns = [_padded_rows(parts[name], more) for name in keys]
        found[group] = KeyedTensor(keys, [column.shape[1] for column in columns], torch.cat(columns, dim=1))
    return found


def _padded_rows(numbers: torch.Tensor, rows: int) -> torch.Tensor:
    return torch.cat((numbers, numbers.new_zeros(rows - len(numbers), numbers.shape[1])))
