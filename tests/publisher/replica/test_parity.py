"""A commit, published by the real publisher, predicts in a replica what the model predicts from the same rows."""

import hashlib
import itertools

import numpy as np
import pyarrow as pa
import pytest
import torch

from checkpointer import Draft, Kind, TableRows, Writer, WriterOptions, stage
from checkpointer.memory_store import MemoryStore
from features import create_features
from protos.commit_pb2 import StreamState
from protos.load import parse_config
from publisher.background import NoBackground
from publisher.contract import Contract
from publisher.export.host import this_host
from publisher.follow import Publisher, Surroundings
from publisher.metrics import PublisherMetrics
from publisher.notify import NoNotifier
from publisher.options import PublishOptions
from publisher.replica.follower import Follower
from publisher.replica.metrics import ReplicaMetrics
from publisher.replica.model import Side
from publisher.replica.switch import Switch
from recmodels.registry import create_model
from recmodels.wrappers import DenseHalf

CONFIG = """
model_dir: "unused"
data_config { label_fields: "label" fg_mode: FG_NORMAL }
feature_configs { id_feature { feature_name: "user" expression: "user:user" embedding_dim: 8
  zch { zch_size: 1000 hash {} } } }
feature_configs { id_feature { feature_name: "tags" expression: "item:tags" embedding_dim: 8 num_buckets: 10
  pooling: "mean" } }
feature_configs { id_feature { feature_name: "seen" expression: "item:seen" embedding_dim: 8 num_buckets: 20
  weighted: true separator: "," } }
feature_configs { raw_feature { feature_name: "price" expression: "item:price" value_dim: 2 } }
model_config {
  feature_groups { group_name: "wide" feature_names: "tags" feature_names: "user" group_type: WIDE }
  feature_groups { group_name: "fm" feature_names: "user" feature_names: "tags" feature_names: "seen" group_type: DEEP }
  feature_groups { group_name: "deep" feature_names: "price" feature_names: "seen" feature_names: "user"
    feature_names: "tags" group_type: DEEP }
  deepfm { deep { hidden_units: 16 } final { hidden_units: 4 } wide_embedding_dim: 4 }
  num_class: 1
  losses { binary_cross_entropy {} }
}
"""


