"""Rows from tables of MaxCompute, over the Arrow tunnel: partition = partition of a table, offset = block of rows.

A download session is a snapshot, and only inside it rows have numbers; so a cursor's topic id names its sessions (id
and number of rows). When a session has expired, reading goes on only where `odps_immutable` says that the partition
cannot have changed, and it still has as many rows. Never run against MaxCompute itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from stream.cursor import Cursor, PartitionKey
from stream.errors import PositionError, SourceError
from stream.hive import PathColumns, path_columns
from stream.missing import require_columns
from stream.odps_table import (
    COMPRESSIONS,
    OdpsOptions,
    TablePath,
    check_type,
    connect,
    find_table,
    in_one_line,
    parse_table_paths,
    tried,
)
from stream.projection import concatenate
from stream.source import Chunk

if TYPE_CHECKING:
    from odps.models import Table
    from odps.tunnel import TableTunnel
    from odps.tunnel.tabletunnel import TableDownloadSession

ROWS_PER_BLOCK = 65_536


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Part:
    """One partition of a table, or all of a table without partitions (`name` empty)."""

    path: TablePath
    table: Table
    tunnel: TableTunnel
    name: str

    @property
    def text(self) -> str:
        return f"{self.path.text}/{self.name}"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Segment:
    """A part behind an open session; its blocks are `first`, `first` + 1, …"""

    part: _Part
    session: TableDownloadSession
    first: int
    blocks: int
    columns: list[str]
    said: PathColumns

    @property
    def tag(self) -> str:
        return f"{self.session.id}:{self.session.count}"


class OdpsSource:
    """A bounded `Source` over the partitions of tables, or, `ordered`, over all of them as one."""

    def __init__(
        self,
        path: str,
        options: OdpsOptions,
        *,
        columns: Collection[str] | None = None,
        declared: pa.Schema | None = None,
        rows_per_block: int = ROWS_PER_BLOCK,
    ) -> None:
        """List the partitions; raise SourceError."""
        self._path = path
        self._options = options
        self._columns = columns
        self._declared = declared
        self._rows_per_block = rows_per_block
        parts = [part for table in parse_table_paths(path) for part in _parts(table, options)]
        self._parts: list[list[_Part]] = [parts] if options.ordered else [[part] for part in parts]
        self._segments: dict[PartitionKey, list[_Segment]] = {}
        self._at: dict[PartitionKey, Cursor] = {}
        self._turn: deque[PartitionKey] = deque()
        self._held: frozenset[PartitionKey] = frozenset()

    def partitions(self) -> tuple[PartitionKey, ...]:
        """In the order in which they are listed."""
        return tuple((self._path, i) for i in range(len(self._parts)))

    def start(self, keys: Iterable[PartitionKey], cursors: Mapping[PartitionKey, Cursor]) -> None:
        """Open sessions, or those of the cursors; raise PositionError where such a session is gone."""
        for key in sorted(keys):
            self._open(key, cursors.get(key))

    def add(self, key: PartitionKey) -> None:
        """Read one more partition from its first row."""
        self._open(key, None)

    def _open(self, key: PartitionKey, cursor: Cursor | None) -> None:
        if key not in self.partitions():
            raise SourceError(f"no partition {key[1]} in {key[0]!r}; there are {len(self._parts)}")
        parts = self._parts[key[1]]
        known = cursor.topic_id.split("+") if cursor is not None and cursor.topic_id else [""] * len(parts)
        if len(known) != len(parts):
            raise PositionError(
                f"cursor {key} was made for {len(known)} partitions of {self._path!r}, not {len(parts)}"
            )
        segments: list[_Segment] = []
        for part, tag in zip(parts, known, strict=True):
            first = segments[-1].first + segments[-1].blocks if segments else 0
            segments.append(self._segment(part, tag, first))
        topic_id = "+".join(segment.tag for segment in segments)
        place = (0, 0) if cursor is None else cursor.place
        self._segments[key] = segments
        self._at[key] = Cursor(topic=key[0], partition=key[1], topic_id=topic_id, offset=place[0], row=place[1])
        if place[0] > self._blocks(key):
            raise PositionError(f"cursor {self._at[key].text} is behind the end, after {self._blocks(key)} blocks")
        self._turn.append(key)

    def _segment(self, part: _Part, tag: str, first: int) -> _Segment:
        session = _session(part, tag, self._options)
        said = path_columns(f"{part.name}/", self._declared)
        columns = _present(part, session, self._columns, said)
        blocks = -(-session.count // self._rows_per_block)
        return _Segment(
            part=part, session=session, first=first, blocks=blocks, columns=columns,
            said=said.beside(columns, self._columns),
        )  # fmt: skip

    def _blocks(self, key: PartitionKey) -> int:
        last = self._segments[key][-1]
        return last.first + last.blocks

    def read(self, timeout_s: float) -> Chunk | None:
        """The rest of a block of the next partition that has one; waits for MaxCompute."""
        for _ in range(len(self._turn)):
            key = self._turn[0]
            self._turn.rotate(-1)
            if key not in self._held and not self.ended(key):
                chunk = self._read_block(key)
                self._at[key] = chunk.end
                return chunk
        return None

    def _read_block(self, key: PartitionKey) -> Chunk:
        start = self._at[key]
        segment = next(item for item in reversed(self._segments[key]) if item.first <= start.offset and item.blocks)
        begin = (start.offset - segment.first) * self._rows_per_block
        count = min(self._rows_per_block, segment.session.count - begin) - start.row
        rows = segment.said.add(_rows(segment, begin + start.row, count, self._options))
        return Chunk(
            key=key,
            rows=rows,
            offsets=np.full(count, start.offset, np.int64),
            row_in_message=np.arange(start.row, start.row + count, dtype=np.int32),
            broker_time_ms=np.full(count, -1, np.int64),
            start=start,
            end=start.at(start.offset + 1),
        )

    def hold(self, keys: Collection[PartitionKey]) -> None:
        """Give nothing of these."""
        self._held = frozenset(keys)

    def ended(self, key: PartitionKey) -> bool:
        """All rows of the sessions were given."""
        return self._at[key].offset >= self._blocks(key)

    def position(self, key: PartitionKey) -> Cursor:
        """The row after the last one given."""
        return self._at[key]

    def lag(self) -> Mapping[PartitionKey, int]:
        """Blocks not yet given in full."""
        return {key: self._blocks(key) - cursor.offset for key, cursor in self._at.items()}

    def skipped(self) -> Mapping[PartitionKey, int]:
        """None: what is listed stays, or reading fails."""
        return {}

    def acknowledge(self, cursors: Mapping[PartitionKey, Cursor]) -> None:
        """Do nothing: nobody listens."""

    def close(self) -> None:
        """Do nothing: sessions expire by themselves, and a resume needs them."""


def read_table(path: str, options: OdpsOptions) -> Iterator[pa.RecordBatch]:
    """All rows of tables, block by block; raise SourceError."""
    source = OdpsSource(path, options)
    source.start(source.partitions(), {})
    while (chunk := source.read(0.0)) is not None:
        yield chunk.rows


def data_version(path: str, options: OdpsOptions) -> str:
    """Changes when the rows do: when the partitions, or tables without any, were last modified. Raise SourceError."""
    parts = [part for table in parse_table_paths(path) for part in _parts(table, options)]
    told = [(part.text, tried(partial(_modified, part), f"state of {part.text}", options)) for part in parts]
    return " ".join(f"{text} {time}" for text, time in told)


def _modified(part: _Part) -> str:
    # Times are in seconds: the size tells most writes within one apart.
    found = part.table.get_partition(part.name.replace("/", ",")) if part.name else part.table
    return f"{found.last_data_modified_time} {found.size}"


def _parts(path: TablePath, options: OdpsOptions) -> list[_Part]:
    from odps.tunnel import TableTunnel

    client = connect(options, path)
    table = find_table(client, path, options)
    tunnel = TableTunnel(client, quota_name=options.quota or None)
    names: Sequence[str] = path.partitions or ("",)
    keys = [column.name for column in table.table_schema.partitions]
    if keys and not path.partitions:
        names = tried(lambda: _listed(table), f"partitions of {path.text}", options)
        if not names:
            raise SourceError(f"{path.text} has no partition")
    for name in path.partitions:
        if [pair.partition("=")[0] for pair in name.split("/")] != keys:
            raise SourceError(f"{path.text} is partitioned by {', '.join(keys) or 'nothing'}, not as {name!r} says")
    return [_Part(path=path, table=table, tunnel=tunnel, name=name) for name in names]


def _listed(table: Table) -> list[str]:
    return sorted(str(item.partition_spec).replace("'", "").replace(",", "/") for item in table.iterate_partitions())


def _session(part: _Part, tag: str, options: OdpsOptions) -> TableDownloadSession:
    """A new session, or the one of a cursor's tag."""
    from odps.errors import ODPSError

    spec = part.name.replace("/", ",") or None
    known, _, count = tag.partition(":")
    if known:
        try:
            session = part.tunnel.create_download_session(
                part.table, partition_spec=spec, download_id=known, compress_algo=COMPRESSIONS[options.compression]
            )
            if session.status.value.upper() in ("NORMAL", "CLOSES"):
                return session
        except ODPSError as error:
            gone = in_one_line(error)
        else:
            gone = f"it is {session.status.value}"
        if not options.immutable:
            raise PositionError(
                f"session {known} of {part.text} is gone ({gone}), and another one may have them in another order: "
                "start over, or set data_config.odps_immutable if the partition cannot have changed"
            )
    made = tried(
        lambda: part.tunnel.create_download_session(
            part.table, partition_spec=spec, compress_algo=COMPRESSIONS[options.compression]
        ),
        f"session of {part.text}",
        options,
    )
    if known and str(made.count) != count:
        raise PositionError(f"{part.text} has {made.count} rows, but had {count} when the cursor was made: it changed")
    return made


def _present(
    part: _Part, session: TableDownloadSession, columns: Collection[str] | None, said: PathColumns
) -> list[str]:
    """The columns to read, in table order."""
    kinds = {column.name: str(column.type) for column in session.schema.simple_columns}
    require_columns(part.text, columns, list(kinds), said.values)
    wanted = [name for name in kinds if columns is None or name in columns]
    # The tunnel reads no rows without columns, and partition columns are none.
    wanted = wanted or list(kinds)[:1]
    for name in wanted:
        check_type(part.path, name, kinds[name])
    return wanted


def _rows(segment: _Segment, begin: int, count: int, options: OdpsOptions) -> pa.RecordBatch:
    def read() -> pa.RecordBatch:
        batches = []
        compress = options.compression != "UNCOMPRESSED"
        with segment.session.open_arrow_reader(begin, count, compress=compress, columns=segment.columns) as reader:
            while (batch := reader.read_next_batch()) is not None:
                batches.append(batch)
        found = sum(batch.num_rows for batch in batches)
        if found != count:
            raise OSError(f"{found} rows came instead of {count}")
        return concatenate(batches)

    what = f"rows {begin} to {begin + count} of session {segment.session.id} of {segment.part.text}"
    return tried(read, what, options)
