"""Who goes first on a core that several threads want: requests before what applies versions.

A thread that has been running keeps its core for a slice, a few milliseconds, also from threads that wake up there, and
whatever their priorities. Since Linux 6.12 one that asks for a shorter slice than that thread's takes the core at once
(sched_setattr(2), `sched_runtime`). Older kernels ignore what is asked.
"""

import ctypes
import logging
import os
import platform
import struct
import threading
from typing import Final, Protocol

logger = logging.getLogger(__name__)

REQUESTS_NS: Final = 100_000
VERSIONS_NS: Final = 3_000_000

# By machine, since the C library knows the call only from glibc 2.41 on.
_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274}
_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQ")
_NICEST: Final = 19


class SystemCall(Protocol):
    """syscall(2)."""

    def __call__(self, number: int, thread: int, attributes: bytes, flags: int) -> int:
        """Return 0, or -1 where the kernel refuses."""
        ...


def linux() -> SystemCall:
    """The system call of this process."""
    call: SystemCall = ctypes.CDLL(None, use_errno=True).syscall
    return call


def take_turns(slice_ns: int, *, nicer: int, call: SystemCall) -> bool:
    """Ask for slices of that length for this thread and those that it starts, and be so much nicer than now.

    False, and nothing else than the niceness is changed, where there is another policy than the usual one, or no such
    system call.
    """
    thread = threading.get_native_id()
    niceness = min(_NICEST, os.getpriority(os.PRIO_PROCESS, thread) + nicer)
    os.setpriority(os.PRIO_PROCESS, thread, niceness)
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, niceness, 0, slice_ns, 0, 0)
    if call(number, 0, attributes, 0) != 0:
        logger.info("slices stay as the kernel makes them error=%s", os.strerror(ctypes.get_errno()))
        return False
    return True
