"""All features of a configuration: validate rows, turn them into batches, say what the values depend on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256

import pyarrow as pa
import torch
from torchrec.sparse.jagged_tensor import JaggedTensor, KeyedJaggedTensor, KeyedTensor

from features import targets
from features.assemble import DenseGroup, SparseGroup, group_features
from features.batch import Batch
from features.columns import Columns
from features.errors import ColumnTypeError
from features.generator import Generator
from features.spec import Feature
from stream.row_errors import Faults, RowErrors


class FeatureSet:
    """The features of one configuration, in its order. Threads may share it."""

    def __init__(
        self,
        generators: Sequence[Generator],
        features: Sequence[Feature],
        labels: Sequence[str],
        weights: Sequence[str],
    ) -> None:
        """`features` are those of the generators, with their data groups."""
        self.features = tuple(features)
        self.labels = tuple(labels)
        self.weights = tuple(weights)
        self.input_columns = tuple(dict.fromkeys(name for feature in features for name in feature.inputs))
        self._generators = tuple(generators)
        self._sparse, self._dense = group_features(features, generators)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that training reads."""
        return tuple(dict.fromkeys(self.input_columns + self.labels + self.weights))

    def validate(self, rows: pa.RecordBatch, *, serving: bool = False) -> RowErrors:
        """The rows that cannot be used; a request (`serving`) needs no labels and weights."""
        columns = Columns(rows)
        faults = Faults(columns.count)
        groups: list[SparseGroup | DenseGroup] = [*self._sparse.values(), *self._dense.values()]
        for group in groups:
            if group.plain is None or not group.plain.valid(columns):
                for generator in group.generators:
                    self._check_feature(generator, columns, faults)
        if not serving:
            for name in self.labels:
                _check(columns, name, targets.check_label, faults)
            for name in self.weights:
                _check(columns, name, targets.check_weight, faults)
        return faults.errors()

    def _check_feature(self, generator: Generator, columns: Columns, faults: Faults) -> None:
        feature = generator.feature
        for name in feature.inputs:
            if not columns.has(name):
                faults.add_all("missing_column", f"feature {feature.name!r} needs column {name!r}, which the rows lack")
                return
        try:
            generator.generate(columns, faults)
        except ColumnTypeError as error:
            faults.add_all("wrong_type", f"feature {feature.name!r}: {error}")

    def parse(self, rows: pa.RecordBatch, *, labels: bool = True, reserve: Sequence[str] = ()) -> Batch:
        """Turn rows that passed `validate` into a batch; requests have no labels.

        `reserve` names columns to carry along.
        """
        columns = Columns(rows)
        given = {name: targets.label(columns, name) for name in self.labels} if labels else {}
        return Batch(
            size=columns.count,
            dense_features={name: _number_tensor(group, columns) for name, group in self._dense.items()},
            sparse_features={name: _id_tensor(group, columns) for name, group in self._sparse.items()},
            labels={name: value for name, value in given.items() if isinstance(value, torch.Tensor)},
            jagged_labels={name: value for name, value in given.items() if isinstance(value, JaggedTensor)},
            sample_weights={name: targets.weight(columns, name) for name in self.weights} if labels else {},
            reserves=rows.select(list(reserve)) if reserve else None,
        )

    def digest(self) -> str:
        """SHA-256 of what the values of all features depend on: two sets with one digest compute the same."""
        content = [
            {
                "name": generator.feature.name,
                "kind": generator.feature.kind,
                "inputs": generator.feature.inputs,
                "group": feature.data_group,
                "values": generator.describe(),
            }
            for generator, feature in zip(self._generators, self.features, strict=True)
        ]
        return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _check(columns: Columns, name: str, check: targets.Check, faults: Faults) -> None:
    if not columns.has(name):
        faults.add_all("missing_column", f"label or weight {name!r} is no column of the rows")
        return
    try:
        check(columns, name, faults)
    except ColumnTypeError as error:
        faults.add_all("wrong_type", str(error))


def _id_tensor(group: SparseGroup, columns: Columns) -> KeyedJaggedTensor:
    addresses = None if group.plain is None else group.plain.addresses(columns)
    if addresses is not None:
        return group.copy(addresses, columns.count)
    return group.join([generator.generate(columns, None) for generator in group.generators], columns.count)


def _number_tensor(group: DenseGroup, columns: Columns) -> KeyedTensor:
    addresses = None if group.plain is None else group.plain.addresses(columns)
    if addresses is not None:
        return group.copy(addresses, columns.count)
    return group.join([generator.generate(columns, None) for generator in group.generators], columns.count)
