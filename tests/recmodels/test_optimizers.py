"""Optimizers: what is read from a configuration, what is refused, and resuming from saved state."""

import copy
import logging
from typing import Any

import numpy as np
import pytest
import torch
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from google.protobuf import text_format
from torch import nn
from torchrec.distributed.utils import optimizer_type_to_emb_opt_type

from protos.train_pb2 import DenseOptimizer as DenseProto
from protos.train_pb2 import GradClipping
from protos.train_pb2 import SparseOptimizer as SparseProto
from recmodels.clipping import Clipping, clip_gradients
from recmodels.errors import ModelConfigError, StateError
from recmodels.optimizers import (
    DenseOptimizer,
    SparseOptimizer,
    dense_optimizer,
    sparse_optimizer,
)

ADAM = "adam_optimizer { lr: 0.01 }"
DENSE = [
    "sgd_optimizer { lr: 0.01 }",
    "sgd_optimizer { lr: 0.01 momentum: 0.5 nesterov: true weight_decay: 0.1 }",
    "adagrad_optimizer { lr: 0.01 initial_accumulator_value: 0.1 }",
    ADAM,
    "adam_optimizer { lr: 0.01 amsgrad: true }",
    "adam_optimizer { lr: 0.01 fused: true }",
    "adamw_optimizer { lr: 0.01 weight_decay: 0.1 }",
    "adadelta_optimizer { lr: 0.01 }",
    "rmsprop_optimizer { lr: 0.01 }",
    "adam_optimizer { lr: 0.01 } ema { decay: 0.9 }",
    "adam_optimizer { lr: 0.01 } exponential_decay_learning_rate { decay_size: 3 decay_factor: 0.5 }",
    "adam_optimizer { lr: 0.01 } part_optimizers { regex_pattern: 'bias' sgd_optimizer { lr: 0.01 } }",
]


def sparse_of(text: str) -> SparseOptimizer:
    return sparse_optimizer(text_format.Parse(text, SparseProto()))


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))


def dense_of(text: str, model: nn.Module) -> DenseOptimizer:
    return dense_optimizer(text_format.Parse(text, DenseProto()), model.named_parameters())


def train(model: nn.Module, optimizer: DenseOptimizer, steps: range) -> None:
    for step in steps:
        inputs = torch.randn(16, 4, generator=torch.Generator().manual_seed(step))
        optimizer.begin()
        (model(inputs) - inputs.sum(dim=1, keepdim=True)).square().mean().backward()
        optimizer.step()


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize(
    ("text", "kind", "settings"),
    [
        ("sgd_optimizer { lr: 0.5 }", EmbOptimType.EXACT_SGD, {"lr": 0.5}),
        ("adagrad_optimizer { lr: 0.5 }", EmbOptimType.EXACT_ADAGRAD, {"lr": 0.5}),
        (
            "rowwise_adagrad_optimizer { lr: 0.5 gradient_clipping: true max_gradient: 2 }",
            EmbOptimType.EXACT_ROWWISE_ADAGRAD,
            {"lr": 0.5, "gradient_clipping": True, "max_gradient": 2.0},
        ),
    ],
)
def test_sparse_optimizer_maps_to_a_fused_one(text: str, kind: EmbOptimType, settings: dict[str, float]) -> None:
    optimizer = sparse_of(text)
    assert optimizer_type_to_emb_opt_type(optimizer.kind) == kind
    assert optimizer.kwargs() == settings


def test_sparse_optimizer_gives_each_table_a_dict_of_its_own() -> None:
    tables = nn.ModuleList(nn.EmbeddingBag(4, 2) for _ in range(2))
    sparse_of("sgd_optimizer { lr: 0.5 }").attach(tables.parameters())
    first, second = (table.weight._optimizer_kwargs[0] for table in tables)
    assert first == second
    assert first is not second


def test_sparse_optimizer_sets_the_rate_of_its_schedule() -> None:
    class Fused(torch.optim.SGD):
        pushed = 0.0

        def step(self, closure: object = None) -> None:
            self.pushed = self.param_groups[0]["lr"]

    fused = Fused([nn.Parameter(torch.zeros(1))], lr=9.0)
    text = "sgd_optimizer { lr: 0.5 } exponential_decay_learning_rate { decay_size: 2 decay_factor: 0.5 }"
    sparse_of(text).set_rate(fused, 5)
    assert fused.pushed == 0.125


