"""Evaluation and training metrics against the vectors of the reference and against naive versions."""

import math

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from protos.metric_pb2 import MetricConfig, TrainMetricConfig
from recmodels.errors import ModelConfigError
from recmodels.metrics import Metric, Rows, create_metric, create_train_metric
from recmodels.metrics.ranking import exact_auc, group_aucs

SCORES = np.arange(1, 9, dtype=np.float32) / 10
TARGET = np.array([1, 0, 1, 0, 0, 0, 1, 1])
GROUPS = np.array([1, 2, 2, 1, 3, 3, 4, 4])
VALUES = np.array([0.2, 0.3, 0.5, 0.4, 0.3, 0.2, 0.8, 0.9])
BINARY = frozenset({"logits", "probs"})


def metric_of(text: str, num_class: int = 1, made: frozenset[str] = BINARY) -> Metric:
    return create_metric(text_format.Parse(text, MetricConfig()), made, num_class).metric


def train_metric_of(text: str) -> Metric:
    return create_train_metric(text_format.Parse(text, TrainMetricConfig()), BINARY, 1).metric


def value(
    metric: Metric,
    prediction: np.ndarray | list[float],
    label: np.ndarray | list[int],
    group: np.ndarray | None = None,
) -> float:
    metric.update(Rows(prediction=np.asarray(prediction, np.float32), label=np.asarray(label), group=group))
    return metric.compute()


def naive_auc(score: np.ndarray, label: np.ndarray) -> float:
    wins = [1.0 if p > n else 0.5 if p == n else 0.0 for p in score[label == 1] for n in score[label == 0]]
    return float(np.mean(wins)) if wins else math.nan


@pytest.mark.parametrize(
    ("prediction", "label", "expected"),
    [
        ([0.1, 0.4, 0.6, 0.9], [0, 0, 1, 1], 0.44448435),
        ([0.2, 0.5, 0.8], [0, 1, 1], 0.59670544),
        ([0.3, 0.7], [0, 1], 0.51457322),
        ([0.5, 0.5], [0, 1], 1.0),
        ([0.0, 1.0], [0, 1], 0.0),
    ],
)
def test_normalized_entropy_matches_reference_vectors(
    prediction: list[float], label: list[int], expected: float
) -> None:
    assert value(metric_of("normalized_entropy {}"), prediction, label) == pytest.approx(expected, abs=1e-6)


def test_grouped_auc_matches_reference_vector() -> None:
    assert value(metric_of("grouped_auc { grouping_key: 'u' }"), SCORES, TARGET, GROUPS) == 0.5


def test_xauc_matches_reference_vector() -> None:
    for text in ("xauc { sample_ratio: 1 }", "xauc { in_batch: true }"):
        assert value(metric_of(text), SCORES, VALUES) == pytest.approx(0.6786, abs=6e-5)


def test_grouped_xauc_matches_reference_vector() -> None:
    assert value(metric_of("grouped_xauc { grouping_key: 'u' }"), SCORES, VALUES, GROUPS) == pytest.approx(0.75)


def test_decay_auc_matches_reference_vectors() -> None:
    metric = train_metric_of("auc { thresholds: 10 } decay_rate: 0.9 decay_step: 1")
    assert value(metric, SCORES, TARGET) == pytest.approx(0.5625, abs=6e-5)
    assert value(metric, SCORES, [1, 0, 1, 0, 1, 0, 1, 0]) == pytest.approx(0.5437, abs=6e-5)


def test_decay_mean_mixes_old_and_new_value() -> None:
    metric = train_metric_of("mean_squared_error {} decay_rate: 0.75 decay_step: 1")
    assert value(metric, [0.5], [1]) == 0.25
    assert value(metric, [1.0], [1]) == 0.75 * 0.25


def test_decay_mean_survives_a_time_without_rows() -> None:
    metric = train_metric_of("accuracy {} decay_rate: 0.5 decay_step: 1")
    assert math.isnan(value(metric, [], []))
    assert value(metric, [0.9], [1]) == 1
    assert value(metric, [], []) == 1
    assert value(metric, [0.1], [1]) == 0.5


def test_xauc_samples_without_repetition_and_near_the_full_figure() -> None:
    rng = np.random.default_rng(5)
    label = rng.random(2000)
    prediction = (label + rng.normal(0, 0.3, 2000)).astype(np.float32)
    full = value(metric_of("xauc { in_batch: true }"), prediction, label)
    assert value(metric_of("xauc { sample_ratio: 0.02 }"), prediction, label) == pytest.approx(full, abs=0.01)
    assert value(metric_of("xauc { sample_ratio: 1 max_pairs: 20000 }"), prediction, label) == pytest.approx(
        full, abs=0.02
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1), st.integers(0, 3)), max_size=30))
def test_group_aucs_match_naive_version(rows: list[tuple[int, int, int]]) -> None:
    score, label, group = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    naive = [naive_auc(score[group == g], label[group == g]) for g in np.unique(group)]
    expected = [auc for auc in naive if not math.isnan(auc)]
    assert group_aucs(score.astype(np.float32), label, group).tolist() == pytest.approx(expected)


def test_exact_auc_matches_naive_version() -> None:
    rng = np.random.default_rng(0)
    score, label = rng.random(200).round(1).astype(np.float32), rng.integers(0, 2, 200)
    assert exact_auc(score, label) == pytest.approx(naive_auc(score, label))


