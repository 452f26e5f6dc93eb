"""One side of the switch: tables, dense half and version, which together answer requests."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch
from torchrec import KeyedJaggedTensor, KeyedTensor

from features import Batch
from features.budget import Budget
from features.errors import RepeatError
from features.tiling import USER
from publisher.errors import Reason, VersionError
from publisher.export.runtime import DenseRunner
from publisher.manifest import ServingVersion
from publisher.replica.contract import Contract, Place
from publisher.replica.errors import RequestError
from publisher.replica.inputs import sample
from publisher.replica.protocol import wire_type
from publisher.replica.request import InputColumn, too_large
from publisher.replica.serving import Freshness, Predictions, TensorSpec
from publisher.replica.tables import Floats, Ids, Int64s, Patch, ServingTables
from stream.row_errors import RowErrors


@dataclass(frozen=True, kw_only=True, slots=True)
class Dense:
    """A dense half and the artefacts that it was chosen from."""

    runner: DenseRunner
    artefacts: tuple[str, ...]


class Side:
    """One complete model. It is either read by requests or changed by one writer, never both (`switch.py`)."""

    def __init__(self, contract: Contract, tables: ServingTables, dense: Dense, version: ServingVersion) -> None:
        self.contract = contract
        self.tables = tables
        self.dense = dense
        self.version = version
        self.outputs: tuple[TensorSpec, ...] = ()
        self._plans: dict[tuple[str, ...], Int64s] = {}
        self._places: dict[tuple[str, ...], tuple[Place, ...]] = {}

    @property
    def number(self) -> int:
        """The version's number."""
        return self.version.version

    @property
    def columns(self) -> tuple[InputColumn, ...]:
        """What requests must carry."""
        return self.contract.columns

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The input tensors, for metadata."""
        return self.contract.inputs

    @property
    def freshness(self) -> Freshness | None:
        """The broker's time of the newest event learned, else its event time."""
        if self.version.broker_time_ms >= 0:
            return Freshness(until_ms=self.version.broker_time_ms, basis="broker")
        if self.version.event_time_ms >= 0:
            return Freshness(until_ms=self.version.event_time_ms, basis="event")
        return None

    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """(rows, bytes) of each table."""
        return self.tables.sizes()

    def lookups(self) -> Mapping[str, tuple[int, int]]:
        """(lookups, hits) of each table."""
        return self.tables.lookups()

    def feature_counts(self) -> Mapping[tuple[str, str], int]:
        """What features counted of the requests' values, by feature and outcome (features/counts.py)."""
        return self.contract.features.counts.totals()

    def apply(self, patches: Iterable[Patch]) -> int:
        """Change the tables; return the rows put and deleted."""
        rows = self.tables.apply(patches)
        self.tables.check_complete()
        return rows

    def take(self, version: ServingVersion, dense: Dense) -> None:
        """Become a version whose rows have been applied, once a trial run has shown that it predicts."""
        self.version, self.dense = version, dense
        widths = self.contract.group_widths
        found = self._run([torch.zeros(1, width) for width in widths])
        self.outputs = tuple(
            TensorSpec(name=name, datatype=wire_type(array.dtype), shape=(-1, *array.shape[1:]))
            for name, array in found.items()
        )
        for name, array in found.items():
            if not np.isfinite(array).all():
                raise VersionError(Reason.CORRUPT, f"version {self.number}: output {name} of a row of zeros is {array}")

    def warm(self) -> None:
        """Predict made-up rows, in both forms of a request, so that no real one waits for a kernel to compile."""
        columns, tensors = self.contract.columns, self.contract.inputs
        of_user = [column for column in columns if column.user]
        of_items = [column for column in columns if not column.user]
        with self.contract.features.counts.silent():
            with contextlib.suppress(RequestError):
                self.predict(_nulls(columns, 1))
            with contextlib.suppress(RequestError):
                self.predict(sample(columns, tensors, 2))
            if of_user and of_items:
                with contextlib.suppress(RequestError):
                    self.predict(sample(of_items, tensors, 2), sample(of_user, tensors, 1))

    def predict(self, items: pa.RecordBatch, user: pa.RecordBatch | None = None) -> Predictions:
        """Predict rows of raw columns, `user` being one row of those that `items` lack; RequestError as in `batch`."""
        found = self._run(self._groups(self.batch(items, user)))
        for name, array in found.items():
            if not np.isfinite(array).all():
                raise RequestError(500, f"version {self.number} predicts a {name} that is not finite")
        return found

    def batch(self, items: pa.RecordBatch, user: pa.RecordBatch | None) -> Batch:
        """What rows of a request become; RequestError names the first bad one and its feature."""
        features = self.contract.features
        try:
            if user is None:
                spend = Budget(rows=items.num_rows).spend
                _refuse(features.validate(items, serving=True, spend=spend))
                return features.parse(items, labels=False)
            tiled = features.tiled(user, items)
            _refuse(tiled.validate())
            return tiled.parse()
        except RepeatError as error:
            raise too_large(error) from error

    def _run(self, groups: list[torch.Tensor]) -> Predictions:
        return {name: tensor.numpy() for name, tensor in self.dense.runner.run(groups).items()}

    def _groups(self, batch: Batch) -> list[torch.Tensor]:
        """Look up and lay out the group tensors of the dense half; the user's columns once for all items."""
        tables, numbers = self.tables, range(len(self.contract.layout.groups))
        count = batch.size
        buffer = tables.outputs(count)
        if batch.tile_size > 0:
            user = tables.outputs(1)
            self._fill(batch, True, 1, user)
            for number in numbers:
                tables.group(buffer, count, number)[:] = tables.group(user, 1, number)
        # Lookups add to what is there: zeros in the items' columns.
        self._fill(batch, False, count, buffer)
        return [torch.from_numpy(tables.group(buffer, count, number)) for number in numbers]

    def _fill(self, batch: Batch, of_user: bool, count: int, buffer: Floats) -> None:
        """Look up one side of a batch, of `count` rows."""
        for name, sparse in batch.sparse_features.items():
            if name.endswith(USER) == of_user:
                self._pool(sparse, count, buffer)
        for name, dense in batch.dense_features.items():
            if name.endswith(USER) == of_user:
                self._place(dense, count, buffer)

    def _pool(self, sparse: KeyedJaggedTensor, count: int, buffer: Floats) -> None:
        keys = tuple(sparse.keys())
        plan = self._plans.get(keys)
        if plan is None:
            plan = self._plans[keys] = self.tables.plan(self.contract.plan(keys))
        weights = sparse.weights_or_none()
        ids = Ids(
            values=sparse.values().numpy(),
            lengths=sparse.lengths().numpy(),
            weights=np.empty(0, np.float32) if weights is None else weights.numpy(),
        )
        self.tables.pool(plan, ids, count, buffer)

    def _place(self, dense: KeyedTensor, count: int, buffer: Floats) -> None:
        values, offsets = dense.values().numpy(), dense.offset_per_key()
        start = dict(zip(dense.keys(), offsets, strict=False))
        keys = tuple(dense.keys())
        places = self._places.get(keys)
        if places is None:
            places = self._places[keys] = self.contract.dense_places(keys)
        for feature, group, column, width in places:
            target = self.tables.group(buffer, count, group)
            target[:, column : column + width] = values[:, start[feature] : start[feature] + width]


def _refuse(errors: RowErrors) -> None:
    if errors:
        more = f" (and {len(errors.rows) - 1} more rows)" if len(errors.rows) > 1 else ""
        raise RequestError(400, f"row {errors.rows[0]}: {errors.reasons[0]}: {errors.details[0]}{more}")


def _nulls(columns: Sequence[InputColumn], rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(rows)] * len(columns), names=[column.name for column in columns])
