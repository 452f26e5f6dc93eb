"""From message payloads to record batches: what every decoder promises, and what the decoders share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

EMPTY = "empty"
"""Reason code: a message without payload (a tombstone) or of zero bytes."""
UNDECODABLE = "undecodable"
"""Reason code: the payload is not what the declared format says."""

DECODE_ERRORS = (pa.ArrowException, OSError, ValueError, EOFError)
"""What Arrow raises on payloads that it cannot read."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Segment:
    """Rows of one schema from consecutive messages; it covers the messages `first` to `stop`, failures included."""

    rows: pa.RecordBatch
    message: npt.NDArray[np.int32]  # [n] index of each row's message in the run
    row: npt.NDArray[np.int32]  # [n] number of each row in its message
    first: int
    stop: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Message `index` of the run gave no rows."""

    index: int
    reason: str
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Decoded:
    """A run of messages: segments that cover it without gaps, and the messages that failed, in order."""

    segments: tuple[Segment, ...]
    failures: tuple[Failure, ...]


class Decoder(Protocol):
    """Turns runs of payloads of one partition into rows. Never raises for a bad payload."""

    @property
    def format(self) -> str:
        """The `MessageFormat` name."""
        ...

    def decode(self, payloads: Sequence[bytes | None]) -> Decoded:
        """Decode a run of at least one payload."""
        ...


def no_rows() -> pa.RecordBatch:
    """A record batch of no rows and no columns."""
    return pa.RecordBatch.from_arrays([], names=[])


def concat(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of the rows of several of equal schema; raise ArrowInvalid where offsets overflow."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def assemble(pieces: Iterable[tuple[Sequence[int], pa.RecordBatch]], failures: Sequence[Failure], n: int) -> Decoded:
    """Join pieces, in order, into segments by schema.

    A piece is the indices of its messages and its rows, as many of each message.
    """
    groups: list[list[tuple[Sequence[int], pa.RecordBatch]]] = []
    for piece in pieces:
        if groups and _same_schema(groups[-1][-1][1].schema, piece[1].schema):
            groups[-1].append(piece)
        else:
            groups.append([piece])
    if not groups:
        nothing = np.empty(0, np.int32)
        return Decoded(
            segments=(Segment(rows=no_rows(), message=nothing, row=nothing, first=0, stop=n),),
            failures=tuple(failures),
        )
    firsts = [0] + [group[0][0][0] for group in groups[1:]] + [n]
    segments = tuple(_segment(group, firsts[i], firsts[i + 1]) for i, group in enumerate(groups))
    return Decoded(segments=segments, failures=tuple(sorted(failures, key=lambda failure: failure.index)))


def _same_schema(left: pa.Schema, right: pa.Schema) -> bool:
    return left is right or left.equals(right)


def _segment(group: list[tuple[Sequence[int], pa.RecordBatch]], first: int, stop: int) -> Segment:
    rows = concat([batch for _, batch in group])
    numbers = np.fromiter(itertools.chain.from_iterable(indices for indices, _ in group), np.int32)
    sizes = [(len(indices), batch.num_rows // len(indices)) for indices, batch in group]
    counts = np.repeat([per for _, per in sizes], [messages for messages, _ in sizes])
    starts = np.cumsum(counts) - counts
    row = (np.arange(rows.num_rows, dtype=np.int64) - np.repeat(starts, counts)).astype(np.int32)
    return Segment(rows=rows, message=np.repeat(numbers, counts), row=row, first=first, stop=stop)


def split_bad(
    payloads: Sequence[bytes | None], decode: Callable[[list[bytes]], pa.RecordBatch]
) -> tuple[list[tuple[Sequence[int], pa.RecordBatch]], list[Failure]]:
    """Decode one-event payloads together; where that fails, find the bad ones by halving.

    `decode` gives exactly one row per payload, or raises one of DECODE_ERRORS.
    """
    failures = [Failure(index=i, reason=EMPTY, detail="no payload") for i, p in enumerate(payloads) if not p]
    pieces: list[tuple[Sequence[int], pa.RecordBatch]] = []
    todo = [[i for i, p in enumerate(payloads) if p]]
    while todo:
        indices = todo.pop()
        if not indices:
            continue
        try:
            pieces.append((indices, decode([payload for i in indices if (payload := payloads[i])])))
        except DECODE_ERRORS as error:
            if len(indices) == 1:
                failures.append(Failure(index=indices[0], reason=UNDECODABLE, detail=str(error)))
            else:
                half = len(indices) // 2
                todo += [indices[half:], indices[:half]]
    return pieces, failures