def test_auc_equals_torchmetrics_with_the_same_thresholds() -> None:
    import torch
    from torchmetrics.classification import BinaryAUROC

    rng = np.random.default_rng(2)
    score, label = rng.beta(2, 5, 3000).astype(np.float32), rng.integers(0, 2, 3000)
    theirs = BinaryAUROC(thresholds=200)(torch.from_numpy(score), torch.from_numpy(label))
    assert value(metric_of("auc { thresholds: 200 }"), score, label) == pytest.approx(float(theirs), abs=1e-6)


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_multiclass_auc_equals_torchmetrics(average: str) -> None:
    import torch
    from torchmetrics.classification import MulticlassAUROC

    rng = np.random.default_rng(3)
    score, label = rng.dirichlet([2, 1, 3], 500).astype(np.float32), rng.integers(0, 3, 500)
    theirs = MulticlassAUROC(3, average=average, thresholds=200)(torch.from_numpy(score), torch.from_numpy(label))
    metric = metric_of(f"multiclass_auc {{ average: '{average}' }}", 3, frozenset({"logits", "probs"}))
    assert value(metric, score, label) == pytest.approx(float(theirs), abs=1e-6)


def test_errors_and_accuracy() -> None:
    prediction, label = [0.5, 0.25, 0.75], [1, 0, 0]
    assert value(metric_of("mean_absolute_error {}"), prediction, label) == pytest.approx(0.5)
    assert value(metric_of("mean_squared_error {}"), prediction, label) == pytest.approx((0.25 + 0.0625 + 0.5625) / 3)
    assert value(metric_of("accuracy {}"), prediction, label) == pytest.approx(2 / 3)
    assert value(metric_of("accuracy { threshold: 0.2 }"), prediction, label) == pytest.approx(1 / 3)


def test_accuracy_counts_the_top_k_classes() -> None:
    scores = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    for top_k, expected in ((1, 0.5), (2, 1.0)):
        metric = metric_of(f"accuracy {{ top_k: {top_k} }}", 3, frozenset({"logits", "probs"}))
        assert value(metric, scores, [1, 2]) == expected


ALL = [
    "auc {}",
    "grouped_auc { grouping_key: 'u' }",
    "mean_absolute_error {}",
    "mean_squared_error {}",
    "accuracy {}",
    "xauc { sample_ratio: 1 }",
    "xauc { in_batch: true }",
    "grouped_xauc { grouping_key: 'u' }",
    "normalized_entropy {}",
]


@pytest.mark.parametrize("text", ALL)
def test_metric_of_two_ranks_is_that_of_all_rows(text: str) -> None:
    whole, first, second = metric_of(text), metric_of(text), metric_of(text)
    for metric, rows in ((whole, slice(0, 4)), (whole, slice(4, 8)), (first, slice(0, 4)), (second, slice(4, 8))):
        metric.update(Rows(prediction=SCORES[rows], label=TARGET[rows], group=GROUPS[rows]))
    first.merge(second.state())
    assert first.compute() == pytest.approx(whole.compute(), rel=1e-12)
    first.reset()
    assert math.isnan(first.compute())


@pytest.mark.parametrize(
    "text", ["auc {} decay_step: 2", "mean_squared_error {} decay_step: 2", "accuracy {} decay_step: 2"]
)
def test_train_metric_resumes_from_its_state(text: str) -> None:
    rng = np.random.default_rng(7)
    batches = [Rows(prediction=rng.random(16, np.float32), label=rng.integers(0, 2, 16)) for _ in range(9)]
    for cut in range(len(batches)):
        through, before, after = (train_metric_of(text) for _ in range(3))
        for batch in batches:
            through.update(batch)
        for batch in batches[:cut]:
            before.update(batch)
        after.merge(before.state())
        for batch in batches[cut:]:
            after.update(batch)
        assert after.compute() == through.compute()


@pytest.mark.parametrize(
    ("text", "num_class", "made"),
    [
        ("auc {}", 1, {"y"}),
        ("auc {}", 3, {"logits", "probs"}),
        ("multiclass_auc {}", 1, {"logits", "probs"}),
        ("multiclass_auc { average: 'micro' }", 3, {"logits", "probs"}),
        ("recall_at_k {}", 1, {"logits", "probs"}),
        ("auc { thresholds: 1 }", 1, {"logits", "probs"}),
        ("", 1, {"logits", "probs"}),
    ],
)
def test_metric_refuses_what_it_cannot_judge(text: str, num_class: int, made: set[str]) -> None:
    with pytest.raises(ModelConfigError):
        metric_of(text, num_class, frozenset(made))


@pytest.mark.parametrize(
    ("text", "num_class", "made", "expected"),
    [
        ("auc {}", 1, {"probs"}, "probs"),
        ("auc {}", 2, {"probs", "probs1"}, "probs1"),
        ("mean_squared_error {}", 1, {"y", "probs"}, "y"),
        ("mean_squared_error {}", 1, {"probs"}, "probs"),
        ("accuracy {}", 3, {"probs"}, "probs"),
        ("normalized_entropy {}", 2, {"probs", "probs1"}, "probs1"),
    ],
)
def test_metric_judges_the_right_prediction(text: str, num_class: int, made: set[str], expected: str) -> None:
    named = create_metric(text_format.Parse(text, MetricConfig()), frozenset(made), num_class, "_ctr")
    assert named.prediction == f"{expected}_ctr"
    assert named.name.endswith("_ctr")
