"""A small trainer that writes real commits, and the model of what should be served."""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from checkpointer import Draft, Kind, TableRows, Writer, WriterOptions, stage
from checkpointer.commit import Commit, Link
from checkpointer.encoding import Encoding, decode
from checkpointer.local_store import LocalStore
from checkpointer.memory_store import MemoryStore
from checkpointer.store import Store
from protos.commit_pb2 import StreamState
from protos.load import parse_config
from protos.pipeline_pb2 import EasyRecConfig
from publisher.background import Background, NoBackground
from publisher.contract import Contract
from publisher.export.build import build_dense_half
from publisher.follow import Publisher, Surroundings
from publisher.manifest import Blob, refusal_path
from publisher.metrics import PublisherMetrics
from publisher.notify import Notification
from publisher.options import PublishOptions
from publisher.rows import read_rows
from publisher.signing import Signer
from publisher.versions import ServingVersion, Table, read_current

CONTRACT = Contract(
    digest="c0ffee00",
    features="feed5eed",
    tables=(Table(name="user", kind="zch", dim=4), Table(name="item", kind="direct", dim=3)),
    widths=(7,),
    config=b'model_dir: "m"\n',
    layout=b"{}",
    assets=(("/data/words.txt", b"red\n"),),
)
ITEMS = 6
Held = dict[str, dict[int, np.ndarray]]


def no_ids() -> np.ndarray:
    return np.empty(0, np.int64)


@dataclass
class Trainer:
    """Appends commits; `rows` is what a replica must then hold, by table and id."""

    store: Store
    seed: int = 0
    rows: dict[str, dict[int, np.ndarray]] = field(default_factory=dict)
    contract: str = CONTRACT.digest
    features: str = CONTRACT.features
    offset: int = 0
    dense: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tokens, chains = itertools.count(), itertools.count()
        options = WriterOptions(
            token=f"trainer-{self.seed}-{next(tokens)}",
            clock_ms=lambda: 1_000,
            new_chain=lambda: f"chain-{self.seed}-{next(chains)}",
            writer="test",
        )
        self.writer = Writer.open(self.store, options)
        self.random = np.random.default_rng(self.seed)

    def weights(self, count: int, dim: int) -> np.ndarray:
        return self.random.normal(size=(count, dim)).astype(np.float32)

    def base(self) -> Commit:
        """The first commit: every item, three users."""
        self.rows = {"user": {}, "item": {}}
        return self.commit(put={"user": (1, 5, 9), "item": range(ITEMS)}, kind=Kind.BASE, reset=True)

    def commit(
        self,
        put: Mapping[str, Sequence[int]] | None = None,
        delete: Sequence[int] = (),
        *,
        kind: Kind = Kind.DELTA,
        reset: bool = False,
        weights: np.ndarray | None = None,
        dense: Mapping[str, np.ndarray] | None = None,
        auc: float = 0.7,
        auc_rows: float = 20_000.0,
        forked: Link | None = None,
    ) -> Commit:
        """Put rows, those of users with given weights if there are, delete users."""
        tables = []
        for table in CONTRACT.tables:
            ids = np.array(sorted((put or {}).get(table.name, ())), np.int64)
            given = weights if table.name == "user" else None
            values = self.weights(len(ids), table.dim) if given is None else given
            gone = np.array(sorted(delete), np.int64) if table.name == "user" else no_ids()
            tables.append(table_rows(table, ids, values, gone, reset))
            if reset:
                self.rows[table.name] = {}
            for key in gone.tolist():
                self.rows[table.name].pop(key, None)
            self.rows[table.name].update(zip(ids.tolist(), values, strict=True))
        tables.append(admission())
        self.offset += 10
        return self.append(tables, kind, dense, {"auc": auc, "auc_rows": auc_rows}, forked)

    def append(
        self,
        tables: Sequence[TableRows],
        kind: Kind,
        dense: Mapping[str, np.ndarray] | None,
        figures: Mapping[str, float],
        forked: Link | None = None,
    ) -> Commit:
        state = StreamState()
        state.cursors.add(topic="events", partition=0, offset=self.offset, row=2)
        state.watermarks.add(topic="events", partition=0, event_time_ms=self.offset)
        own = self.dense or {"parameter/w": self.weights(7, 1)}
        arrays = {"optimizer/w": self.weights(7, 1), **own, **(dense or {})}
        blobs = stage(self.store, seq=self.writer.next_seq, rank=0, rows=tables, dense=arrays, stream=state)
        draft = Draft(
            kind=kind,
            step=self.offset,
            event_time_ms=self.offset,
            broker_time_ms=self.offset + 1,
            world=1,
            contract=self.contract,
            features=self.features,
            blobs=blobs,
            figures=figures,
            forked=forked,
        )
        return self.writer.append(draft)


def table_rows(table: Table, ids: np.ndarray, values: np.ndarray, gone: np.ndarray, reset: bool) -> TableRows:
    return TableRows(
        table=table.name,
        shard=0,
        kind=table.kind,
        ids=ids,
        slots=ids,
        columns={"weight": values, "momentum1": np.zeros(len(ids), np.float32)},
        deleted=gone,
        reset=reset,
    )


def admission() -> TableRows:
    """Counters that serving must not see."""
    ids = np.array([77], np.int64)
    return TableRows(
        table="user",
        shard=0,
        kind="admission",
        ids=ids,
        slots=ids,
        columns={"count": np.ones(1, np.int64)},
        deleted=no_ids(),
    )


