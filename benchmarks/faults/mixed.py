"""The whole loop on a real Apache Kafka while any of its processes is killed: two ranks, publisher, replica, broker."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from benchmarks.broker import ApacheKafka
from benchmarks.faults.client import Client
from benchmarks.faults.harness import KILLED, LEAVES_S, Result, read_result, start_ranks
from benchmarks.faults.processes import Process, Zygote
from benchmarks.faults.stage import Stage
from checkpointer.chain import list_seqs
from checkpointer.local_store import LocalStore
from publisher.versions import read_pointer
from stream.broker import free_port

VICTIMS = ("rank 0", "rank 1", "publisher", "replica", "broker")
PARTS = 4  # two for each rank
ROWS_PER_KILL = 512  # two commits of two steps of two batches of 64
_FAR_MS = 4_000_000_000_000
_LATEST_S = 1.5
_PROGRESS_S = 180.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixed:
    """What a mixed run left, beside `expected`, what one without kills leaves of the same topic."""

    found: Result
    expected: Result
    killed: dict[str, int]
    versions_answered: int
    torn: list[str]
    strange: list[str]
    served: int
    published: int

    def sound(self) -> bool:
        """Whether nothing was lost, learnt twice, or served in half."""
        alike = self.found.same_state(self.expected)
        return alike and not self.torn and not self.strange and self.served == self.published


@dataclass(kw_only=True, slots=True)
class Loop:
    """The processes of one model directory, and what keeps them busy."""

    zygote: Zygote
    kafka: ApacheKafka
    stage: Stage
    topic: str
    model: Path
    port: int = field(default_factory=free_port)
    ranks: list[Process] = field(default_factory=list)
    publisher: Process | None = None
    replica: Process | None = None

    @property
    def config(self) -> str:
        """The configuration of the run that is killed.

        It ends long after this test does: ranks wait for each other's batches only where the stream has an end.
        """
        return self.configured(self.model, f"stop_timestamp_ms: {_FAR_MS}")

    def configured(self, model: Path, more: str) -> str:
        stream = f'brokers: "{self.kafka.bootstrap}" topic: "{self.topic}" partition_refresh_ms: 200 {more}'
        # On a busy machine a broker that has just started is fenced now and then, for want of heartbeats.
        stream += " broker_wait_ms: 120000"
        return str(replace(self.stage, stream=stream).config(model))

    def log(self, name: str) -> Path:
        return self.model.with_name(f"{name}.log")

    def start(self) -> None:
        """Start whatever does not run."""
        if not self.ranks:
            self.ranks = start_ranks(self.zygote, self.config, [{}, {}], log=self.log("ranks"))
        if self.publisher is None:
            self.publisher = self.zygote.start("publisher", [self.config], log=self.log("publisher"))
        if self.replica is None:
            told = ["serve", str(self.model), "--port", str(self.port)]
            self.replica = self.zygote.start("headrace", told, log=self.log("replica"))

    def kill(self, victim: str, away_s: float) -> None:
        """SIGKILL one process; the broker stays away for a while, the other rank ends by itself."""
        if victim == "broker":
            self.kafka.kill()
            time.sleep(away_s)
            self.kafka.start()
        elif victim == "publisher" and self.publisher is not None:
            _kill(self.publisher)
            self.publisher = None
        elif victim == "replica" and self.replica is not None:
            _kill(self.replica)
            self.replica = None
        else:
            rank = int(victim.removeprefix("rank "))
            _kill(self.ranks[rank])
            if (status := self.ranks[1 - rank].wait(LEAVES_S)) != 1:
                raise RuntimeError(f"the other rank of {victim} ended with {status}; see {self.log('ranks')}")
            self.ranks = []

    def check(self) -> None:
        """Raise where something ended that nobody killed."""
        for process in (*self.ranks, self.publisher, self.replica):
            if process is not None and (status := process.poll()) is not None:
                raise RuntimeError(f"a process ended with {status} by itself; see {process.log}: {process.verdict()}")

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _PROGRESS_S
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {what} within {_PROGRESS_S:g} s; the logs are beside {self.model}")
            time.sleep(0.02)

    def newest(self) -> int:
        """The number of the newest commit."""
        return max(list_seqs(LocalStore(str(self.model))), default=0)

    def finish(self) -> None:
        """Stop the ranks, read to the topic's end, publish that, and wait until it is served."""
        for process in self.ranks:
            process.signal(signal.SIGTERM)
        if any(statuses := [process.wait(LEAVES_S) for process in self.ranks]):
            raise RuntimeError(f"the ranks left with {statuses} when told to; see {self.log('ranks')}")
        self.ranks = []
        train_to_end(self, self.model)
        head = self.newest()
        self.until(lambda: self.published() == head, "version of the last commit")

    def published(self) -> int:
        pointer = read_pointer(LocalStore(str(self.model)))
        return pointer.version if pointer is not None else 0


