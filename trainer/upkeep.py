"""Compaction and garbage collection of the commit log where no publisher does it: in a child process, under their lock.

`python -m trainer.upkeep CONFIG` is that child.
"""

import fcntl
import logging
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from checkpointer.bases import newest_base
from checkpointer.errors import CheckpointError, LockedError
from checkpointer.maintenance import maintain_model
from checkpointer.open_store import StoreOptions, open_store
from checkpointer.store import Store
from protos.load import load_config

logger = logging.getLogger(__name__)

_NICE = 10
_LOOK_EVERY = 16
# publisher/lock.py; a publisher that runs does the upkeep itself.
_PUBLISHER_LOCK = "publisher.lock"


class Upkeep:
    """Start the child every `every` commits, one at a time; never when a publisher holds its lock.

    Also when commits have grown to what makes compaction due by bytes (`enough`, which may read a manifest): large
    ones make a restore long before there are many of them. The child judges by itself.
    """

    def __init__(
        self,
        config_path: str,
        directory: str,
        *,
        every: int,
        start: Callable[[str], subprocess.Popen[bytes]],
        enough: Callable[[], float] = lambda: math.inf,
    ):
        self._config_path = config_path
        self._directory = directory
        self._every = max(1, every)
        self._start = start
        self._enough = enough
        self._grown = 0
        self._child: subprocess.Popen[bytes] | None = None

    def after_commit(self, seq: int, size: int) -> None:
        """Tidy up when it is time; `size` are the commit's bytes."""
        self._grown += size
        if not self._directory or not self._is_time(seq):
            return
        if self._child is not None and self._child.poll() is None:
            return
        if not _is_held(Path(self._directory) / _PUBLISHER_LOCK):
            self._grown = 0
            self._child = self._start(self._config_path)

    def _is_time(self, seq: int) -> bool:
        return seq % self._every == 0 or (seq % _LOOK_EVERY == 0 and self._grown >= self._enough())

    def wait(self) -> None:
        """Wait for the child; a trainer that leaves does not, since the child needs nothing of it."""
        if self._child is not None:
            self._child.wait()


def bytes_due(store: Store, ratio: float) -> float:
    """The bytes of commits that make compaction due; infinite while that cannot be told."""
    try:
        base = newest_base(store, sys.maxsize)
    except CheckpointError as error:
        # Retention may have removed it meanwhile; training does not end for that.
        logger.warning("the newest base cannot be read error=%s", error)
        return math.inf
    return ratio * base.bytes if base is not None else 0.0


def start_child(config_path: str) -> subprocess.Popen[bytes]:
    """Start `python -m trainer.upkeep`."""
    return subprocess.Popen([sys.executable, "-m", "trainer.upkeep", config_path], stdin=subprocess.DEVNULL)


def _is_held(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def main(arguments: list[str]) -> None:
    """Tidy the log of one configuration, politely."""
    os.nice(_NICE)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    config = load_config(arguments[0])
    store = open_store(config.model_dir, StoreOptions.from_proto(config.checkpoint_config.s3))
    try:
        maintain_model(store, config, now_ms=time.time_ns() // 1_000_000, holder=f"trainer of {store.url}")
    except LockedError as error:
        logger.info("the log is being tidied already: %s", error)


if __name__ == "__main__":
    main(sys.argv[1:])
