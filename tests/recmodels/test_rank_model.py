"""What every ranking model shares: losses with weights, metrics, wrappers, dropout; the registry and the seed."""

import math
import sys
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
import torch
from google.protobuf import text_format
from torch import Tensor, nn

from features import BASE, Batch, FeatureSet, create_features
from protos.pipeline_pb2 import EasyRecConfig
from recmodels.base_model import BaseModel, ModelInputs
from recmodels.errors import ModelConfigError, UnknownModelError
from recmodels.metrics.ranking import group_aucs
from recmodels.observe import observe, progressive_metrics
from recmodels.rank_model import RankModel, first_ids
from recmodels.registry import create_model, model_class, model_name, register_model, registered_models
from recmodels.seeding import seed_parameters
from recmodels.wrappers import REPEAT_KEY, PredictWrapper, TrainWrapper

GROUPS = 'feature_groups { group_name: "deep" group_type: DEEP feature_names: "price" feature_names: "size" }'
TOWER = f'{GROUPS} multi_tower {{ towers {{ input: "deep" }} final {{ hidden_units: 4 }} }}'
BCE = "losses { binary_cross_entropy {} }"


def config_of(model: str, data: str = "") -> EasyRecConfig:
    text = f"""
      train_input_path: "" eval_input_path: "" model_dir: ""
      data_config {{ fg_mode: FG_NONE label_fields: "label" {data} }}
      feature_configs {{ raw_feature {{ feature_name: "price" expression: "item:price" }} }}
      feature_configs {{ raw_feature {{ feature_name: "size" expression: "item:size" value_dim: 2 }} }}
      feature_configs {{ id_feature {{ feature_name: "user" num_buckets: 9 embedding_dim: 4 }} }}
      model_config {{ {model} }}"""
    return text_format.Parse(text, EasyRecConfig())


def build(model: str, data: str = "") -> tuple[RankModel, FeatureSet]:
    config = config_of(model, data)
    features = create_features(config)
    built = create_model(config, features)
    assert isinstance(built, RankModel)
    return built, features


def rows(count: int, seed: int = 0) -> pa.RecordBatch:
    rng = np.random.default_rng(seed)
    price = rng.normal(size=count).astype(np.float32)
    return pa.RecordBatch.from_pydict(
        {
            "price": price,
            "size": pa.array(rng.normal(size=(count, 2)).astype(np.float32).tolist(), pa.list_(pa.float32())),
            "user": rng.integers(0, 3, count),
            "label": (price > 0).astype(np.float32),
            "weight": rng.random(count).astype(np.float32),
        }
    )


def test_sample_weights_are_normalised_by_their_mean() -> None:
    model, features = build(f"{TOWER} {BCE}", 'sample_weight_fields: "weight"')
    batch = features.parse(rows(7))
    predictions = model.predict(batch)
    each = nn.functional.binary_cross_entropy_with_logits(
        predictions["logits"], batch.labels["label"].float(), reduction="none"
    )
    weight = batch.sample_weights["weight"]
    losses = model.loss(predictions, batch)
    assert torch.allclose(losses["binary_cross_entropy"], (each * weight / weight.mean()).mean())


def test_total_loss_is_the_sum_of_all_losses() -> None:
    model, features = build(f"{TOWER} {BCE} losses {{ l2_loss {{}} }}")
    batch = features.parse(rows(5))
    total, (losses, predictions, same) = TrainWrapper(model)(batch)
    assert set(losses) == {"binary_cross_entropy", "l2_loss"}
    assert set(predictions) == {"logits", "probs", "y"}
    assert same is batch
    assert torch.allclose(total.detach(), losses["binary_cross_entropy"] + losses["l2_loss"])
    assert total.requires_grad
    assert not any(tensor.requires_grad for tensor in [*losses.values(), *predictions.values()])


def test_session_loss_finds_its_sessions_in_the_batch() -> None:
    jrc = 'num_class: 2 losses { jrc_loss { session_name: "user" } }'
    model, features = build(f"{TOWER} {jrc}")
    batch = features.parse(rows(12))
    assert math.isfinite(float(model.loss(model.predict(batch), batch)["jrc_loss"].detach()))
    without, features = build(f"{TOWER} {jrc.replace('user', 'price')}")
    with pytest.raises(ModelConfigError, match="'price'"):
        without.loss(without.predict(batch), batch)


def test_first_ids_are_those_of_each_row() -> None:
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

    kjt = KeyedJaggedTensor(
        keys=["a", "u"], values=torch.tensor([9, 5, 6, 7]), lengths=torch.tensor([1, 0, 0, 2, 0, 1])
    )
    batch = Batch(size=3, sparse_features={BASE: kjt})
    assert first_ids(batch, "u").tolist() == [5, -1, 7]
    assert first_ids(batch, "a").tolist() == [9, -1, -1]


