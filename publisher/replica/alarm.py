"""The staleness alert: one log line when the served version becomes too old, one when it is fresh again."""

import logging
from collections.abc import Callable

from publisher.replica.serving import Servable
from publisher.replica.switch import Reading

logger = logging.getLogger(__name__)


class StalenessAlarm:
    """Compares the age of the newest event learned with a limit."""

    def __init__(self, switch: Reading[Servable], limit_s: float, wall_clock: Callable[[], float]) -> None:
        self._switch = switch
        self._limit_s = limit_s
        self._wall_clock = wall_clock
        self._stale = False

    def check(self) -> None:
        """Look once; call it a few times a second."""
        side = self._switch.current
        fresh = side.freshness if side is not None else None
        if side is None or fresh is None:
            return
        age = fresh.staleness_s(self._wall_clock())
        stale = age > self._limit_s
        if stale and not self._stale:
            logger.warning(
                "stale version=%d age=%.1f s limit=%.1f s clock=%s: is trainer or publisher down, or the topic quiet?",
                side.number,
                age,
                self._limit_s,
                fresh.basis,
            )
        elif self._stale and not stale:
            logger.info("fresh again version=%d age=%.1f s", side.number, age)
        self._stale = stale
