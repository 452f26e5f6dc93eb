"""Published rows: small, exact where they promise it, refused where they cannot hold a value."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from checkpointer.encoding import Encoding, decode, encode, row_bytes
from checkpointer.errors import EncodingError

LOSSY = [Encoding.FP16, Encoding.INT8, Encoding.INT4]
LEVELS = {Encoding.INT8: 255, Encoding.INT4: 15}
SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=9)


def weights(limit: float) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.float32, SHAPES, elements=st.floats(-limit, limit, width=32))


@given(hnp.arrays(np.float32, SHAPES))
def test_fp32_keeps_every_bit(rows):
    assert decode(encode(rows, Encoding.FP32), Encoding.FP32, rows.shape[1]).tobytes() == rows.tobytes()


@given(weights(65504.0))
def test_fp16_rounds_to_nearest_even(rows):
    assert np.array_equal(decode(encode(rows, Encoding.FP16), Encoding.FP16, rows.shape[1]), rows.astype(np.float16))


@pytest.mark.parametrize("encoding", LEVELS)
@given(rows=weights(32752.0))
def test_quantized_values_stay_within_a_step(encoding, rows):
    coded = encode(rows, encoding)
    back = decode(coded, encoding, rows.shape[1])
    scale = coded[:, -4:-2].copy().view(np.float16).astype(np.float64)
    slack = np.abs(rows).max(axis=1, keepdims=True) * 2e-7 + 1e-44
    assert (np.abs(back.astype(np.float64) - rows) <= 0.501 * scale + slack).all()
    span = (rows.max(axis=1) - rows.min(axis=1)).astype(np.float64)
    coarse = np.abs(rows).max(axis=1) / 1024 + span / 1024 + 1e-7
    assert (scale[:, 0] <= (span + coarse) / LEVELS[encoding] * 1.002 + 1e-7).all()


@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.parametrize("dim", [1, 2, 3, 16, 64])
def test_the_zero_row_stays_zero(encoding, dim):
    rows = np.zeros((3, dim), np.float32)
    coded = encode(rows, encoding)
    assert coded.shape == (3, row_bytes(encoding, dim))
    assert decode(coded, encoding, dim).tobytes() == rows.tobytes()


@pytest.mark.parametrize("encoding", LEVELS)
def test_decoding_is_the_naive_formula(encoding):
    rows = np.random.default_rng(1).normal(0, 0.1, (50, 7)).astype(np.float32)
    coded = encode(rows, encoding)
    for row, back in zip(coded, decode(coded, encoding, 7), strict=True):
        scale, offset = (np.float32(half) for half in row[-4:].copy().view(np.float16))
        codes = row[:7] if encoding is Encoding.INT8 else [(row[j // 2] >> (4 * (j % 2))) & 15 for j in range(7)]
        assert [np.float32(np.float32(code) * scale) + offset for code in codes] == list(back)


@pytest.mark.parametrize("encoding", LOSSY)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 70000.0, -70000.0])
def test_what_cannot_be_held_is_refused_by_row(encoding, bad):
    rows = np.zeros((4, 3), np.float32)
    rows[2, 1] = bad
    with pytest.raises(EncodingError, match="row 2 .* publish fp32"):
        encode(rows, encoding)


@pytest.mark.parametrize("encoding", Encoding)
def test_no_rows_are_no_rows(encoding):
    coded = encode(np.zeros((0, 5), np.float32), encoding)
    assert coded.shape == (0, row_bytes(encoding, 5)) and decode(coded, encoding, 5).shape == (0, 5)


def test_rows_of_another_width_are_refused():
    with pytest.raises(EncodingError, match="take 12 bytes"):
        decode(np.zeros((2, 13), np.uint8), Encoding.INT8, 8)


@pytest.mark.parametrize("encoding", Encoding)
def test_bytes_per_row_are_near_the_floor(encoding):
    """Goal B1: 100,000 rows of dimension 64 under 63-bit ids, in Parquet as the publisher writes them."""
    random = np.random.default_rng(0)
    count, dim = 100_000, 64
    ids = np.unique(random.integers(0, (1 << 63) - 1, count))
    coded = encode(random.normal(0, 0.1, (len(ids), dim)).astype(np.float32), encoding)
    width = row_bytes(encoding, dim)
    array = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(ids), [None, pa.py_buffer(coded)])
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table({"id": ids, "row": array}),
        sink,
        row_group_size=len(ids),
        use_dictionary=False,
        compression="none",
        column_encoding={"id": "DELTA_BINARY_PACKED", "row": "PLAIN"},
        write_statistics=False,
        store_schema=False,
        data_page_size=64 << 20,
    )
    floor = (math.log2(2**63 / len(ids)) + 1.44) / 8 + width
    assert len(sink.getvalue()) / len(ids) <= 1.05 * floor
