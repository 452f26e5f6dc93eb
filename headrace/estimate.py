"""What a configuration will take: memory of the tables, bytes of a commit, disk of a day.

Bytes of rows are counted as the commit log stores them at most: compression and repeated ids only make it less.
"""

from dataclasses import dataclass

from features import Feature, FeatureSet, create_features
from protos.pipeline_pb2 import EasyRecConfig
from publisher.export.build import build_dense_half
from recmodels.layout import Layout, TableSpec, create_layout

_DAY_S = 86_400
# Per row of a zero-collision table: its identity, and when it was last seen (recmodels/zch).
_ZCH_BYTES = 16
# Per row of a delta: its id and slot, sorted and delta-encoded, hardly more than this.
_KEY_BYTES = 6
_VALUES_OF_MULTI = 4
_STEPS_OF_UNBOUNDED = 50
_DENSE_STATE = {"adam_optimizer": 2, "adamw_optimizer": 2, "adadelta_optimizer": 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class TableCost:
    """One table in memory, and what of it one event touches at most."""

    name: str
    rows: int
    dim: int
    row_bytes: int
    touched_per_event: int

    @property
    def memory_bytes(self) -> int:
        """Weights, optimizer state and map."""
        return self.rows * self.row_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """What was asked for; rates are per second of the traffic that the caller expects."""

    tables: tuple[TableCost, ...]
    dense_bytes: int
    events_per_second: float
    commit_seconds: float
    commit_bytes: int
    kept_seconds: float
    kept_bases: int

    @property
    def memory_bytes(self) -> int:
        """All tables over all ranks, and the dense half of one."""
        return sum(table.memory_bytes for table in self.tables) + self.dense_bytes

    @property
    def day_bytes(self) -> int:
        """What the commit log holds after a day: deltas within retention, and the bases."""
        deltas = min(self.kept_seconds, _DAY_S) / self.commit_seconds * self.commit_bytes
        return int(deltas) + self.kept_bases * self.memory_bytes

    def text(self) -> str:
        """Lines for people."""
        width = max(len(table.name) for table in self.tables) if self.tables else 0
        lines = [
            f"  {table.name.ljust(width)}  {table.rows:>12,} rows x {table.dim:>4}  {size(table.memory_bytes):>10}"
            for table in self.tables
        ]
        return "\n".join(
            [
                "tables, with optimizer state and maps:",
                *lines,
                f"dense, with optimizer   {size(self.dense_bytes)}",
                f"memory of the model     {size(self.memory_bytes)}",
                f"a commit, at most       {size(self.commit_bytes)}"
                f"  (every {self.commit_seconds:g} s at {self.events_per_second:g} events/s)",
                f"disk in a day, at most  {size(self.day_bytes)}"
                f"  ({self.kept_bases} bases, deltas of {self.kept_seconds / 3600:g} h)",
                "",
            ]
        )


def estimate(config: EasyRecConfig, *, events_per_second: float) -> Estimate:
    """Estimate for `config`, whose tables exist once over all ranks."""
    features = create_features(config)
    layout = create_layout(features.features, config.model_config)
    tables = tuple(_table(table, layout, features, _momentum(config)) for table in layout.tables)
    dense = _dense_bytes(config)
    checkpoint = config.checkpoint_config
    seconds = checkpoint.commit_interval_ms / 1000
    if checkpoint.commit_interval_steps:
        seconds = checkpoint.commit_interval_steps * config.data_config.batch_size / events_per_second
    events = events_per_second * seconds
    return Estimate(
        tables=tables,
        events_per_second=events_per_second,
        commit_seconds=seconds,
        dense_bytes=dense,
        commit_bytes=sum(_touched(table, events) * (table.row_bytes + _KEY_BYTES) for table in tables) + dense,
        kept_seconds=checkpoint.keep_log_ms / 1000,
        kept_bases=checkpoint.keep_bases,
    )


def size(count: float) -> str:
    """Bytes for people.

    >>> size(2_500_000)
    '2.5 MB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.4g} TB"


def _dense_bytes(config: EasyRecConfig) -> int:
    """Dense parameters and their optimizer state, all float32; the tables stay on the meta device."""
    numbers = sum(parameter.numel() for parameter in build_dense_half(config).parameters())
    optimizer = config.train_config.dense_optimizer.WhichOneof("optimizer") or ""
    return 4 * numbers * (1 + _DENSE_STATE.get(optimizer, 1))


def _touched(table: TableCost, events: float) -> int:
    return min(table.rows, int(events * table.touched_per_event) + 1)


def _momentum(config: EasyRecConfig) -> str:
    return config.train_config.sparse_optimizer.WhichOneof("optimizer") or ""


def _table(table: TableSpec, layout: Layout, features: FeatureSet, optimizer: str) -> TableCost:
    weight = table.dim * (2 if table.data_type == "FP16" else 4)
    state = {"adagrad_optimizer": 4 * table.dim, "rowwise_adagrad_optimizer": 4}.get(optimizer, 0)
    users = {entry.feature for group in layout.groups for entry in group.entries if entry.table == table.name}
    values = sum(ids_of(feature) for feature in features.features if feature.name in users)
    return TableCost(
        name=table.name,
        rows=table.num_embeddings,
        dim=table.dim,
        row_bytes=weight + state + (_ZCH_BYTES if table.zch is not None else 0),
        touched_per_event=values,
    )


def ids_of(feature: Feature) -> int:
    """Ids that one event brings: any number of values counts as a few, any number of steps as half a hundred."""
    steps = (feature.sequence_length or _STEPS_OF_UNBOUNDED) if feature.is_sequence else 1
    return steps * (feature.value_dim or _VALUES_OF_MULTI)
