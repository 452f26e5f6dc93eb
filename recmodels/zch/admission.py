"""Admission by count for absent ids that are already distinct, on the counters that kernels.py keeps."""

import numpy as np
from numba import njit

from recmodels.zch.arena import BUCKETS, FIRST_BUCKET, Book, Int64s
from recmodels.zch.kernels import count_sighting, counter_set, give_back, is_admitted


@njit(cache=True, nogil=True)
def _admit(ids, counts, p, counters, touched, admitted, dropped):  # type: ignore[no-untyped-def]
    n = 0
    for i in range(ids.size):
        start = counter_set(p, ids[i] % p[BUCKETS] - p[FIRST_BUCKET], ids[i])
        for _ in range(counts[i]):
            n = count_sighting(counters, touched, start, ids[i], dropped, n)
    for i in range(ids.size):
        admitted[i] = is_admitted(p, counters, ids[i] % p[BUCKETS] - p[FIRST_BUCKET], ids[i])
    return n


@njit(cache=True, nogil=True)
def _settle(ids, p, counters, touched):  # type: ignore[no-untyped-def]
    for i in range(ids.size):
        give_back(p, counters, touched, ids[i] % p[BUCKETS] - p[FIRST_BUCKET], ids[i])


def admit(book: Book, number: int, ids: Int64s, counts: Int64s) -> tuple[np.ndarray, Int64s]:
    """Count sightings of absent ids; whether each has been seen often enough, and ids that lost their counters."""
    admitted, dropped = np.zeros(len(ids), np.bool_), np.empty(int(counts.sum()), np.int64)
    n = _admit(ids, counts, book.params[number], book.counters, book.counter_touched, admitted, dropped)
    return admitted, dropped[:n].copy()


def settle(book: Book, number: int, ids: Int64s) -> None:
    """Empty the counters of ids that have a row now."""
    _settle(ids, book.params[number], book.counters, book.counter_touched)
