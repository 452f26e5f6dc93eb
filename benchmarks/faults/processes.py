"""Real processes by the dozen: each is forked off one that has imported everything (benchmarks/faults/zygote.py)."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

_POLL_S = 0.005


class Zygote:
    """The forking process; a context manager that ends it, and what it started."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._running: dict[int, Process] = {}
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.faults.zygote"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={"OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
            )
        self._read()

    def start(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        log: Path | None = None,
        user: int | None = None,
        folder: Path | None = None,
    ) -> "Process":
        """Start one process, as `user` (a uid) and in `folder` if given; what it says goes to `log`."""
        where = log or self._log
        request = {"module": module, "arguments": list(arguments), "environment": dict(environment or {})}
        place = str(folder) if folder else None
        pid = self.ask({**request, "log": str(where), "user": user, "folder": place})["pid"]
        if pid is None:
            raise RuntimeError("the zygote started nothing")
        self._running[pid] = Process(zygote=self, pid=pid, log=where)
        return self._running[pid]

    def run(self, module: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        """Run one process to its end and return its status, negative for a signal."""
        return self.start(module, arguments, environment).wait()

    def ended(self, pid: int) -> None:
        """Forget a process that has ended."""
        self._running.pop(pid, None)

    def ask(self, request: Mapping[str, object]) -> dict[str, int | None]:
        """Send one request and read its answer."""
        if self._process.stdin is None:
            raise RuntimeError("the zygote has no input")
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, int | None]:
        if self._process.stdout is None:
            raise RuntimeError("the zygote has no output")
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the zygote ended; its log is {self._log}")
        answer: dict[str, int | None] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in list(self._running.values()):
            process.signal(signal.SIGKILL)
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process.wait(120)


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """A process that the zygote forked."""

    zygote: Zygote
    pid: int
    log: Path

    def poll(self) -> int | None:
        """Its status, or None while it runs. Ask no more once it was told."""
        status = self.zygote.ask({"poll": self.pid})["status"]
        if status is not None:
            self.zygote.ended(self.pid)
        return status

    def wait(self, timeout_s: float = 600.0) -> int:
        """Wait for its end; kill it and raise TimeoutError after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                self.signal(signal.SIGKILL)
                raise TimeoutError(f"process {self.pid} runs after {timeout_s} s; its log is {self.log}")
            time.sleep(_POLL_S)
        return status

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def text(self) -> str:
        """What its log holds so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def verdict(self) -> str:
        """The last line that is no log line: a child that it left behind may still log after it."""
        lines = [line for line in self.text().splitlines() if not line[:4].isdigit()]
        return lines[-1] if lines else ""
