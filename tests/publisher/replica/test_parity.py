"""A commit, published by the real publisher, predicts in a replica what the model predicts from the same rows."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest
import torch

from tests.publisher.replica.running import Model

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


def rows() -> pa.RecordBatch:
    random = np.random.default_rng(0)
    tags = ["\x1d".join(map(str, random.integers(0, 10, n))) for n in random.integers(0, 4, 30)]
    seen = [",".join(f"{i}:0.5" for i in random.integers(0, 20, n)) for n in random.integers(1, 4, 30)]
    price = random.random((30, 2)).astype(np.float32).tolist()
    return pa.record_batch(
        {
            "user": pa.array(random.integers(0, 40, 30)),
            "tags": pa.array(tags),
            "seen": pa.array(seen),
            "price": pa.array(price, pa.list_(pa.float32())),
        }
    )


ROWS = rows()


class Known(Model):
    """A model that also says what it predicts of its rows."""

    def expected(self) -> dict[str, np.ndarray]:
        """Pool with a loop, then ask the model's own dense half."""
        found = {
            name: jagged for group in self.batch.sparse_features.values() for name, jagged in group.to_dict().items()
        }
        groups = []
        for group in self.layout.groups:
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


@pytest.mark.parametrize("runtime", ["eager", "torch_script"])
def test_replica_predicts_what_the_model_predicts(runtime: str) -> None:
    model = Known(CONFIG, ROWS)
    switch, store = model.served(runtime)
    side = switch.current
    assert side is not None
    found = side.predict(ROWS)
    expected = model.expected()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)
    assert hashlib.sha256(store.get(side.version.dense.path)).hexdigest() == side.version.dense.digest


def test_one_row_of_the_user_predicts_what_it_does_beside_each_item() -> None:
    side = Known(CONFIG, ROWS).served("torch_script")[0].current
    assert side is not None
    users, items = ROWS.select(["user"]), ROWS.select(["tags", "seen", "price"])
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
