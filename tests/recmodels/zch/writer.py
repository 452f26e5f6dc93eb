"""fbgemm's CUDA `zero_collision_hash`, one id after the other, on CPU tensors: what a device does that is not here.

Semantics of fbgemm_gpu/src/faster_hash_ops/faster_hash.cu: an id in its window keeps its row. Policy 0 (TTL) takes the
first row of the window that is empty or has a score below both the threshold and the id's own; policy 1 (LRU) an empty
one, else the lowest such score. Reads are left to fbgemm's own operator, which has them on CPU.
"""

import numpy as np
import torch
from numba import njit
from torch import Tensor

from recmodels.zch.hashing import murmur3_2x64


@njit
def _gives_way(metadata, at, threshold, score):
    if metadata[at] == -1:
        raise ValueError("an id has a row without a score: fbgemm's kernel would wait for it for ever")
    return threshold > metadata[at] and metadata[at] < score


@njit
def _write(
    order, ids, identities, sizes, offsets, metadata, scores, threshold, lru, max_probe, reserved, fallback, rows, gone
):
    evicts = metadata.size > 0
    for i in order:
        usable = sizes[i]
        start = np.int64(murmur3_2x64(ids[i]) % np.uint64(usable))
        held = empty = lowest = -1
        for probe in range(max_probe):
            at = offsets[i] + (start + probe) % usable
            if identities[at] == ids[i]:
                held = at
                break
            if identities[at] == -1:
                empty = at
                break
        if held < 0:
            for probe in range(max_probe):
                at = offsets[i] + (start + probe) % usable
                if at == empty:
                    break
                if evicts and _gives_way(metadata, at, threshold, scores[i]):
                    if lowest < 0 or metadata[at] < metadata[lowest]:
                        lowest = at
                    if not lru:
                        break
        at = held
        if at < 0:
            at = lowest if lowest >= 0 and not (lru and empty >= 0) else empty
        if at < 0:
            continue
        if identities[at] != -1 and identities[at] != ids[i]:
            gone[i] = at
        identities[at] = ids[i]
        if evicts:
            metadata[at] = max(metadata[at], scores[i])
        rows[i] = at


def _refuse(condition: bool, what: str) -> None:
    if condition:
        raise RuntimeError(f"fbgemm's operator refuses this: {what}")


class Writer:
    """The operator; ids of a call are taken in a random order if there is a generator for it, as threads may."""

    def __init__(self, rng: np.random.Generator | None = None) -> None:
        self._rng = rng
        self.calls: list[int] = []

    def __call__(
        self,
        input: Tensor,
        identities: Tensor,
        max_probe: int,
        circular_probe: bool = False,
        exp_hours: int = -1,
        readonly: bool = False,
        local_sizes: Tensor | None = None,
        offsets: Tensor | None = None,
        metadata: Tensor | None = None,
        output_on_uvm: bool = False,
        disable_fallback: bool = False,
        _modulo_identity_DPRECATED: bool = False,
        input_metadata: Tensor | None = None,
        eviction_threshold: int = -1,
        eviction_policy: int = 0,
        opt_in_prob: int = -1,
        num_reserved_slots: int = -1,
        opt_in_rands: Tensor | None = None,
        runtime_meta: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        self.calls.append(len(input))
        if readonly:
            return torch.ops.fbgemm.zero_collision_hash(
                input=input, identities=identities, max_probe=max_probe, circular_probe=circular_probe, readonly=True,
                local_sizes=local_sizes, offsets=offsets, metadata=metadata, disable_fallback=disable_fallback,
                input_metadata=input_metadata, eviction_threshold=eviction_threshold, eviction_policy=eviction_policy,
                opt_in_prob=opt_in_prob, num_reserved_slots=num_reserved_slots,
            )  # fmt: skip
        evicts = eviction_threshold > 0 or eviction_policy > 0
        _refuse(not circular_probe or exp_hours != -1 or opt_in_rands is not None, "not emulated")
        _refuse(evicts != (metadata is not None), "scores of rows go with eviction")
        _refuse((input_metadata is None) != (eviction_threshold == -1), "scores of ids go with a threshold")
        _refuse(opt_in_prob != -1 or num_reserved_slots != -1 or not disable_fallback, "not emulated")
        _refuse(identities.dtype != torch.int64 or identities.dim() != 2, "identities are int64 [n, 1]")
        for given, kind in ((metadata, torch.int32), (input_metadata, torch.int32), (local_sizes, torch.int64)):
            _refuse(given is not None and given.dtype != kind, f"a {kind} is expected")
        rows, gone = np.full(len(input), -1), np.full(len(input), -1)
        order = np.arange(len(input)) if self._rng is None else self._rng.permutation(len(input))
        _write(
            order, input.numpy(), identities.numpy().reshape(-1),
            np.full(len(input), len(identities)) if local_sizes is None else local_sizes.numpy(),
            np.zeros(len(input), np.int64) if offsets is None else offsets.numpy(),
            np.empty(0, np.int32) if metadata is None else metadata.numpy().reshape(-1),
            np.zeros(len(input), np.int32) if input_metadata is None else input_metadata.numpy(),
            eviction_threshold, eviction_policy == 1, max_probe,
            num_reserved_slots if opt_in_prob == 100 and eviction_policy == 0 else 0, not disable_fallback, rows, gone,
        )  # fmt: skip
        return torch.from_numpy(rows), torch.from_numpy(np.unique(gone[gone >= 0]))
