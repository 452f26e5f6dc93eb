"""Modules against naive versions and the shapes of the reference."""

import pytest
import torch
from torch import nn

from recmodels.errors import ModelConfigError
from recmodels.modules.activation import Dice, create_activation
from recmodels.modules.batch_norm import BatchNorm
from recmodels.modules.cin import CompressedInteractions
from recmodels.modules.cross import CrossNet, LowRankCrossNet
from recmodels.modules.fm import FactorizationMachine
from recmodels.modules.interaction import PairwiseProducts, equal_width
from recmodels.modules.mask_net import MaskBlock, MaskBlockOptions, MaskNetModule, MaskNetOptions
from recmodels.modules.mlp import MLP, MlpOptions
from recmodels.modules.variational_dropout import VariationalDropout
from recmodels.modules.wukong import WuKongLayer, WuKongOptions


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_fm_is_the_sum_of_pairwise_products() -> None:
    fields = random(3, 5, 4)
    naive = sum(fields[:, i] * fields[:, j] for i in range(5) for j in range(i + 1, 5))
    assert torch.allclose(FactorizationMachine()(fields), torch.as_tensor(naive), atol=1e-5)


def test_pairwise_products_are_the_upper_triangle_row_by_row() -> None:
    fields = random(3, 4, 8)
    out = PairwiseProducts(4)(fields)
    naive = [(fields[:, i] * fields[:, j]).sum(1) for i in range(4) for j in range(i + 1, 4)]
    assert out.shape == (3, 6)
    assert torch.allclose(out, torch.stack(naive, dim=1), atol=1e-5)


def test_dice_starts_as_a_gated_identity_and_learns_its_slope() -> None:
    dice = Dice(3).eval()
    inputs = random(4, 3)
    gate = torch.sigmoid(inputs / (1 + 1e-5) ** 0.5)
    assert torch.allclose(dice(inputs), gate * inputs, atol=1e-6)
    nn.init.ones_(dice.alpha)
    assert torch.allclose(dice(inputs), inputs, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("nn.ReLU", nn.ReLU), ("torch.nn.PReLU", nn.PReLU), ("nn.LeakyReLU(negative_slope=0.1)", nn.LeakyReLU)],
)
def test_activation_is_found_by_name(text: str, kind: type[nn.Module]) -> None:
    assert isinstance(create_activation(text, 4), kind)


def test_activation_may_be_absent() -> None:
    assert create_activation("", 4) is None


@pytest.mark.parametrize(
    "text",
    [
        "nn.Linear",
        "nn.NoSuch",
        "lambda x: x",
        "nn.ReLU(__import__('os'))",
        "nn.LeakyReLU(slope=1)",
        "nn.MultiheadAttention(4, 2)",
        "nn.ReLU(",
    ],
)
def test_activation_refuses_anything_else(text: str) -> None:
    with pytest.raises(ModelConfigError):
        create_activation(text, 4)


def test_mlp_stacks_linear_norm_activation_and_dropout() -> None:
    mlp = MLP(6, MlpOptions(hidden_units=(5, 4), dropout=(0.5, 0.5), use_bn=True, activation="nn.Tanh"))
    kinds = [type(module) for module in mlp.layers[0].rest]
    assert kinds == [BatchNorm, nn.Tanh, nn.Dropout]
    assert mlp.layers[0].linear.bias is None
    assert mlp(random(7, 6)).shape == (7, 4)


def test_mlp_without_trimmings_is_two_matrix_products() -> None:
    mlp = MLP(6, MlpOptions(hidden_units=(5, 4)))
    one, two = (layer.linear for layer in mlp.layers)
    inputs = random(3, 6)
    expected = torch.relu(torch.relu(inputs @ one.weight.T + one.bias) @ two.weight.T + two.bias)
    assert torch.allclose(mlp(inputs), expected, atol=1e-6)


