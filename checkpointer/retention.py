"""Retention and garbage collection, in an order in which a crash leaves only garbage (FORMAT.md, section 8)."""

import logging
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from checkpointer import chain
from checkpointer.bases import Base, list_bases, read_base
from checkpointer.commit import BASES, LOG, base_path, log_path
from checkpointer.compact import compact, remove_unfinished
from checkpointer.due import LEAST_BYTES, DueOptions, base_needed
from checkpointer.epoch import change_claims
from checkpointer.evidence import staged_under
from checkpointer.faults import NO_FAULTS, FaultPoints
from checkpointer.lock import maintenance
from checkpointer.restore import plan
from checkpointer.store import Store
from protos.checkpoint_pb2 import CheckpointConfig
from protos.pipeline_pb2 import EasyRecConfig

logger = logging.getLogger(__name__)

_LEFTOVER_MS = 3_600_000
_FLOOR_STEPS = 4
_ALL = 1 << 62
_MARKED = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class RetentionOptions:
    """When to compact and what to keep."""

    compact_after_commits: int = 240
    compact_after_bytes_ratio: float = 0.2
    compact_least_bytes: int = LEAST_BYTES
    keep_bases: int = 2
    keep_log_ms: int = 86_400_000
    keep_marked: int = _MARKED  # newest commits marked by save_checkpoints_*, each as a base of its own
    seen_window_ms: int | None = None

    @classmethod
    def of(cls, config: EasyRecConfig) -> "RetentionOptions":
        """The options of a whole configuration: `keep_checkpoint_max` bounds the marked commits, 0 keeps all."""
        train, stream = config.train_config, config.stream_config
        marked = train.keep_checkpoint_max or _ALL if train.HasField("keep_checkpoint_max") else _MARKED
        return cls.from_proto(
            config.checkpoint_config,
            keep_marked=marked,
            seen_window_ms=stream.duplicate_window_ms if stream.event_id_field else None,
        )

    @classmethod
    def from_proto(
        cls, config: CheckpointConfig, *, keep_marked: int = _MARKED, seen_window_ms: int | None = None
    ) -> "RetentionOptions":
        """Turn the configuration's message."""
        return cls(
            compact_after_commits=max(1, config.compact_after_commits),
            compact_after_bytes_ratio=config.compact_after_bytes_ratio,
            keep_bases=max(1, config.keep_bases),
            keep_log_ms=config.keep_log_ms,
            keep_marked=keep_marked,
            seen_window_ms=seen_window_ms,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Collected:
    """What garbage collection removed."""

    commits: int = 0
    bases: int = 0
    blobs: int = 0


def compact_if_due(store: Store, options: RetentionOptions) -> None:
    """Write a base of each marked commit since the last base, and of the newest when the deltas have grown enough."""
    steps = plan(store, None)
    for commit in steps.commits:
        if commit.kept:
            compact(store, commit.seq, seen_window_ms=options.seen_window_ms)
    due = DueOptions(
        after_commits=options.compact_after_commits,
        after_ratio=options.compact_after_bytes_ratio,
        least_bytes=options.compact_least_bytes,
    )
    if base_needed(steps, due):
        compact(store, steps.target.seq, seen_window_ms=options.seen_window_ms)


def compact_newest(store: Store, options: RetentionOptions) -> None:
    """Write a base of the newest commit, due or not."""
    compact(store, seen_window_ms=options.seen_window_ms)


def maintain(
    store: Store,
    lock_dir: str | Path,
    options: RetentionOptions,
    *,
    now_ms: int,
    holder: str,
    published: int | None = None,
    pinned: Collection[int] = (),
    faults: FaultPoints = NO_FAULTS,
    compacting: Callable[[Store, RetentionOptions], None] = compact_if_due,
) -> Collected:
    """Compact, by default if it is time to, then collect garbage, under the one lock for both. Raises LockedError.

    `published` is the newest published commit: later ones are never collected. None: nobody publishes.
    """
    with maintenance(lock_dir, holder):
        if chain.latest_by_hint(store) is None:
            return Collected()
        compacting(store, options)
        return collect_garbage(store, options, now_ms=now_ms, published=published, pinned=pinned, faults=faults)


def collect_garbage(
    store: Store,
    options: RetentionOptions,
    *,
    now_ms: int,
    published: int | None = None,
    pinned: Collection[int] = (),
    faults: FaultPoints = NO_FAULTS,
) -> Collected:
    """Remove what retention does not keep. Hold `lock.maintenance`.

    Kept: the newest bases; the log of `keep_log_ms`, with a base before it so that every commit in it restores; all
    commits since `published`; a base of each pinned commit and of the newest marked ones.
    1. say where the log starts  2. manifests of commits  3. their blobs  4. bases  5. their blobs  6. leftovers
    """
    bases = list_bases(store)
    if not bases:
        return Collected()
    floor = _floor(store, options, bases, now_ms, published)
    _save_pinned(store, options, floor, pinned)
    change_claims(store, None, lambda claims: claims.raised(floor), "collect.floor")
    commits = [seq for seq in chain.list_seqs(store) if seq < floor]
    for seq in commits:
        store.delete(log_path(seq))
        faults.reached("collect.manifest_deleted")
    blobs = _collect_blobs(store, floor, faults)
    doomed = _doomed_bases(store, options, floor, pinned)
    for seq in doomed:
        store.delete(base_path(seq))
    remove_unfinished(store)
    faults.reached("collect.bases_deleted")
    for prefix in (LOG, f"{LOG}/blobs", BASES, f"{BASES}/blobs"):
        store.tidy(prefix, older_ms=_LEFTOVER_MS)
    logger.info("collected commits=%s bases=%s blobs=%s log_from=%s", len(commits), len(doomed), blobs, floor)
    return Collected(commits=len(commits), bases=len(doomed), blobs=blobs)


def _floor(store: Store, options: RetentionOptions, bases: list[int], now_ms: int, published: int | None) -> int:
    """The number of the base from which on the log is kept."""
    limit = bases[-options.keep_bases :][0]
    if published is not None:
        limit = min(limit, published)
    below = [seq for seq in chain.live_seqs(store) if seq < limit]
    # By bisection: there may be hundreds of thousands. A clock that jumped only moves the limit, never past a base.
    young = bisect_left(below, now_ms - options.keep_log_ms, key=lambda seq: _committed_ms(store, seq))
    until = below[young] if young < len(below) else limit
    return max((seq for seq in bases if seq <= until), default=0)


def _save_pinned(store: Store, options: RetentionOptions, floor: int, pinned: Collection[int]) -> None:
    """Give commits that must outlive the log a base of their own."""
    present = set(list_bases(store))
    for seq in chain.live_seqs(store):
        if seq >= floor:
            return
        entry = chain.read_entry(store, seq)
        if entry is not None and seq not in present and (seq in pinned or entry.kept):
            compact(store, seq, seen_window_ms=options.seen_window_ms)


def _doomed_bases(store: Store, options: RetentionOptions, floor: int, pinned: Collection[int]) -> list[int]:
    bases = list_bases(store)
    newest = set(bases[-options.keep_bases :])
    old = [read_base(store, seq) for seq in bases if seq not in newest]
    marked = [base.seq for base in old if base.commit.kept]
    spared = set(marked[-options.keep_marked :]) if options.keep_marked else set()
    spared |= _steps(old, floor, options.keep_log_ms // _FLOOR_STEPS) | set(pinned)
    return [base.seq for base in old if base.seq not in spared]


def _steps(bases: Sequence[Base], floor: int, apart_ms: int) -> set[int]:
    """The floor and bases above it some time apart, on which the floor climbs as the log gets old."""
    kept: list[Base] = []
    for base in bases:
        # In either direction: behind a base of a clock that was ahead there would be no more, and the floor would stay.
        if base.seq == floor or (kept and _apart_ms(kept[-1], base) >= max(1, apart_ms)):
            kept.append(base)
    return {base.seq for base in kept}


def _apart_ms(one: Base, other: Base) -> int:
    return abs(other.commit.committed_ms - one.commit.committed_ms)


def _committed_ms(store: Store, seq: int) -> int:
    entry = chain.read_entry(store, seq)
    return entry.committed_ms if entry is not None else 0


def _collect_blobs(store: Store, floor: int, faults: FaultPoints) -> int:
    """Remove blobs staged under numbers below `floor`.

    A commit that stepped over fenced entries names blobs of a lower number: below `floor` only commit `floor` can.
    """
    entry = chain.read_entry(store, floor) if floor else None
    named = {blob.path for blob in entry.blobs} if entry else set()
    removed = 0
    for folder in store.folders(f"{LOG}/blobs"):
        staged = [(staged_under(found.path), found.path) for found in store.list(folder)]
        below = [path for number, path in staged if number is not None and number < floor]
        for path in below:
            if path not in named:
                store.delete(path)
                faults.reached("collect.blob_deleted")
                removed += 1
        if any(number is not None and number >= floor for number, _ in staged):
            return removed  # folders ascend
    return removed
