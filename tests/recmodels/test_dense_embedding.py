"""Dense embeddings against their formulas in plain NumPy, and in a model and its dense half."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from google.protobuf import text_format

from features import create_features
from features.spec import DenseEmbeddingSpec
from protos.pipeline_pb2 import EasyRecConfig
from recmodels.modules.dense_embedding import DenseEmbeddings, Embedded
from recmodels.registry import create_model
from recmodels.wrappers import DenseHalf

AUTODIS = DenseEmbeddingSpec(method="autodis", dim=3, channels=4, temperature=0.5, keep_prob=0.7)
MLP = DenseEmbeddingSpec(method="mlp", dim=3)


def parts(made: DenseEmbeddings, feature: str) -> dict[str, np.ndarray]:
    suffix = f"_{feature}.weight"
    return {
        name.rsplit(".", 2)[-2].removesuffix(f"_{feature}"): value.numpy().astype(np.float64)
        for name, value in made.state_dict().items()
        if name.endswith(suffix)
    }


def softmax(x: np.ndarray) -> np.ndarray:
    shifted = np.exp(x - x.max())
    return shifted / shifted.sum()


def test_autodis_weighs_rows_by_the_formula() -> None:
    torch.manual_seed(0)
    made = DenseEmbeddings(
        [Embedded(feature=name, value_dim=1, spec=AUTODIS) for name in ("x", "y")],
        {"deep": [("y", 1), ("a", 2), ("x", 1)]},
    )
    group = torch.randn(5, 4)
    found = made({"deep": group, "other": group})
    assert found["other"] is group and found["deep"].shape == (5, 8)
    for feature, column, at in (("y", 0, 0), ("x", 3, 5)):
        held = parts(made, feature)
        for row in range(5):
            hidden = held["proj_w"] * float(group[row, column])
            hidden = np.where(hidden > 0, hidden, 0.01 * hidden)
            weights = softmax((held["proj_m"] @ hidden + 0.7 * hidden) / 0.5)
            np.testing.assert_allclose(found["deep"][row, at : at + 3].detach(), weights @ held["meta_emb"], rtol=1e-5)
    assert torch.equal(found["deep"][:, 3:5], group[:, 1:3])


@pytest.mark.parametrize("width", [1, 3])
def test_mlp_is_a_linear_map(width: int) -> None:
    torch.manual_seed(0)
    made = DenseEmbeddings(
        [Embedded(feature=name, value_dim=width, spec=MLP) for name in ("x", "y")], {"g": [("x", width), ("y", width)]}
    )
    group = torch.randn(4, 2 * width)
    found = made({"g": group})["g"].detach().numpy()
    for at, feature in enumerate(("x", "y")):
        weights = parts(made, feature)["proj_w"]
        assert weights.shape == (width, 3)
        expected = group[:, at * width : (at + 1) * width].numpy() @ weights
        np.testing.assert_allclose(found[:, 3 * at : 3 * at + 3], expected, rtol=1e-5, atol=1e-6)


def test_first_values_have_the_deviations_of_the_formulas() -> None:
    torch.manual_seed(0)
    wide = DenseEmbeddingSpec(method="autodis", dim=400, channels=300)
    held = parts(DenseEmbeddings([Embedded(feature="x", value_dim=1, spec=wide)], {"g": [("x", 1)]}), "x")
    assert abs(held["meta_emb"].std() - 1) < 0.02
    assert abs(held["proj_w"].std() - np.sqrt(2 / 301)) < 0.01
    assert abs(held["proj_m"].std() - np.sqrt(1 / 300)) < 0.002


CONFIG = """
model_dir: "/nowhere"
data_config { batch_size: 8 dataset_type: ParquetDataset fg_mode: FG_NORMAL label_fields: "y" }
feature_configs { id_feature { feature_name: "i" expression: "user:i" num_buckets: 9 embedding_dim: 4 } }
feature_configs { raw_feature { feature_name: "a" expression: "user:a" embedding_dim: 4 autodis { num_channels: 3 } } }
feature_configs { raw_feature { feature_name: "b" expression: "user:b" embedding_dim: 4 mlp {} value_dim: 2 } }
feature_configs { raw_feature { feature_name: "c" expression: "user:c" } }
model_config {
  feature_groups { group_name: "deep" feature_names: ["i", "a", "b", "c"] group_type: DEEP }
  feature_groups { group_name: "wide" feature_names: ["i", "a"] group_type: DEEP }
  dcn_v1 { cross { cross_num: 1 } deep { hidden_units: 4 } final { hidden_units: 4 } }
  losses { binary_cross_entropy {} }
}
"""


def test_a_model_trains_and_serves_its_dense_embeddings() -> None:
    config = EasyRecConfig()
    text_format.Parse(CONFIG, config)
    features = create_features(config)
    model = create_model(config, features)
    assert model.embedding_group.group_dims("deep") == [4, 4, 4, 1]
    rows = pa.record_batch({"i": [1, 2], "a": [0.5, -1.0], "b": [[1.0, 2.0], [3.0, 4.0]], "c": [0.1, 0.2], "y": [0, 1]})
    batch = features.parse(rows)
    predictions = model.predict(batch)
    torch.stack(list(model.loss(predictions, batch).values())).sum().backward()
    held = dict(model.named_parameters())
    names = [name for name in held if name.startswith("dense_embedding.")]
    assert len(names) == 4 and all(held[name].grad is not None and held[name].grad.any() for name in names)
    half = DenseHalf(model)
    assert {f"model.{name}" for name in names} <= set(half.state_dict())
    raw = model.embedding_group(batch)
    again = half(*(raw[name] for name in half.group_names))
    assert torch.equal(again["logits"], predictions["logits"])
    traced = torch.jit.trace(half.eval(), tuple(raw[name] for name in half.group_names), strict=False)
    torch.testing.assert_close(traced(*(raw[name] for name in half.group_names))["logits"], again["logits"])
    assert create_model(config, features).state_dict().keys() == model.state_dict().keys()
