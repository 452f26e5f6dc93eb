"""What a configuration says about the feed, turned once into a frozen value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from protos import pipeline_pb2, stream_pb2
from protos.sources import is_unbounded
from stream.decode_schema import declared_schema
from stream.errors import FeedError


class TimeUnit(Enum):
    """Of the event time column; the value is (multiply, divide) to milliseconds."""

    MILLISECONDS = (1, 1)
    SECONDS = (1000, 1)
    MICROSECONDS = (1, 1000)


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter:
    """A row is kept when `column operator value` holds; a null never holds. `value` is cast to the column's type."""

    column: str
    operator: str  # EQ, NE, LT, LE, GT, GE
    value: str

    def __post_init__(self) -> None:
        if self.operator not in ("EQ", "NE", "LT", "LE", "GT", "GE"):
            raise ValueError(f"filter on {self.column!r}: unknown operator {self.operator!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedOptions:
    """How rows are judged and cut. `columns` are those that training reads; None keeps all of the first chunk."""

    batch_size: int
    columns: tuple[str, ...] | None = None
    schema: pa.Schema | None = None
    event_time_column: str | None = None  # None: the message's time
    event_time_unit: TimeUnit = TimeUnit.MILLISECONDS
    allowed_lateness_ms: int | None = None  # None: nothing is late
    max_future_ms: int = 0  # of an event time ahead of the message's; 0: no limit
    idle_partition_ms: int = 5000
    event_id_column: str | None = None  # None: nothing is a duplicate
    duplicate_window_ms: int = 600_000
    filters: tuple[Filter, ...] = ()
    linger_ms: int = 0
    prefetch_batches: int = 4
    drop_remainder: bool = False
    cost_column: str | None = None  # None: batches count rows only
    cost_limit: float = 0.0  # of the costs of the rows of a batch together
    unbounded: bool = False  # a feed without partitions waits for new ones instead of being finished
    max_dead_share: float = 0.5
    dead_window_rows: int = 10_000

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.prefetch_batches < 1:
            raise ValueError(
                f"batch_size and prefetch_batches must be at least 1, got {self.batch_size} and {self.prefetch_batches}"
            )
        if not 0 <= self.max_dead_share <= 1 or self.dead_window_rows < 1:
            raise ValueError(
                f"max_share must be in 0 ... 1 and window_rows at least 1, got {self.max_dead_share} "
                f"and {self.dead_window_rows}"
            )

    @property
    def needs_time(self) -> bool:
        """Whether a row without a time cannot be judged."""
        return self.allowed_lateness_ms is not None or self.event_id_column is not None

    @property
    def all_columns(self) -> tuple[str, ...] | None:
        """`columns` and those that the judgement reads."""
        if self.columns is None:
            return None
        own = [self.event_time_column, self.event_id_column, self.cost_column]
        own += [item.column for item in self.filters]
        return tuple(dict.fromkeys([*self.columns, *(name for name in own if name)]))

    @classmethod
    def from_proto(
        cls,
        config: pipeline_pb2.EasyRecConfig,
        *,
        columns: Sequence[str] | None = None,
        batch_size: int | None = None,
    ) -> FeedOptions:
        """Read `data_config` and `stream_config`; raise FeedError.

        `columns` are the features', labels' and weights'; `batch_size` replaces the configured one (evaluation).
        """
        data, stream = config.data_config, config.stream_config
        if data.batch_cost_size and not data.sample_cost_field:
            raise FeedError("data_config.batch_cost_size needs sample_cost_field: the column with the cost of a row")
        try:
            return cls(
                batch_size=data.batch_size if batch_size is None else batch_size,
                columns=None if columns is None else tuple(columns),
                schema=declared_schema(data),
                event_time_column=stream.event_time_field or None,
                event_time_unit=TimeUnit[stream_pb2.TimeUnit.Name(stream.event_time_unit)],
                max_future_ms=stream.max_future_ms,
                allowed_lateness_ms=stream.allowed_lateness_ms if stream.HasField("allowed_lateness_ms") else None,
                idle_partition_ms=stream.idle_partition_ms,
                event_id_column=stream.event_id_field or None,
                duplicate_window_ms=stream.duplicate_window_ms,
                filters=tuple(_filter(item) for item in stream.filters),
                linger_ms=stream.linger_ms,
                prefetch_batches=max(1, stream.prefetch_batches),
                drop_remainder=data.drop_remainder,
                cost_column=data.sample_cost_field if data.batch_cost_size else None,
                cost_limit=float(data.batch_cost_size),
                unbounded=is_unbounded(config),
                max_dead_share=stream.dead_letters.max_share,
                dead_window_rows=stream.dead_letters.window_rows,
            )
        except ValueError as error:
            raise FeedError(f"stream_config: {error}") from error


def _filter(message: stream_pb2.RowFilter) -> Filter:
    operator = stream_pb2.RowFilter.Operator.Name(message.operator)
    return Filter(column=message.column, operator=operator, value=message.value)
