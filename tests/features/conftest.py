"""Feature sets from text, and batches as plain lists."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from google.protobuf import text_format

from features import Batch, FeatureSet, create_features
from protos import pipeline_pb2


def _build(features: str, *, mode: str = "FG_NORMAL", data: str = "") -> FeatureSet:
    config = pipeline_pb2.EasyRecConfig()
    text = f"data_config {{ batch_size: 8 dataset_type: ParquetDataset fg_mode: {mode} {data} }}\n{features}"
    text_format.Parse(text, config)
    return create_features(config)


def _run(features: str, column: pa.Array, *, mode: str = "FG_NORMAL", data: str = "") -> Batch:
    made = _build(features, mode=mode, data=data)
    rows = pa.record_batch({"f": column})
    errors = made.validate(rows)
    assert not errors, (errors.rows, errors.reasons, errors.details)
    return made.parse(rows)


def _reasons(features: str, column: pa.Array, *, mode: str = "FG_NORMAL", data: str = "") -> dict[int, str]:
    errors = _build(features, mode=mode, data=data).validate(pa.record_batch({"f": column}))
    return dict(zip(errors.rows.tolist(), errors.reasons, strict=True))


@pytest.fixture(scope="session")
def build() -> Callable[..., FeatureSet]:
    """A feature set of `feature_configs` entries."""
    return _build


@pytest.fixture(scope="session")
def run() -> Callable[..., Batch]:
    """Validate, then parse, one column "f"."""
    return _run


@pytest.fixture(scope="session")
def reasons() -> Callable[..., dict[int, str]]:
    """The bad rows of one column "f"."""
    return _reasons