@pytest.mark.parametrize(
    "text",
    [
        "adam_optimizer { lr: 0.1 }",
        "lars_sgd_optimizer { lr: 0.1 }",
        "lamb_optimizer { lr: 0.1 }",
        "partial_rowwise_lamb_optimizer { lr: 0.1 }",
        "partial_rowwise_adam_optimizer { lr: 0.1 }",
        "adadelta_optimizer { lr: 0.1 }",
        "rmsprop_optimizer { lr: 0.1 }",
        "",
    ],
)
def test_sparse_optimizer_without_a_cpu_kernel_names_those_that_have_one(text: str) -> None:
    with pytest.raises(ModelConfigError, match="rowwise_adagrad_optimizer"):
        sparse_of(text)


def test_sparse_optimizer_refuses_settings_that_would_be_ignored() -> None:
    with pytest.raises(ModelConfigError, match="weight_decay"):
        sparse_of("rowwise_adagrad_optimizer { lr: 0.1 weight_decay: 0.1 weight_decay_mode: L2 }")
    with pytest.raises(ModelConfigError, match="initial_accumulator_value"):
        sparse_of("adagrad_optimizer { lr: 0.1 initial_accumulator_value: 1 }")


def test_sparse_optimizer_says_that_weight_decay_without_mode_does_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        sparse_of("rowwise_adagrad_optimizer { lr: 0.1 weight_decay: 0.1 }")
    assert "weight_decay_mode" in caplog.text


@pytest.mark.parametrize("text", DENSE)
def test_dense_optimizer_lowers_the_loss(text: str) -> None:
    model = net()
    probe = torch.randn(64, 4, generator=torch.Generator().manual_seed(99))

    def loss() -> float:
        return float((model(probe) - probe.sum(dim=1, keepdim=True)).square().mean().detach())

    before = loss()
    train(model, dense_of(text, model), range(20))
    assert loss() < before


@pytest.mark.parametrize("text", DENSE)
def test_dense_optimizer_resumes_with_the_same_bits(text: str) -> None:
    through = net()
    whole = dense_of(text, through)
    train(through, whole, range(8))
    for cut in (0, 1, 5):
        first = net()
        before = dense_of(text, first)
        train(first, before, range(cut))
        second = net()
        second.load_state_dict(first.state_dict())
        after = dense_of(text, second)
        after.load(before.state())
        train(second, after, range(cut, 8))
        assert same(after.state(), whole.state())
        assert all(torch.equal(a, b) for a, b in zip(second.parameters(), through.parameters(), strict=True))


def test_part_optimizers_take_what_matches_first() -> None:
    text = """adam_optimizer { lr: 0.01 } exponential_decay_learning_rate { decay_size: 1 decay_factor: 0.5 }
      part_optimizers { regex_pattern: 'bias' sgd_optimizer { lr: 0.4 } }
      part_optimizers { regex_pattern: '^2' sgd_optimizer { lr: 0.8 } constant_learning_rate {} }"""
    model = net()
    optimizer = dense_of(text, model)
    train(model, optimizer, range(2))
    assert optimizer.rates() == pytest.approx([0.1, 0.8, 0.0025])
    kept = {key.split("/")[1] for key in optimizer.state() if key.endswith("exp_avg")}
    assert kept == {"0.weight"}


def test_average_follows_the_parameters() -> None:
    model = net()
    optimizer = dense_of("sgd_optimizer { lr: 0.1 momentum: 0 } ema { decay: 0.75 }", model)
    assert optimizer.averaged() == {}
    train(model, optimizer, range(1))
    first = model[0].weight.detach().clone()
    assert torch.equal(optimizer.averaged()["0.weight"], first)
    train(model, optimizer, range(1, 2))
    expected = 0.75 * first + 0.25 * model[0].weight
    assert torch.allclose(optimizer.averaged()["0.weight"], expected)


def test_load_refuses_state_of_another_model() -> None:
    model, other = net(), nn.Linear(4, 3)
    optimizer = dense_of(ADAM, model)
    train(model, optimizer, range(1))
    with pytest.raises(StateError, match=r"0\.weight"):
        dense_of(ADAM, other).load(optimizer.state())
    wider = nn.Sequential(nn.Linear(5, 3), nn.ReLU(), nn.Linear(3, 1))
    with pytest.raises(StateError, match="shape"):
        dense_of(ADAM, wider).load(optimizer.state())


def test_load_refuses_state_of_another_optimizer() -> None:
    model = net()
    optimizer = dense_of(ADAM, model)
    train(model, optimizer, range(1))
    with pytest.raises(StateError, match="momentum_buffer"):
        dense_of("sgd_optimizer { lr: 0.1 }", net()).load(optimizer.state())


