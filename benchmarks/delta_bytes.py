"""Bytes that a published sparse delta takes per row, over the least that its ids and weights can take.

A trainer's base and one delta of 100,000 rows with random 63-bit ids, dim 64, go through the real commit log and
publisher. Counted are the delta's files and its entry in the manifest; the whole manifest is shown beside it.
"""

import logging
import math
import sys
import time
from dataclasses import asdict

import numpy as np

from benchmarks.figure import Figure, run_script
from checkpointer import Draft, Kind, TableRows, Writer, WriterOptions, stage
from checkpointer.encoding import Encoding
from checkpointer.memory_store import MemoryStore
from publisher.background import NoBackground
from publisher.contract import Contract
from publisher.fields import canonical
from publisher.follow import Publisher, Surroundings
from publisher.metrics import PublisherMetrics
from publisher.notify import NoNotifier
from publisher.options import PublishOptions
from publisher.versions import Table, read_current

ID_BITS, DIM = 63, 64
GOAL = 1.05
# Bytes of a weight, and of what a row carries besides: fp16 scale and offset.
COST = {Encoding.INT8: (1, 4), Encoding.FP32: (4, 0)}


def floor_bytes(rows: int, encoding: Encoding) -> float:
    """What a row costs at least: its share of the set of ids, and its weights.

    >>> round(floor_bytes(100_000, Encoding.FP32), 2)
    261.98
    """
    weight, extra = COST[encoding]
    return (ID_BITS - math.log2(rows) + 1.44) / 8 + DIM * weight + extra


def weigh(rows: int, encoding: Encoding) -> Figure:
    """Publish one delta of `rows` rows and weigh it."""
    store = MemoryStore()
    random = np.random.default_rng(0)
    options = WriterOptions(token="benchmark", clock_ms=lambda: 0, new_chain=lambda: "benchmark", writer="benchmark")
    writer = Writer.open(store, options)
    _append(store, writer, Kind.BASE, np.array([1], np.int64), random)
    publisher = _publisher(store, encoding)
    publisher.step()
    ids = np.unique(random.integers(0, 2**ID_BITS - 1, rows * 2, dtype=np.int64))
    _append(store, writer, Kind.DELTA, np.sort(random.choice(ids, rows, replace=False)), random)
    started = time.perf_counter()
    publisher.step()
    seconds = time.perf_counter() - started
    version = read_current(store)
    if version is None or version.version != 2:
        raise RuntimeError("the delta was not published")
    (delta,) = version.deltas
    size = sum(blob.size for blob in delta.blobs) + len(canonical(asdict(delta)))
    least = floor_bytes(rows, encoding)
    ratio = size / rows / least
    return Figure(
        name=f"delta_bytes_per_row_{encoding.value}",
        value=size / rows,
        unit="bytes",
        floor_or_peer=least,
        ratio=ratio,
        goal=f"ratio <= {GOAL}",
        meets=ratio <= GOAL,
        note=f"{rows} rows; the whole manifest has {len(store.get(version.path))} bytes; "
        f"published in {1e3 * seconds:.0f} ms",
    )


def _publisher(store: MemoryStore, encoding: Encoding) -> Publisher:
    contract = Contract(
        digest="benchmark",
        features="benchmark",
        tables=(Table(name="user", kind="zch", dim=DIM),),
        widths=(DIM,),
        config=b"",
        layout=b"{}",
    )
    around = Surroundings(
        background=NoBackground(), notifier=NoNotifier(), metrics=PublisherMetrics(), clock_ms=lambda: 0
    )
    return Publisher(store, contract, PublishOptions(encoding=encoding.value, runtime="eager"), around)


def _append(store: MemoryStore, writer: Writer, kind: Kind, ids: np.ndarray, random: np.random.Generator) -> None:
    columns: dict[str, np.ndarray] = {
        "weight": random.normal(0.0, 0.05, (len(ids), DIM)).astype(np.float32),
        "momentum1": np.zeros(len(ids), np.float32),
        "last_seen_ms": np.zeros(len(ids), np.int64),
    }
    none = np.empty(0, np.int64)
    rows = TableRows(
        table="user", shard=0, kind="zch", ids=ids, slots=np.arange(len(ids)), columns=columns, deleted=none
    )
    blobs = stage(store, seq=writer.next_seq, rank=0, rows=[rows], dense={"parameter/w": np.zeros(1, np.float32)})
    writer.append(
        Draft(
            kind=kind,
            step=0,
            event_time_ms=0,
            broker_time_ms=0,
            world=1,
            contract="benchmark",
            features="benchmark",
            blobs=blobs,
        )
    )


def measure(quick: bool) -> list[Figure]:
    """One delta of 100,000 rows for each encoding."""
    logging.disable(logging.INFO)
    rows = 20_000 if quick else 100_000
    return [weigh(rows, encoding) for encoding in (Encoding.INT8, Encoding.FP32)]


if __name__ == "__main__":
    sys.exit(run_script(sys.argv[1:], __doc__, measure))
