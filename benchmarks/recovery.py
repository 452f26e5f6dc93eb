"""Figure recovery: from kill -9 of a trainer to the first new optimizer step, cold and with a warm standby.

A trainer of the shared shape fills its tables with uniform ids from a real Apache Kafka, the log is compacted, and it
learns on from 10,000 events a second, committing every half second, until it gets SIGKILL. Cold, this process sees that
and starts another one, as a supervisor does. A standby has built its model and loaded the newest commit, and follows
the log until it has the lock. The split comes from the times of the trainer's own log lines; `detection` ends when the
new process is started, or has the lock.
"""

import itertools
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Producer

from benchmarks.broker import ApacheKafka
from benchmarks.figure import Figure, load, run_script
from benchmarks.shape import BATCH, events, messages, pipeline
from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from checkpointer.restore import plan

TOPIC, PER_MESSAGE = "events", 512
_STAGES = ("detection", "imports", "rendezvous", "building", "restore", "first step")


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovered:
    """One recovery: seconds by stage, the state that was read, and how fast a plain read of it is."""

    stages: dict[str, float]
    state_bytes: int
    read_bytes_per_s: float

    @property
    def seconds(self) -> float:
        """All stages."""
        return sum(self.stages.values())

    @property
    def bound(self) -> float:
        """What a standby may take: 2 s + 1.2 × state bytes / read bandwidth."""
        return 2.0 + 1.2 * self.state_bytes / self.read_bytes_per_s


