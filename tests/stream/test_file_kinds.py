"""Columns from folders, compressed CSV, quoting and null tokens, schemas that change between files."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream.csv import CsvOptions, open_csv
from stream.errors import SourceError
from stream.feed import Feed, FeedOptions
from stream.files import FileSource
from stream.inflate import Inflated
from stream.parquet import open_parquet


def _columns(source: FileSource) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    with closing(source):
        source.start(source.partitions(), {})
        while (chunk := source.read(0.0)) is not None:
            for name, values in chunk.rows.to_pydict().items():
                found.setdefault(name, []).extend(values)
    return found


@pytest.fixture
def hive(tmp_path: Path) -> Path:
    """Two days, one of them unknown."""
    for day, ids in (("20240401", [1, 2]), ("__HIVE_DEFAULT_PARTITION__", [3])):
        folder = tmp_path / f"dt={day}" / "city=a%20b"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": ids}), folder / "part.parquet")
    return tmp_path


def test_parquet_has_the_columns_of_its_folders(hive: Path) -> None:
    assert _columns(open_parquet(str(hive))) == {
        "id": [1, 2, 3],
        "dt": ["20240401", "20240401", None],
        "city": ["a b"] * 3,
    }


def test_folder_columns_are_typed_as_declared_and_pruned(hive: Path) -> None:
    declared = pa.schema([("dt", pa.int64())])
    found = _columns(open_parquet(f"{hive}/dt=*/city=*/*.parquet", columns=["dt"], declared=declared))
    assert found == {"dt": [20240401, 20240401, None]}


def test_folder_columns_refuse_values_of_another_type(hive: Path) -> None:
    source = open_parquet(str(hive), declared=pa.schema([("city", pa.int64())]))
    with closing(source), pytest.raises(SourceError, match="the value is no int64"):
        source.start(source.partitions(), {})


def test_column_of_the_file_wins_over_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "dt=1"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1], "dt": ["inside"]}), folder / "a.parquet")
    assert _columns(open_parquet(str(tmp_path)))["dt"] == ["inside"]


def test_csv_has_the_columns_of_its_folders(tmp_path: Path) -> None:
    folder = tmp_path / "dt=7"
    folder.mkdir()
    (folder / "a.csv").write_text("id\n1\n2\n")
    options = CsvOptions(with_header=True, types=pa.schema([("dt", pa.int32())]), columns=frozenset(["id", "dt"]))
    assert _columns(open_csv(str(tmp_path), options)) == {"id": [1, 2], "dt": [7, 7]}


def _zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


@pytest.mark.parametrize(("suffix", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("zst", _zstd)])
def test_compressed_csv_reads_like_plain(tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    text = "id,name\n" + "".join(f"{i},n{'x' * (i % 40)}\n" for i in range(400))
    (tmp_path / f"a.csv.{suffix}").write_bytes(pack(text.encode()))
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.csv").write_text(text)
    options = CsvOptions(with_header=True, block_bytes=300)
    packed = _columns(open_csv(f"{tmp_path}/a.csv.{suffix}", options))
    assert packed == _columns(open_csv(f"{tmp_path}/plain", options))
    assert packed["id"] == list(range(400))


def test_compressed_csv_of_several_members_and_resumption(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"1\n2\n3\n") + gzip.compress(b"4\n5\n6\n"))
    source = open_csv(str(tmp_path), CsvOptions(names=("id",), block_bytes=5))
    with closing(source):
        source.start(source.partitions(), {})
        chunks = []
        while (chunk := source.read(0.0)) is not None:
            chunks.append(chunk)
    (key,) = source.partitions()
    ids = [value for chunk in chunks for value in chunk.rows.column("id").to_pylist()]
    assert ids == [1, 2, 3, 4, 5, 6]
    with closing(open_csv(str(tmp_path), CsvOptions(names=("id",), block_bytes=5))) as again:
        again.start([key], {key: chunks[-1].start})
        rest = again.read(0.0)
    assert rest is not None
    assert rest.rows.equals(chunks[-1].rows)


def test_damaged_compressed_csv_is_an_error(tmp_path: Path) -> None:
    data = gzip.compress(b"1\n2\n3\n" * 1000)
    (tmp_path / "a.csv.gz").write_bytes(data[: len(data) // 2] + b"\0" * 20)
    with pytest.raises(SourceError, match="no readable gzip file"):
        open_csv(str(tmp_path), CsvOptions(names=("id",)))


def test_inflated_goes_back_and_forth(tmp_path: Path) -> None:
    content = b"".join(b"line %d\n" % i for i in range(1000))
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(content))
    file = Inflated(path.open("rb"), "gzip", str(path))
    for place in (0, 500, 20, 8000, 7999, 0):
        file.seek(place)
        assert file.read(17) == content[place : place + 17]
        end = content.index(b"\n", place + 17) + 1
        assert file.readline() == content[place + 17 : end]
        assert file.read(5) == content[end : end + 5]
    assert file.size() == len(content)
    file.close()


def test_csv_quotes_and_null_tokens(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('n,f,s\n1,1.5,"a, ""b"""\nNA,nan,NULL\n,,\nNULL,NA,x\n')
    types = pa.schema([("n", pa.int64()), ("f", pa.float64()), ("s", pa.string())])
    found = _columns(open_csv(str(tmp_path), CsvOptions(with_header=True, types=types)))
    assert found == {
        "n": [1, None, None, None],
        "f": [1.5, None, None, None],
        "s": ['a, "b"', "NULL", "", "x"],
    }


def test_comma_list_of_globs_and_folders(tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 10), ("c", 20)):
        (tmp_path / name).mkdir()
        for part in range(2):
            pq.write_table(pa.table({"id": [first + part]}), tmp_path / name / f"p{part}.parquet")
    found = _columns(open_parquet(f"{tmp_path}/a/p*.parquet,{tmp_path}/c"))
    assert found["id"] == [0, 1, 20, 21]
    with pytest.raises(SourceError, match="matches no file"):
        open_parquet(f"{tmp_path}/a,{tmp_path}/nothing*.parquet")


def test_schemas_of_files_may_widen_reorder_and_grow(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "x": [0.5]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"more": ["m"], "x": pa.array([2], pa.int32()), "id": [2**40]}), tmp_path / "b.parquet")
    feed = Feed(open_parquet(str(tmp_path), columns=["id", "x"]), FeedOptions(batch_size=2, columns=("id", "x")))
    cut = feed.next(5.0)
    feed.close()
    assert cut is not None
    assert cut.rows.to_pydict() == {"id": [1, 2**40], "x": [0.5, 2.0]}
    assert cut.rows.schema.types == [pa.int64(), pa.float64()]


def test_dropped_column_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "x": [0.5]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "b.parquet")
    source = open_parquet(str(tmp_path), columns=["id", "x"])
    with closing(source), pytest.raises(SourceError, match=r"b\.parquet lacks the column x"):
        source.start(source.partitions(), {})
