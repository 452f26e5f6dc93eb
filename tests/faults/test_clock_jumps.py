"""A clock that jumps a day ahead or back: nothing is held up, deleted, ended early, or younger than now."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from prometheus_client import generate_latest

from benchmarks.faults.stage import Stage
from checkpointer import CommitLog, verify
from checkpointer.errors import LockedError
from checkpointer.local_store import LocalStore
from checkpointer.maintenance import maintain_model
from headrace.status import status
from protos.load import load_config
from protos.pipeline_pb2 import EasyRecConfig
from publisher.replica.serving import Freshness
from publisher.versions import read_current
from stream.decode_arrow import ArrowStreamDecoder
from stream.encode import encode_rows
from stream.feed import Feed, FeedOptions
from stream.kafka import KafkaSource
from stream.kafka_options import KafkaOptions
from stream.memory import MemorySource
from stream.watermark import StreamWatermark
from tests.faults.conftest import Bench
from trainer.monitor import Monitor
from trainer.options import Cadence

DAY_S = 86_400.0
JUMPS = pytest.mark.parametrize("jump_s", [DAY_S, -DAY_S], ids=["ahead", "back"])
A, B = ("clicks", 0), ("clicks", 1)


@JUMPS
def test_commits_stay_due(jump_s: float) -> None:
    cadence = Cadence(interval_ms=500, steps=0)
    assert cadence.due(steps=1, elapsed_ms=1000 * (0.1 + jump_s)), "once more than needed, never a day too late"
    assert not cadence.due(steps=0, elapsed_ms=1000 * jump_s)
    assert not cadence.due(steps=1, elapsed_ms=100.0)


@JUMPS
def test_rows_that_linger_are_cut(jump_s: float) -> None:
    now = [1_000_000.0]
    batches = {key: [pa.record_batch({"n": [1, 2]})] for key in (A, B)}
    source = MemorySource(batches, unbounded=True)
    with closing(Feed(source, FeedOptions(batch_size=64, linger_ms=500), clock=lambda: now[0])) as feed:
        while feed.next(0.05) is None and (not feed.lag or any(feed.lag.values())):
            pass  # until both rows of both wait, and linger
        now[0] += jump_s
        cut = feed.next(10.0)
        assert cut is not None and cut.counts == (2, 2)


@JUMPS
def test_silent_partition_does_not_hold_up_the_watermark(jump_s: float) -> None:
    now = [1_000_000.0]
    mark = StreamWatermark({A: 700, B: 800}, idle_ms=5000, clock=lambda: now[0])
    assert mark.current() == 700
    now[0] += jump_s
    mark.observe(B, 900)
    mark.current()
    now[0] += 5.1
    mark.observe(B, 1000)
    assert mark.current() == 1000


@pytest.fixture
def topic(embedded_broker) -> str:
    name = embedded_broker.topic()
    rows = pa.record_batch({"n": pa.array([1], pa.int64())})
    embedded_broker.produce(name, encode_rows(rows, "ARROW_IPC"))
    return name


@JUMPS
def test_silence_ends_a_stream_by_time_that_passes(jump_s: float, embedded_broker, topic: str) -> None:
    wall, ticks = [1_000_000.0], [10.0]
    options = KafkaOptions(brokers=embedded_broker.bootstrap, topics=(topic,), stop_idle_ms=5000, refresh_ms=200)
    with closing(KafkaSource(options, ArrowStreamDecoder(), clock=lambda: wall[0], ticks=lambda: ticks[0])) as source:
        source.start(source.partitions(), {})
        assert next(chunk for chunk in iter(lambda: source.read(0.5), 0) if chunk is not None).rows.num_rows == 1
        for _ in range(10):
            source.read(0.05)
        wall[0] += jump_s
        source.read(0.05)
        assert not source.ended((topic, 0)), "the jump is no silence"
        ticks[0] += 5.1
        source.read(0.05)
        assert source.ended((topic, 0))


@JUMPS
def test_staleness_is_never_negative_nor_throughput_wild(jump_s: float) -> None:
    now, ticks = [1_000_000.0], [10.0]
    monitor = Monitor(clock=lambda: now[0], ticks=lambda: ticks[0])
    monitor.committed(7, 1000, broker_time_ms=int(1000 * (now[0] - 2.5)))
    now[0] += jump_s
    ticks[0] += 2.0
    assert monitor.progress({}, {})["examples_per_s"] == 0.0
    figures = dict(
        line.rsplit(" ", 1)
        for line in generate_latest(monitor.registry).decode().splitlines()
        if not line.startswith("#")
    )
    assert float(figures["headrace_commit_staleness_seconds"]) == max(0.0, 2.5 + jump_s)
    assert Freshness(until_ms=int(1000 * 1_000_000), basis="broker").staleness_s(now[0]) == max(0.0, jump_s)
    monitor.close()


@pytest.fixture
def served(bench: Bench, stage: Stage) -> Iterator[tuple[Path, LocalStore]]:
    """A model that keeps a minute of its log, published halfway."""
    config = stage.config(
        bench.folder / "model", ("compact_after_commits: 24", "compact_after_commits: 2 keep_log_ms: 60000")
    )
    assert bench.start("trainer", config, HEADRACE_FAULT="train.durable:8").wait(60) == -9
    assert bench.start("publisher", config, "--once").wait(60) == 0
    bench.train(config)
    yield config, LocalStore(str(bench.model(config)))


def test_retention_and_status_live_with_both_jumps(served: tuple[Path, LocalStore], bench: Bench) -> None:
    path, store = served
    config = load_config(path)
    head, published = CommitLog(store).head(), read_current(store)
    assert head is not None and published is not None
    now_ms = time.time_ns() // 1_000_000
    expected = bench.result(path)
    for jump_s in (DAY_S, -DAY_S, DAY_S):
        _maintain(store, config, now_ms + int(1000 * jump_s))
        assert verify(store).sound
        log = CommitLog(store)
        assert log.restore().commit.seq == head.seq and log.restore(published.version).commit.seq == published.version
        assert bench.result(path).same_state(expected)
        found = status(store, config_path=None, now_ms=now_ms + int(1000 * jump_s))
        assert int(str(found["commit"]["age_ms"])) >= 0 and int(str(found["version"]["staleness_ms"])) >= 0
    # The publisher goes on from where it was: every commit since is still there.
    assert bench.start("publisher", path, "--once").wait(60) == 0
    again = read_current(store)
    assert again is not None and again.version == head.seq
    assert replace(bench.result(path), served="") == replace(expected, served="")


def _maintain(store: LocalStore, config: EasyRecConfig, now_ms: int) -> None:
    """Tidy up, after the upkeep that a trainer which ended has left to finish."""
    deadline = time.monotonic() + 60
    while True:
        try:
            maintain_model(store, config, now_ms=now_ms, holder="test")
            return
        except LockedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
