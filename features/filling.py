"""The features of one side of a batch: those of plain columns copied as they are, the others computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torchrec.sparse.jagged_tensor import KeyedJaggedTensor, KeyedTensor

from features.assemble import Addresses, DenseGroup, Groups, SparseGroup, as_jagged, as_numbers, as_rows, step_lengths
from features.batch import Batch
from features.columns import Columns
from features.counts import Counts
from features.generator import Made
from features.graph import Graph, Run, View


def unchecked(groups: Groups, columns: Columns) -> set[str]:
    """The features of groups whose rows must be looked at one by one."""
    held: list[SparseGroup | DenseGroup] = [*groups.sparse.values(), *groups.dense.values()]
    valid = {name for group in held if group.plain and group.plain.valid(columns) for name in group.names}
    return set(groups.names) - valid if valid else set(groups.names)


def fill(
    batch: Batch,
    groups: Groups,
    graph: Graph,
    columns: Columns,
    counts: Counts,
    *,
    given: Mapping[str, View] | None = None,
    more: Sequence[str] = (),
) -> tuple[Batch, Run]:
    """`batch` with the features of groups, and what was computed, `more` features too.

    `given` are of features that are known already.
    """
    sparse = {name: _addresses(group, columns) for name, group in groups.sparse.items()}
    dense = {name: _addresses(group, columns) for name, group in groups.dense.items()}
    wanted = [name for key, group in groups.sparse.items() if sparse[key] is None for name in group.names]
    wanted += [name for key, group in groups.dense.items() if dense[key] is None for name in group.names]
    run = graph.run(columns, wanted + [*groups.dense_sequences, *more], given, counts)
    parts, count = run.parts, columns.count
    filled = replace(
        batch,
        sparse_features=batch.sparse_features
        | {key: _ids(group, sparse[key], parts, count) for key, group in groups.sparse.items()},
        dense_features=batch.dense_features
        | {key: _numbers(group, dense[key], parts, count) for key, group in groups.dense.items()},
        sequence_mulval_lengths=batch.sequence_mulval_lengths
        | {
            key: step_lengths(group.several, [parts[name] for name in group.several], count)
            for key, group in groups.sparse.items()
            if group.several
        },
        sequence_dense_features=batch.sequence_dense_features
        | {name: as_jagged(parts[name]) for name in groups.dense_sequences},
    )
    return filled, run


def _addresses(group: SparseGroup | DenseGroup, columns: Columns) -> Addresses | None:
    return None if group.plain is None else group.plain.addresses(columns)


def _ids(group: SparseGroup, found: Addresses | None, parts: Mapping[str, Made], count: int) -> KeyedJaggedTensor:
    if found is not None:
        return group.copy(found, count)
    return group.join([as_rows(parts[name]) for name in group.names], count)


def _numbers(group: DenseGroup, found: Addresses | None, parts: Mapping[str, Made], count: int) -> KeyedTensor:
    if found is not None:
        return group.copy(found, count)
    return group.join([as_numbers(parts[name]) for name in group.names], count)
