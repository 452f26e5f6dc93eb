"""Each model's formula, on random group tensors; what models have in common is in tests/contracts/test_models.py."""

import pytest
import torch
from google.protobuf import text_format
from torch import Tensor

from features import Batch, create_features
from protos.pipeline_pb2 import EasyRecConfig
from recmodels.errors import ModelConfigError
from recmodels.rank_model import RankModel
from recmodels.registry import create_model

MLP = "{ hidden_units: [6, 5] }"


def group(name: str, kind: str, *features: str) -> str:
    members = " ".join(f'feature_names: "{feature}"' for feature in features)
    return f'feature_groups {{ group_name: "{name}" group_type: {kind} {members} }} '


WIDE, FM = group("wide", "WIDE", "a", "b"), group("fm", "DEEP", "a", "b", "c")
DEEP = group("deep", "DEEP", "a", "b", "price")
SPARSE, DENSE = group("sparse", "DEEP", "a", "b", "c"), group("dense", "DEEP", "price")


def model_of(model: str) -> RankModel:
    ids = "".join(
        f"""feature_configs {{ id_feature {{ feature_name: "{name}" expression: "user:{name}" embedding_dim: 4
              num_buckets: 10 }} }} """
        for name in ("a", "b", "c")
    )
    text = f"""
      train_input_path: "" eval_input_path: "" model_dir: "" seed: 1
      data_config {{ fg_mode: FG_NONE label_fields: "label" }} {ids}
      feature_configs {{ raw_feature {{ feature_name: "price" expression: "user:price" value_dim: 3 }} }}
      model_config {{ {model} losses {{ binary_cross_entropy {{}} }} }}"""
    config = text_format.Parse(text, EasyRecConfig())
    built = create_model(config, create_features(config)).eval()
    assert isinstance(built, RankModel)
    return built


def groups_of(model: RankModel) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    names = model.embedding_group.group_names()
    return {name: torch.randn(3, model.embedding_group.group_total_dim(name), generator=generator) for name in names}


def test_deepfm_adds_linear_pairwise_and_deep() -> None:
    model = model_of(f"{WIDE} {DEEP} {FM} deepfm {{ deep {MLP} }}")
    groups = groups_of(model)
    a, b, c = groups["fm"].split(4, dim=1)
    pairs = (a * b + a * c + b * c).sum(1, keepdim=True)
    expected = groups["wide"].sum(1, keepdim=True) + pairs + model.output(model.deep(groups["deep"]))
    assert torch.allclose(model.score(groups), expected, atol=1e-5)


def test_deepfm_joins_its_parts_in_the_final_mlp() -> None:
    model = model_of(f"{WIDE} {DEEP} {FM} deepfm {{ deep {MLP} final {MLP} }}")
    groups = groups_of(model)
    a, b, c = groups["fm"].split(4, dim=1)
    parts = [groups["wide"].sum(1, keepdim=True), a * b + a * c + b * c, model.deep(groups["deep"])]
    expected = model.output(model.final(torch.cat(parts, 1)))
    assert torch.allclose(model.score(groups), expected, atol=1e-5)


def test_deepfm_without_an_fm_group_crosses_the_deep_one() -> None:
    deep = group("deep", "DEEP", "a", "b")
    model = model_of(f"{WIDE} {deep} deepfm {{ deep {MLP} wide_embedding_dim: 8 }}")
    groups = groups_of(model)
    a, b = groups["deep"].split(4, dim=1)
    assert groups["wide"].shape == (3, 16)
    expected = groups["wide"].sum(1) + (a * b).sum(1) + model.output(model.deep(groups["deep"])).squeeze(1)
    assert torch.allclose(model.score(groups).squeeze(1), expected, atol=1e-5)


def test_wide_and_deep_adds_or_joins() -> None:
    model = model_of(f"{WIDE} {DEEP} wide_and_deep {{ deep {MLP} }}")
    groups = groups_of(model)
    wide = groups["wide"].sum(1, keepdim=True)
    assert torch.allclose(model.score(groups), wide + model.output(model.deep(groups["deep"])))
    joined = model_of(f"{WIDE} {DEEP} wide_and_deep {{ deep {MLP} final {MLP} }}")
    expected = joined.output(joined.final(torch.cat([wide, joined.deep(groups["deep"])], 1)))
    assert torch.allclose(joined.score(groups), expected)


