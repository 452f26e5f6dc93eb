"""The contract of every registered model; a model that registers without an example here fails the first test."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
import torch.distributed as dist
from google.protobuf import text_format
from torch import Tensor

from features import Batch, FeatureSet, create_features
from protos.pipeline_pb2 import EasyRecConfig
from recmodels.base_model import BaseModel
from recmodels.layout import create_layout
from recmodels.optimizers import DenseOptimizer, dense_optimizer, sparse_optimizer
from recmodels.registry import create_model, registered_models
from recmodels.sharding import shard
from recmodels.tables import ShardedTables
from recmodels.wrappers import DenseHalf, PredictWrapper, TrainWrapper

pytestmark = [
    # torch marks its own scripting and parts of torchrec as deprecated; neither is ours to replace.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),
    pytest.mark.filterwarnings("ignore::FutureWarning:torch"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
]

USER, ITEM, PRICE = 'feature_names: "user"', 'feature_names: "item"', 'feature_names: "price"'
WIDE = f'feature_groups {{ group_name: "wide" group_type: WIDE {USER} {ITEM} }}'
DEEP = f'feature_groups {{ group_name: "deep" group_type: DEEP {USER} {ITEM} {PRICE} }}'
FM = f'feature_groups {{ group_name: "fm" group_type: DEEP {USER} {ITEM} }}'
SPARSE = f'feature_groups {{ group_name: "sparse" group_type: DEEP {USER} {ITEM} }}'
DENSE = f'feature_groups {{ group_name: "dense" group_type: DEEP {PRICE} }}'
# ReLU layers this narrow may die in a short run, whatever the model.
MLP = '{ hidden_units: [16, 8] activation: "nn.LeakyReLU" }'

EXAMPLES = {
    "DeepFM": [
        f"{WIDE} {DEEP} {FM} deepfm {{ deep {MLP} }}",
        f"{WIDE} {DEEP} {FM} deepfm {{ deep {MLP} final {{ hidden_units: 8 use_bn: true }} }}",
        f"{WIDE} {DEEP.replace(PRICE, '')} deepfm {{ deep {MLP} wide_embedding_dim: 8 }}",
        f"{WIDE} {DEEP} {FM} deepfm {{ deep {MLP} }} variational_dropout {{}}",
    ],
    "MultiTower": [
        f"""{SPARSE} {DENSE} multi_tower {{ towers {{ input: "sparse" mlp {MLP} }} towers {{ input: "dense" }}
          final {MLP} }}"""
    ],
    "WideAndDeep": [
        f"{WIDE} {DEEP} wide_and_deep {{ deep {MLP} }}",
        f"{WIDE} {DEEP} wide_and_deep {{ deep {MLP} final {MLP} }}",
    ],
    "DCNV1": [f"{DEEP} dcn_v1 {{ cross {{}} deep {MLP} final {MLP} }}"],
    "DCNV2": [
        f"{DEEP} dcn_v2 {{ cross {{ low_rank: 4 }} final {MLP} }}",
        f"{DEEP} dcn_v2 {{ backbone {MLP} cross {{ low_rank: 4 }} deep {MLP} final {MLP} }}",
    ],
    "DLRM": [
        f"{SPARSE} {DENSE} dlrm {{ dense_mlp {MLP} final {MLP} }}",
        f"{SPARSE} {DENSE} dlrm {{ dense_mlp {MLP} arch_with_sparse: false final {MLP} }}",
        f"{FM} dlrm {{ final {MLP} }}",
    ],
    "MaskNet": [
        f"""{DEEP} mask_net {{ mask_net_module {{ n_mask_blocks: 2 mask_block {{ hidden_dim: 8 }} top_mlp {MLP}
          use_parallel: {parallel} }} }}"""
        for parallel in ("true", "false")
    ],
    "xDeepFM": [f"{WIDE} {DEEP} xdeepfm {{ cin {{ cin_layer_size: [4, 3] }} deep {MLP} final {MLP} }}"],
    "RocketLaunching": [
        f"{DEEP} rocket_launching {{ share_mlp {MLP} booster_mlp {MLP} light_mlp {{ hidden_units: [4, 8] }} }}",
        f"""{DEEP} rocket_launching {{ booster_mlp {MLP} light_mlp {{ hidden_units: [4, 8] }}
          feature_based_distillation: true }}""",
    ],
    "WuKong": [
        f"""{SPARSE} {DENSE} wukong {{ dense_mlp {MLP} final {MLP}
          wukong_layers {{ lcb_feature_num: 2 fmb_feature_num: 2 feature_num_mlp {MLP} }}
          wukong_layers {{ lcb_feature_num: 2 fmb_feature_num: 2 feature_num_mlp {MLP} }} }}"""
    ],
}
CASES = [pytest.param(text, id=f"{name}-{i}") for name, texts in EXAMPLES.items() for i, text in enumerate(texts)]
every_model = pytest.mark.parametrize("model_text", CASES)


def config_of(model_text: str, *, seed: int = 7, head: str = "losses { binary_cross_entropy {} }") -> EasyRecConfig:
    text = f"""
      train_input_path: "" eval_input_path: "" model_dir: ""
      train_config {{ sparse_optimizer {{ adagrad_optimizer {{ lr: 0.1 }} }}
                      dense_optimizer {{ adam_optimizer {{ lr: 0.01 }} }} }}
      data_config {{ fg_mode: FG_NONE label_fields: "label" }}
      feature_configs {{ id_feature {{ feature_name: "user" expression: "user:user" embedding_dim: 8
                                       zch {{ zch_size: 256 hash {{}} }} }} }}
      feature_configs {{ id_feature {{ feature_name: "item" expression: "item:item" embedding_dim: 8
                                       num_buckets: 30 }} }}
      feature_configs {{ raw_feature {{ feature_name: "price" expression: "item:price" }} }}
      model_config {{ {model_text} {head} }} seed: {seed}"""
    return text_format.Parse(text, EasyRecConfig())


def rows(count: int, seed: int, *, first_user: int = 0) -> pa.RecordBatch:
    """Events whose label the user and the price decide."""
    rng = np.random.default_rng(seed)
    user, item = rng.integers(0, 20, count), rng.integers(0, 30, count)
    price = rng.normal(size=count).astype(np.float32)
    label = ((user % 2 == 0) ^ (price > 1)).astype(np.float32)
    return pa.RecordBatch.from_pydict({"user": user + first_user, "item": item, "price": price, "label": label})


@pytest.fixture(scope="module", autouse=True)
def world() -> Iterator[dist.ProcessGroup]:
    logging.getLogger("torchrec").setLevel(logging.ERROR)
    started = not dist.is_initialized()
    if started:
        dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    yield dist.group.WORLD
    if started:
        dist.destroy_process_group()


@dataclass(kw_only=True)
class Trained:
    """A model behind DistributedModelParallel, with its optimizers."""

    model: BaseModel
    wrapped: torch.nn.Module
    features: FeatureSet
    tables: ShardedTables
    dense: DenseOptimizer

    def batch(self, events: pa.RecordBatch) -> Batch:
        return self.features.parse(events)

    def step(self, events: pa.RecordBatch) -> float:
        """Train on events; the cross entropy of the served head before that."""
        self.wrapped.train()
        self.tables.set_event_time(0)
        total, (losses, predictions, _) = self.wrapped(self.batch(events))
        total.backward()
        self.dense.step()
        self.dense.begin()
        self.tables.after_step()
        return float(losses[f"binary_cross_entropy{head_of(predictions)}"])

    def predict(self, events: pa.RecordBatch) -> dict[str, Tensor]:
        self.wrapped.eval()
        return PredictWrapper(self.model)(self.batch(events))


def build(config: EasyRecConfig) -> tuple[BaseModel, FeatureSet]:
    features = create_features(config)
    return create_model(config, features), features


def trained(config: EasyRecConfig, world: dist.ProcessGroup) -> Trained:
    model, features = build(config)
    layout = create_layout(features.features, config.model_config)
    sparse_optimizer(config.train_config.sparse_optimizer).attach(model.embedding_group.sparse_parameters())
    wrapped = shard(TrainWrapper(model), layout, process_group=world, device=torch.device("cpu"))
    dense = dense_optimizer(config.train_config.dense_optimizer, DenseHalf(model).named_parameters())
    tables = ShardedTables.of(wrapped, layout)
    return Trained(model=model, wrapped=wrapped, features=features, tables=tables, dense=dense)


def group_tensors(model: BaseModel, count: int, seed: int = 0) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    groups = model.embedding_group
    return tuple(torch.randn(count, groups.group_total_dim(name), generator=generator) for name in groups.group_names())


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def close(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.allclose(one[name], other[name], atol=1e-6) for name in one)


def head_of(predictions: dict[str, Tensor]) -> str:
    """The suffix of the served head."""
    return "_light" if any(name.endswith("_light") for name in predictions) else ""


def test_every_registered_model_has_an_example() -> None:
    assert set(EXAMPLES) == set(registered_models())


@every_model
def test_predictions_are_probabilities_of_each_row(model_text: str, world: dist.ProcessGroup) -> None:
    predictions = trained(config_of(model_text), world).predict(rows(5, 0))
    head = head_of(predictions)
    shapes = {name: tuple(tensor.shape) for name, tensor in predictions.items()}
    assert shapes == {f"logits{head}": (5,), f"probs{head}": (5,)}
    assert bool(((predictions[f"probs{head}"] > 0) & (predictions[f"probs{head}"] < 1)).all())


@every_model
def test_classes_and_regression_have_their_predictions(model_text: str) -> None:
    for head, shapes in (
        ("num_class: 2 losses { softmax_cross_entropy {} }", {"logits": (3, 2), "probs": (3, 2), "probs1": (3,)}),
        ("losses { l2_loss {} }", {"y": (3,)}),
    ):
        model, _ = build(config_of(model_text, head=head))
        predictions = DenseHalf(model).eval()(*group_tensors(model, 3))
        head = head_of(predictions)
        expected = {name + head: shape for name, shape in shapes.items()}
        assert {name: tuple(tensor.shape) for name, tensor in predictions.items()} == expected


class Losses(torch.nn.Module):
    """From group tensors to the sum of the losses, as training has it behind the embedding layer."""

    def __init__(self, model: BaseModel) -> None:
        super().__init__()
        self.dense = DenseHalf(model)

    def forward(self, batch: Batch, *groups: Tensor) -> Tensor:
        losses = self.dense.model.loss(self.dense(*groups), batch)
        return torch.stack(list(losses.values())).sum()


@every_model
def test_dense_half_and_losses_compute_where_their_parameters_are(model_text: str) -> None:
    head = "losses { binary_cross_entropy {} } losses { binary_focal_loss {} }"
    model, features = build(config_of(model_text, head=head))
    losses, batch = Losses(model), features.parse(rows(4, 0))
    # A device without memory: a tensor of the CPU among its own is an error there as it is on a GPU.
    meta = torch.device("meta")
    with pytest.raises(RuntimeError, match="meta"):
        losses(batch, *(group.to(meta) for group in group_tensors(model, 4)))
    losses.to(meta)
    total = losses(batch.to(meta), *(group.to(meta) for group in group_tensors(model, 4)))
    total.backward()
    assert total.device == meta and any(parameter.grad is not None for parameter in losses.parameters())


@every_model
def test_loss_falls_on_a_stream(model_text: str, world: dist.ProcessGroup) -> None:
    torch.manual_seed(0)
    learner = trained(config_of(model_text), world)
    losses = [learner.step(rows(64, step)) for step in range(100)]
    assert np.mean(losses[-10:]) < 0.8 * np.mean(losses[:5]), losses[::10]


@every_model
def test_state_survives_the_way_to_another_model(model_text: str) -> None:
    model, _ = build(config_of(model_text, seed=1))
    other, _ = build(config_of(model_text, seed=2))
    inputs = group_tensors(model, 6)
    half, other_half = DenseHalf(model).eval(), DenseHalf(other).eval()
    assert not equal(half(*inputs), other_half(*inputs))
    other_half.load_state_dict(half.state_dict())
    assert equal(half(*inputs), other_half(*inputs))


@every_model
def test_parameters_follow_the_seed_and_nothing_else(model_text: str) -> None:
    torch.manual_seed(1)
    first, _ = build(config_of(model_text, seed=5))
    drawn = torch.rand(3)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(3), drawn)
    second, _ = build(config_of(model_text, seed=5))
    another, _ = build(config_of(model_text, seed=6))
    states = [DenseHalf(model).state_dict() for model in (first, second, another)]
    assert equal(states[0], states[1])
    assert not equal(states[0], states[2])


@every_model
def test_training_twice_gives_the_same_bits(model_text: str, world: dist.ProcessGroup) -> None:
    outcomes = []
    for _ in range(2):
        torch.manual_seed(3)
        learner = trained(config_of(model_text), world)
        for step in range(5):
            learner.step(rows(32, step))
        outcomes.append((learner.predict(rows(16, 99)), DenseHalf(learner.model).state_dict()))
    assert equal(outcomes[0][0], outcomes[1][0])
    assert equal(outcomes[0][1], outcomes[1][1])


@every_model
def test_unseen_ids_all_read_the_same(model_text: str, world: dist.ProcessGroup) -> None:
    learner = trained(config_of(model_text), world)
    for step in range(5):
        learner.step(rows(32, step))
    seen, unseen, others = (learner.predict(rows(16, 1, first_user=first)) for first in (0, 1000, 2000))
    assert equal(unseen, others)
    name = f"logits{head_of(unseen)}"
    assert bool(torch.isfinite(unseen[name]).all())
    assert not torch.equal(unseen[name], seen[name])


@every_model
def test_an_empty_batch_takes_part_and_changes_nothing_by_itself(model_text: str, world: dist.ProcessGroup) -> None:
    learner = trained(config_of(model_text), world)
    learner.step(rows(32, 0))
    learner.wrapped.train()
    total, (_, predictions, _) = learner.wrapped(learner.batch(rows(0, 0)))
    total.backward()
    assert learner.model.probability is not None
    assert predictions[learner.model.probability].shape == (0,)
    assert bool(torch.isfinite(total))
    for name, parameter in DenseHalf(learner.model).named_parameters():
        if "dropouts" not in name:
            assert parameter.grad is None or not bool(parameter.grad.any()), name


@every_model
def test_dense_half_equals_the_whole(model_text: str, world: dist.ProcessGroup) -> None:
    learner = trained(config_of(model_text), world)
    learner.step(rows(32, 0))
    events = rows(9, 5)
    whole = learner.predict(events)
    groups = learner.model.embedding_group(learner.batch(events))
    half = DenseHalf(learner.model).eval()
    assert equal(half(*(groups[name] for name in half.group_names)), whole)
    tables = {id(parameter) for parameter in learner.model.embedding_group.parameters()}
    assert not any(id(parameter) in tables for parameter in half.parameters())


@every_model
def test_dense_half_exports_with_a_free_batch_size(model_text: str) -> None:
    model, _ = build(config_of(model_text))
    half = DenseHalf(model).eval()
    inputs = group_tensors(model, 4)
    rows_of = torch.export.Dim("rows", min=1, max=65536)
    shapes = {"groups": tuple({0: rows_of} for _ in inputs)}
    program = torch.export.export(half, inputs, dynamic_shapes=shapes)
    assert set(program.state_dict) == set(half.state_dict())
    assert not program.constants, "a hot swap of the weights would miss these"
    exported = program.module()
    for count in (1, 4, 9):
        again = group_tensors(model, count, seed=count)
        with torch.no_grad():
            assert close(exported(*again), half(*again))


@every_model
def test_dense_half_traces_to_torchscript(model_text: str) -> None:
    model, _ = build(config_of(model_text))
    half = DenseHalf(model).eval()
    traced = torch.jit.trace(half, group_tensors(model, 4), strict=False)
    for count in (1, 4, 9):
        again = group_tensors(model, count, seed=count)
        with torch.no_grad():
            assert equal(traced(*again), half(*again))


@pytest.mark.e2e
def test_replicas_of_every_model_agree_while_a_rank_lacks_rows() -> None:
    script = Path(__file__).with_name("two_ranks.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr[-3000:]
