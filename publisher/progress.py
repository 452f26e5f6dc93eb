"""Where a version stands in its streams: ranges learned since the version before, and the watermark."""

from collections.abc import Sequence

from protos.commit_pb2 import StreamState
from publisher.manifest import StreamRange

UNKNOWN = -1


def stream_ranges(states: Sequence[StreamState], before: Sequence[StreamRange]) -> tuple[StreamRange, ...]:
    """Range per partition, from where the version before ended; start_offset -1: from the declared start."""
    ends = {(known.topic, known.topic_id, known.partition): (known.end_offset, known.end_row) for known in before}
    cursors = sorted((cursor for state in states for cursor in state.cursors), key=lambda c: (c.topic, c.partition))
    ranges = []
    for cursor in cursors:
        offset, row = ends.get((cursor.topic, cursor.topic_id, cursor.partition), (UNKNOWN, 0))
        ranges.append(
            StreamRange(
                topic=cursor.topic,
                topic_id=cursor.topic_id,
                partition=cursor.partition,
                start_offset=offset,
                start_row=row,
                end_offset=cursor.offset,
                end_row=cursor.row,
            )
        )
    return tuple(ranges)


def watermark_ms(states: Sequence[StreamState]) -> int:
    """The least watermark of all partitions that have one; -1 where none has."""
    marks = [mark.event_time_ms for state in states for mark in state.watermarks]
    return min(marks, default=-1)