class Setting:
    """A model with random weights, and its commit."""

    def __init__(self) -> None:
        self.config = parse_config(CONFIG, json=False)
        self.features = create_features(self.config)
        self.contract = Contract.of(self.config)
        torch.manual_seed(0)
        self.half = DenseHalf(create_model(self.config, self.features)).eval()
        random = np.random.default_rng(0)
        self.rows = pa.record_batch(
            {
                "user": pa.array(random.integers(0, 40, 30)),
                "tags": pa.array(["\x1d".join(map(str, random.integers(0, 10, n))) for n in random.integers(0, 4, 30)]),
                "seen": pa.array(
                    [",".join(f"{i}:0.5" for i in random.integers(0, 20, n)) for n in random.integers(1, 4, 30)]
                ),
                "price": pa.array(random.random((30, 2)).astype(np.float32).tolist(), pa.list_(pa.float32())),
            }
        )
        self.batch = self.features.parse(self.rows, labels=False)
        users = np.unique(self.batch.sparse_features["__BASE__"]["user"].values().numpy())
        # Every third user is unknown.
        known = users[np.arange(len(users)) % 3 != 0]
        self.tables: dict[str, tuple[str, np.ndarray, np.ndarray]] = {}
        sizes = {"tags": 10, "seen": 20}
        for table in self.contract.tables:
            ids = known if table.kind == "zch" else np.arange(sizes[table.name.split("_")[0]], dtype=np.int64)
            self.tables[table.name] = table.kind, ids, random.normal(size=(len(ids), table.dim)).astype(np.float32)

    def commit(self, store: MemoryStore) -> None:
        options = WriterOptions(token="t", clock_ms=lambda: 1, new_chain=lambda: "chain", writer="test")
        writer = Writer.open(store, options)
        rows = [
            TableRows(
                table=name, shard=0, kind=kind, ids=ids, slots=ids, columns={"weight": weights},
                deleted=np.empty(0, np.int64), reset=True,
            )
            for name, (kind, ids, weights) in self.tables.items()
        ]  # fmt: skip
        dense = {f"parameter/{name}": value.numpy() for name, value in self.half.state_dict().items()}
        blobs = stage(store, seq=writer.next_seq, rank=0, rows=rows, dense=dense, stream=StreamState())
        writer.append(
            Draft(
                kind=Kind.BASE,
                step=1,
                event_time_ms=1,
                broker_time_ms=2,
                world=1,
                contract=self.contract.digest,
                features=self.contract.features,
                blobs=blobs,
                figures={"auc": 0.7, "auc_rows": 20_000.0},
                forked=None,
            )  # fmt: skip
        )

    def expected(self) -> dict[str, np.ndarray]:
        """Pool with a loop, then ask the model's own dense half."""
        from recmodels.layout import create_layout

        layout = create_layout(self.features.features, self.config.model_config)
        found = {
            name: jagged for group in self.batch.sparse_features.values() for name, jagged in group.to_dict().items()
        }
        groups = []
        for group in layout.groups:
            parts = []
            for entry in group.entries:
                if entry.table is None:
                    parts.append(self.batch.dense_features["__BASE__"][entry.feature].numpy())
                    continue
                _, ids, weights = self.tables[entry.table]
                by_id = dict(zip(ids.tolist(), weights, strict=True))
                jagged = found[entry.feature]
                pooled = np.zeros((30, entry.dim), np.float32)
                scores = jagged.weights_or_none()
                for row in range(30):
                    begin, end = (int(jagged.offsets()[row + k]) for k in (0, 1))
                    for at in range(begin, end):
                        score = 1.0 if scores is None else float(scores[at])
                        pooled[row] += score * by_id.get(int(jagged.values()[at]), np.zeros(entry.dim, np.float32))
                    if entry.pooling == "mean" and end > begin:
                        pooled[row] /= end - begin
                parts.append(pooled)
            groups.append(torch.from_numpy(np.concatenate(parts, axis=1)))
        with torch.no_grad():
            return {name: value.numpy() for name, value in self.half(*groups).items()}


def served(setting: Setting, runtime: str) -> tuple[Side, MemoryStore]:
    """What a replica serves of the commit."""
    store = MemoryStore()
    setting.commit(store)
    clock = itertools.count(10)
    around = Surroundings(
        background=NoBackground(),
        notifier=NoNotifier(),
        metrics=PublisherMetrics(),
        clock_ms=lambda: next(clock),
        signer=None,
    )
    publisher = Publisher(store, setting.contract, PublishOptions(runtime=runtime), around)
    while publisher.step():
        pass
    switch: Switch[Side] = Switch()
    follower = Follower(
        store, switch, ReplicaMetrics(), host=this_host(), verifier=None, clock=lambda: 0.0, drain_s=1.0,
    )  # fmt: skip
    assert follower.poll()
    side = switch.current
    assert side is not None
    return side, store


@pytest.mark.parametrize("runtime", ["eager", "torch_script"])
def test_replica_predicts_what_the_model_predicts(runtime: str) -> None:
    setting = Setting()
    side, store = served(setting, runtime)
    found = side.predict(setting.rows)
    expected = setting.expected()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)
    assert hashlib.sha256(store.get(side.version.dense.path)).hexdigest() == side.version.dense.digest


def test_one_row_of_the_user_predicts_what_it_does_beside_each_item() -> None:
    setting = Setting()
    side, _ = served(setting, "torch_script")
    users, items = setting.rows.select(["user"]), setting.rows.select(["tags", "seen", "price"])
    for at in (0, 1, 2):
        user = users.slice(at, 1)
        repeated = user.column("user").take(pa.array([0] * items.num_rows))
        whole = side.predict(items.append_column("user", repeated))
        before = side.lookups()["user_emb"][0]
        tiled = side.predict(items, user)
        assert side.lookups()["user_emb"][0] == before + 2
        assert tiled.keys() == whole.keys()
        for name, value in whole.items():
            assert np.array_equal(tiled[name], value), name
