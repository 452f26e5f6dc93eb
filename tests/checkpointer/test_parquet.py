"""Files of rows: what Arrow reads from them, and that they are the bytes that Arrow writes."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkpointer import parquet
from checkpointer.packing import pack_runs

# Around values a miniblock, a block and a page.
COUNTS = (0, 1, 2, 64, 65, 66, 256, 257, 258, 20_000, 20_001, 45_000)
WRITTEN_BY = "26.0.1"


def integers(pattern: str, count: int, rng: np.random.Generator) -> np.ndarray:
    patterns = {
        "ids": np.sort(rng.integers(0, 2**63 - 1, count)),
        "rows": np.arange(count),
        "equal": np.full(count, 7),
        "wrapping": rng.integers(-(2**63), 2**63 - 1, count),
        "times": 1_700_000_000_000 + rng.integers(0, 3, count),
        "mixed": np.where(np.arange(count) % 70 == 0, rng.integers(0, 2**61, count), 3),
    }
    return patterns[pattern].astype(np.int64)


def columns(pattern: str, count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(count)
    numbers = integers(pattern, count, rng)
    return {
        "id": numbers,
        "unsigned": numbers.view(np.uint64),
        "weight": rng.random((count, 5), np.float32),
        "half": rng.random((count, 3)).astype(np.float16),
        "momentum1": rng.random(count, np.float32),
        "double": rng.random(count),
        "single_half": rng.random(count).astype(np.float16),
        "small": rng.integers(-100, 100, count).astype(np.int8),
        "short": rng.integers(0, 60_000, count).astype(np.uint16),
        "int": rng.integers(0, 2**32, count).astype(np.uint32),
    }


def arrow(column: np.ndarray) -> pa.Array:
    if column.ndim == 1:
        return pa.array(column)
    width = column.dtype.itemsize * column.shape[1]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(column), [None, pa.py_buffer(column)])


def by_arrow(arrays: dict[str, pa.Array], metadata: dict[str, str]) -> bytes:
    table = pa.Table.from_arrays(
        list(arrays.values()), schema=pa.schema([pa.field(name, a.type, nullable=False) for name, a in arrays.items()])
    )
    packed = {name for name, array in arrays.items() if array.type in (pa.int64(), pa.uint64())}
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        use_dictionary=False,
        compression="none",
        column_encoding={name: "DELTA_BINARY_PACKED" if name in packed else "PLAIN" for name in arrays},
        write_statistics=False,
        data_page_size=64 << 20,
        store_schema=False,
    ) as writer:
        writer.write_table(table, row_group_size=max(1, table.num_rows))
        if metadata:
            writer.add_key_value_metadata(metadata)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("pattern", ["ids", "rows", "equal", "wrapping", "times", "mixed"])
@pytest.mark.parametrize("count", COUNTS)
def test_arrow_reads_what_was_encoded(count: int, pattern: str):
    given = columns(pattern, count)
    file = pq.ParquetFile(pa.BufferReader(b"".join(parquet.encode(given, {"about": "ü"}))))
    read = file.read()
    assert file.metadata.metadata == {b"about": "ü".encode()}
    assert file.metadata.num_row_groups == 1
    for name, column in given.items():
        assert read[name].combine_chunks().equals(arrow(column))


@pytest.mark.skipif(pa.__version__ != WRITTEN_BY, reason=f"the bytes are those of pyarrow {WRITTEN_BY}")
@pytest.mark.parametrize("pattern", ["ids", "wrapping", "mixed"])
@pytest.mark.parametrize("count", COUNTS)
def test_the_bytes_are_those_of_arrow(count: int, pattern: str):
    given = {name: column for name, column in columns(pattern, count).items() if name != "int"}
    for metadata in ({}, {"headrace.columns": "{}", "more": "x" * 200}):
        assert b"".join(parquet.encode(given, metadata)) == by_arrow(
            {name: arrow(column) for name, column in given.items()}, metadata
        )


@pytest.mark.skipif(pa.__version__ != WRITTEN_BY, reason=f"the bytes are those of pyarrow {WRITTEN_BY}")
def test_the_bytes_of_many_columns_are_those_of_arrow():
    for count in (13, 14, 15, 130):
        given = {f"c{n}": np.arange(3) for n in range(count)}
        assert b"".join(parquet.encode(given, {})) == by_arrow({name: arrow(c) for name, c in given.items()}, {})


@pytest.mark.parametrize("width", [1, 8, 27, 32])
def test_few_wide_runs_have_room(width: int):
    """Two values take a head and a whole group of eight."""
    values = np.array([0, 2 ** (width - 1) - 1 or 1], np.int32)
    assert len(pack_runs(values, width)) == 1 + width
