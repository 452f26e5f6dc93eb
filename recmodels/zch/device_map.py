"""TorchRec's hash-based managed collision module behind one table shard, on any device.

Ids go to the rows that the host's map (hashing.py) would probe, so that the log, a restore and a replica see no
difference: the operator is shown buckets without their reserved row, and what it cannot place gets that row.
"""

# ruff: noqa: SLF001  (TorchRec keeps the policy, the scores and the map itself private)

import warnings
from typing import Protocol

import torch
from torch import Tensor
from torchrec.modules.hash_mc_evictions import HashZchEvictionConfig, HashZchEvictionPolicyName
from torchrec.modules.hash_mc_modules import HashZchManagedCollisionModule
from torchrec.sparse.jagged_tensor import JaggedTensor

from recmodels.zch.arena import (
    BUCKET_ROWS,
    BUCKETS,
    EMPTY,
    FIRST_BUCKET,
    FIRST_ROW,
    MAX_PROBE,
    OWN_BUCKETS,
    ROWS,
    TTL_MS,
    Int64s,
)
from recmodels.zch.event_scores import EventClock, GivenScores

_AT_ONCE = 128 * 256
"""Ids in one call. Beyond 128 × 256 a multiprocessor fbgemm's kernel loops, and with LRU a miss leaves the loop."""


class ZchOperator(Protocol):
    """`fbgemm::zero_collision_hash`, as far as it is used here: the row of each input, -1 where it has none."""

    def __call__(
        self,
        *,
        input: Tensor,
        identities: Tensor,
        max_probe: int,
        circular_probe: bool,
        readonly: bool,
        local_sizes: Tensor | None,
        offsets: Tensor | None,
        metadata: Tensor | None,
        disable_fallback: bool,
        input_metadata: Tensor | None,
        eviction_threshold: int,
        eviction_policy: int,
    ) -> tuple[Tensor, Tensor]: ...


class _Module(HashZchManagedCollisionModule):  # type: ignore[misc]
    """TorchRec's module over the rows of each bucket but the last, which it gives for misses."""

    def __init__(self, p: Int64s, name: str, device: torch.device, operator: ZchOperator) -> None:
        bucket_rows, buckets, first = int(p[BUCKET_ROWS]), int(p[BUCKETS]), int(p[FIRST_BUCKET])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="To copy construct from a tensor", category=UserWarning)
            super().__init__(
                zch_size=int(p[ROWS]),
                device=device,
                total_num_buckets=buckets,
                max_probe=int(p[MAX_PROBE]),
                output_segments=[bucket_rows * bucket for bucket in range(buckets + 1)],
                name=name,
                # With a policy it keeps scores; which one, and the scores, are given with every call.
                eviction_policy_name=HashZchEvictionPolicyName.LRU_EVICTION,
                eviction_config=HashZchEvictionConfig(features=[name], single_ttl=0),
                start_bucket=first,
                end_bucket=first + int(p[OWN_BUCKETS]),
            )
        self.scores = self._eviction_module = GivenScores()
        self._operator = operator
        self.to(device)

    def rows(self, ids: Tensor) -> Tensor:
        """Rows of the whole table."""
        lengths = torch.full((1,), len(ids), dtype=torch.int32, device=ids.device)
        mapped: Tensor = self.remap({"": JaggedTensor(values=ids, lengths=lengths)})[""].values()
        return mapped

    def _zero_collision_hash(
        self,
        input: Tensor,
        identities: Tensor,
        max_probe: int,
        circular_probe: bool,
        exp_hours: int,
        readonly: bool,
        local_sizes: Tensor,
        offsets: Tensor,
        metadata: Tensor | None,
        output_on_uvm: bool,
        disable_fallback: bool,
        _modulo_identity_DPRECATED: bool,
        input_metadata: Tensor,
        eviction_threshold: int,
        eviction_policy: int,
        opt_in_prob: int,
        num_reserved_slots: int,
        opt_in_rands: Tensor | None,
        runtime_meta: Tensor | None,
    ) -> tuple[Tensor, None]:
        usable = local_sizes - 1
        found = []
        for start in range(0, len(input), _AT_ONCE):
            own = slice(start, start + _AT_ONCE)
            rows, _ = self._operator(
                input=input[own],
                identities=identities,
                max_probe=max_probe,
                circular_probe=circular_probe,
                readonly=readonly,
                local_sizes=usable[own],
                offsets=offsets[own],
                metadata=metadata,
                # A fallback would be another id's row.
                disable_fallback=True,
                # fbgemm's read-only operator on CPU refuses scores; where nothing is evicted no policy needs them.
                input_metadata=None if readonly else input_metadata[own],
                eviction_threshold=-1 if readonly else eviction_threshold,
                eviction_policy=0 if readonly else eviction_policy,
            )
            found.append(rows)
        rows = torch.cat(found) if found else torch.empty_like(input)
        return torch.where(rows < 0, offsets + usable, rows), None