def test_multi_tower_passes_on_a_group_without_mlp() -> None:
    towers = f'towers {{ input: "fm" mlp {MLP} }} towers {{ input: "dense" }}'
    model = model_of(f"{DENSE} {FM} multi_tower {{ {towers} final {MLP} }}")
    groups = groups_of(model)
    joined = torch.cat([model.towers[0](groups["fm"]), groups["dense"]], 1)
    assert torch.allclose(model.score(groups), model.output(model.final(joined)))


def test_dlrm_orders_products_dense_and_sparse() -> None:
    dense_mlp = "dense_mlp { hidden_units: 4 }"
    model = model_of(f"{SPARSE} {DENSE} dlrm {{ {dense_mlp} final {MLP} }}")
    groups = groups_of(model)
    dense = model.tokens.dense(groups["dense"])
    fields = [dense, *groups["sparse"].split(4, dim=1)]
    products = [(fields[i] * fields[j]).sum(1) for i in range(4) for j in range(i + 1, 4)]
    joined = torch.cat([torch.stack(products, 1), dense, groups["sparse"]], 1)
    assert torch.allclose(model.score(groups), model.output(model.final(joined)), atol=1e-5)
    lean = model_of(f"{SPARSE} {DENSE} dlrm {{ {dense_mlp} arch_with_sparse: false final {MLP} }}")
    assert lean.final.layers[0].linear.in_features == 6 + 4


def test_dlrm_takes_a_single_group_of_any_name_as_sparse() -> None:
    model = model_of(f"{FM} dlrm {{ final {MLP} }}")
    assert model.final.layers[0].linear.in_features == 3 + 12


@pytest.mark.parametrize("dense_mlp", ["", "dense_mlp { hidden_units: 5 }"])
def test_dlrm_needs_a_dense_mlp_of_the_embeddings_width(dense_mlp: str) -> None:
    with pytest.raises(ModelConfigError, match="dense_mlp must be 4"):
        model_of(f"{SPARSE} {DENSE} dlrm {{ {dense_mlp} final {MLP} }}")


def test_dcn_joins_crosses_and_mlp() -> None:
    model = model_of(f"{DEEP} dcn_v1 {{ cross {{}} deep {MLP} final {MLP} }}")
    groups = groups_of(model)
    joined = torch.cat([model.cross(groups["deep"]), model.deep(groups["deep"])], 1)
    assert model.output.bias is None
    assert torch.allclose(model.score(groups), model.output(model.final(joined)))


def test_dcn_v2_crosses_the_backbone_and_keeps_the_deep_input_raw() -> None:
    model = model_of(f"{DEEP} dcn_v2 {{ backbone {MLP} cross {{ low_rank: 3 }} deep {MLP} final {MLP} }}")
    groups = groups_of(model)
    joined = torch.cat([model.cross(model.backbone(groups["deep"])), model.deep(groups["deep"])], 1)
    assert torch.allclose(model.score(groups), model.output(model.final(joined)))


def test_xdeepfm_crosses_wide_beside_deep() -> None:
    model = model_of(f"{WIDE} {DEEP} xdeepfm {{ cin {{ cin_layer_size: [3, 2] }} deep {MLP} final {MLP} }}")
    groups = groups_of(model)
    assert groups["wide"].shape == (3, 32)
    joined = torch.cat([model.cin(groups["wide"].reshape(3, 2, 16)), model.deep(groups["deep"])], 1)
    assert torch.allclose(model.score(groups), model.output(model.final(joined)))


def test_wukong_starts_from_dense_and_sparse_tokens() -> None:
    layer = f"wukong_layers {{ lcb_feature_num: 2 fmb_feature_num: 3 feature_num_mlp {MLP} }}"
    model = model_of(f"{SPARSE} {DENSE} wukong {{ dense_mlp {{ hidden_units: 4 }} {layer} {layer} final {MLP} }}")
    groups = groups_of(model)
    x = torch.cat([model.tokens.dense(groups["dense"]).unsqueeze(1), groups["sparse"].reshape(3, 3, 4)], 1)
    for part in model.layers:
        x = part(x)
    assert x.shape == (3, 5, 4)
    assert torch.allclose(model.score(groups), model.output(model.final(x.flatten(1))))


