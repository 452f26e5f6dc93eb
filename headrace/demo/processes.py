"""The demo's child processes: each logs to a file, and one that dies early is an error that names the file."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.demo.errors import DemoError


@dataclass(frozen=True, kw_only=True, slots=True)
class Child:
    """A running process and its log."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise DemoError when the process has ended."""
        if self.process.poll() is not None:
            raise DemoError(
                f"the {self.name} ended with status {self.process.returncode}; its log is {self.log}: {_tail(self.log)}"
            )

    def stop(self, timeout_s: float = 20.0) -> int:
        """Ask it to leave; kill it when it does not within `timeout_s`; return its status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def spawn(name: str, arguments: Sequence[str], *, logs: Path, env: dict[str, str]) -> Child:
    """Start `python -m ARGUMENTS`, its output going to `logs/NAME.log`."""
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=env,
        )
    return Child(name=name, process=process, log=log)


def wait_for(condition: Callable[[], bool], children: Sequence[Child], *, what: str, timeout_s: float) -> None:
    """Wait until `condition()` holds; raise DemoError when a child dies or the time is over."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        for child in children:
            child.check()
        if time.monotonic() > deadline:
            logs = ", ".join(str(child.log) for child in children)
            raise DemoError(f"{what} did not happen within {timeout_s:.0f} s; see {logs}")
        time.sleep(0.05)


def _tail(log: Path, lines: int = 3) -> str:
    return " | ".join(log.read_text(errors="replace").strip().splitlines()[-lines:])