class DeviceMap:
    """The ids of a hashed shard's rows and when they were seen last: `entries` int64[rows, 2], as on the host.

    Ids that come in are distinct: fbgemm's kernels may give an id that a batch repeats two rows.
    """

    def __init__(self, p: Int64s, name: str, device: torch.device, operator: ZchOperator) -> None:
        self._module = _Module(p, name, device, operator)
        self._p = p
        self._first_row = int(p[FIRST_ROW])
        self._ttl_ms = int(p[TTL_MS])
        self._clock = EventClock(self._ttl_ms)
        self.entries = torch.full((int(p[ROWS]), 2), EMPTY, dtype=torch.int64, device=device)

    def find(self, ids: Tensor) -> Tensor:
        """The row of each id, the reserved one of its bucket for those that have none."""
        self._module.eval()
        return self._module.rows(ids) - self._first_row

    def see(self, ids: Tensor, now_ms: int) -> tuple[Tensor, Tensor, Tensor]:
        """Note when ids are seen; each one's row, whether it has one, and whether that one had expired."""
        if self._clock.move(now_ms):
            self._score()
        rows = self.find(ids)
        known, seen = self.entries[rows, 0] == ids, self.entries[rows, 1]
        lapsed = known & (seen < now_ms - self._ttl_ms) if self._ttl_ms >= 0 else torch.zeros_like(known)
        # What is not known has a reserved row, which keeps what it has: to leave it out would be to wait for a count.
        seen = torch.where(known, seen.clamp(min=now_ms), seen)
        self.entries[rows, 1] = seen
        scores = self._module._hash_zch_metadata[:, 0]
        scores[rows] = torch.where(known, self._clock.scores(seen), scores[rows])
        return rows, known, lapsed

    def place(self, ids: Tensor, now_ms: int) -> tuple[Tensor, Tensor, Tensor]:
        """Give rows to absent ids: expired or empty ones, else the least recent that are not seen now.

        Returns each one's row, whether it got one (else the reserved row), and the id that it evicted, or -1.
        """
        if self._ttl_ms < 0:
            rows = self._put(ids, HashZchEvictionPolicyName.LRU_EVICTION, now_ms, now_ms)
        else:
            rows = self._put(ids, HashZchEvictionPolicyName.SINGLE_TTL_EVICTION, now_ms, now_ms - self._ttl_ms)
            # An id that has a row would keep others from the rows before it: fbgemm's kernel locks what it passes.
            left = (self._owners()[rows] != ids).nonzero()[:, 0]
            rows[left] = self._put(ids[left], HashZchEvictionPolicyName.LRU_EVICTION, now_ms, now_ms)
        placed = self._owners()[rows] == ids
        # Whatever a kernel's threads do to each other, an id never gets a row that another one has.
        rows = torch.where(placed, rows, self._reserved(ids))
        before = self.entries[rows]
        self.entries[rows, 0] = torch.where(placed, ids, before[:, 0])
        self.entries[rows, 1] = torch.where(placed, now_ms, before[:, 1])
        return rows, placed, torch.where(placed, before[:, 0], EMPTY)

    def load(self, entries: Tensor) -> None:
        """Become the map that has these ids in these rows."""
        self.entries.copy_(entries)
        self._owners().copy_(self.entries[:, 0])
        self._score()

    def _put(self, ids: Tensor, policy: HashZchEvictionPolicyName, now_ms: int, before_ms: int) -> Tensor:
        module = self._module.train()
        module._eviction_policy_name = policy
        module.scores.score, module.scores.threshold = self._clock.score(now_ms), self._clock.score(before_ms)
        rows: Tensor = module.rows(ids) - self._first_row
        return rows

    def _reserved(self, ids: Tensor) -> Tensor:
        buckets, first, rows = (int(self._p[name]) for name in (BUCKETS, FIRST_BUCKET, BUCKET_ROWS))
        return (ids % buckets - first + 1) * rows - 1

    def _owners(self) -> Tensor:
        owners: Tensor = self._module._hash_zch_identities.data[:, 0]
        return owners

    def _score(self) -> None:
        held = self.entries[:, 0] != EMPTY
        scores = torch.where(held, self._clock.scores(self.entries[:, 1]), EMPTY)
        self._module._hash_zch_metadata[:, 0] = scores.to(torch.int32)
