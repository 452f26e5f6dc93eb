"""The group of trainer processes: one small exchange per step, and one channel of its own for commits."""

import datetime
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore
from torch.distributed.distributed_c10d import _abort_process_group

from trainer.devices import CPU
from trainer.errors import WorkerError

logger = logging.getLogger(__name__)

# Votes and commits are tensors of the CPU, and so gloo's, on every device.
_BACKENDS = {"cpu": "gloo", "cuda": "cpu:gloo,cuda:nccl"}
_LIBRARIES = ("gloo", "nccl")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rank:
    """Which process this is, as torchrun says it; the rendezvous is torchrun's."""

    rank: int = 0
    world_size: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Vote:
    """What one rank says before a step."""

    rows: int
    event_time_ms: int
    finished: bool
    stop: bool
    commit: bool
    busy: bool
    joining: bool = False
    waiting: bool = False

    def pack(self) -> np.ndarray:
        """Return int64[8]."""
        flags = [self.finished, self.stop, self.commit, self.busy, self.joining, self.waiting]
        return np.array([self.rows, self.event_time_ms, *flags], dtype=np.int64)


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What all ranks do next; equal on every rank, since it is computed from the same votes."""

    rows: int
    event_time_ms: int
    finished: bool
    stop: bool
    commit: bool
    busy: bool
    waiting: bool  # nobody learns: some rank's next batch is still to come
    event_times_ms: tuple[int, ...]  # of each rank

    @classmethod
    def of(cls, votes: np.ndarray) -> "Decision":
        """Decide from int64[world, 8].

        Rank 0's clock says when a commit is due; any rank may ask for one in which new partitions join, or stop.

        >>> a = Vote(rows=3, event_time_ms=5, finished=False, stop=False, commit=True, busy=False)
        >>> b = Vote(rows=0, event_time_ms=9, finished=True, stop=False, commit=False, busy=False)
        >>> Decision.of(np.stack([a.pack(), b.pack()]))  # doctest: +NORMALIZE_WHITESPACE
        Decision(rows=3, event_time_ms=9, finished=False, stop=False, commit=True, busy=False, waiting=False,
                 event_times_ms=(5, 9))
        """
        return cls(
            rows=int(votes[:, 0].sum()),
            event_time_ms=int(votes[:, 1].max()),
            finished=bool(votes[:, 2].all()),
            stop=bool(votes[:, 3].any()),
            commit=bool(votes[0, 4]) or bool(votes[:, 6].any()),
            busy=bool(votes[:, 5].any()),
            waiting=bool(votes[:, 7].any()),
            event_times_ms=tuple(int(time) for time in votes[:, 1]),
        )


class Workers:
    """The process group of a job; a world of one exchanges nothing.

    `timeout_s` bounds every wait for another rank: a rank that died ends the job with an error instead of a hang.
    `device` is where the ranks compute, already the process's own (devices.settle).
    """

    def __init__(self, rank: Rank, *, device: torch.device = CPU, timeout_s: float = 60.0) -> None:
        self.rank = rank.rank
        self.world_size = rank.world_size
        wait = datetime.timedelta(seconds=timeout_s)
        backend = _BACKENDS[device.type]
        if rank.world_size == 1:
            dist.init_process_group(backend, rank=0, world_size=1, store=HashStore(), timeout=wait)
        else:
            dist.init_process_group(backend, timeout=wait)
        # Commits are exchanged from the writer's thread: sharing the step's group would interleave the two.
        self._commits = dist.new_group(backend="gloo", timeout=wait)

    def decide(self, vote: Vote) -> Decision:
        """Exchange votes and decide; every rank calls this once per step."""
        mine = vote.pack()
        if self.world_size == 1:
            return Decision.of(mine[None, :])
        votes = [torch.empty(len(mine), dtype=torch.int64) for _ in range(self.world_size)]
        with naming_lost_ranks(self.rank):
            dist.all_gather(votes, torch.from_numpy(mine))
        return Decision.of(torch.stack(votes).numpy())

    def any(self, flag: bool) -> bool:
        """Whether `flag` holds on some rank; every rank calls this at the same place of its loop."""
        if self.world_size == 1:
            return flag
        total = torch.tensor([int(flag)])
        with naming_lost_ranks(self.rank):
            dist.all_reduce(total)
        return bool(total.item())

    def gather(self, payload: bytes) -> list[bytes]:
        """Give every rank's `payload` to every rank, in rank order; for the commit thread."""
        if self.world_size == 1:
            return [payload]
        with naming_lost_ranks(self.rank):
            return self._gather(payload)

    def _gather(self, payload: bytes) -> list[bytes]:
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.world_size)]
        dist.all_gather(sizes, torch.tensor([len(payload)]), group=self._commits)
        longest = max(int(size) for size in sizes)
        mine = torch.zeros(longest, dtype=torch.uint8)
        mine[: len(payload)] = torch.frombuffer(bytearray(payload), dtype=torch.uint8) if payload else mine[:0]
        parts = [torch.empty(longest, dtype=torch.uint8) for _ in range(self.world_size)]
        dist.all_gather(parts, mine, group=self._commits)
        return [part.numpy()[: int(size)].tobytes() for part, size in zip(parts, sizes, strict=True)]

    def close(self, *, together: bool = True) -> None:
        """Leave the group together; without the barrier a rank that is still sending may abort.

        A rank that failed leaves alone: the others are elsewhere, and learn of it by its leaving.
        """
        if not together:
            # Destroying waits for what is under way: NCCL for a lost rank, until its watchdog kills this process,
            # which has not said yet what happened.
            _abort_process_group()
            return
        if self.world_size > 1:
            with naming_lost_ranks(self.rank):
                dist.barrier()
        dist.destroy_process_group()


@contextmanager
def naming_lost_ranks(rank: int) -> Iterator[None]:
    """Turn what gloo and NCCL say of a lost connection, here or below TorchRec, into a WorkerError."""
    try:
        yield
    except RuntimeError as error:
        named = any(library in str(error).lower() for library in _LIBRARIES)
        if not named and not isinstance(error, dist.DistError):
            raise
        logger.debug("rank=%d collective failed error=%s", rank, error)
        raise WorkerError(
            f"rank {rank} lost another rank, which ended or did not answer in time: see what that one says, and "
            "start all ranks again"
        ) from error
