"""Files of serving rows are the bytes that Arrow writes."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from publisher.rows import ServingRows, encode_rows

WRITTEN_BY = "26.0.1"


def by_arrow(parts: list[ServingRows]) -> bytes:
    codes, ids, rows, there = [], [], [], []
    for code, part in enumerate(parts):
        merged = np.concatenate([part.ids, part.deleted])
        order = np.argsort(merged)
        codes.append(np.full(len(merged), code, np.int32))
        ids.append(merged[order])
        rows.append(np.concatenate([part.rows, np.zeros((len(part.deleted), part.rows.shape[1]), np.uint8)])[order])
        there.append(order < len(part.ids))
    values, count = np.concatenate(rows), sum(map(len, ids))
    present = pa.array(np.concatenate(there)).buffers()[1]
    table = pa.table(
        {
            "table": pa.DictionaryArray.from_arrays(np.concatenate(codes), [part.table for part in parts]),
            "id": np.concatenate(ids),
            "row": pa.Array.from_buffers(pa.binary(values.shape[1]), count, [present, pa.py_buffer(values)]),
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        row_group_size=count,
        use_dictionary=["table"],
        column_encoding={"id": "DELTA_BINARY_PACKED", "row": "PLAIN"},
        compression="none",
        write_statistics=False,
        store_schema=False,
        data_page_size=1 << 26,
    )
    return sink.getvalue().to_pybytes()


def drawn(rng: np.random.Generator, name: str, puts: int, deletions: int, width: int) -> ServingRows:
    ids = rng.permutation(3 * (puts + deletions))[: puts + deletions]
    rows = rng.integers(0, 256, (puts, width)).astype(np.uint8)
    return ServingRows(table=name, ids=np.sort(ids[:puts]), rows=rows, deleted=np.sort(ids[puts:]))


@pytest.mark.skipif(pa.__version__ != WRITTEN_BY, reason=f"the bytes are those of pyarrow {WRITTEN_BY}")
@pytest.mark.parametrize("most", [9, 80, 15_000])
def test_the_bytes_are_those_of_arrow(most: int):
    rng = np.random.default_rng(most)
    for tables in (*range(1, 10), 17):
        width = int(rng.integers(1, 70))
        counts = rng.integers(0, most, (tables, 2)) * rng.integers(0, 2, (tables, 2)) + [[0, 1]]
        parts = [drawn(rng, f"table {n}" * (n + 1), *map(int, counts[n]), width) for n in range(tables)]
        assert [b"".join(file) for file in encode_rows(parts)] == [by_arrow(parts)]
