"""The event ids seen since a base, gathered from the commits that each carry only their own (FORMAT.md, section 4)."""

from collections.abc import Sequence

import numpy as np

from protos.commit_pb2 import StreamState


def with_seen(states: Sequence[Sequence[StreamState]]) -> list[StreamState]:
    """The last commit's states, the first of which carries what all the commits saw, by partition, oldest first."""
    newest = [_without_seen(state) for state in states[-1]]
    gathered: dict[tuple[str, int], tuple[list[np.ndarray], list[np.ndarray]]] = {}
    for commit in states:
        for state in commit:
            for seen in state.seen:
                ids, times = gathered.setdefault((seen.topic, seen.partition), ([], []))
                ids.append(np.asarray(seen.ids, np.uint64))
                times.append(np.asarray(seen.event_time_ms, np.int64))
    for (topic, partition), (ids, times) in sorted(gathered.items()):
        all_ids, first = np.unique(np.concatenate(ids)[::-1], return_index=True)
        all_times = np.concatenate(times)[::-1][first]
        newest[0].seen.add(topic=topic, partition=partition, ids=all_ids.tolist(), event_time_ms=all_times.tolist())
    return newest


def prune_seen(states: Sequence[StreamState], window_ms: int) -> None:
    """Drop what a duplicate window can no longer reach, in place.

    The window of a partition follows that partition's own watermark; one without a watermark keeps everything.
    """
    marks = {(mark.topic, mark.partition): mark.event_time_ms for state in states for mark in state.watermarks}
    for state in states:
        for seen in state.seen:
            if (seen.topic, seen.partition) not in marks:
                continue
            times = np.asarray(seen.event_time_ms, np.int64)
            kept = times >= marks[seen.topic, seen.partition] - window_ms
            ids = np.asarray(seen.ids, np.uint64)[kept]
            del seen.ids[:], seen.event_time_ms[:]
            seen.ids.extend(ids.tolist())
            seen.event_time_ms.extend(times[kept].tolist())


def _without_seen(state: StreamState) -> StreamState:
    copy = StreamState()
    copy.CopyFrom(state)
    copy.ClearField("seen")
    return copy