def test_metrics_are_computed_and_start_over() -> None:
    model, features = build(
        f'{TOWER} {BCE} metrics {{ auc {{}} }} metrics {{ grouped_auc {{ grouping_key: "user" }} }}'
    )
    batches = [features.parse(rows(30, seed)) for seed in range(3)]
    for batch in batches:
        predictions = model.predict(batch)
        model.update_metric(predictions, batch, model.loss(predictions, batch))
    first = model.compute_metric()
    assert set(first) == {"auc", "grouped_auc", "binary_cross_entropy"}
    assert all(math.isfinite(value) for value in first.values())
    assert math.isnan(model.compute_metric()["auc"])


def test_metrics_of_ranks_merge() -> None:
    text = f"{TOWER} {BCE} metrics {{ auc {{}} }} metrics {{ normalized_entropy {{}} }}"
    whole, features = build(text)
    first, second = build(text)[0], build(text)[0]
    batches = [features.parse(rows(30, seed)) for seed in range(2)]
    for batch, part in zip(batches, (first, second), strict=True):
        predictions = whole.predict(batch)
        for model in (whole, part):
            model.update_metric(predictions, batch, whole.loss(predictions, batch))
    first.merge_metric_state(second.metric_state())
    assert first.compute_metric() == pytest.approx(whole.compute_metric(), rel=1e-12)


def test_train_metrics_survive_a_restart() -> None:
    text = f"{TOWER} {BCE} train_metrics {{ auc {{}} decay_step: 2 }} train_metrics {{ accuracy {{}} decay_step: 2 }}"
    through, features = build(text)
    before, after = build(text)[0], build(text)[0]
    batches = [features.parse(rows(30, seed)) for seed in range(7)]
    for index, batch in enumerate(batches):
        predictions = through.predict(batch)
        through.update_train_metric(predictions, batch)
        if index < 3:
            before.update_train_metric(predictions, batch)
    after.load_train_metric_state(before.train_metric_state())
    for batch in batches[3:]:
        after.update_train_metric(through.predict(batch), batch)
    assert after.compute_train_metric() == through.compute_train_metric()
    assert set(through.compute_train_metric()) == {"auc", "accuracy"}


def test_variational_dropout_adds_its_loss_for_groups_of_several_features() -> None:
    model, features = build(f"{TOWER} {BCE} variational_dropout {{ regularization_lambda: 0.5 }}")
    batch = features.parse(rows(8))
    losses = model.loss(model.predict(batch), batch)
    rates = torch.sigmoid(model.dropouts["deep"].logit)
    assert torch.allclose(losses["deep_feature_p_loss"], 0.5 / 8 * (1 - rates).sum())
    group = torch.randn(4, 3)
    scaled = group * torch.repeat_interleave(1 - rates, torch.tensor([1, 2]))
    expected = model.to_predictions(model.score({"deep": scaled}))
    assert torch.allclose(model.eval().predict_groups({"deep": group})["logits"], expected["logits"])


def test_predict_wrapper_keeps_the_columns_asked_for() -> None:
    model, features = build(f"{TOWER} {BCE}")
    batch = features.parse(rows(4), labels=False)
    assert set(PredictWrapper(model)(batch)) == {"logits", "probs"}
    only = PredictWrapper(model, columns=["probs"])(batch)
    assert set(only) == {"probs"}
    assert not only["probs"].requires_grad
    with pytest.raises(ModelConfigError, match="there are"):
        PredictWrapper(model, columns=["probz"])(batch)


def test_predict_wrapper_keeps_the_repeat_counts_beside_the_columns() -> None:
    class Repeating(RankModel):
        def score(self, groups: dict[str, Tensor]) -> Tensor:
            return groups["deep"][:, :1]

        def predict_groups(self, groups: dict[str, Tensor]) -> dict[str, Tensor]:
            return super().predict_groups(groups) | {REPEAT_KEY: torch.ones(1)}

    model, features = build(f"{TOWER} {BCE}")
    config = config_of(f"{TOWER} {BCE}")
    repeating = Repeating(
        config.model_config, ModelInputs(embedding_group=model.embedding_group, labels=features.labels)
    )
    assert set(PredictWrapper(repeating, columns=["probs"])(features.parse(rows(2)))) == {"probs", REPEAT_KEY}


