"""Loss scaling: the step of the unscaled loss where nothing overflows, no step where something does, and its state."""

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.distributed as dist
from google.protobuf import text_format
from torch import Tensor, nn
from torch.amp import GradScaler

from features import create_features
from protos.train_pb2 import DenseOptimizer as DenseProto
from protos.train_pb2 import GradScaler as GradScalerProto
from recmodels.errors import ModelConfigError
from recmodels.layout import create_layout
from recmodels.optimizers import DenseOptimizer, dense_optimizer, sparse_optimizer
from recmodels.registry import create_model
from recmodels.scaling import create_scaler, unscale_rows
from recmodels.sharding import shard
from recmodels.tables import ShardedTables
from recmodels.wrappers import TrainWrapper
from tests.contracts.test_models import EXAMPLES, config_of, rows

ADAM = "adam_optimizer { lr: 0.1 } ema { decay: 0.5 }"
PARTS = f'{ADAM} part_optimizers {{ regex_pattern: "bias" sgd_optimizer {{ lr: 0.1 momentum: 0.9 }} }}'
FUSED = "adam_optimizer { lr: 0.1 fused: true }"


def scaler(**settings: float) -> GradScaler:
    return create_scaler(GradScalerProto(**settings), mixed_precision="FP16", device_type="cpu")


def layer() -> nn.Linear:
    made = nn.Linear(2, 1)
    with torch.no_grad():
        made.weight.copy_(torch.tensor([[0.5, -0.25]]))
        made.bias.fill_(0.125)
    return made


def optimizer(
    of: nn.Module, text: str = PARTS, *, scaled: GradScaler | None = None, accumulate: int = 1
) -> DenseOptimizer:
    return dense_optimizer(text_format.Parse(text, DenseProto()), of.named_parameters(), accumulate, scaled)


def batch_of(number: int) -> Tensor:
    return torch.tensor([[number % 3 - 1.0, number % 5 - 2.0]])


def train(of: nn.Linear, dense: DenseOptimizer, numbers: range, *, factor: float = 1.0) -> None:
    for number in numbers:
        dense.begin()
        dense.scaled(of(batch_of(number)).square().sum() * factor).backward()
        if dense.count():
            dense.step()


def values(of: nn.Module) -> list[float]:
    return [float(value) for parameter in of.parameters() for value in parameter.detach().ravel()]


@pytest.mark.parametrize("precision", ["", "BF16"])
def test_only_fp16_scales(precision: str) -> None:
    unchanged = create_scaler(GradScalerProto(init_scale=8), mixed_precision=precision, device_type="cpu")
    dense = optimizer(layer(), scaled=unchanged)
    loss = torch.ones(())
    assert dense.scaled(loss) is loss and dense.scale == 1.0 and "scaler" not in dense.state()


@pytest.mark.parametrize(
    "settings",
    [{"init_scale": 0}, {"growth_factor": 1}, {"backoff_factor": 1}, {"backoff_factor": 0}, {"growth_interval": 0}],
    ids=str,
)
def test_settings_that_cannot_scale_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ModelConfigError, match=next(iter(settings))):
        scaler(**settings)


@pytest.mark.parametrize("text", [PARTS, FUSED], ids=["plain", "fused"])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_scaled_steps_are_those_of_the_loss_itself(text: str, accumulate: int) -> None:
    plain, scaled = layer(), layer()
    train(plain, optimizer(plain, text, accumulate=accumulate), range(8))
    train(scaled, optimizer(scaled, text, scaled=scaler(init_scale=1024), accumulate=accumulate), range(8))
    # A power of two changes no digit.
    assert values(scaled) == values(plain)


@pytest.mark.parametrize("text", [PARTS, FUSED], ids=["plain", "fused"])
def test_gradients_that_overflow_teach_nothing_and_halve_the_scale(text: str) -> None:
    model = layer()
    dense = optimizer(model, text, scaled=scaler(init_scale=1024))
    train(model, dense, range(3))
    before = values(model)
    train(model, dense, range(3, 4), factor=1e38)
    assert values(model) == before and dense.scale == 512 and dense.steps == 4
    train(model, dense, range(4, 5))
    assert values(model) != before


