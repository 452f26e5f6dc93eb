"""Ends this process at a named point, as `kill -9` would: for the fault harness (tests/faults)."""

import os
import signal

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


def faults_from(text: str) -> FaultPoints:
    """Read `POINT:NTH`, as an entry point finds it in the environment; nothing happens when it is empty.

    >>> faults_from("") is NO_FAULTS
    True
    """
    if not text:
        return NO_FAULTS
    point, separator, nth = text.rpartition(":")
    if not separator or not nth.isdigit():
        raise ValueError(f"a fault is POINT:NTH, for example commit.manifest_linked:3, got {text!r}")
    return KillAt(point, int(nth))
