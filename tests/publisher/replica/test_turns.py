"""What a thread asks of the scheduler."""

import os
import struct
import threading
from collections.abc import Callable

from publisher.replica.turns import VERSIONS_NS, linux, take_turns

Called = tuple[int, int, int, int]


def on_a_thread(work: Callable[[], object]) -> None:
    """What is asked for must not stay with the tests' own thread."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def nice(thread: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, thread)


def test_slice_and_niceness_are_asked_for_in_one_call() -> None:
    asked: list[Called] = []

    def call(number: int, thread: int, attributes: bytes, flags: int) -> int:
        size, policy, _, niceness, _, runtime, _, _ = struct.unpack("=IIQiIQQQ", attributes)
        asked.append((policy, niceness, runtime, size - len(attributes)))
        return 0

    found: list[bool] = []
    on_a_thread(lambda: found.append(take_turns(VERSIONS_NS, nicer=5, call=call)))
    if os.sched_getscheduler(0) == os.SCHED_OTHER:
        assert (found, asked) == ([True], [(os.SCHED_OTHER, min(19, nice(0) + 5), 3_000_000, 0)])
    else:
        assert (found, asked) == ([False], [])


def test_kernel_that_refuses_leaves_the_niceness() -> None:
    found: list[object] = []

    def work() -> None:
        found.append(take_turns(VERSIONS_NS, nicer=3, call=lambda *_: -1))
        found.append(nice(threading.get_native_id()))

    before = nice(0)
    on_a_thread(work)
    assert found == [False, min(19, before + 3)]


def test_real_kernel_does_not_fail_the_thread() -> None:
    found: list[int] = []

    def work() -> None:
        take_turns(VERSIONS_NS, nicer=2, call=linux())
        found.append(nice(threading.get_native_id()))

    before = nice(0)
    on_a_thread(work)
    assert found == [min(19, before + 2)]