@pytest.mark.parametrize("text", [PARTS, FUSED], ids=["plain", "fused"])
@pytest.mark.parametrize("cut", range(1, 7))
def test_going_on_from_a_state_is_going_on(text: str, cut: int) -> None:
    def scaling() -> GradScaler:
        return scaler(init_scale=1024, growth_interval=2)

    whole, first = layer(), layer()
    uncut, before = (optimizer(of, text, scaled=scaling(), accumulate=2) for of in (whole, first))
    train(whole, uncut, range(7))
    train(first, before, range(cut))
    again = copy.deepcopy(first)
    again.zero_grad()
    after = optimizer(again, text, scaled=scaling(), accumulate=2)
    after.load(before.state())
    train(again, after, range(cut, 7))
    assert values(again) == values(whole) and after.scale == uncut.scale > 1024
    mine, theirs = after.state(), uncut.state()
    assert mine.keys() == theirs.keys() and all(np.array_equal(mine[name], theirs[name]) for name in mine)


@pytest.mark.parametrize(("saved", "now"), [(1024.0, 0.0), (0.0, 1024.0), (1024.0, 16.0)])
def test_gradients_that_wait_outlive_a_change_of_precision(saved: float, now: float) -> None:
    """0 stands for a precision that does not scale."""

    def optimizer_of(of: nn.Module, scale: float) -> DenseOptimizer:
        return optimizer(of, scaled=scaler(init_scale=scale) if scale else None, accumulate=2)

    model = layer()
    before = optimizer_of(model, saved)
    train(model, before, range(1))
    expected = copy.deepcopy(model.weight.grad) / (saved or 1.0)
    after = optimizer_of(model, now)
    after.load(before.state())
    assert model.weight.grad is not None
    assert torch.equal(model.weight.grad / after.scale, expected)


class Embedding(nn.Module):
    """Groups of one table, one of them a part of another, and one of numbers, as an embedding layer makes them."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, numbers: Tensor) -> dict[str, Tensor]:
        first = self.table * 2
        return {"a": first, "b": first * 1.5, "numbers": numbers}


def taught(loss: Callable[[dict[str, Tensor]], Tensor], scaled: GradScaler) -> Tensor:
    embedding = Embedding()
    unscale_rows(embedding, scaled)
    scaled.scale(loss(embedding(torch.ones(3)))).backward()
    assert embedding.table.grad is not None
    return embedding.table.grad


def test_rows_learn_from_the_unscaled_loss() -> None:
    def loss(groups: dict[str, Tensor]) -> Tensor:
        return (groups["a"] * groups["b"] * groups["numbers"]).sum()

    off = create_scaler(GradScalerProto(), mixed_precision="", device_type="cpu")
    assert torch.equal(taught(loss, scaler(init_scale=1024)), taught(loss, off))


def test_rows_learn_nothing_where_a_gradient_overflows() -> None:
    def loss(groups: dict[str, Tensor]) -> Tensor:
        return (groups["a"] * torch.tensor([1.0, 1e38, 1.0])).sum() + groups["b"].sum()

    assert taught(loss, scaler(init_scale=1024)).tolist() == [0.0, 0.0, 0.0]


def learnt(world: dist.ProcessGroup, precision: str, **settings: float) -> dict[str, np.ndarray]:
    """What Adagrad of each fused table holds after the first step of a whole model: the squares of the gradients."""
    config = config_of(EXAMPLES["DeepFM"][0])
    features = create_features(config)
    model = create_model(config, features)
    layout = create_layout(features.features, config.model_config)
    sparse_optimizer(config.train_config.sparse_optimizer).attach(model.embedding_group.sparse_parameters())
    scaled = create_scaler(GradScalerProto(**settings), mixed_precision=precision, device_type="cpu")
    unscale_rows(model.embedding_group, scaled)
    wrapper = TrainWrapper(model, mixed_precision=precision)
    wrapped = shard(wrapper, layout, process_group=world, device=torch.device("cpu"))
    tables = ShardedTables.of(wrapped, layout)
    total, _ = wrapped(features.parse(rows(32, 1)))
    scaled.scale(total).backward()
    tables.after_step()
    tables.touch_all()
    return {part.table: part.columns["momentum1"] for part in tables.seal() if "momentum1" in part.columns}


def test_fused_tables_see_in_fp16_the_gradients_of_float32_or_none(world: dist.ProcessGroup) -> None:
    exact, half = learnt(world, ""), learnt(world, "FP16", init_scale=1024)
    assert exact.keys() == half.keys() == {"user_emb", "item_emb", "user_emb_wide", "item_emb_wide"}
    for table, squares in exact.items():
        assert squares.any() and np.allclose(half[table], squares, rtol=0.01, atol=1e-3 * squares.max())
    # The wide part computes in float32 all the way; the step is left out as a whole.
    assert not any(squares.any() for squares in learnt(world, "FP16", init_scale=2.0**40).values())
