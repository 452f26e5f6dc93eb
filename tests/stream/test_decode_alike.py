"""Messages of one layout are decoded together, and give what each would give alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from stream.decode import Decoder
from stream.decode_alike import Layout
from stream.decode_arrow import ArrowBatchDecoder, ArrowStreamDecoder
from stream.encode import encode_rows


def _numbers(seed: int, rows: int = 5) -> pa.RecordBatch:
    random = np.random.default_rng(seed)
    return pa.record_batch(
        {
            "id": random.integers(0, 1 << 60, rows),
            "small": random.integers(-100, 100, rows).astype(np.int8),
            "x": random.random(rows, dtype=np.float32),
            "at": pa.array(random.integers(0, 1 << 40, rows), pa.timestamp("ms")),
        }
    )


def _stream(batch: pa.RecordBatch, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _alone(payload: bytes) -> list[dict[str, object]]:
    with pa.ipc.open_stream(payload) as stream:
        rows: list[dict[str, object]] = stream.read_all().to_pylist()
    return rows


def _message(random: np.random.Generator, i: int) -> bytes:
    """Mostly of one layout; some with nulls, text, other numbers of rows, or compressed."""
    batch = _numbers(i)
    kind = random.integers(0, 12)
    if kind == 0:
        batch = batch.set_column(0, "id", pa.array([1, None, 3, 4, None], pa.int64()))
    elif kind == 1:
        batch = batch.append_column("name", pa.array(["a"] * 5))
    elif kind == 2:
        batch = _numbers(i, rows=int(random.integers(0, 9)))
    return _stream(batch, "lz4" if kind == 3 else None)


@pytest.mark.parametrize("seed", range(20))
def test_messages_decode_as_each_alone(seed: int) -> None:
    random = np.random.default_rng(seed)
    payloads = [_message(random, i) for i in range(60)]
    decoder = ArrowStreamDecoder()
    for _ in range(2):
        decoded = decoder.decode(payloads)
        assert decoded.failures == ()
        found: dict[int, list[dict[str, object]]] = {}
        for segment in decoded.segments:
            segment.rows.validate(full=True)
            for message, row, values in zip(segment.message, segment.row, segment.rows.to_pylist(), strict=True):
                assert row == len(found.setdefault(int(message), []))
                found[int(message)].append(values)
        assert [found.get(i, []) for i in range(60)] == [_alone(payload) for payload in payloads]


@pytest.mark.parametrize("form", ["ARROW_IPC", "ARROW_IPC_BATCH"])
def test_messages_of_one_layout_are_decoded_together(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    decode = Layout.decode

    def counted(self: Layout, payloads: list[bytes]) -> pa.RecordBatch:
        runs.append(len(payloads))
        return decode(self, payloads)

    monkeypatch.setattr(Layout, "decode", counted)
    batches = [_numbers(i) for i in range(10)]
    payloads: list[bytes | None] = [encode_rows(batch, form)[0] for batch in batches]
    payloads.insert(6, b"bad")
    decoder: Decoder = ArrowStreamDecoder() if form == "ARROW_IPC" else ArrowBatchDecoder(batches[0].schema)
    decoder.decode(payloads[:2])
    decoded = decoder.decode(payloads)
    assert runs[-2:] == [6, 4]
    assert pa.Table.from_batches([s.rows for s in decoded.segments]).equals(pa.Table.from_batches(batches))
    assert [failure.index for failure in decoded.failures] == [6]


def test_messages_of_one_layout_are_projected() -> None:
    payloads = [_stream(_numbers(i)) for i in range(5)]
    decoder = ArrowStreamDecoder(["x", "id"])
    for _ in range(2):
        (segment,) = decoder.decode(payloads).segments
        assert segment.rows.schema.names == ["id", "x"]
        assert segment.rows.num_rows == 25


def test_bytes_behind_the_end_are_found_among_messages_of_one_layout() -> None:
    payloads = [_stream(_numbers(i)) for i in range(4)]
    decoder = ArrowStreamDecoder()
    decoder.decode(payloads)
    torn = payloads[2][:-8] + b"\xff\xff\xff\xff\x08\0\0\0"
    decoded = decoder.decode([*payloads[:2], torn, payloads[3]])
    assert [failure.index for failure in decoded.failures] == [2]
    assert sum(segment.rows.num_rows for segment in decoded.segments) == 15
