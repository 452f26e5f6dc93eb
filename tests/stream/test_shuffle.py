"""Shuffled and split files: everything exactly once, and the same order from any row on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protos import data_pb2
from protos.pipeline_pb2 import EasyRecConfig
from stream import open_source
from stream.csv import CsvOptions, open_csv
from stream.cursor import Cursor, PartitionKey
from stream.errors import FileReplacedError
from stream.files import FileSource, Reading, known_splits
from stream.parquet import open_parquet
from stream.shuffle import Shuffle
from stream.source import Chunk

ROWS = 60

Open = Callable[[Reading], FileSource]


def _parquet(folder: Path, sizes: tuple[int, ...] = (ROWS, 17), group: int = 7) -> Open:
    first = 0
    for number, size in enumerate(sizes):
        ids = list(range(first, first + size))
        first += size
        pq.write_table(pa.table({"id": ids}), folder / f"{number}.parquet", row_group_size=group)
    return lambda reading: open_parquet(str(folder), rows_per_chunk=3, reading=reading)


def _csv(folder: Path) -> Open:
    for number, (first, size) in enumerate([(0, ROWS), (ROWS, 17)]):
        (folder / f"{number}.csv").write_text("\n".join(str(i) for i in range(first, first + size)) + "\n")
    return lambda reading: open_csv(str(folder), CsvOptions(names=("id",), block_bytes=16, reading=reading))


@pytest.fixture(params=["parquet", "csv"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    return _parquet(tmp_path) if request.param == "parquet" else _csv(tmp_path)


def _read(source: FileSource, keys: list[PartitionKey], cursors: dict[PartitionKey, Cursor]) -> list[Chunk]:
    with closing(source):
        source.start(keys, cursors)
        chunks = []
        while (chunk := source.read(0.0)) is not None:
            chunks.append(chunk)
        assert all(source.ended(key) for key in keys)
        return chunks


def _ids(chunks: list[Chunk]) -> list[int]:
    return [value for chunk in chunks for value in chunk.rows.column("id").to_pylist()]


def _all(opened: Open, reading: Reading) -> list[int]:
    source = opened(reading)
    return _ids(_read(source, list(source.partitions()), {}))


def test_shuffle_gives_everything_once_in_another_order(opened: Open) -> None:
    first = _all(opened, Reading(shuffle=Shuffle(seed=1, epoch=0, rows=20)))
    assert sorted(first) == list(range(ROWS + 17))
    assert first != sorted(first)
    assert _all(opened, Reading(shuffle=Shuffle(seed=1, epoch=0, rows=20))) == first
    assert _all(opened, Reading(shuffle=Shuffle(seed=1, epoch=1, rows=20))) != first
    assert _all(opened, Reading(shuffle=Shuffle(seed=2, epoch=0, rows=20))) != first


def test_shuffle_moves_rows_between_row_groups(tmp_path: Path) -> None:
    opened = _parquet(tmp_path, sizes=(ROWS,))
    order = _all(opened, Reading(shuffle=Shuffle(seed=1, epoch=0, rows=ROWS)))
    groups = [value // 7 for value in order[:7]]
    assert len(set(groups)) > 2


def test_shuffle_resumes_at_every_row(opened: Open) -> None:
    reading = Reading(splits=2, shuffle=Shuffle(seed=5, epoch=3, rows=20))
    keys = opened(reading).partitions()
    assert len(keys) == 4
    for key in keys:
        whole = _read(opened(reading), [key], {})
        ids = _ids(whole)
        at = 0
        for chunk in whole:
            for row in range(chunk.rows.num_rows + 1):
                rest = _ids(_read(opened(reading), [key], {key: chunk.cursor(row)}))
                assert rest == ids[at + row :]
            at += chunk.rows.num_rows


@settings(deadline=None, max_examples=40)
@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=4),
    group=st.integers(1, 9),
    splits=st.integers(1, 5),
    rows=st.none() | st.integers(1, 50),
    world=st.integers(1, 4),
)
def test_ranks_together_read_everything_once(
    tmp_path_factory, sizes: list[int], group: int, splits: int, rows: int | None, world: int
) -> None:
    folder = tmp_path_factory.mktemp("files")
    shuffle = None if rows is None else Shuffle(seed=1, epoch=2, rows=rows)
    opened = _parquet(folder, tuple(sizes), group)
    found = []
    for rank in range(world):
        source = opened(Reading(splits=splits, shuffle=shuffle))
        keys = [key for key in source.partitions() if key[1] % world == rank]
        found += _ids(_read(source, keys, {}))
    assert sorted(found) == list(range(sum(sizes)))


def test_cursor_of_another_order_is_refused(opened: Open) -> None:
    shuffled = Reading(shuffle=Shuffle(seed=1, epoch=0, rows=20))
    source = opened(shuffled)
    key = source.partitions()[0]
    cursor = _read(source, [key], {})[0].cursor(1)
    for other in (Reading(), Reading(splits=2), Reading(shuffle=Shuffle(seed=2, epoch=0, rows=20))):
        with closing(opened(other)) as again, pytest.raises(FileReplacedError, match="read in another order"):
            again.start([key], {key: cursor})


def test_splits_are_known_from_cursors(opened: Open) -> None:
    assert known_splits([]) is None
    for splits in (1, 3):
        source = opened(Reading(splits=splits))
        with closing(source):
            source.start(source.partitions(), {})
            assert known_splits([source.position(key) for key in source.partitions()]) == splits


def test_dead_lines_are_shuffled_with_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("".join(f"{i},x\n" if i % 5 else f"{i}\n" for i in range(40)))
    options = CsvOptions(
        names=("id", "x"), block_bytes=64, types=pa.schema([("id", pa.int64()), ("x", pa.string())]),
        reading=Reading(shuffle=Shuffle(seed=1, epoch=0, rows=10)),
    )  # fmt: skip
    source = open_csv(str(tmp_path), options)
    chunks = _read(source, list(source.partitions()), {})
    dead = [letter for chunk in chunks for letter in chunk.dead]
    assert len(dead) == len({letter.key for letter in dead}) == 8
    assert sorted(_ids(chunks)) == [i for i in range(40) if i % 5]
    for chunk in chunks:
        places = sorted([*chunk.row_in_message.tolist(), *(letter.cursor.row for letter in chunk.dead)])
        assert places == list(range(chunk.start.row, chunk.start.row + len(places)))


def test_open_source_shuffles_in_training_only(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": list(range(ROWS))}), tmp_path / "a.parquet")
    config = EasyRecConfig(train_input_path=str(tmp_path), seed=3)
    config.data_config.dataset_type = data_pb2.ParquetDataset
    config.data_config.shuffle = True
    orders = []
    for epoch in (None, 0, 0, 1):
        source = open_source(config, epoch=epoch)
        assert isinstance(source, FileSource)
        orders.append(_ids(_read(source, list(source.partitions()), {})))
    assert orders[0] == list(range(ROWS))
    assert orders[1] == orders[2]
    assert sorted(orders[1]) == orders[0]
    assert len({tuple(order) for order in orders}) == 3
