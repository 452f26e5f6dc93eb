"""The stream that faults interrupt, the processes that they end, and what a run without faults leaves."""

import dataclasses
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from benchmarks.faults.harness import Result, read_result
from benchmarks.faults.processes import Process, Zygote
from benchmarks.faults.stage import Stage, prepare
from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from stream.broker import free_port


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return prepare(tmp_path_factory.mktemp("faults") / "data")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bench:
    """Runs processes on one configuration and looks at what they leave."""

    zygote: Zygote
    folder: Path

    def start(self, module: str, *arguments: object, **environment: str) -> Process:
        """Start a process whose log is its own."""
        log = self.folder / f"{module}-{time.monotonic_ns()}.log"
        return self.zygote.start(module, [str(argument) for argument in arguments], environment, log=log)

    def start_two(self, config: Path, *arguments: object, kills: Mapping[int, str] | None = None) -> list[Process]:
        """Start two ranks, as torchrun does; `kills` are the points at which ranks end."""
        port = str(free_port())
        return [
            self.start(
                "trainer",
                config,
                *arguments,
                RANK=str(rank),
                LOCAL_RANK=str(rank),
                WORLD_SIZE="2",
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=port,
                HEADRACE_FAULT=(kills or {}).get(rank, ""),
            )
            for rank in range(2)
        ]

    def train_two(self, config: Path) -> None:
        """Run two ranks to their end."""
        for process in self.start_two(config):
            assert process.wait(120) == 0, process.text()

    def train(self, config: Path, *arguments: str, expect: int = 0, **environment: str) -> Process:
        """Run a trainer to its end."""
        process = self.start("trainer", config, *arguments, **environment)
        status = process.wait(120)
        assert status == expect, process.text()
        return process

    def model(self, config: Path) -> Path:
        return config.with_suffix("")

    def commits(self, config: Path) -> int:
        """The number of the newest commit; 0 while there is none."""
        folder = self.model(config) / "log"
        return max((int(path.stem) for path in folder.glob("*.json")), default=0)

    def received(self, config: Path) -> int:
        """Rows that the newest commit accounts for."""
        log = CommitLog(LocalStore(str(self.model(config))))
        head = log.head()
        return sum(count.received for state in log.stream(head) for count in state.accounting) if head else 0

    def result(self, config: Path) -> Result:
        return read_result(self.model(config))

    def until(self, condition: Callable[[], bool], process: Process | None = None, seconds: float = 60.0) -> None:
        """Wait for a condition; fail when `process` ends before, or time runs out."""
        deadline = time.monotonic() + seconds
        while not condition():
            status = process.poll() if process is not None else None
            assert status is None, f"ended with {status}: {process.text() if process else ''}"
            assert time.monotonic() < deadline, process.text() if process else "time is over"
            time.sleep(0.02)


@pytest.fixture(scope="session")
def expected_of_two(zygote: Zygote, stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """What two ranks leave that nobody kills."""
    bench = Bench(zygote=zygote, folder=tmp_path_factory.mktemp("two"))
    config = stage.config(bench.folder / "expected")
    bench.train_two(config)
    return bench.result(config)


@pytest.fixture
def bench(zygote: Zygote, tmp_path: Path) -> Bench:
    return Bench(zygote=zygote, folder=tmp_path)
