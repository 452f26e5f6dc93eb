"""The one reference that a request takes: it names tables, dense half and version together, so no request sees half.

Readers never wait. The writer changes a side only after `drained` has said that nobody reads it any more.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Generic, Protocol, TypeVar

Side = TypeVar("Side")
Read = TypeVar("Read", covariant=True)


class Reading(Protocol[Read]):
    """The readers' end of a switch."""

    @property
    def current(self) -> Read | None:
        """The side that new readers get; None before the first flip."""

    def reading(self) -> AbstractContextManager[Read | None]:
        """Hold the current side; it will not be changed before the block is left."""


class Switch(Generic[Side]):
    """Hands out the current side and counts who reads which.

    >>> switch = Switch[str]()
    >>> switch.flip("a")
    >>> with switch.reading() as side:
    ...     switch.flip("b")
    ...     side, switch.drained("a", timeout_s=0), switch.current
    ('a', False, 'b')
    >>> switch.drained("a", timeout_s=0)
    True
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers: Counter[int] = Counter()
        self._current: Side | None = None

    @property
    def current(self) -> Side | None:
        """The side that new readers get; None before the first flip."""
        return self._current

    def flip(self, side: Side) -> None:
        """Give `side` to every reader from now on."""
        self._current = side

    @contextmanager
    def reading(self) -> Iterator[Side | None]:
        """Hold the current side; it will not be changed before the block is left."""
        with self._changed:
            # Under the lock: between reading the reference and counting, a writer could find the side drained.
            side = self._current
            self._readers[id(side)] += 1
        try:
            yield side
        finally:
            with self._changed:
                self._readers[id(side)] -= 1
                if not self._readers[id(side)]:
                    del self._readers[id(side)]
                    self._changed.notify_all()

    def drained(self, side: Side, *, timeout_s: float) -> bool:
        """Wait until nobody reads `side`, which must not be the current one; False when somebody still does."""
        with self._changed:
            return self._changed.wait_for(lambda: id(side) not in self._readers, timeout_s)
