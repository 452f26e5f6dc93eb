"""Figure kafka_to_batch: Arrow messages of 128 rows become batches, over consuming and IPC-decoding them alone.

Ours is the trainer's whole input path: source, judgement, cursors, cuts of 4096 rows, feature generation, prefetch. The
peer is `Consumer.consume` and `pyarrow.ipc`, and drops what it decoded. Both read the same messages of a real Apache
Kafka, from the first to the last, in turns, and are compared by the processor's time of all their threads: ours may use
the second core, the peer has nothing to do there; a turn's first eighth (connecting, reading ahead) is not timed.
"""

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

from benchmarks.broker import ApacheKafka
from benchmarks.figure import Figure, load, run_script
from benchmarks.shape import BATCH, events, messages, parse, pipeline
from features import create_features
from stream import open_source
from stream.feed import Feed, FeedOptions
from trainer.prefetch import Prefetcher

PER_MESSAGE, GOAL = 128, 0.8
TOPIC = "events"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """Rows a second, by the wall's clock and by the process's (all threads)."""

    wall: float
    cpu: float


class Timer:
    """Times rows, the first eighth of `total` aside: what was read ahead of it is read ahead of the end, too."""

    def __init__(self, total: int) -> None:
        self._skip = total // 8
        self._rows = 0
        self._started: tuple[float, float] | None = None

    def saw(self, rows: int) -> None:
        """Count rows that are there now."""
        self._skip -= rows
        if self._started is not None:
            self._rows += rows
        elif self._skip <= 0:
            self._started = time.perf_counter(), time.process_time()

    def rate(self) -> Rate:
        """Rows a second since the first eighth."""
        if self._started is None:
            raise RuntimeError("fewer rows came than an eighth of those that were sent")
        wall, cpu = time.perf_counter() - self._started[0], time.process_time() - self._started[1]
        return Rate(wall=self._rows / wall, cpu=self._rows / cpu)


def ours(brokers: str, rows: int) -> Rate:
    """Kafka to `Batch`, as the trainer reads."""
    stream = f'brokers: "{brokers}" topic: "{TOPIC}" format: ARROW_IPC prefetch_batches: 4 stop_at_end: true'
    config = parse(pipeline(Path("unused"), stream=stream))
    features = create_features(config)
    options = FeedOptions.from_proto(config, columns=features.columns)
    source = open_source(config, columns=options.all_columns)
    timer, left = Timer(rows), rows
    feed = Feed(source, options, validate=features.validate)
    prefetcher = Prefetcher(feed, lambda cut: features.parse(cut.rows), depth=4)
    try:
        while left > 0:
            prepared = prefetcher.next(1.0)
            if prepared is not None and prepared.batch is not None:
                timer.saw(prepared.batch.size)
                left -= prepared.batch.size
        return timer.rate()
    finally:
        prefetcher.close()
        feed.close()


def peer(brokers: str, rows: int) -> Rate:
    """Consume and decode the same messages, and nothing more."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "peer", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    timer, left, waiting = Timer(rows), rows, 0
    try:
        while left > 0:
            for message in consumer.consume(BATCH // PER_MESSAGE, timeout=5.0):
                with pa.ipc.open_stream(message.value()) as reader:
                    waiting += reader.read_next_batch().num_rows
            if waiting >= BATCH or waiting == left:
                timer.saw(waiting)
                left, waiting = left - waiting, 0
        return timer.rate()
    finally:
        consumer.close()


def measure(quick: bool) -> list[Figure]:
    """Fill a topic, read it in turns, compare the medians."""
    distinct, copies, rounds = (8, 16, 2) if quick else (16, 16, 15)
    with tempfile.TemporaryDirectory() as folder, ApacheKafka(Path(folder)) as kafka:
        kafka.create(TOPIC)
        payloads = [part for seed in range(distinct) for part in messages(events(BATCH, seed=seed), PER_MESSAGE)]
        kafka.produce(TOPIC, payloads * copies)
        rows = distinct * copies * BATCH
        turns = [(ours(kafka.bootstrap, rows), peer(kafka.bootstrap, rows)) for _ in range(rounds + 1)][1:]
    mine, theirs = (statistics.median(turn[side].cpu for turn in turns) for side in (0, 1))
    ratio = statistics.median(turn[0].cpu / turn[1].cpu for turn in turns)
    wall = [statistics.median(turn[side].wall for turn in turns) for side in (0, 1)]
    return [
        Figure(
            name="kafka_to_batch",
            value=mine,
            unit="examples/s of processor time",
            floor_or_peer=theirs,
            ratio=ratio,
            goal=f"ratio >= {GOAL}",
            meets=ratio >= GOAL,
            note=f"by the wall's clock {wall[0]:.3g}/s in three threads, the peer {wall[1]:.3g}/s in one; "
            f"medians of {rounds} turns; {load()}",
        )
    ]


if __name__ == "__main__":
    sys.exit(run_script(sys.argv[1:], __doc__, measure))
