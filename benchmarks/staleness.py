"""Figures staleness_p50 and staleness_p99: from the broker's append time to the first answer that knows the event.

The whole loop on one machine: a real Apache Kafka (LogAppendTime), trainer, publisher and replica as the processes that
`headrace` starts, a producer and a client here. The demo's model and data, over and over, in batches of 512 rows with a
linger of 50 ms, committed every half second. First a backlog shows the highest load that the trainer sustains beside
the others; then events come at 95 % of it and at half of it. What leaves a backlog was not sustained, and is lowered.
"""

import http.client
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.broker import ApacheKafka
from benchmarks.figure import Figure, load, run_script
from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from headrace.demo import movielens
from headrace.demo.client import Client
from headrace.demo.processes import Child, spawn, wait_for
from headrace.demo.producer import EventProducer
from publisher.versions import list_versions, read_current, read_version
from stream.broker import free_port
from stream.cursor import Cursor

TOPIC, PER_MESSAGE, BATCH, LINGER_MS = "events", 32, 512, 50
_COMPILE_S = 120
GOALS_S = {50: 0.5, 99: 1.5}
_REPLACED = {
    "batch_size: 64": f"batch_size: {BATCH}",
    # The events repeat, each time later: in the end they come from the future.
    "linger_ms: 300": f"linger_ms: {LINGER_MS} max_future_ms: 0",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """Messages `first` up to `last`, sent at `rate` rows a second; `drained_s` after the last, all were served."""

    rate: float
    first: int
    last: int
    drained_s: float


class Stream:
    """The demo's events without an end: each pass over them is later than the one before."""

    def __init__(self) -> None:
        self.table = movielens.events(movielens.fetch(Path("runs/cache")))
        times = self.table["event_time_ms"].to_numpy()
        self._span = int(times.max() - times.min()) + 1000
        self._at = 0

    def take(self, rows: int) -> pa.Table:
        """The next rows, a whole number of messages."""
        rows = max(1, rows // PER_MESSAGE) * PER_MESSAGE
        index = np.arange(self._at, self._at + rows)
        self._at += rows
        taken = self.table.take(pa.array(index % self.table.num_rows))
        late = taken["event_time_ms"].to_numpy() + index // self.table.num_rows * self._span
        return taken.set_column(taken.schema.get_field_index("event_time_ms"), "event_time_ms", pa.array(late))


class Loop:
    """The running processes; a context manager."""

    def __init__(self, folder: Path, kafka: ApacheKafka, stream: Stream, runtime: str) -> None:
        self._kafka, self._stream = kafka, stream
        self._sent = 0
        model = folder / "model"
        model.mkdir()
        self.store = LocalStore(str(model))
        config, port, logs = _write_config(folder, kafka.bootstrap, model, runtime), free_port(), folder / "logs"
        env = {"PATH": os.defpath, "HOME": str(Path.home()), "OMP_NUM_THREADS": "1"}
        self._children = [
            spawn("trainer", ["headrace", "train", str(config)], logs=logs, env=env),
            spawn("publisher", ["headrace", "publish", str(config)], logs=logs, env=env),
            spawn("replica", ["headrace", "serve", str(model), "--port", str(port)], logs=logs, env=env),
        ]
        self.client = Client(stream.table, address=("127.0.0.1", port), model="headrace", seed=1, interval_s=0.02)
        wait_for(lambda: _ready(port), self._children, what="the first served version", timeout_s=180)
        self.client.start()

    @property
    def children(self) -> list[Child]:
        """Trainer, publisher, replica."""
        return self._children

    def send(self, rate: float, rows: int) -> Phase:
        """Send `rows` at `rate`, wait until they are served."""
        producer = EventProducer(
            self._stream.take(rows), brokers=self._kafka.bootstrap, topic=TOPIC, rate=rate, rows_per_message=PER_MESSAGE
        )
        first = self._sent
        producer.start()
        wait_for(lambda: producer.done, self._children, what="sending", timeout_s=600)
        ended = time.time()
        self._sent += producer.sent // PER_MESSAGE
        wait_for(lambda: self._served() >= self._sent, self._children, what="serving the rest", timeout_s=600)
        return Phase(rate=rate, first=first, last=self._sent, drained_s=time.time() - ended)

    def until_compiled(self, runtime: str) -> str:
        """Send slowly until versions come with `runtime`, and return it; TorchScript where that takes too long.

        Compiling takes a core, at a low priority, for half a minute or more.
        """
        deadline = time.monotonic() + _COMPILE_S
        while (version := read_current(self.store)) is None or runtime not in {a.runtime for a in version.artefacts}:
            if time.monotonic() > deadline:
                return "torch_script (still compiling)"
            self.send(1000, 1000)
        return runtime

    def sustained(self, rows: int) -> float:
        """Rows a second that the trainer learns from a backlog, between a quarter and all of it."""
        before = self._sent * PER_MESSAGE
        self.send(1e9, rows)
        points = [(commit.committed_ms / 1000, commit.figures.get("rows", 0.0)) for commit in self.log().commits()]
        inside = [(at, trained) for at, trained in points if trained >= before + rows / 4]
        (began, low), (ended, high) = inside[0], next(p for p in inside if p[1] >= before + rows * 0.95)
        return (high - low) / (ended - began)

    def log(self) -> CommitLog:
        """The trainer's commits."""
        return CommitLog(self.store)

    def close(self) -> None:
        """Stop client and processes, in order."""
        self.client.stop()
        for child in self._children:
            child.stop()

    def _served(self) -> int:
        served = max(self.client.observed.first_answer, default=0)
        return covered(self.log(), served) if served else 0


def covered(log: CommitLog, seq: int) -> int:
    """How many messages commit `seq`, and so the version of that number, has learnt whole."""
    cursors = [Cursor.from_proto(cursor) for state in log.stream(log.get(seq)) for cursor in state.cursors]
    return max((cursor.offset for cursor in cursors), default=0)


def staleness_s(appended: np.ndarray, answers: Sequence[tuple[int, float]]) -> np.ndarray:
    """Seconds from each message's append until it was known to an answer; `answers` are (messages covered, when).

    >>> staleness_s(np.array([1.0, 2.0, 3.0]), [(1, 1.5), (3, 4.0)]).tolist()
    [0.5, 2.0, 1.0]
    """
    known = np.full(len(appended), np.inf)
    for count, at in answers:
        known[:count] = np.minimum(known[:count], at)
    late: np.ndarray = known - appended
    return late


def measure(quick: bool) -> list[Figure]:
    """Find the load, measure at 95 % and at half of it."""
    runtime = "TORCH_SCRIPT" if quick else "AOT_INDUCTOR"
    backlog, seconds = (100_000, (4.0, 4.0)) if quick else (300_000, (20.0, 45.0))
    folder = Path(tempfile.mkdtemp(prefix="headrace-staleness-"))
    with ApacheKafka(folder / "kafka") as kafka:
        kafka.create(TOPIC, f"{TOPIC}.dead")
        loop = Loop(folder, kafka, Stream(), runtime)
        try:
            served = loop.until_compiled(runtime.lower())
            rate = loop.sustained(backlog)
            near = loop.send(0.95 * rate, int(0.95 * rate * seconds[0]))
            while near.drained_s > 3.0 and rate > 1000:
                rate *= 0.9
                near = loop.send(0.95 * rate, int(0.95 * rate * seconds[0]))
            half = loop.send(0.5 * rate, int(0.5 * rate * seconds[1]))
        finally:
            loop.close()
        path = _path(loop, kafka.append_times(TOPIC))
        answers = [(covered(loop.log(), seq), at) for seq, at in loop.client.observed.first_answer.items() if seq]
        known = staleness_s(kafka.append_times(TOPIC), answers)
        failed = loop.client.observed.failed
    shutil.rmtree(folder)
    note = f"the trainer sustains {rate:,.0f} events/s; served by {served}, {failed} failed requests; {path}; {load()}"
    return [*_figures("", half, known, note), *_figures("_at_95", near, known, note)]


def _path(loop: Loop, appended: np.ndarray) -> str:
    """Where the newest event of a version spends its time, over the versions that are kept: the last ones."""
    log, store = loop.log(), loop.store
    stages: list[list[float]] = []
    for number in list_versions(store):
        answered = loop.client.observed.first_answer.get(number)
        if answered is None or not (count := covered(log, number)):
            continue
        committed, version = log.get(number).committed_ms, read_version(store, number)
        times = [1e3 * appended[count - 1], committed, version.created_ms, 1e3 * answered]
        stages.append([later - sooner for sooner, later in pairwise(times)])
    commits = [commit.committed_ms for commit in log.commits()][-len(stages) :]
    trained, published, served = np.median(np.array(stages), axis=0)
    return (
        f"medians of the newest event: committed {trained:.0f} ms after its append, version written {published:.0f} ms "
        f"later, answered {served:.0f} ms later; a commit every {np.median(np.diff(commits)):.0f} ms"
    )


def _figures(suffix: str, phase: Phase, known: np.ndarray, note: str) -> list[Figure]:
    values = known[phase.first : phase.last]
    found = []
    for percent, goal in GOALS_S.items():
        value = float(np.percentile(values, percent))
        found.append(
            Figure(
                name=f"staleness_p{percent}{suffix}",
                value=value,
                unit="s",
                goal=None if suffix else f"<= {goal} s",
                meets=None if suffix else value <= goal,
                note=f"at {phase.rate:,.0f} events/s, {len(values)} messages, "
                f"all served {phase.drained_s:.1f} s after the last; {note}",
            )
        )
    return found


def _write_config(folder: Path, brokers: str, model: Path, runtime: str) -> Path:
    text = resources.files("headrace.demo").joinpath("pipeline.config").read_text(encoding="utf-8")
    values = {"{model_dir}": str(model), "{brokers}": brokers, "{topic}": TOPIC, "{dense_runtime}": runtime}
    for old, new in (values | _REPLACED).items():
        if old not in text:
            raise RuntimeError(f"the demo's pipeline.config has no {old!r} any more")
        text = text.replace(old, new)
    path = folder / "pipeline.config"
    path.write_text(text, encoding="utf-8")
    return path


def _ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/v2/health/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(run_script(sys.argv[1:], __doc__, measure))