def train_to_end(loop: Loop, model: Path) -> None:
    """Two ranks, from where `model` stands to the end of the topic."""
    bounded = loop.configured(model, "stop_at_end: true")
    ranks = start_ranks(loop.zygote, bounded, [{}, {}], log=loop.log(f"{model.name}-end"))
    if any(statuses := [process.wait(300.0) for process in ranks]):
        raise RuntimeError(f"the ranks ended with {statuses}; see {ranks[0].log}")


def run_mixed(zygote: Zygote, kafka: ApacheKafka, stage: Stage, folder: Path, *, kills: int, seed: int) -> Mixed:
    """Kill any process of the loop `kills` times while the stage's rows arrive, a share before each kill."""
    random = np.random.default_rng(seed)
    kafka.create(topic := f"mixed-{seed}", partitions=PARTS)
    loop = Loop(zygote=zygote, kafka=kafka, stage=stage, topic=topic, model=folder / "model")
    messages = [stage.messages(part) for part in range(PARTS)]
    client, happened = Client(loop.port), dict.fromkeys(VICTIMS, 0)
    try:
        for number in range(kills + 1):
            for part, sent in enumerate(messages):
                share = slice(number * len(sent) // (kills + 1), (number + 1) * len(sent) // (kills + 1))
                kafka.produce(topic, sent[share], partition=part)
            before = loop.newest()
            loop.start()
            loop.until(lambda before=before: loop.newest() > before, "commit")
            if number == kills:
                break
            time.sleep(random.uniform(0.0, _LATEST_S))
            loop.check()
            victim = _victim(random, happened)
            loop.kill(victim, random.uniform(0.0, _LATEST_S))
            happened[victim] += 1
        loop.finish()
        loop.until(lambda: client.newest == loop.published(), "answer of the last version")
    finally:
        client.close()
        for process in (*loop.ranks, loop.publisher, loop.replica):
            if process is not None and process.poll() is None:
                _kill(process)
    train_to_end(loop, folder / "expected")
    if zygote.run("publisher", [str(folder / "expected.config"), "--once"]):
        raise RuntimeError("the version to compare with was not published")
    return Mixed(
        found=read_result(loop.model, sum(happened.values())),
        expected=read_result(folder / "expected"),
        killed=happened,
        versions_answered=len(client.answers),
        torn=client.torn,
        strange=client.strange,
        served=client.newest,
        published=loop.published(),
    )


def _victim(random: np.random.Generator, happened: dict[str, int]) -> str:
    """Each in turn, in an order that differs from turn to turn."""
    least = min(happened.values())
    return str(random.choice([victim for victim in VICTIMS if happened[victim] == least]))


def _kill(process: Process) -> None:
    process.signal(signal.SIGKILL)
    if (status := process.wait(30.0)) != KILLED:
        raise RuntimeError(f"process {process.pid} ended with {status}, not by the kill; see {process.log}")
