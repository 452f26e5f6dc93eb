"""Numba kernels of overlap features: two lists of terms a row become one number (feature_generation.md 3.6)."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from features.pairs import MOST_WORK
from stream.words import address_of, same

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Float32s = npt.NDArray[np.float32]

METHODS = (
    "query_common_ratio", "title_common_ratio", "is_contain", "is_equal", "index_of",
    "proximity_min_cover", "proximity_min_dist", "proximity_max_dist", "proximity_avg_dist",
)  # fmt: skip


@nb.njit(nogil=True, cache=True)
def _run_at(q: int, qs: Int64s, qe: Int64s, a: int, b: int, t: int, ts: Int64s, te: Int64s, c: int, d: int) -> int:
    """Where the first run of all query terms begins in the title, else -1."""
    for start in range(d - c - (b - a) + 1):
        equal = True
        for k in range(b - a):
            i, j = a + k, c + start + k
            if not same(q + qs[i], q + qe[i], t + ts[j], t + te[j]):
                equal = False
                break
        if equal:
            return start
    return -1


@nb.njit(nogil=True, cache=True)
def _common(q: int, qs: Int64s, qe: Int64s, a: int, b: int, t: int, ts: Int64s, te: Int64s, c: int, d: int) -> int:
    """Places of the query whose term is in the title."""
    count = 0
    for i in range(a, b):
        for j in range(c, d):
            if same(q + qs[i], q + qe[i], t + ts[j], t + te[j]):
                count += 1
                break
    return count


@nb.njit(nogil=True, cache=True)
def _label(
    q: int, qs: Int64s, qe: Int64s, a: int, b: int, t: int, ts: Int64s, te: Int64s, c: int, d: int
) -> tuple[Int64s, int]:
    """The number of the distinct query term at every place of the title, or -1; and how many terms there are."""
    terms = np.empty(b - a, np.int64)
    count = 0
    for i in range(a, b):
        known = False
        for k in range(count):
            if same(q + qs[i], q + qe[i], q + qs[terms[k]], q + qe[terms[k]]):
                known = True
                break
        if not known:
            terms[count] = i
            count += 1
    out = np.full(d - c, -1, np.int64)
    for j in range(d - c):
        for k in range(count):
            if same(q + qs[terms[k]], q + qe[terms[k]], t + ts[c + j], t + te[c + j]):
                out[j] = k
                break
    return out, count


@nb.njit(nogil=True, cache=True)
def _min_cover(labels: Int64s, count: int) -> int:
    """Length of the shortest window with every term; 0 where one is nowhere."""
    seen = np.zeros(count, np.int64)
    best, held, start = 0, 0, 0
    for stop in range(len(labels)):
        if labels[stop] < 0:
            continue
        seen[labels[stop]] += 1
        held += seen[labels[stop]] == 1
        while held == count:
            size = stop + 1 - start
            if best == 0 or size < best:
                best = size
            if labels[start] >= 0:
                seen[labels[start]] -= 1
                held -= seen[labels[start]] == 0
            start += 1
    return best


@nb.njit(nogil=True, cache=True)
def _distance(labels: Int64s, count: int, method: int) -> float:
    """Minimum (6), maximum (7) or mean (8) of the distances of pairs of matched terms; one term alone: 0."""
    matched = np.zeros(count, np.bool_)
    for label in labels:
        if label >= 0:
            matched[label] = True
    terms = matched.sum()
    if terms == 0:
        return float(len(labels) + 1)
    nearest = np.full((count, count), len(labels) + 1, np.int64)
    last = np.full(count, -1, np.int64)
    for place in range(len(labels)):
        label = labels[place]
        if label < 0:
            continue
        for other in range(count):
            if other != label and last[other] >= 0:
                low, high = min(label, other), max(label, other)
                nearest[low, high] = min(nearest[low, high], place - last[other])
        last[label] = place
    total, pairs, low, high = 0, 0, len(labels) + 1, 0
    for i in range(count):
        for j in range(i + 1, count):
            if matched[i] and matched[j]:
                total += nearest[i, j]
                pairs += 1
                low, high = min(low, nearest[i, j]), max(high, nearest[i, j])
    if pairs == 0:
        return 0.0
    return float(low) if method == 6 else float(high) if method == 7 else total / pairs


@nb.njit(nogil=True, cache=True)
def overlaps(
    queries: Bytes, qs: Int64s, qe: Int64s, q_rows: Int64s,
    titles: Bytes, ts: Int64s, te: Int64s, t_rows: Int64s, method: int,
) -> Float32s:  # fmt: skip
    """The number of every row; 0 where a side has no terms."""
    q, t = address_of(queries), address_of(titles)
    out = np.zeros(len(q_rows) - 1, np.float32)
    for row in range(len(out)):
        a, b, c, d = q_rows[row], q_rows[row + 1], t_rows[row], t_rows[row + 1]
        if a == b or c == d or (b - a) * max(b - a, d - c) > MOST_WORK:
            continue
        if method == 0:
            out[row] = np.float32(_common(q, qs, qe, a, b, t, ts, te, c, d) / (b - a))
        elif method == 1:
            out[row] = np.float32(_common(q, qs, qe, a, b, t, ts, te, c, d) / (d - c))
        elif method == 2:
            out[row] = np.float32(_run_at(q, qs, qe, a, b, t, ts, te, c, d) >= 0)
        elif method == 3:
            out[row] = np.float32(b - a == d - c and _run_at(q, qs, qe, a, b, t, ts, te, c, d) == 0)
        elif method == 4:
            out[row] = np.float32(_run_at(q, qs, qe, a, b, t, ts, te, c, d))
        else:
            labels, count = _label(q, qs, qe, a, b, t, ts, te, c, d)
            value = float(_min_cover(labels, count)) if method == 5 else _distance(labels, count, method)
            out[row] = np.float32(value)
    return out
