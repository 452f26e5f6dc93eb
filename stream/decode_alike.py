"""Arrow messages of one layout, decoded together: no object per message.

Producers send batch after batch of the same schema and row count. Where such messages have the same metadata byte for
byte, every column lies at the same place in each, and a run of them is copied column by column.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True, kw_only=True, slots=True)
class _Column:
    field: pa.Field
    start: int  # of its values in the message, in bytes
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Where the columns of a message lie; only numbers without nulls, in messages without compression."""

    head: bytes  # the metadata, which must be the same
    tail: bytes  # what follows the columns, which must be the same
    size: int
    rows: int
    columns: tuple[_Column, ...]
    schema: pa.Schema

    @classmethod
    def of(
        cls, payload: bytes, batch: pa.RecordBatch, body: int, end: int, columns: Collection[str] | None
    ) -> Layout | None:
        """The layout of a message that was decoded to `batch`, and whose body lies from `body` to `end`.

        None where it has columns of other kinds.
        """
        base = pa.py_buffer(payload).address
        placed = []
        for field, array in zip(batch.schema, batch.columns, strict=True):
            if columns is not None and field.name not in columns:
                continue
            if not (
                pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_temporal(field.type)
            ):
                return None
            size = batch.num_rows * field.type.bit_width // 8
            start = array.buffers()[1].address - base
            # Decompressed values lie outside the message.
            if array.null_count or array.offset or start < body or start + size > end:
                return None
            placed.append(_Column(field=field, start=start, size=size))
        if not placed or not batch.num_rows:
            return None
        return cls(
            head=payload[:body],
            tail=payload[end:],
            size=len(payload),
            rows=batch.num_rows,
            columns=tuple(placed),
            schema=pa.schema([column.field for column in placed]),
        )

    def has(self, payload: bytes | None) -> bool:
        """Whether the message is of this layout."""
        return (
            payload is not None
            and len(payload) == self.size
            and payload.startswith(self.head)
            and payload.endswith(self.tail)
        )

    def decode(self, payloads: Sequence[bytes]) -> pa.RecordBatch:
        """The rows of messages that all are of this layout."""
        stacked = np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), self.size)
        rows = len(payloads) * self.rows
        arrays = []
        for column in self.columns:
            values = np.ascontiguousarray(stacked[:, column.start : column.start + column.size])
            arrays.append(pa.Array.from_buffers(column.field.type, rows, [None, pa.py_buffer(values)]))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
