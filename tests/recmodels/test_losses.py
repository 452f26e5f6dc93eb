"""Losses against the vectors of the reference and against naive versions."""

import numpy as np
import pytest
import torch
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from protos.metric_pb2 import LossConfig
from recmodels.errors import ModelConfigError
from recmodels.losses import Loss, create_loss, weighted_mean

SESSIONS = torch.tensor([1, 1, 1, 1, 2, 2, 2, 2])
JRC_LOGITS = torch.tensor(
    [[0.9, 0.1], [0.5, 0.5], [0.3, 0.7], [0.2, 0.8], [0.8, 0.2], [0.55, 0.45], [0.33, 0.67], [0.55, 0.45]]
)
JRC_LABELS = torch.tensor([0, 0, 1, 1, 0, 0, 1, 1])


def loss_of(text: str, num_class: int = 1) -> Loss:
    return create_loss(text_format.Parse(text, LossConfig()), num_class)


def value(
    text: str,
    output: torch.Tensor,
    label: torch.Tensor,
    *,
    weight: torch.Tensor | None = None,
    session: torch.Tensor | None = None,
) -> float:
    loss = loss_of(text, output.shape[1])
    return float(weighted_mean(loss.per_row(loss.predictions(output, ""), label, session, ""), weight))


@pytest.mark.parametrize(
    ("text", "weight", "expected"),
    [
        ("binary_cross_entropy {}", None, 0.6762),
        ("binary_cross_entropy {}", [1.0, 2.0], 0.6356),
        ("binary_cross_entropy { label_smoothing: 0.1 }", None, 0.6787),
        ("l2_loss {}", None, 0.2650),
    ],
)
def test_loss_matches_reference_vector(text: str, weight: list[float] | None, expected: float) -> None:
    output, label = torch.tensor([[0.2], [0.3]]), torch.tensor([0, 1])
    weights = None if weight is None else torch.tensor(weight)
    assert value(text, output, label, weight=weights) == pytest.approx(expected, abs=6e-5)


def test_focal_matches_reference_vector() -> None:
    output = torch.tensor([0.9, 0.5, 0.3, 0.2, 0.8, 0.5, 0.3, 0.5]).unsqueeze(1)
    label = torch.tensor([1, 1, 1, 0, 1, 0, 1, 0])
    assert value("binary_focal_loss {}", output, label) == pytest.approx(0.0830, abs=6e-5)


def test_focal_weight_has_no_gradient() -> None:
    output = torch.tensor([[0.9]], requires_grad=True)
    loss = loss_of("binary_focal_loss { gamma: 2 alpha: 0.5 }")
    loss.per_row(loss.predictions(output, ""), torch.tensor([1]), None, "").sum().backward()
    probability = float(torch.sigmoid(output.detach()))
    assert output.grad is not None
    assert float(output.grad) == pytest.approx(-0.5 * (1 - probability) ** 2 * (1 - probability), rel=1e-5)


def test_jrc_matches_reference_vector() -> None:
    text = "jrc_loss { session_name: 'session' alpha: 0.5 }"
    assert value(text, JRC_LOGITS, JRC_LABELS, session=SESSIONS) == pytest.approx(0.7199, abs=6e-5)


def naive_ranking(logits: torch.Tensor, label: torch.Tensor, session: torch.Tensor) -> float:
    """Row i against the other class of its session, on the logit of its own class; as the paper says it."""
    total = 0.0
    for i in range(len(label)):
        column = int(label[i])
        rivals = [j for j in range(len(label)) if j != i and session[j] == session[i] and label[j] != label[i]]
        scores = torch.stack([logits[j, column] for j in [i, *rivals]])
        total -= float(torch.log_softmax(scores, 0)[0])
    return total / len(label)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=12), st.integers(0, 2**31))
def test_jrc_ranks_as_naive_version(rows: list[tuple[int, int]], seed: int) -> None:
    label, session = (torch.tensor(column) for column in zip(*rows, strict=True))
    logits = torch.randn(len(rows), 2, generator=torch.Generator().manual_seed(seed))
    ranked = value("jrc_loss { session_name: 's' alpha: 0 }", logits, label, session=session)
    assert ranked == pytest.approx(naive_ranking(logits, label, session), abs=1e-5)


def test_softmax_with_smoothing_is_torch_cross_entropy() -> None:
    logits, label = torch.randn(5, 4, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 3, 2, 1, 1])
    expected = torch.nn.functional.cross_entropy(logits, label, label_smoothing=0.2)
    assert value("softmax_cross_entropy { label_smoothing: 0.2 }", logits, label) == pytest.approx(float(expected))


@pytest.mark.parametrize(
    ("text", "num_class", "names"),
    [
        ("binary_cross_entropy {}", 1, {"logits_t": (3,), "probs_t": (3,)}),
        ("binary_focal_loss {}", 1, {"logits_t": (3,), "probs_t": (3,)}),
        ("l2_loss {}", 1, {"y_t": (3,)}),
        ("softmax_cross_entropy {}", 3, {"logits_t": (3, 3), "probs_t": (3, 3)}),
        ("softmax_cross_entropy {}", 2, {"logits_t": (3, 2), "probs_t": (3, 2), "probs1_t": (3,)}),
        ("jrc_loss { session_name: 's' }", 2, {"logits_t": (3, 2), "probs_t": (3, 2), "probs1_t": (3,)}),
    ],
)
def test_loss_names_its_predictions(text: str, num_class: int, names: dict[str, tuple[int, ...]]) -> None:
    made = loss_of(text, num_class).predictions(torch.randn(3, num_class), "_t")
    assert {name: tuple(tensor.shape) for name, tensor in made.items()} == names


@pytest.mark.parametrize(
    ("text", "num_class"),
    [
        ("binary_cross_entropy {}", 2),
        ("binary_focal_loss {}", 2),
        ("l2_loss {}", 3),
        ("softmax_cross_entropy {}", 1),
        ("jrc_loss { session_name: 's' }", 3),
        ("binary_cross_entropy { label_smoothing: 1.5 }", 1),
        ("binary_focal_loss { alpha: 1 }", 1),
        ("recon_loss {}", 1),
        ("", 1),
    ],
)
def test_loss_refuses_what_it_cannot_do(text: str, num_class: int) -> None:
    with pytest.raises(ModelConfigError):
        loss_of(text, num_class)


def test_weighted_mean_of_no_rows_is_zero_with_zero_gradient() -> None:
    scale = torch.ones(1, requires_grad=True)
    total = weighted_mean(torch.empty(0) * scale, torch.empty(0))
    total.backward()
    assert float(total.detach()) == 0
    assert scale.grad is not None
    assert float(scale.grad) == 0


def test_weighted_mean_counts_zero_weights_as_nothing() -> None:
    assert float(weighted_mean(torch.ones(3), torch.zeros(3))) == 0
    assert float(weighted_mean(torch.tensor([1.0, 5.0]), torch.tensor([0.0, 7.0]))) == pytest.approx(5.0)


def test_labels_may_be_floats_or_integers() -> None:
    output = torch.tensor([[0.2], [0.3]])
    whole = value("binary_cross_entropy {}", output, torch.tensor([0, 1]))
    assert whole == value("binary_cross_entropy {}", output, torch.from_numpy(np.array([0, 1], np.float32)))