class Trainer:
    """A trainer process and its log."""

    def __init__(self, config: Path, log: Path, *options: str) -> None:
        self.started = time.time()
        self._log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-u", "-m", "trainer", str(config), *options], stdout=output, stderr=output
            )

    def marks(self) -> dict[str, float]:
        """When each stage was reached, in seconds since the epoch."""
        found: dict[str, float] = {}
        for line in self._lines():
            name = _mark(line)
            if name:
                found.setdefault(name, datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp())
        return found

    def commits(self) -> int:
        """Commits that it has logged."""
        return sum(" committed seq=" in line for line in self._lines())

    def wait_for(self, mark: str) -> None:
        """Wait until `mark` is reached."""
        self.until(lambda: mark in self.marks(), mark)

    def settle(self) -> None:
        """Wait until it has made four commits."""
        self.until(lambda: self.commits() >= 4, "four commits")

    def until(self, condition: Callable[[], bool], what: str, timeout_s: float = 120.0) -> None:
        """Wait for a condition; RuntimeError with the log's end when the process ends first."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the trainer did not get to {what}: {' | '.join(self._lines()[-4:])}")
            time.sleep(0.05)

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()

    def _lines(self) -> list[str]:
        return self._log.read_text(encoding="utf-8", errors="replace").splitlines()


def recover(folder: Path, config: Path, running: Trainer, *, standby: bool, log: Path) -> tuple[Recovered, Trainer]:
    """Kill `running` and return what its successor took, and the successor."""
    next_one = Trainer(config, log, "--standby") if standby else None
    if next_one is not None:
        next_one.wait_for("following")
        time.sleep(1.0)
    killed = time.time()
    running.process.send_signal(signal.SIGKILL)
    if next_one is None:
        running.process.wait()
        next_one = Trainer(config, log)
    next_one.wait_for("first_step")
    running.process.wait()
    stages = _split(killed, next_one, standby=standby)
    size, rate = read_state(folder)
    return Recovered(stages=stages, state_bytes=size, read_bytes_per_s=rate), next_one


def _split(killed: float, successor: Trainer, *, standby: bool) -> dict[str, float]:
    """Seconds by stage; what a standby had done before it had the lock takes none."""
    marks = successor.marks()
    detected = marks["held"] if standby else successor.started
    times = [killed, detected]
    for name in ("imported", "joined", "built", "restored", "first_step"):
        times.append(max(times[-1], marks[name]))
    return {name: times[i + 1] - times[i] for i, name in enumerate(_STAGES)}


def read_state(model_dir: Path) -> tuple[int, float]:
    """Bytes of the restored state, each row once, and bytes a second of plainly reading the blobs it comes from."""
    store = LocalStore(str(model_dir))
    steps = plan(store, None)
    blobs = [*(steps.base.blobs if steps.base else ()), *(blob for commit in steps.commits for blob in commit.blobs)]
    started, read = time.perf_counter(), 0
    for blob in blobs:
        with (model_dir / blob.path).open("rb", buffering=0) as file:
            while part := file.read(1 << 22):
                read += len(part)
    rate = read / (time.perf_counter() - started)
    restored = CommitLog(store).restore()
    size = sum(value.nbytes for value in restored.dense.values())
    for rows in restored.tables:
        size += rows.ids.nbytes + rows.slots.nbytes + sum(column.nbytes for column in rows.columns.values())
    return size, rate


class Traffic:
    """Sends one message of PER_MESSAGE rows after the other, in turn, at a steady rate, until stopped."""

    def __init__(self, brokers: str, payloads: Sequence[bytes], rows_per_s: float = 10_000) -> None:
        self._producer = Producer({"bootstrap.servers": brokers, "linger.ms": 2})
        self._payloads = payloads
        self._pause_s = PER_MESSAGE / rows_per_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        for payload in itertools.cycle(self._payloads):
            self._producer.produce(TOPIC, payload)
            self._producer.poll(0)
            if self._stop.wait(self._pause_s):
                self._producer.flush(10)
                return


def measure(quick: bool) -> list[Figure]:
    """Kill and recover, in turns cold and with a standby."""
    turns, batches = (1, 10) if quick else (3, 60)
    found: dict[bool, list[Recovered]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as name, ApacheKafka(Path(name) / "kafka") as kafka:
        folder = Path(name)
        config = _prepare(folder, kafka, batches)
        trainer = Trainer(config, folder / "first.log")
        try:
            trainer.until(lambda: _trained(folder / "model") >= batches * BATCH, "all of the fill", 600)
            subprocess.run([sys.executable, "-m", "trainer.upkeep", str(config)], check=True)
            zipf = [part for seed in range(8) for part in messages(events(BATCH, seed=seed), PER_MESSAGE)]
            with Traffic(kafka.bootstrap, zipf):
                for turn in range(2 * turns):
                    trainer.settle()
                    standby = bool(turn % 2)
                    log = folder / f"{turn}.log"
                    one, trainer = recover(folder / "model", config, trainer, standby=standby, log=log)
                    found[standby].append(one)
        finally:
            trainer.end()
    return [_figure("recovery_standby", found[True], judged=True), _figure("recovery_cold", found[False], judged=False)]


def _prepare(folder: Path, kafka: ApacheKafka, batches: int) -> Path:
    """A configuration, and a topic that fills its tables."""
    kafka.create(TOPIC)
    for seed in range(batches):
        kafka.produce(TOPIC, messages(events(BATCH, seed=seed, exponent=0.0), PER_MESSAGE))
    stream = f'brokers: "{kafka.bootstrap}" topic: "{TOPIC}" format: ARROW_IPC linger_ms: 100'
    config = folder / "pipeline.config"
    config.write_text(pipeline(folder / "model", stream=stream), encoding="utf-8")
    return config


def _trained(model_dir: Path) -> int:
    head = CommitLog(LocalStore(str(model_dir))).head() if model_dir.exists() else None
    return int(head.figures.get("rows", 0)) if head else 0


def _mark(line: str) -> str:
    """The stage that a log line tells.

    >>> _mark("2026-01-01 00:00:00,000 INFO rank=0 trainer.loop stage=first_step step=8"), _mark("anything")
    ('first_step', '')
    """
    found = re.search(r" stage=(\w+)", line)
    if found:
        return found[1]
    return "restored" if " restored seq=" in line else ""


def _figure(name: str, found: Sequence[Recovered], *, judged: bool) -> Figure:
    middle = sorted(found, key=lambda one: one.seconds)[len(found) // 2]
    bound = statistics.median(one.bound for one in found)
    split = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in middle.stages.items())
    return Figure(
        name=name,
        value=middle.seconds,
        unit="s",
        floor_or_peer=bound,
        ratio=middle.seconds / bound,
        goal="<= 2 s + 1.2 × state bytes / read bandwidth" if judged else None,
        meets=middle.seconds <= bound if judged else None,
        note=f"{split}; state {middle.state_bytes / 1e6:.0f} MB, read at {middle.read_bytes_per_s / 1e9:.1f} GB/s; "
        f"median of {len(found)}, all: {', '.join(f'{one.seconds:.2f}' for one in found)}; {load()}",
    )


if __name__ == "__main__":
    sys.exit(run_script(sys.argv[1:], __doc__, measure))