CONFIG = """
model_dir: "{model_dir}"
train_config {{ sparse_optimizer {{ sgd_optimizer {{ lr: 0.1 }} constant_learning_rate {{}} }} }}
data_config {{
  batch_size: 8
  dataset_type: ParquetDataset
  label_fields: "label"
  fg_mode: FG_NORMAL
  input_fields {{ input_name: "user_id" input_type: INT64 }}
  input_fields {{ input_name: "item_id" input_type: INT64 }}
  input_fields {{ input_name: "label" input_type: FLOAT }}
}}
feature_configs {{ id_feature {{ feature_name: "user_id" expression: "user:user_id" embedding_name: "user"
  embedding_dim: 4 zch {{ zch_size: 1000 hash {{}} }} }} }}
feature_configs {{ id_feature {{ feature_name: "item_id" expression: "item:item_id" embedding_name: "item"
  embedding_dim: 3 num_buckets: 6 }} }}
model_config {{
  feature_groups {{ group_name: "all" feature_names: "user_id" feature_names: "item_id" group_type: DEEP }}
  multi_tower {{ towers {{ input: "all" mlp {{ hidden_units: 4 }} }} final {{ hidden_units: 4 }} }}
  num_class: 1
  losses {{ binary_cross_entropy {{}} }}
}}
publish_config {{ dense_runtime: TORCH_SCRIPT {publish} }}
"""


class Told:
    """A notifier that remembers."""

    def __init__(self) -> None:
        self.notifications: list[Notification] = []

    def notify(self, notification: Notification) -> None:
        self.notifications.append(notification)

    def close(self) -> None:
        pass


class Bench:
    """One store, its trainer, and publishers over it."""

    contract = CONTRACT
    items = ITEMS

    def __init__(self, store: Store) -> None:
        self.store = store
        self.trainer = Trainer(store)
        self.told = Told()
        self.metrics = PublisherMetrics()
        self.clock = itertools.count(2_000)

    def train_under(self, config: EasyRecConfig) -> None:
        """Let commits say that they were trained under a real configuration, with dense weights of its model."""
        contract = Contract.of(config)
        self.trainer.contract, self.trainer.features = contract.digest, contract.features
        state = build_dense_half(config).state_dict()
        self.trainer.dense = {f"parameter/{name}": value.numpy() for name, value in state.items()}

    def publisher(
        self,
        *,
        signer: Signer | None = None,
        background: Background | None = None,
        contract: Contract = CONTRACT,
        store: Store | None = None,
        **options: object,
    ) -> Publisher:
        around = Surroundings(
            background=background or NoBackground(),
            notifier=self.told,
            metrics=self.metrics,
            clock_ms=lambda: next(self.clock),
            signer=signer,
        )
        return Publisher(store or self.store, contract, PublishOptions(**{"runtime": "eager", **options}), around)

    def publish(self, **options: object) -> Publisher:
        """Start a publisher and let it do all there is to do."""
        follower = self.publisher(**options)
        while follower.step():
            pass
        return follower

    def current(self) -> ServingVersion:
        version = read_current(self.store)
        assert version is not None
        return version

    def refusals(self, seq: int) -> list[str]:
        note = json.loads(self.store.get(refusal_path(seq)))
        return [reason["code"] for reason in note["reasons"]]

    def held(self, version: ServingVersion, loaded: ServingVersion | None = None, rows: Held | None = None) -> Held:
        """What a replica holds that follows the plan from `loaded`, whose rows are `rows`."""
        plan = version.plan(loaded)
        held: Held = {table.name: dict(rows[table.name]) if rows else {} for table in version.tables}
        if plan.base is not None:
            held = {table.name: {} for table in version.tables}
            for blob in plan.base.blobs:
                self._apply(held, version, blob)
        for delta in plan.deltas:
            for name in delta.resets:
                held[name] = {}
            for blob in delta.blobs:
                self._apply(held, version, blob)
        return held

    def _apply(self, held: Held, version: ServingVersion, blob: Blob) -> None:
        dims = {table.name: table.dim for table in version.tables}
        for part in read_rows(self.store, version.tables, blob):
            for key in part.deleted.tolist():
                held[part.table].pop(key, None)
            weights = decode(part.rows, Encoding(version.encoding), dims[part.table])
            held[part.table].update(zip(part.ids.tolist(), weights, strict=True))

    def same(self, held: Held, rows: Held) -> bool:
        return held.keys() == rows.keys() and all(
            held[name].keys() == rows[name].keys()
            and all(np.array_equal(held[name][key], rows[name][key]) for key in rows[name])
            for name in rows
        )


@pytest.fixture
def make_bench() -> type[Bench]:
    return Bench


@pytest.fixture
def config_text() -> Callable[..., str]:
    return lambda model_dir, publish="": CONFIG.format(model_dir=model_dir, publish=publish)


@pytest.fixture
def parsed_config(config_text) -> Callable[..., EasyRecConfig]:
    return lambda model_dir: parse_config(config_text(model_dir), json=False)


@pytest.fixture
def bench() -> Bench:
    return Bench(MemoryStore())


@pytest.fixture
def local_bench(tmp_path: Path) -> Bench:
    return Bench(LocalStore(tmp_path / "model"))
