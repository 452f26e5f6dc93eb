"""Ends this process at a named point, as `kill -9` would: for the fault harness (benchmarks/faults)."""

import os
import signal
from pathlib import Path

from checkpointer.faults import NO_FAULTS, FaultPoints


class KillAt:
    """SIGKILL this process when `point` is reached for the `nth` time."""

    def __init__(self, point: str, nth: int) -> None:
        self._point = point
        self._left = nth

    def reached(self, point: str) -> None:
        """Count `point`; does not return when it is the one."""
        if point != self._point:
            return
        self._left -= 1
        if self._left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


class RecordAt:
    """Write every point that is reached to a file, one a line: what a harness may choose from."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def reached(self, point: str) -> None:
        """Append `point`."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{point}\n")


def faults_from(text: str) -> FaultPoints:
    """Read `POINT:NTH` or `record=PATH`, as an entry point finds it in the environment; empty: nothing.

    >>> faults_from("") is NO_FAULTS
    True
    """
    if not text:
        return NO_FAULTS
    if text.startswith("record="):
        return RecordAt(Path(text.removeprefix("record=")))
    point, separator, nth = text.rpartition(":")
    if not separator or not nth.isdigit():
        raise ValueError(f"a fault is POINT:NTH, for example commit.manifest_linked:3, got {text!r}")
    return KillAt(point, int(nth))
