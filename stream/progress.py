"""The trained position of a stream: cursors, watermarks, counters, seen ids. It moves when a cut is trained."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from protos import commit_pb2
from stream.accounting import Counts
from stream.cursor import Cursor, PartitionKey
from stream.cutting import Cut

SeenIds = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]
"""Event-id hashes, and the partition's watermark when each was accepted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedCut:
    """The rows that one batch took from each partition, in the order of `partitions`."""

    step: int
    rank: int
    partitions: tuple[PartitionKey, ...]
    rows: tuple[int, ...]


class Progress:
    """What one rank has trained; `state` is what it adds to a commit.

    Cursors, watermarks and counters are totals. Cuts and seen ids are those since the last `clear_increment`, which
    the trainer calls when it has taken a snapshot; `restore_increment` puts a snapshot back whose commit failed.
    """

    def __init__(self) -> None:
        self.cursors: dict[PartitionKey, Cursor] = {}
        self.watermarks: dict[PartitionKey, int] = {}
        self.accounting: dict[str, Counts] = {}
        self.window: dict[PartitionKey, SeenIds] = {}
        """Restored ids, for the feed; what `advance` adds is in no window, since the feed saw it."""
        self.cuts: list[RecordedCut] = []
        self._seen: dict[PartitionKey, list[SeenIds]] = {}

    def advance(self, cut: Cut, *, step: int = 0, rank: int = 0) -> None:
        """Count a cut as trained."""
        self.cursors.update(cut.cursors)
        self.watermarks.update(cut.watermarks)
        for topic, counts in cut.accounting.items():
            self.accounting[topic] = self.accounting.get(topic, Counts()) + counts
        for key, seen in cut.seen.items():
            self._seen.setdefault(key, []).append(seen)
        self.cuts.append(RecordedCut(step=step, rank=rank, partitions=cut.partitions, rows=cut.counts))

    def place(self, cursors: Mapping[PartitionKey, Cursor]) -> None:
        """Say where reading starts, for partitions without a cursor: a commit before their first row needs it."""
        for key, cursor in cursors.items():
            self.cursors.setdefault(key, cursor)

    def to_proto(self) -> commit_pb2.StreamState:
        """What a commit records; changes nothing."""
        order = sorted({key for cut in self.cuts for key in cut.partitions})
        return commit_pb2.StreamState(
            cursors=[self.cursors[key].to_proto() for key in sorted(self.cursors)],
            watermarks=[
                commit_pb2.Watermark(topic=key[0], partition=key[1], event_time_ms=self.watermarks[key])
                for key in sorted(self.watermarks)
            ],
            accounting=[self.accounting[topic].to_proto(topic) for topic in sorted(self.accounting)],
            partitions=[commit_pb2.Cursor(topic=topic, partition=partition) for topic, partition in order],
            cuts=[_cut_to_proto(cut, order) for cut in self.cuts],
            seen=[_seen_to_proto(key, self._seen[key]) for key in sorted(self._seen)],
        )

    def clear_increment(self) -> None:
        """Start the next commit's cuts and seen ids."""
        self.cuts = []
        self._seen = {}

    def restore_increment(self, state: commit_pb2.StreamState) -> None:
        """Put the cuts and seen ids of a state whose commit failed before those since."""
        self.cuts = recorded_cuts([state]) + self.cuts
        for key, seen in _seen_from_proto([state]).items():
            self._seen.setdefault(key, []).insert(0, seen)

    def only(self, keys: Collection[PartitionKey], *, accounting: bool) -> Progress:
        """The part of one rank, which has these partitions; exactly one rank goes on with the counters."""
        part = Progress()
        part.cursors = {key: cursor for key, cursor in self.cursors.items() if key in keys}
        part.watermarks = {key: mark for key, mark in self.watermarks.items() if key in keys}
        part.window = {key: seen for key, seen in self.window.items() if key in keys}
        part.accounting = dict(self.accounting) if accounting else {}
        return part

    @classmethod
    def from_proto(cls, states: Iterable[commit_pb2.StreamState]) -> Progress:
        """All ranks together, from the states of one commit, one per rank; raise ValueError where one is malformed.

        Their `seen` may hold ids of earlier commits, as a restore gathers them.
        """
        progress = cls()
        given = list(states)
        for state in given:
            for message in state.cursors:
                cursor = Cursor.from_proto(message)
                progress.cursors[cursor.key] = cursor
            for mark in state.watermarks:
                progress.watermarks[mark.topic, mark.partition] = mark.event_time_ms
            for counts in state.accounting:
                total = progress.accounting.get(counts.topic, Counts())
                progress.accounting[counts.topic] = total + Counts.from_proto(counts)
        progress.window = _seen_from_proto(given)
        return progress


def recorded_cuts(states: Iterable[commit_pb2.StreamState], rank: int | None = None) -> list[RecordedCut]:
    """The cuts of commits, in their order; of one rank where it is given. Raise ValueError where one is malformed."""
    found = []
    for state in states:
        keys = tuple((partition.topic, partition.partition) for partition in state.partitions)
        for cut in state.cuts:
            if len(cut.rows) != len(keys):
                raise ValueError(
                    f"cut of step {cut.step} counts {len(cut.rows)} partitions, its state names {len(keys)}"
                )
            if rank is None or cut.rank == rank:
                found.append(RecordedCut(step=cut.step, rank=cut.rank, partitions=keys, rows=tuple(cut.rows)))
    return found


def _cut_to_proto(cut: RecordedCut, order: list[PartitionKey]) -> commit_pb2.BatchCut:
    rows = dict(zip(cut.partitions, cut.rows, strict=True))
    return commit_pb2.BatchCut(step=cut.step, rank=cut.rank, rows=[rows.get(key, 0) for key in order])


def _seen_to_proto(key: PartitionKey, seen: list[SeenIds]) -> commit_pb2.SeenIds:
    ids = np.concatenate([part for part, _ in seen])
    stamps = np.concatenate([part for _, part in seen])
    return commit_pb2.SeenIds(topic=key[0], partition=key[1], ids=ids.tolist(), event_time_ms=stamps.tolist())


def _seen_from_proto(states: Iterable[commit_pb2.StreamState]) -> dict[PartitionKey, SeenIds]:
    parts: dict[PartitionKey, list[SeenIds]] = {}
    for state in states:
        for seen in state.seen:
            if len(seen.ids) != len(seen.event_time_ms):
                raise ValueError(f"seen ids of {seen.topic}/{seen.partition}: numbers of ids and times differ")
            pair = np.array(seen.ids, np.uint64), np.array(seen.event_time_ms, np.int64)
            parts.setdefault((seen.topic, seen.partition), []).append(pair)
    return {
        key: (np.concatenate([ids for ids, _ in pairs]), np.concatenate([stamps for _, stamps in pairs]))
        for key, pairs in parts.items()
    }
