"""What features make of a row, as one text: `__features__` of predictions (data_and_samplers.md 5.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from features.assemble import several_ids
from features.columnar import as_column
from features.feature_set import FeatureSet
from features.generator import Sparse

COLUMN = "__features__"


def as_texts(features: FeatureSet, rows: pa.RecordBatch) -> pa.Array:
    """One text for each row, all of which passed `validate`: `name:values`, joined by ` | `.

    Values are joined by commas, weighted ids are `id:weight` in the order of their texts, steps of sequences are joined
    by the feature's delimiter.
    """
    made = features.made(rows)
    described = features.describe()
    parts: list[list[str]] = []
    for feature in features.features:
        values = made[feature.name]
        cells = as_column(values, several=several_ids(feature)).to_pylist()
        if isinstance(values, Sparse) and values.weights is not None:
            texts = _weighted(cells, values.weights)
        else:
            delimiter = _delimiter(described[feature.name]) if feature.is_sequence else ","
            texts = [delimiter.join(map(_text, _listed(cell))) for cell in cells]
        parts.append([f"{feature.name}:{text}" for text in texts])
    return pa.array([" | ".join(row) for row in zip(*parts, strict=True)], pa.string())


def _delimiter(described: Mapping[str, object]) -> str:
    values = described["values"]
    steps = values.get("steps") if isinstance(values, dict) else None
    return chr(steps["delimiter"]) if isinstance(steps, dict) else ","


def _weighted(cells: Iterable[list[int]], weights: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> list[str]:
    found, at = [], 0
    for ids in cells:
        own = weights[at : at + len(ids)]
        found.append(",".join(sorted(f"{item}:{weight!s}" for item, weight in zip(ids, own, strict=True))))
        at += len(ids)
    return found


def _listed(cell: object) -> list[object]:
    return cell if isinstance(cell, list) else [cell]


def _text(value: object) -> str:
    """Numbers as short as float32 allows.

    >>> _text(7.0), _text([17, 18]), _text(float(np.float32(0.1)))
    ('7.0', '17,18', '0.1')
    """
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return str(np.float32(value)) if isinstance(value, float) else str(value)
