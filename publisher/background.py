"""Work beside publishing, in child processes, one of a kind at a time: compiling, rebasing, tidying the log."""

import logging
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

logger = logging.getLogger(__name__)

# Training and publishing come first.
_NICENESS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """A task that ended."""

    task: str
    ok: bool


class Background(Protocol):
    """Runs named tasks; their results lie in the store."""

    def start(self, task: str, *arguments: str) -> bool:
        """Begin a task; False where one of that name is running."""
        ...

    def ended(self) -> list[Ended]:
        """The tasks that ended since the last call."""
        ...

    def close(self) -> None:
        """Stop what is running; every task may die at any instruction."""
        ...


class Children:
    """Niced child processes: `command` and then the task and its arguments."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, task: str, *arguments: str) -> bool:
        """Spawn a child."""
        if task in self._running:
            return False
        child = subprocess.Popen([*self._command, task, *arguments], stdin=subprocess.DEVNULL)
        os.setpriority(os.PRIO_PROCESS, child.pid, _NICENESS)
        self._running[task] = child
        logger.info("task started task=%s pid=%d", task, child.pid)
        return True

    def ended(self) -> list[Ended]:
        """Reap children."""
        done = {task: code for task, child in self._running.items() if (code := child.poll()) is not None}
        for task, code in done.items():
            del self._running[task]
            logger.log(logging.ERROR if code else logging.INFO, "task ended task=%s code=%d", task, code)
        return [Ended(task=task, ok=code == 0) for task, code in done.items()]

    def close(self) -> None:
        """Kill children."""
        for child in self._running.values():
            child.kill()
            child.wait()
        self._running.clear()


class NoBackground:
    """Does nothing: versions keep their first base and name no artefact."""

    def start(self, task: str, *arguments: str) -> bool:
        """Begin nothing."""
        return False

    def ended(self) -> list[Ended]:
        """Nothing ends."""
        return []

    def close(self) -> None:
        """Stop nothing."""
