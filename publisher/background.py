"""Work beside publishing, in child processes, one of a kind at a time: compiling, rebasing, tidying the log."""

import logging
import os
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

logger = logging.getLogger(__name__)

# Training and publishing come first.
_NICENESS = 10
# As a shell counts it: ended by SIGHUP, which says the same of terminals.
_ORPHANED = 129


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
    """Niced child processes: `command` and then the task and its arguments.

    A child's input is a pipe that nobody writes to. It ends with this process, however that dies: `end_with` sees it.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, task: str, *arguments: str) -> bool:
        """Spawn a child."""
        if task in self._running:
            return False
        child = subprocess.Popen([*self._command, task, *arguments], stdin=subprocess.PIPE)
        os.setpriority(os.PRIO_PROCESS, child.pid, _NICENESS)
        self._running[task] = child
        logger.info("task started task=%s pid=%d", task, child.pid)
        return True

    def ended(self) -> list[Ended]:
        """Reap children."""
        done = {task: code for task, child in self._running.items() if (code := child.poll()) is not None}
        for task, code in done.items():
            _close_input(self._running.pop(task))
            logger.log(logging.ERROR if code else logging.INFO, "task ended task=%s code=%d", task, code)
        return [Ended(task=task, ok=code == 0) for task, code in done.items()]

    def close(self) -> None:
        """Kill children."""
        for child in self._running.values():
            child.kill()
            child.wait()
            _close_input(child)
        self._running.clear()


def _close_input(child: subprocess.Popen[bytes]) -> None:
    if child.stdin is not None:
        child.stdin.close()


def end_with(pipe: int) -> None:
    """End this process as soon as its input, `pipe`, ends: after a kill, the next publisher starts the task again."""

    def watch() -> None:
        # Not through sys.stdin: a thread inside a buffered read aborts the interpreter's end.
        while os.read(pipe, 1):
            continue
        os._exit(_ORPHANED)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


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
