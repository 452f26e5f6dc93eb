"""The tables and feature groups of a model, from features and model config; the digest is the serving contract."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from features.spec import EmbeddingSpec, Feature, ZchSpec
from protos import model_pb2, module_pb2
from recmodels.errors import LayoutError
from recmodels.initializers import RowInit, parse_init_fn

DEEP, WIDE = "DEEP", "WIDE"
_WEIGHTED = "_weighted"


@dataclass(frozen=True, kw_only=True, slots=True)
class TableSpec:
    """One embedding table; `features` in the order in which they first use it."""

    name: str
    num_embeddings: int
    dim: int
    pooling: str
    init: RowInit
    data_type: str
    trainable: bool
    zch: ZchSpec | None
    features: tuple[str, ...]
    data_group: str
    sharding_types: tuple[str, ...] = ()
    compute_kernels: tuple[str, ...] = ()

    @property
    def weighted(self) -> bool:
        """Whether its lookups carry weights."""
        return self.data_group.endswith(_WEIGHTED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One feature's place in a group; `table` is None for a dense feature."""

    feature: str
    table: str | None
    dim: int
    pooling: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupSpec:
    """The columns of a group's tensor, left to right."""

    name: str
    type: str
    entries: tuple[Entry, ...]

    @property
    def dims(self) -> list[int]:
        """Width of each entry."""
        return [entry.dim for entry in self.entries]


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """All tables and groups of a model."""

    tables: tuple[TableSpec, ...]
    groups: tuple[GroupSpec, ...]

    def table(self, name: str) -> TableSpec:
        """The table of that name; KeyError when there is none."""
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(name)

    def group(self, name: str) -> GroupSpec:
        """The group of that name; KeyError when there is none."""
        for group in self.groups:
            if group.name == name:
                return group
        raise KeyError(name)

    def table_names(self) -> tuple[str, ...]:
        """Names, in layout order."""
        return tuple(table.name for table in self.tables)

    def digest(self) -> str:
        """SHA-256 of what serving depends on: groups, order, dims, pooling, dtype and keying of each table."""
        contract = {
            "groups": [asdict(group) for group in self.groups],
            "tables": [
                {
                    "name": table.name,
                    "dim": table.dim,
                    "pooling": table.pooling,
                    "data_type": table.data_type,
                    "keyed_by": "row" if table.zch is None else "id",
                    "rows": table.num_embeddings if table.zch is None else 0,
                    "features": table.features,
                }
                for table in self.tables
            ],
        }
        return hashlib.sha256(json.dumps(contract, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def create_layout(features: Sequence[Feature], config: model_pb2.ModelConfig) -> Layout:
    """Lay out the groups of a model config; LayoutError names the group, the feature and the remedy."""
    by_name = {feature.name: feature for feature in features}
    wide_dim, wide_init = _wide_settings(config)
    builder = _Builder(by_name, wide_dim, wide_init)
    names: set[str] = set()
    for group in config.feature_groups:
        if group.group_name in names:
            raise LayoutError(f"feature group {group.group_name!r} is declared twice: give each group its own name")
        names.add(group.group_name)
        builder.add(group)
    return builder.layout()


def _wide_settings(config: model_pb2.ModelConfig) -> tuple[int, str]:
    which = config.WhichOneof("model")
    model = None if which is None else getattr(config, which)
    if model is None or "wide_embedding_dim" not in model.DESCRIPTOR.fields_by_name:
        return 4, ""
    return model.wide_embedding_dim, model.wide_init_fn


class _Builder:
    """Collects groups and the tables that they share."""

    def __init__(self, features: dict[str, Feature], wide_dim: int, wide_init: str) -> None:
        self._features = features
        self._wide_dim = wide_dim
        self._wide_init = wide_init
        self._tables: dict[str, TableSpec] = {}
        self._suffixes: dict[str, str] = {}
        self._groups: list[GroupSpec] = []

    def add(self, group: module_pb2.FeatureGroupConfig) -> None:
        kind = module_pb2.FeatureGroupType.Name(group.group_type)
        if kind not in (DEEP, WIDE) or group.sequence_groups or group.sequence_encoders:
            raise LayoutError(
                f"feature group {group.group_name!r}: sequence groups and encoders come later; "
                "use group_type DEEP or WIDE without sequence_groups and sequence_encoders"
            )
        if not group.feature_names:
            raise LayoutError(f"feature group {group.group_name!r} has no feature_names: name at least one")
        members = [self._feature(group.group_name, name) for name in group.feature_names]
        _refuse_mixed(group.group_name, members)
        entries = tuple(self._entry(group, kind, feature) for feature in members)
        self._groups.append(GroupSpec(name=group.group_name, type=kind, entries=entries))

    def layout(self) -> Layout:
        return Layout(tables=tuple(self._tables.values()), groups=tuple(self._groups))

    def _feature(self, group: str, name: str) -> Feature:
        if name not in self._features:
            raise LayoutError(f"feature group {group!r}: there is no feature {name!r}, declare it in feature_configs")
        feature = self._features[name]
        if feature.is_sequence:
            raise LayoutError(
                f"feature group {group!r}: {name!r} is a sequence, and sequence groups come later; take it out"
            )
        return feature

    def _entry(self, group: module_pb2.FeatureGroupConfig, kind: str, feature: Feature) -> Entry:
        spec = feature.embedding
        if spec is None:
            if kind == WIDE:
                raise LayoutError(
                    f"feature group {group.group_name!r}: {feature.name!r} is dense, and a WIDE group holds only "
                    "features with an embedding; give it boundaries or move it to a DEEP group"
                )
            return Entry(feature=feature.name, table=None, dim=feature.dense_dim, pooling="")
        table = self._table(group.embedding_name_suffix, kind, feature, spec)
        return Entry(feature=feature.name, table=table.name, dim=table.dim, pooling=table.pooling)

    def _table(self, suffix: str, kind: str, feature: Feature, spec: EmbeddingSpec) -> TableSpec:
        wide = kind == WIDE
        stem = f"{spec.name}_wide" if wide else spec.name
        name = f"{stem}_{suffix}" if suffix else stem
        dim = self._wide_dim if wide else spec.dim
        init_fn = self._wide_init if wide else spec.init_fn
        if self._suffixes.setdefault(name, suffix) != suffix:
            raise LayoutError(
                f"table {name!r} is reached with the suffixes {self._suffixes[name]!r} and {suffix!r}: "
                "choose an embedding_name_suffix that does not repeat the name of another table"
            )
        table = TableSpec(
            name=name,
            num_embeddings=spec.num_embeddings,
            dim=dim,
            pooling=spec.pooling.lower(),
            init=parse_init_fn(init_fn, rows=spec.num_embeddings, dim=dim),
            data_type=spec.data_type.upper(),
            trainable=spec.trainable,
            zch=spec.zch,
            features=(feature.name,),
            data_group=feature.data_group,
            sharding_types=spec.sharding_types,
            compute_kernels=spec.compute_kernels,
        )
        _refuse_unusable(table)
        known = self._tables.get(name)
        self._tables[name] = table if known is None else _merge(known, table)
        return self._tables[name]


def _refuse_mixed(group: str, members: Sequence[Feature]) -> None:
    seen: set[str] = set()
    for feature in members:
        if feature.name in seen:
            raise LayoutError(f"feature group {group!r} names {feature.name!r} twice: name it once")
        seen.add(feature.name)
    data_groups = sorted({feature.data_group.removesuffix(_WEIGHTED) for feature in members})
    if len(data_groups) > 1:
        raise LayoutError(
            f"feature group {group!r} mixes the data groups {', '.join(data_groups)}: "
            "put features of sampled negatives and of the base into groups of their own"
        )


def _refuse_unusable(table: TableSpec) -> None:
    if table.num_embeddings <= 0 or table.dim <= 0:
        raise LayoutError(
            f"table {table.name!r} has {table.num_embeddings} rows of {table.dim}: both must be positive; "
            "set embedding_dim, and a size such as num_buckets, hash_bucket_size or zch_size"
        )
    if table.pooling not in ("sum", "mean"):
        raise LayoutError(f"table {table.name!r}: pooling {table.pooling!r} is unknown, use sum or mean")
    if table.zch is not None and table.zch.policy not in ("hash", "lru", "lfu", "distance_lfu"):
        raise LayoutError(f"table {table.name!r}: zch policy {table.zch.policy!r} is unknown, use hash {{}}")
    if table.zch is not None and table.zch.threshold_filtering_func:
        raise LayoutError(f"table {table.name!r}: threshold_filtering_func comes later; leave it out")
    if table.data_type not in ("FP32", "FP16"):
        raise LayoutError(f"table {table.name!r}: data_type {table.data_type!r} cannot be trained, use FP32 or FP16")


_SHARED = ("num_embeddings", "dim", "pooling", "init", "data_type", "trainable", "zch", "data_group")


def _merge(known: TableSpec, other: TableSpec) -> TableSpec:
    for field in _SHARED:
        ours, theirs = getattr(known, field), getattr(other, field)
        if ours != theirs:
            raise LayoutError(
                f"features {known.features[0]!r} and {other.features[0]!r} share table {known.name!r} but differ in "
                f"{field}: {ours!r} and {theirs!r}; make them equal or give one another embedding_name"
            )
    if other.features[0] in known.features:
        return known
    return replace(known, features=known.features + other.features)