@pytest.mark.parametrize(
    "model",
    [
        f"{DEEP} {FM} deepfm {{ deep {MLP} }}",
        f"{WIDE} {DEEP} deepfm {{ deep {MLP} }}",
        f"{WIDE} wide_and_deep {{ deep {MLP} }}",
        f"{DEEP} multi_tower {{ final {MLP} }}",
        f'{DEEP} multi_tower {{ towers {{ input: "none" }} final {MLP} }}',
        f'{DEEP} multi_tower {{ towers {{ input: "deep" }} towers {{ input: "deep" }} final {MLP} }}',
        f"{DEEP} {FM} dlrm {{ final {MLP} }}",
        f"{DEEP} mask_net {{ mask_net_module {{ n_mask_blocks: 2 mask_block {{ hidden_dim: 4 }} }} }}",
        f"{WIDE} {DEEP} xdeepfm {{ cin {{}} deep {MLP} final {MLP} }}",
        f"{SPARSE} wukong {{ final {MLP} }}",
        f"dcn_v1 {{ cross {{}} deep {MLP} final {MLP} }}",
    ],
)
def test_model_refuses_groups_and_options_that_do_not_fit(model: str) -> None:
    with pytest.raises(ModelConfigError):
        model_of(model)


ROCKET = "booster_mlp { hidden_units: [6, 5] } light_mlp { hidden_units: [5, 4] }"


def rocket(extra: str = "") -> RankModel:
    return model_of(
        f"{DEEP} rocket_launching {{ {ROCKET} {extra} }} train_metrics {{ auc {{}} }} metrics {{ auc {{}} }}"
    )


def labelled(rows: int) -> Batch:
    return Batch(size=rows, labels={"label": torch.arange(rows) % 2})


def test_rocket_serves_the_light_net_and_trains_both() -> None:
    model = rocket()
    groups = groups_of(model)
    assert set(model.predict_groups(groups)) == {"logits_light", "probs_light"}
    predictions = model.train().predict_groups(groups)
    assert set(predictions) == {"logits_light", "probs_light", "logits_booster", "probs_booster"}
    assert torch.equal(predictions["logits_light"], model.score(groups).squeeze(1))
    losses = model.loss(predictions, labelled(3))
    gap = predictions["logits_light"] - predictions["logits_booster"]
    assert torch.allclose(losses["hint_l2_loss"], gap.square().mean())
    assert set(losses) == {"binary_cross_entropy_light", "binary_cross_entropy_booster", "hint_l2_loss"}


def test_rocket_hint_teaches_the_light_net_only() -> None:
    model = rocket("share_mlp { hidden_units: 4 } feature_based_distillation: true").train()
    losses = model.loss(model.predict_groups(groups_of(model)), labelled(3))
    (losses["hint_l2_loss"] + losses["similarity_0_1"] + losses["binary_cross_entropy_light"]).backward()
    taught = {name.split(".")[0] for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert taught == {"light", "light_output"}


def test_rocket_draws_layers_of_equal_width_together() -> None:
    groups = groups_of(rocket())
    for function, expected in (
        ("COSINE", lambda one, two: -0.1 * torch.nn.functional.cosine_similarity(one, two).mean()),
        ("EUCLID", lambda one, two: (one - two).square().sum().sqrt()),
    ):
        model = rocket(f"feature_based_distillation: true feature_distillation_function: {function}").train()
        booster, light = model.booster.hidden(groups["deep"])[1], model.light.hidden(groups["deep"])[0]
        losses = model.loss(model.predict_groups(groups), labelled(3))
        assert torch.allclose(losses["similarity_0_1"], expected(booster, light))


def test_rocket_judges_the_light_net_and_in_training_both() -> None:
    model = rocket()
    assert set(model.compute_metric()) == {"auc_light"}
    assert set(model.compute_train_metric()) == {"auc_light", "auc_booster"}
    assert model.probability == "probs_light"