def test_mlp_normalises_channels_of_three_axes() -> None:
    mlp = MLP(6, MlpOptions(hidden_units=(5,), use_bn=True))
    inputs = random(2, 3, 6)
    assert torch.allclose(mlp(inputs).reshape(6, 5), mlp(inputs.reshape(6, 6)), atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"hidden_units": ()},
        {"hidden_units": (4, 4, 4), "dropout": (0.1, 0.2)},
        {"hidden_units": (4,), "dropout": (1.0,)},
        {"hidden_units": (4,), "use_bn": True, "use_ln": True},
    ],
)
def test_mlp_options_refuse_contradictions(settings: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(ModelConfigError):
        MlpOptions(**settings)


@pytest.mark.parametrize("rows", [0, 1])
def test_batch_norm_takes_part_without_rows_to_learn_from(rows: int) -> None:
    norm = BatchNorm(3)
    norm(random(8, 3))
    mean = norm.running_mean.clone()
    out = norm(random(rows, 3))
    assert out.shape == (rows, 3)
    assert torch.equal(norm.running_mean, mean)
    out.sum().backward()


def test_equal_width_names_the_group() -> None:
    assert equal_width([4, 4], group="fm") == 4
    with pytest.raises(ModelConfigError, match="'fm'"):
        equal_width([4, 8], group="fm")


def test_variational_dropout_scales_by_one_minus_rate_in_evaluation() -> None:
    dropout = VariationalDropout({"user": 4, "item": 3, "time": 2}).eval()
    group = random(5, 9)
    scale = torch.repeat_interleave(1 - dropout.rates(), torch.tensor([4, 3, 2]))
    assert torch.allclose(dropout(group), group * scale)


def test_variational_dropout_drops_whole_features_in_training() -> None:
    dropout = VariationalDropout({"user": 4, "item": 3})
    with torch.no_grad():
        dropout.logit.copy_(torch.tensor([20.0, -20.0]))
    out = dropout(torch.ones(64, 7))
    assert torch.allclose(out[:, :4], torch.zeros(64, 4), atol=1e-3)
    assert torch.allclose(out[:, 4:], torch.ones(64, 3), atol=1e-3)


def test_variational_dropout_penalty_is_the_kept_share() -> None:
    dropout = VariationalDropout({"user": 4, "item": 3})
    expected = 0.01 / 8 * (1 - torch.sigmoid(dropout.logit)).sum()
    assert torch.allclose(dropout.penalty(8, 0.01), expected)


def test_cross_net_is_its_formula() -> None:
    net = CrossNet(5, 2)
    nn.init.normal_(net.bias)
    first = random(3, 5)
    x = first
    for layer in range(2):
        x = (x * net.weight[layer]).sum(1, keepdim=True) * first + net.bias[layer] + x
    assert torch.allclose(net(first), x, atol=1e-5)


def test_low_rank_cross_net_is_its_formula() -> None:
    net = LowRankCrossNet(5, 2, 3)
    first = random(3, 5)
    x = first
    for down, up in zip(net.down, net.up, strict=True):
        assert down.bias is None
        x = first * (x @ down.weight.T @ up.weight.T + up.bias) + x
    assert torch.allclose(net(first), x, atol=1e-5)


def test_compressed_interactions_have_the_size_of_the_reference() -> None:
    assert CompressedInteractions(9, [10, 15, 20])(random(4, 9, 8)).shape == (4, 45)


def test_compressed_interactions_are_sums_of_weighted_products() -> None:
    net = CompressedInteractions(3, [2, 2])
    inputs = random(2, 3, 4)
    layer, expected = inputs, []
    for conv in net.layers:
        products = torch.einsum("bhd,bnd->bhnd", layer, inputs).reshape(2, -1, 4)
        layer = torch.einsum("kp,bpd->bkd", conv.weight.squeeze(2), products) + conv.bias[None, :, None]
        expected.append(layer.sum(2))
    assert torch.allclose(net(inputs), torch.cat(expected, 1), atol=1e-5)


def wukong(fields: int, width: int) -> WuKongLayer:
    options = WuKongOptions(linear_fields=4, interaction_fields=4, rank=3, mlp=MlpOptions(hidden_units=(12,)))
    return WuKongLayer(fields, width, options)


def test_wukong_layer_has_the_size_of_the_reference() -> None:
    assert wukong(9, 8)(random(2, 9, 8)).shape == (2, 8, 8)


def test_wukong_layer_is_its_formula() -> None:
    layer, x = wukong(9, 8), random(2, 9, 8)
    y = layer.compress.weight.T
    products = torch.einsum("bnd,bmd,mk->bnk", x, x, y).flatten(1)
    fmb = layer.project(layer.mlp(layer.norm(products))).reshape(2, 4, 8)
    lcb = torch.einsum("ln,bnd->bld", layer.combine.weight, x)
    residual = torch.einsum("on,bnd->bod", layer.residual.weight, x)
    assert torch.allclose(layer(x), layer.out_norm(torch.cat([fmb, lcb], 1) + residual), atol=1e-5)


def test_wukong_layer_of_equal_size_adds_its_input() -> None:
    assert isinstance(wukong(8, 4).residual, nn.Identity)


def test_mask_block_gates_by_the_embedding() -> None:
    block = MaskBlock(6, 6, MaskBlockOptions(ratio=0.5, aggregation=0, hidden=4))
    inputs, embedding = random(3, 6), random(3, 6, seed=1)
    assert block.mask[0].out_features == 3
    mask = block.mask[2](torch.relu(block.mask[0](embedding)))
    linear, norm, _ = block.output
    assert torch.allclose(block(inputs, embedding), torch.relu(norm(linear(inputs * mask))), atol=1e-6)


@pytest.mark.parametrize(("parallel", "joined"), [(True, 12), (False, 4)])
def test_mask_net_joins_blocks_side_by_side_or_in_a_chain(parallel: bool, joined: int) -> None:
    block = MaskBlockOptions(ratio=1.0, aggregation=0, hidden=4)
    net = MaskNetModule(6, MaskNetOptions(blocks=3, block=block, top=None, parallel=parallel))
    embedding = random(2, 6)
    hidden = net.norm(embedding)
    if parallel:
        expected = torch.cat([block(hidden, embedding) for block in net.blocks], 1)
    else:
        for part in net.blocks:
            hidden = part(hidden, embedding)
        expected = hidden
    assert net.out_features == joined
    assert torch.allclose(net(embedding), expected)


def test_mask_width_is_named_where_the_ratio_is_zero() -> None:
    assert MaskBlockOptions(ratio=0.0, aggregation=7, hidden=4).mask_width(100) == 7
    with pytest.raises(ModelConfigError):
        MaskBlockOptions(ratio=0.0, aggregation=0, hidden=4)
