"""Every source against the contract of `stream.source.Source`."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream.csv import CsvOptions, open_csv
from stream.cursor import Cursor, PartitionKey
from stream.decode_arrow import ArrowStreamDecoder
from stream.kafka import KafkaSource
from stream.kafka_options import KafkaOptions
from stream.memory import MemorySource
from stream.odps import OdpsSource
from stream.odps_table import OdpsOptions, read_account
from stream.parquet import open_parquet
from stream.source import Chunk, Source

from ..stream.odps_stand_in import Table, running

ROWS = 11
PER_MESSAGE = 4


@dataclass(frozen=True, kw_only=True)
class Case:
    """Two partitions of ROWS rows, `id` 0 … and `name`; partition p counts from 1000 * p."""

    open: Callable[..., Source]  # columns=None
    grow: Callable[[], None] | None  # adds a third partition of the same rows
    refresh_s: float = 0.0


def _batches(partition: int) -> list[pa.RecordBatch]:
    ids = list(range(1000 * partition, 1000 * partition + ROWS))
    whole = pa.record_batch({"id": ids, "name": [f"n{i}" for i in ids]})
    return [whole.slice(i, PER_MESSAGE) for i in range(0, ROWS, PER_MESSAGE)]


def _ipc(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _memory() -> Case:
    messages = {("memory", p): _batches(p) for p in range(2)}

    def grow() -> None:
        messages[("memory", 2)] = _batches(2)
        for source in opened:
            for batch in messages[("memory", 2)]:
                source.append(("memory", 2), batch)

    opened: list[MemorySource] = []

    def start(columns: list[str] | None = None) -> Source:
        opened.append(MemorySource(messages, columns=columns))
        return opened[-1]

    return Case(open=start, grow=grow)


def _kafka(broker) -> Case:
    topic = broker.topic(partitions=2)
    for partition in range(2):
        broker.produce(topic, [_ipc(batch) for batch in _batches(partition)], partition)

    def start(columns: list[str] | None = None) -> Source:
        options = KafkaOptions(
            brokers=broker.bootstrap, topics=(topic,), stop_idle_ms=200, refresh_ms=100, group_id=f"{topic}-group"
        )
        return KafkaSource(options, ArrowStreamDecoder(columns))

    def grow() -> None:
        broker.grow(topic, 3)
        broker.produce(topic, [_ipc(batch) for batch in _batches(2)], 2)

    return Case(open=start, grow=grow, refresh_s=10.0)


def _parquet(folder: Path) -> Case:
    for partition in range(2):
        pq.write_table(pa.Table.from_batches(_batches(partition)), folder / f"{partition}.parquet", row_group_size=5)

    def start(columns: list[str] | None = None) -> Source:
        return open_parquet(str(folder), columns=columns, rows_per_chunk=3)

    return Case(open=start, grow=None)


def _csv(folder: Path, with_header: bool) -> Case:
    for partition in range(2):
        lines = [f"{i},n{i}" for batch in _batches(partition) for i in batch.column("id").to_pylist()]
        lines = ["id,name", *lines] if with_header else lines
        (folder / f"{partition}.csv").write_text("\n".join(lines) + "\n" * partition)

    def start(columns: list[str] | None = None) -> Source:
        chosen = None if columns is None else frozenset(columns)
        names = () if with_header else ("id", "name")
        return open_csv(str(folder), CsvOptions(with_header=with_header, names=names, columns=chosen, block_bytes=16))

    return Case(open=start, grow=None)


@pytest.fixture
def odps(tmp_path: Path) -> Iterator[Case]:
    """A table with two partitions, behind the calls of pyodps."""
    with running() as stand_in:
        rows = {f"dt={p}": pa.Table.from_batches(_batches(p)) for p in range(2)}
        stand_in.tables["clicks"] = Table({"id": "bigint", "name": "string"}, ["dt"], rows)
        options = OdpsOptions(account=read_account(stand_in.account_file(tmp_path)), compression="UNCOMPRESSED")

        def start(columns: list[str] | None = None) -> Source:
            return OdpsSource("odps://p/tables/clicks/dt=0&dt=1", options, columns=columns, rows_per_block=4)

        yield Case(open=start, grow=None)


@pytest.fixture(params=["memory", "parquet", "csv", "csv-header", "csv-packed", "odps", "embedded", "kafka"])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    match request.param:
        case "odps":
            case: Case = request.getfixturevalue("odps")
            return case
        case "csv-packed":
            case = _csv(tmp_path, with_header=True)
            for file in tmp_path.glob("*.csv"):
                (tmp_path / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
                file.unlink()
            return case
        case "parquet":
            return _parquet(tmp_path)
        case "csv" | "csv-header":
            return _csv(tmp_path, request.param == "csv-header")
        case "memory":
            return _memory()
        case "embedded":
            case = _kafka(request.getfixturevalue("embedded_broker"))
            return Case(open=case.open, grow=None)
        case _:
            return _kafka(request.getfixturevalue("kafka_broker"))


def _chunks(source: Source, deadline: int = 400) -> Iterator[Chunk]:
    """All chunks until every partition ended."""
    keys = source.partitions()
    for _ in range(deadline):
        if (chunk := source.read(0.05)) is not None:
            yield chunk
        elif all(source.ended(key) for key in keys):
            return
    raise AssertionError(f"the source did not end: positions {[source.position(key) for key in keys]}")


def _ids(chunks: list[Chunk]) -> dict[PartitionKey, list[int]]:
    found: dict[PartitionKey, list[int]] = {}
    for chunk in chunks:
        found.setdefault(chunk.key, []).extend(chunk.rows.column("id").to_pylist())
    return found


def _read(case: Case, cursors: Mapping[PartitionKey, Cursor] | None = None) -> list[Chunk]:
    with closing(case.open()) as source:
        source.start(source.partitions(), cursors or {})
        return list(_chunks(source))


def test_source_gives_all_rows_in_order_per_partition(case: Case) -> None:
    chunks = _read(case)
    found = _ids(chunks)
    assert [found[key] for key in sorted(found)] == [list(range(ROWS)), list(range(1000, 1000 + ROWS))]
    names = [name for chunk in chunks for name in chunk.rows.column("name").to_pylist()]
    assert sorted(names) == sorted(f"n{i}" for ids in found.values() for i in ids)


def test_source_partitions_are_sorted_and_known_before_start(case: Case) -> None:
    with closing(case.open()) as source:
        keys = source.partitions()
    assert len(keys) == 2
    assert list(keys) == sorted(keys)


def test_source_chunks_follow_each_other_without_gaps(case: Case) -> None:
    ends: dict[PartitionKey, Cursor] = {}
    for chunk in _read(case):
        assert chunk.rows.num_rows == len(chunk.offsets) == len(chunk.row_in_message) == len(chunk.broker_time_ms)
        if chunk.key in ends:
            assert chunk.start.place == ends[chunk.key].place
        places = list(zip(chunk.offsets.tolist(), chunk.row_in_message.tolist(), strict=True))
        assert places == sorted(set(places))
        assert chunk.start.place <= places[0]
        assert places[-1] < chunk.end.place
        ends[chunk.key] = chunk.end


def test_source_resumes_at_every_row(case: Case) -> None:
    whole = _read(case)
    want = _ids(whole)
    cuts = [(chunk, i) for chunk in whole for i in range(chunk.rows.num_rows + 1)]
    for chunk, i in cuts:
        cursor = chunk.cursor(i)
        with closing(case.open()) as source:
            source.start([chunk.key], {chunk.key: cursor})
            assert source.position(chunk.key) == cursor
            given = _first_id(source, chunk.key)
        before = sum(c.rows.num_rows for c in whole if c.key == chunk.key and c.end.place <= chunk.start.place) + i
        assert given == (want[chunk.key][before] if before < ROWS else None)


def _first_id(source: Source, key: PartitionKey) -> int | None:
    for _ in range(200):
        chunk = source.read(0.05)
        if chunk is not None and chunk.rows.num_rows:
            return int(chunk.rows.column("id")[0].as_py())
        if chunk is None and source.ended(key):
            return None
    raise AssertionError("neither a row nor the end")


def test_source_resumes_all_partitions_from_the_middle(case: Case) -> None:
    whole = _read(case)
    firsts = {chunk.key: chunk for chunk in reversed(whole)}
    cursors = {key: chunk.cursor(1) for key, chunk in firsts.items()}
    rest = _ids(_read(case, cursors))
    assert rest == {key: ids[1:] for key, ids in _ids(whole).items()}


def test_source_position_moves_with_what_was_given(case: Case) -> None:
    with closing(case.open()) as source:
        keys = source.partitions()
        source.start(keys, {})
        at = {key: source.position(key) for key in keys}
        assert all(cursor.place == (0, 0) for cursor in at.values())
        for chunk in _chunks(source):
            at[chunk.key] = chunk.end
            assert {key: source.position(key).place for key in keys} == {key: at[key].place for key in keys}


def test_source_ends_only_after_the_last_row(case: Case) -> None:
    with closing(case.open()) as source:
        keys = source.partitions()
        source.start(keys, {})
        assert not any(source.ended(key) for key in keys)
        list(_chunks(source))
        assert all(source.ended(key) for key in keys)


def test_source_lag_falls_to_zero(case: Case) -> None:
    with closing(case.open()) as source:
        keys = source.partitions()
        source.start(keys, {})
        lags = [dict(source.lag())]
        for _ in _chunks(source):
            lags.append(dict(source.lag()))
        lags.append(dict(source.lag()))
        assert all(lags[0][key] > 0 for key in keys)
        assert all(lags[-1][key] == 0 for key in keys)


def test_source_projects_columns(case: Case) -> None:
    with closing(case.open(columns=["id"])) as source:
        source.start(source.partitions(), {})
        chunks = list(_chunks(source))
    assert {tuple(chunk.rows.schema.names) for chunk in chunks} == {("id",)}
    assert sum(chunk.rows.num_rows for chunk in chunks) == 2 * ROWS


def test_source_hold_withholds_and_loses_nothing(case: Case) -> None:
    with closing(case.open()) as source:
        keys = source.partitions()
        source.start(keys, {})
        source.hold([keys[0]])
        chunks = [chunk for _ in range(60) if (chunk := source.read(0.02)) is not None]
        assert {chunk.key for chunk in chunks} == {keys[1]}
        assert not source.ended(keys[0])
        source.hold([])
        chunks += _chunks(source)
    assert {key: len(ids) for key, ids in _ids(chunks).items()} == dict.fromkeys(keys, ROWS)
    assert all(ids == sorted(ids) for ids in _ids(chunks).values())


def test_source_notices_growth_and_reads_it_from_its_first_row(case: Case) -> None:
    if case.grow is None:
        pytest.skip("this source does not grow")
    with closing(case.open()) as source:
        before = source.partitions()
        source.start(before, {})
        list(_chunks(source))
        case.grow()
        for _ in range(200):
            source.read(0.05)
            if len(source.partitions()) > len(before):
                break
        (new,) = set(source.partitions()) - set(before)
        source.add(new)
        chunks = list(_chunks(source))
    assert _ids(chunks) == {new: list(range(2000, 2000 + ROWS))}


def test_source_acknowledge_never_moves_reading(case: Case) -> None:
    with closing(case.open()) as source:
        keys = source.partitions()
        source.start(keys, {})
        source.acknowledge({key: source.position(key).at(3) for key in keys})
        assert _ids(list(_chunks(source))).keys() == set(keys)
    assert {key: len(ids) for key, ids in _ids(_read(case)).items()} == dict.fromkeys(keys, ROWS)


def test_source_of_no_partitions_gives_nothing(case: Case) -> None:
    with closing(case.open()) as source:
        source.start([], {})
        assert source.read(0.05) is None
        assert source.lag() == {}
        source.acknowledge({})


def test_source_closes_twice(case: Case) -> None:
    source = case.open()
    source.start(source.partitions(), {})
    source.close()
    source.close()
