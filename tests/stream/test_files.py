"""File sources beyond the contract: listing, replaced files, bad lines, types."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream.csv import CsvOptions, open_csv
from stream.errors import FileReplacedError, PositionError, SourceError
from stream.files import FileSource, list_files
from stream.parquet import open_parquet
from stream.source import Chunk


def _parquet(path: Path, ids: list[int], **columns: list[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), **columns}), path, row_group_size=2)


def _all(source: FileSource) -> list[Chunk]:
    with closing(source):
        source.start(source.partitions(), {})
        return list(iter(lambda: source.read(0.0), None))


def _ids(source: FileSource) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for chunk in _all(source):
        found.setdefault(chunk.key[1], []).extend(chunk.rows.column("id").to_pylist())
    return found


def test_list_files_sorts_files_folders_globs_and_lists(tmp_path: Path) -> None:
    for name in ("b/2.parquet", "b/deep/3.parquet", "a.parquet", "b/.hidden.parquet", "b/_SUCCESS", "c-1.parquet"):
        _parquet(tmp_path / name, [1])
    found = list_files(f"{tmp_path}/c-*.parquet,{tmp_path}/b,{tmp_path}/a.parquet", ".parquet")
    names = [file.path.removeprefix(f"{tmp_path}/") for file in found]
    assert names == ["a.parquet", "b/2.parquet", "b/deep/3.parquet", "c-1.parquet"]


def test_list_files_names_the_part_that_matches_nothing(tmp_path: Path) -> None:
    _parquet(tmp_path / "a.parquet", [1])
    with pytest.raises(SourceError, match=r"nowhere/\*\.parquet' matches no file"):
        list_files(f"{tmp_path}/a.parquet,{tmp_path}/nowhere/*.parquet", ".parquet")
    with pytest.raises(SourceError, match="cannot be listed"):
        list_files("nosuchscheme://bucket/x", ".parquet")


@pytest.mark.parametrize(
    ("path", "message"), [("", "the input path is empty"), ("a.parquet,,", "a part of input path")]
)
def test_empty_path_is_not_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, message: str
) -> None:
    _parquet(tmp_path / "a.parquet", [1])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match=message):
        open_parquet(path)


def test_parquet_reads_through_fsspec() -> None:
    memory = fsspec.filesystem("memory")
    with memory.open("/clicks/1.parquet", "wb") as file:
        pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), file)
    assert _ids(open_parquet("memory://clicks")) == {0: [1, 2]}


def test_parquet_names_missing_columns_and_broken_files(tmp_path: Path) -> None:
    _parquet(tmp_path / "a.parquet", [1])
    with pytest.raises(SourceError, match=r"a\.parquet lacks the columns age, user; it has id"):
        _all(open_parquet(str(tmp_path), columns=["id", "user", "age"]))
    (tmp_path / "b.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(SourceError, match=r"b\.parquet is no readable Parquet file"):
        _all(open_parquet(f"{tmp_path}/b.parquet"))


def test_parquet_of_no_rows_ends_at_once(tmp_path: Path) -> None:
    _parquet(tmp_path / "a.parquet", [])
    assert _all(open_parquet(str(tmp_path))) == []


def test_parquet_decodes_dictionaries(tmp_path: Path) -> None:
    names = pa.array(["x", "y", "x"]).dictionary_encode()
    pq.write_table(pa.table({"name": names}), tmp_path / "a.parquet")
    (chunk,) = _all(open_parquet(str(tmp_path)))
    assert chunk.rows.schema.field("name").type == pa.string()


def test_source_refuses_the_cursor_of_a_replaced_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    _parquet(path, [1, 2, 3, 4])
    with closing(open_parquet(str(tmp_path))) as source:
        source.start(source.partitions(), {})
        chunk = source.read(0.0)
    assert chunk is not None
    _parquet(path, [9, 2, 3, 4, 5])
    with closing(open_parquet(str(tmp_path))) as source, pytest.raises(FileReplacedError, match=r"a\.parquet"):
        source.start([chunk.key], {chunk.key: chunk.end})


def test_source_notices_a_file_replaced_while_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    _parquet(path, [1, 2, 3, 4])
    with closing(open_parquet(str(tmp_path))) as source:
        source.start(source.partitions(), {})
        source.read(0.0)
        _parquet(tmp_path / "new", [5, 6, 7, 8, 9])
        os.replace(tmp_path / "new", path)
        with pytest.raises(FileReplacedError, match="was replaced while it was read"):
            while source.read(0.0):
                pass


def test_source_refuses_a_cursor_behind_the_end(tmp_path: Path) -> None:
    _parquet(tmp_path / "a.parquet", [1])
    with closing(open_parquet(str(tmp_path))) as source:
        source.start(source.partitions(), {})
        (key,) = source.partitions()
        cursor = source.position(key).at(7)
        with pytest.raises(PositionError, match="has 1 units"):
            source.start([key], {key: cursor})


def _csv(path: Path, text: str, **options) -> FileSource:
    path.write_bytes(text.encode())
    return open_csv(str(path), CsvOptions(**options))


def test_csv_types_by_declaration_and_by_the_first_block(tmp_path: Path) -> None:
    source = _csv(
        tmp_path / "a.csv", "id;x;name\n1;0.5;NA\n2;;\n3;1;bob\n", with_header=True, delimiter=";",
        types=pa.schema([("id", pa.string())]),
    )  # fmt: skip
    (chunk,) = _all(source)
    assert chunk.rows.to_pylist() == [
        {"id": "1", "x": 0.5, "name": "NA"},
        {"id": "2", "x": None, "name": ""},
        {"id": "3", "x": 1.0, "name": "bob"},
    ]


def test_csv_keeps_bad_lines_as_dead_letters(tmp_path: Path) -> None:
    text = "1,a\ntwo,b\n\n3,c,d\n4,e\r\n5\n6,f"
    source = _csv(tmp_path / "a.csv", text, names=("id", "name"), types=pa.schema([("id", pa.int64())]))
    (chunk,) = _all(source)
    assert chunk.rows.to_pylist() == [{"id": 1, "name": "a"}, {"id": 4, "name": "e"}, {"id": 6, "name": "f"}]
    assert chunk.row_in_message.tolist() == [0, 3, 5]
    assert [(letter.cursor.row, letter.raw, letter.format) for letter in chunk.dead] == [
        (1, b"two,b", "CSV"),
        (2, b"3,c,d", "CSV"),
        (4, b"5", "CSV"),
    ]


def test_csv_resumes_behind_a_bad_line_without_naming_it_again(tmp_path: Path) -> None:
    source = _csv(tmp_path / "a.csv", "1\nx\n3\n", names=("id",), types=pa.schema([("id", pa.int64())]))
    (chunk,) = _all(source)
    source = open_csv(str(tmp_path / "a.csv"), CsvOptions(names=("id",), types=pa.schema([("id", pa.int64())])))
    with closing(source):
        source.start([chunk.key], {chunk.key: chunk.start.at(0, 2)})
        rest = source.read(0.0)
    assert rest is not None
    assert rest.rows.to_pylist() == [{"id": 3}]
    assert rest.dead == ()


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 5, 8, 13, 1000])
@pytest.mark.parametrize("with_header", [False, True])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_csv_blocks_cover_the_file_exactly(tmp_path: Path, block_bytes: int, with_header: bool, newline: str) -> None:
    lines = [f"{i},{'x' * (i % 7)}" for i in range(40)]
    text = newline.join((["id,name"] if with_header else []) + lines)
    names = () if with_header else ("id", "name")
    types = pa.schema([("id", pa.int64()), ("name", pa.string())])
    options = {"with_header": with_header, "names": names, "types": types, "block_bytes": block_bytes}
    assert _ids(_csv(tmp_path / "a.csv", text, **options)) == {0: list(range(40))}


def test_csv_strips_a_byte_order_mark(tmp_path: Path) -> None:
    (chunk,) = _all(_csv(tmp_path / "a.csv", "\ufeffid\n1\n", with_header=True))
    assert chunk.rows.to_pylist() == [{"id": 1}]
    (chunk,) = _all(_csv(tmp_path / "b.csv", "\ufeff1\n2\n", names=("id",)))
    assert chunk.rows.to_pylist() == [{"id": 1}, {"id": 2}]


def test_csv_cursors_of_another_block_size_are_refused(tmp_path: Path) -> None:
    (chunk,) = _all(_csv(tmp_path / "a.csv", "1\n2\n", names=("id",)))
    with (
        closing(open_csv(str(tmp_path / "a.csv"), CsvOptions(names=("id",), block_bytes=2))) as source,
        pytest.raises(FileReplacedError),
    ):
        source.start([chunk.key], {chunk.key: chunk.end})


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("1\n", {}, "with_header"),
        ("1\n", {"names": ("id",), "delimiter": "||"}, "delimiter must be one"),
        ("1\n", {"names": ("id",), "types": pa.schema([("id", pa.list_(pa.int64()))])}, "declare it STRING"),
        ("a,a\n1,2\n", {"with_header": True}, "columns a twice"),
        ("a\n1\n", {"with_header": True, "columns": frozenset({"b"})}, "lacks the column b"),
        ("a,b\n1,\n", {"with_header": True}, "column b is empty in the first block"),
        ("", {"with_header": True}, "no readable header"),
    ],
)
def test_csv_refuses_what_it_cannot_read(tmp_path: Path, text: str, options: dict, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        _csv(tmp_path / "a.csv", text, **options)
