"""MovieLens-100K as events in time order, read from the wheel of `recbole` (which is never installed)."""

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from headrace.demo.errors import DemoError
from headrace.demo.folder import make_folder

WHEEL = "recbole==1.2.1"
_FOLDER = "recbole/dataset_example/ml-100k/ml-100k"
LIKED = 4.0


def fetch(cache: Path) -> Path:
    """Return the wheel below `cache`, downloading it with pip when it is not there yet."""
    make_folder(cache, "--cache")
    found = sorted(cache.glob("recbole-*.whl"))
    if found:
        return found[-1]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(cache), WHEEL]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = sorted(cache.glob("recbole-*.whl"))
    if done.returncode or not found:
        detail = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise DemoError(
            f"cannot download {WHEEL} (the MovieLens-100K data lies in it): {detail[0]}; put the wheel into {cache}"
        )
    return found[-1]


def events(wheel: Path) -> pa.Table:
    """Return one row per rating, in timestamp order, ties in file order.

    Columns: user_id, item_id int64; age int64; gender, occupation, zip3, genres string; year string;
    label float32 (rating >= 4); event_time_ms int64.
    """
    ratings = _read(wheel, "inter")
    users = {row[0]: row for row in _read(wheel, "user")}
    items = {row[0]: row for row in _read(wheel, "item")}
    seconds = np.array([float(row[3]) for row in ratings])
    ordered = [ratings[i] for i in np.argsort(seconds, kind="stable")]
    who, what = [users[row[0]] for row in ordered], [items[row[1]] for row in ordered]
    return pa.table(
        {
            "user_id": pa.array([int(row[0]) for row in ordered], pa.int64()),
            "item_id": pa.array([int(row[1]) for row in ordered], pa.int64()),
            "age": pa.array([float(row[1]) for row in who], pa.float32()),
            "gender": pa.array([row[2] for row in who]),
            "occupation": pa.array([row[3] for row in who]),
            "zip3": pa.array([row[4][:3] for row in who]),
            "year": pa.array([row[2] for row in what]),
            "genres": pa.array([row[3] for row in what]),
            "label": pa.array([float(float(row[2]) >= LIKED) for row in ordered], pa.float32()),
            "event_time_ms": pa.array(np.sort(seconds, kind="stable").astype(np.int64) * 1000),
        }
    )


def item_mean_scores(table: pa.Table, *, prior: float = 0.5, weight: float = 5.0) -> np.ndarray:
    """Return what a running item mean predicts for each event before it sees its label; float64[n]."""
    items, labels = table["item_id"].to_numpy(), table["label"].to_numpy()
    likes, seen = np.zeros(items.max() + 1), np.zeros(items.max() + 1)
    scores = np.empty(len(items))
    for row, (item, label) in enumerate(zip(items, labels, strict=True)):
        scores[row] = (likes[item] + prior * weight) / (seen[item] + weight)
        likes[item] += label
        seen[item] += 1
    return scores


def auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the exact area under the ROC curve, ties counted half.

    >>> auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1]))
    0.75
    """
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positives = float(labels.sum())
    negatives = len(labels) - positives
    return float((ranks[labels == 1].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def _read(wheel: Path, kind: str) -> list[list[str]]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            text = archive.read(f"{_FOLDER}.{kind}").decode("utf-8")
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise DemoError(
            f"{wheel} is no whole wheel of {WHEEL} ({error}); remove it, to have it fetched again"
        ) from None
    return [line.split("\t") for line in text.rstrip("\n").split("\n")[1:]]
