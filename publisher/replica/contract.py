"""The serving contract of a version: features and layout rebuilt from its own configuration and checked against it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from checkpointer.encoding import Encoding
from checkpointer.store import Store
from features import FeatureSet, create_features
from features.drift import changes, described
from features.errors import FeatureError
from features.files import BroughtFiles
from protos import pipeline_pb2
from protos.errors import ConfigError
from protos.load import parse_config
from publisher.errors import Reason, VersionError
from publisher.export.build import build_dense_half
from publisher.manifest import ServingVersion
from publisher.replica.inputs import input_columns, input_tensors
from publisher.replica.request import InputColumn
from publisher.replica.serving import TensorSpec
from publisher.replica.tables import PlanEntry, TableShape
from publisher.versions import read_blob
from recmodels.errors import RecModelError
from recmodels.layout import Entry, GroupSpec, Layout, create_layout

Place = tuple[str, int, int, int]
"""A dense feature's place: feature, group, column, width."""


@dataclass(frozen=True, slots=True, eq=False)
class Contract:
    """Everything about a version that its rows and weights do not change."""

    config: pipeline_pb2.EasyRecConfig
    features: FeatureSet
    layout: Layout
    shapes: tuple[TableShape, ...]
    columns: tuple[InputColumn, ...]
    inputs: tuple[TensorSpec, ...]

    @property
    def group_widths(self) -> tuple[int, ...]:
        """Width of each group's tensor, in layout order."""
        return tuple(sum(group.dims) for group in self.layout.groups)

    def plan(self, keys: Sequence[str]) -> tuple[PlanEntry, ...]:
        """List the pooled lookups of a batch part with these keys, in the order of groups and columns."""
        position = {key: at for at, key in enumerate(keys)}
        return tuple(
            PlanEntry(
                key=position[entry.feature],
                table=entry.table,
                group=number,
                column=column,
                mean=entry.pooling == "mean",
            )
            for number, group in enumerate(self.layout.groups)
            for column, entry in _placed(group)
            if entry.table is not None and entry.feature in position
        )

    def dense_places(self, keys: Iterable[str]) -> tuple[Place, ...]:
        """List where the dense features among the keys go."""
        known = frozenset(keys)
        return tuple(
            (entry.feature, number, column, entry.dim)
            for number, group in enumerate(self.layout.groups)
            for column, entry in _placed(group)
            if entry.table is None and entry.feature in known
        )

    def build_dense(self) -> nn.Module:
        """Build the dense half without a compiled artefact; its weights are random."""
        with torch.random.fork_rng():
            return build_dense_half(self.config, self.features)


def read_contract(store: Store, version: ServingVersion) -> Contract:
    """Build the contract that a version's configuration describes, from the files that came with it alone.

    A version that this code reads differently is refused.
    """
    what = f"version {version.version}"
    text = read_blob(store, version.config).decode()
    files = BroughtFiles({asset.name: read_blob(store, asset.blob) for asset in version.assets})
    try:
        config = parse_config(text, json=False)
        features = create_features(config, files=files)
        layout = create_layout(features.features, config.model_config)
    except (ConfigError, FeatureError, RecModelError) as error:
        raise VersionError(Reason.CONTRACT, f"{what}: its pipeline.config cannot be served: {error}") from error
    _check(what, "feature digest", version.features, features.digest(), _drift(store, version, features))
    _check(what, "serving contract", version.contract, layout.digest(), "")
    columns = input_columns(config, features)
    return Contract(
        config=config,
        features=features,
        layout=layout,
        shapes=_shapes(layout, version),
        columns=columns,
        inputs=input_tensors(config, features, columns),
    )


def _drift(store: Store, version: ServingVersion, features: FeatureSet) -> str:
    """In words, how the features that were trained differ from what this program makes of the same configuration."""
    if version.described is None or features.digest() == version.features:
        return ""
    try:
        trained = described(read_blob(store, version.described))
    except ValueError as error:
        raise VersionError(Reason.CORRUPT, f"{version.described.path} describes no features: {error}") from error
    return "; ".join(changes(trained, described(features.description())))


def _check(what: str, name: str, published: str, ours: str, drift: str) -> None:
    if published != ours:
        told = f" ({drift})" if drift else ""
        raise VersionError(
            Reason.CONTRACT,
            f"{what} was published with {name} {published[:16]}, this program computes {ours[:16]} from the same "
            f"configuration{told}: run the headrace release, and the plugins, that published it, or publish again",
        )


def _placed(group: GroupSpec) -> Iterable[tuple[int, Entry]]:
    column = 0
    for entry in group.entries:
        yield column, entry
        column += entry.dim


def _shapes(layout: Layout, version: ServingVersion) -> tuple[TableShape, ...]:
    """Describe the tables of the layout, which the manifest must list."""
    ours = tuple((table.name, "direct" if table.zch is None else "zch", table.dim) for table in layout.tables)
    listed = tuple((table.name, table.kind, table.dim) for table in version.tables)
    if sorted(ours) != sorted(listed):
        raise VersionError(Reason.CONTRACT, f"version {version.version} lists tables {listed}, its layout has {ours}")
    if version.encoding not in frozenset(Encoding):
        known = ", ".join(Encoding)
        raise VersionError(
            Reason.FORMAT, f"version {version.version} has encoding {version.encoding!r}, known are {known}"
        )
    return tuple(
        TableShape(
            name=table.name,
            dim=table.dim,
            encoding=Encoding(version.encoding),
            rows=table.num_embeddings if table.zch is None else None,
        )
        for table in layout.tables
    )