def test_mixed_precision_computes_in_half_and_keeps_float_losses() -> None:
    model, features = build(f"{TOWER} {BCE}")
    total, (losses, predictions, _) = TrainWrapper(model, mixed_precision="BF16")(features.parse(rows(6)))
    assert predictions["logits"].dtype == torch.bfloat16
    assert losses["binary_cross_entropy"].dtype == torch.float32
    total.backward()
    with pytest.raises(ModelConfigError, match="mixed_precision"):
        TrainWrapper(model, mixed_precision="FP8")


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (TOWER, "no losses"),
        (f"{TOWER} {BCE} {BCE}", "same loss twice"),
        (f"{TOWER} {BCE} metrics {{ auc {{}} }} metrics {{ auc {{}} }}", "same metric twice"),
        (f"{TOWER} {BCE} num_class: 0", "num_class"),
        (f"{GROUPS} {BCE}", "one model"),
        (f"{GROUPS} tdm {{ multiwindow_din {{ attn_mlp {{}} }} final {{}} }} {BCE}", "no model 'TDM'"),
    ],
)
def test_model_config_is_refused_with_a_reason(model: str, reason: str) -> None:
    with pytest.raises(ModelConfigError, match=reason):
        build(model)


def test_a_label_is_needed() -> None:
    config = config_of(f"{TOWER} {BCE}")
    config.data_config.ClearField("label_fields")
    with pytest.raises(ModelConfigError, match="label_fields"):
        create_model(config, create_features(config))


def test_model_is_named_by_its_message() -> None:
    assert model_name(config_of(f"{TOWER} {BCE}").model_config) == "MultiTower"
    with pytest.raises(UnknownModelError):
        model_class("NoSuchModel")


def test_two_models_of_one_name_are_refused() -> None:
    taken = next(iter(registered_models().values()))
    other = type(taken.__name__, (BaseModel,), {"__module__": "elsewhere"})
    with pytest.raises(ModelConfigError, match="rename"):
        register_model(other)
    assert registered_models()[taken.__name__] is taken


def test_plugins_are_imported_before_the_model_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "a_plugin_of_the_users", ModuleType("a_plugin_of_the_users"))
    config = config_of(f"{TOWER} {BCE}")
    config.plugins.append("a_plugin_of_the_users")
    features = create_features(config)
    create_model(config, features)
    config.plugins.append("no_such_plugin")
    with pytest.raises(ModelConfigError, match="no_such_plugin"):
        create_model(config, features)


def test_seed_reaches_parameters_by_place_not_by_order() -> None:
    small, large = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    seed_parameters(small, 4)
    seed_parameters(large, 4)
    assert torch.equal(small[0].weight, large[0].weight)
    assert not torch.equal(large[0].weight, large[1].weight)


def test_seed_refuses_parameters_that_cannot_be_drawn_anew() -> None:
    class Bare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

    with pytest.raises(ModelConfigError, match="reset_parameters"):
        seed_parameters(nn.Sequential(Bare()), 0)


def test_scaled_losses_of_ranks_average_to_the_loss_of_all_rows() -> None:
    model, features = build(f"{TOWER} {BCE}")
    everything = rows(30)
    shards = [everything.slice(0, 22), everything.slice(22, 8), everything.slice(30, 0)]
    whole, _ = TrainWrapper(model)(features.parse(everything))
    scaled = [
        TrainWrapper(model)(features.parse(shard))[0] * len(shards) * shard.num_rows / everything.num_rows
        for shard in shards
    ]
    assert torch.allclose(torch.stack(scaled).mean(), whole, atol=1e-6)


def test_observe_counts_what_the_model_predicted() -> None:
    heads = f'{BCE} metrics {{ grouped_auc {{ grouping_key: "user" }} }} train_metrics {{ auc {{}} decay_step: 1 }}'
    model, features = build(f"{TOWER} {heads}")
    metrics, batch = progressive_metrics(model), features.parse(rows(40))
    predictions = model.predict(batch)
    observe(metrics, model, predictions, batch)
    observe(metrics, model, {name: tensor[:0] for name, tensor in predictions.items()}, features.parse(rows(0)))
    values = metrics.values()
    groups, label = first_ids(batch, "user").numpy(), batch.labels["label"].numpy()
    exact = group_aucs(predictions["probs"].detach().numpy(), label, groups)
    assert values["rows"] == 40
    assert values["gauc_window"] == pytest.approx(exact.mean())
    assert math.isfinite(values["auc"])


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (BCE, "probs"),
        ("losses { l2_loss {} }", None),
        ("num_class: 2 losses { softmax_cross_entropy {} }", "probs1"),
        ("num_class: 3 losses { softmax_cross_entropy {} }", None),
    ],
)
def test_the_probability_of_a_positive_label_is_named(head: str, name: str | None) -> None:
    model, features = build(f"{TOWER} {head}")
    assert model.probability == name
    metrics, batch = progressive_metrics(model), features.parse(rows(5))
    observe(metrics, model, model.predict(batch), batch)
    assert metrics.values()["rows"] == (0 if name is None else 5)