def test_a_pattern_that_takes_nothing_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        dense_of(f"{ADAM} part_optimizers {{ regex_pattern: 'no_such' sgd_optimizer {{ lr: 1 }} }}", net())
    assert "no_such" in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "adam_optimizer { lr: -1 }",
        "adam_optimizer { lr: 1 } ema { decay: 1 }",
        "adam_optimizer { lr: 1 } part_optimizers { regex_pattern: '(' sgd_optimizer { lr: 1 } }",
        "adam_optimizer { lr: 1 } part_optimizers { regex_pattern: 'a' }",
    ],
)
def test_dense_optimizer_refuses_what_it_cannot_build(text: str) -> None:
    with pytest.raises(ModelConfigError):
        dense_of(text, net())


def gradients(*values: float) -> list[nn.Parameter]:
    parameters = [nn.Parameter(torch.zeros(1)) for _ in values]
    for parameter, value in zip(parameters, values, strict=True):
        parameter.grad = torch.tensor([value])
    return parameters


def test_clip_by_norm_uses_the_norm_that_is_given() -> None:
    own, given = gradients(3.0, 4.0), gradients(3.0, 4.0)
    clipping = Clipping.from_proto(GradClipping(clipping_type="norm", max_gradient=1.0))
    clip_gradients(own, clipping)
    clip_gradients(given, clipping, norm=torch.tensor(10.0))
    assert [float(p.grad) for p in own if p.grad is not None] == pytest.approx([0.6, 0.8], abs=1e-5)
    assert [float(p.grad) for p in given if p.grad is not None] == pytest.approx([0.3, 0.4], abs=1e-5)


def test_clip_by_value_cuts_each_element() -> None:
    parameters = gradients(-3.0, 0.5)
    clip_gradients(parameters, Clipping(kind="value", limit=1.0))
    assert [float(p.grad) for p in parameters if p.grad is not None] == [-1.0, 0.5]


def test_clipping_refuses_an_unknown_kind() -> None:
    with pytest.raises(ModelConfigError, match="clipping_type"):
        Clipping(kind="global")


def test_scheduled_rates_reach_the_sharded_tables(lab: Any) -> None:
    optimizer = sparse_of(
        "sgd_optimizer { lr: 0.5 } exponential_decay_learning_rate { decay_size: 1 decay_factor: 0.5 }"
    )
    online = lab.online([lab.id_feature("u")], optimizer=optimizer.kind, settings=optimizer.kwargs())
    batch = lab.batch_of({"u": [[3]]})
    for finished in range(3):
        before = online.read(batch)["deep"]
        optimizer.set_rate(online.dmp.fused_optimizer, finished)
        online.step(batch)
        moved = (before - online.read(batch)["deep"])[0].tolist()
        assert moved == pytest.approx([0.5 * 0.5**finished * column for column in (1, 2, 3, 4)], rel=1e-4)


def accumulating(text: str, model: nn.Module, every: int) -> DenseOptimizer:
    return dense_optimizer(text_format.Parse(text, DenseProto()), model.named_parameters(), every)


def train_in_parts(model: nn.Module, optimizer: DenseOptimizer, batches: range) -> None:
    for batch in batches:
        inputs = torch.randn(8, 4, generator=torch.Generator().manual_seed(batch))
        optimizer.begin()
        (model(inputs) - inputs.sum(dim=1, keepdim=True)).square().mean().backward()
        if optimizer.count():
            optimizer.step()


def test_accumulated_batches_are_one_step_of_their_mean() -> None:
    torch.manual_seed(1)
    parts = net()
    whole = copy.deepcopy(parts)
    train_in_parts(parts, accumulating("sgd_optimizer { lr: 0.1 }", parts, 3), range(3))
    inputs = torch.cat([torch.randn(8, 4, generator=torch.Generator().manual_seed(batch)) for batch in range(3)])
    optimizer = accumulating("sgd_optimizer { lr: 0.1 }", whole, 1)
    (whole(inputs) - inputs.sum(dim=1, keepdim=True)).square().mean().backward()
    assert optimizer.count()
    optimizer.step()
    for mine, other in zip(parts.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(mine, other)
    assert optimizer.batches == 1


def test_restart_within_a_step_keeps_its_gradients() -> None:
    torch.manual_seed(1)
    whole = net()
    parts = copy.deepcopy(whole)
    train_in_parts(whole, accumulating("adam_optimizer { lr: 0.1 }", whole, 4), range(10))
    first = accumulating("adam_optimizer { lr: 0.1 }", parts, 4)
    train_in_parts(parts, first, range(6))
    restarted = copy.deepcopy(parts)
    restarted.zero_grad()
    second = accumulating("adam_optimizer { lr: 0.1 }", restarted, 4)
    second.load(first.state())
    assert (second.steps, second.accumulated, second.batches) == (1, 2, 6)
    train_in_parts(restarted, second, range(6, 10))
    assert all(torch.equal(a, b) for a, b in zip(restarted.parameters(), whole.parameters(), strict=True))
